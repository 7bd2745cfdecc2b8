"""Who earns over 50,000 dollars, by the census of 1994, found as often among women as among men: equal opportunity, row by row."""

import sys

import numpy as np
from river import linear_model, optim, preprocessing

from bridle import data
from bridle.adapters.river import ConstrainedClassifier, EqualOpportunity
from figures import over_time, rates, show

KINDS = ("workclass", "marital-status", "occupation", "relationship")


def main(rows: int = 32_561, engine: str = "compiled") -> dict:
    """Decide about each person before the income is learned: with the limit, without it, and with river, whose high incomes weigh 3."""
    people = data.load("adult")
    numbers = {name: people[name] for name in ("age", "education-num", "hours-per-week")}
    numbers |= {name: np.log1p(people[name]) for name in ("capital-gain", "capital-loss")}
    columns = numbers | {f"{name} {kind}": 1.0 * people.equals(name, kind) for name in KINDS for kind in people.categories[name]}
    X, y, men = np.column_stack([*columns.values()])[:rows], people.equals("income", ">50K")[:rows], people.equals("sex", "Male")[:rows]
    fair = ConstrainedClassifier(constraints=[EqualOpportunity(gap=0.05)], group="man", engine=engine)
    free = ConstrainedClassifier(engine=engine)
    theirs = preprocessing.StandardScaler() | linear_model.LogisticRegression(loss=optim.losses.Log(weight_pos=3.0))
    decided, scores = {"bridle, EqualOpportunity(0.05)": [], "bridle, no limit": []}, []
    for row, label, man in zip(X.tolist(), y.tolist(), men.tolist(), strict=True):
        x = dict(zip(columns, row, strict=True))
        scores.append(theirs.predict_proba_one(x).get(True, 0.0))
        for model, alarms, features in zip((fair, free), decided.values(), (x | {"man": float(man)}, x), strict=True):
            alarms.append(model.predict_one(features))
            model.learn_one(features, label)
        theirs.learn_one(x, label)
    print(fair.limits_)
    found = {name: np.array(alarms) for name, alarms in decided.items()}
    found["river, high incomes weigh 3"] = np.array(scores) > 0.5
    found["river, thresholds afterwards"] = afterwards(y, men, np.array(scores), rates(y, found["bridle, no limit"])["recall"])
    return {name: over_time(y, alarms) | gaps(y, men, alarms) for name, alarms in found.items()}


def afterwards(y, men, scores, recall):
    """Alarms by the threshold for each group that finds this share of its high incomes: known at the end alone."""
    lines = [np.quantile(scores[y & (men == man)], 1.0 - recall, method="lower") for man in (False, True)]
    return scores >= np.where(men, lines[1], lines[0])


def gaps(y, men, alarms, windows=4):
    """How much more often high incomes are found among men: over all rows, and in each of so many parts of them."""

    def gap(part):
        return float(alarms[part & y & men].mean() - alarms[part & y & ~men].mean())

    parts = np.arange(len(y)) * windows // len(y)
    return {"gap": gap(parts >= 0), "gap by window": [gap(parts == i) for i in range(windows)]}


if __name__ == "__main__":
    show(main(*map(int, sys.argv[1:])))
