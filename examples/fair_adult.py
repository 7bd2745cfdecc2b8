"""Who earns over 50,000 dollars, by the census of 1994, with equal opportunity: those who do are found as often among women as among men."""

import sys

import numpy as np
from sklearn.linear_model import SGDClassifier
from sklearn.preprocessing import StandardScaler

from bridle import data
from bridle.adapters.sklearn import ConstrainedClassifier, EqualOpportunity
from figures import over_time, rates, show


def main(rows: int = 32_561, batch: int = 500, engine: str = "numba") -> dict:
    """Decide about each batch before it is learned, by our model and by scikit-learn's, which weighs classes and knows nothing of groups."""
    people = data.load("adult")
    numbers = [people[name] for name in ("age", "education-num", "hours-per-week")]
    numbers += [np.log1p(people[name]) for name in ("capital-gain", "capital-loss")]
    kinds = [people.equals(c, kind) for c in ("workclass", "marital-status", "occupation", "relationship") for kind in people.categories[c]]
    X, y, men = (
        each[:rows]
        for each in (np.column_stack([*numbers, *kinds]).astype(float), people.equals("income", ">50K"), people.equals("sex", "Male"))
    )
    fair, free = (ConstrainedClassifier(constraints=limits, engine=engine) for limits in ([EqualOpportunity(gap=0.05)], None))
    scaler, theirs, scores = StandardScaler(), SGDClassifier(loss="log_loss", class_weight={False: 1.0, True: 3.0}, random_state=0), []
    decided = {"bridle, EqualOpportunity(0.05)": [], "bridle, no limit": [], "scikit-learn, high earners weigh 3": []}
    for start in range(0, rows, batch):
        now, labels, men_now = X[start : start + batch], y[start : start + batch], men[start : start + batch]
        if start:
            scores.append(theirs.decision_function(scaler.transform(now)))
            answers = fair.predict(now, groups=men_now), free.predict(now), scores[-1] > 0.0
            for alarms, answer in zip(decided.values(), answers, strict=True):
                alarms.append(answer)
        fair.partial_fit(now, labels, classes=[False, True], groups=men_now)
        free.partial_fit(now, labels, classes=[False, True])
        theirs.partial_fit(scaler.partial_fit(now).transform(now), labels, classes=[False, True])
    print(fair.limits_)
    y, men = y[batch:], men[batch:]
    found = {name: np.concatenate(alarms) for name, alarms in decided.items()}
    found["scikit-learn, thresholds afterwards"] = group_thresholds(
        y, men, np.concatenate(scores), rates(y, next(iter(found.values())))["recall"]
    )
    return {name: over_time(y, alarms) | gaps(y, men, alarms) for name, alarms in found.items()}


def group_thresholds(y, men, scores, recall):
    """Alarms by the threshold for each group that finds this share of its high earners: known afterwards alone."""
    lines = [np.quantile(scores[y & (men == man)], 1.0 - recall, method="lower") for man in (False, True)]
    return scores >= np.where(men, lines[1], lines[0])


def gaps(y, men, alarms, windows=4):
    """How much more often men's high incomes are found than women's: over all rows, and in each quarter of them."""

    def gap(part):
        return float(alarms[part & y & men].mean() - alarms[part & y & ~men].mean())

    quarters = np.arange(len(y)) * windows // len(y)
    return {"gap": gap(y | True), "gap by quarter": [gap(quarters == i) for i in range(windows)]}


if __name__ == "__main__":
    show(main(*map(int, sys.argv[1:])))
