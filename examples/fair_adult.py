"""A classifier on the census of 1994 whose mean score must not differ between men and women, against one that is free to."""

import sys

import numpy as np

from bridle import data
from bridle.adapters.sklearn import ConstrainedClassifier, GroupGap


def main(rows: int = 20_000) -> dict[str, dict[str, float]]:
    """Accuracy, and the gaps in mean score and in the share that is predicted to earn over 50,000 dollars, on rows not learned from."""
    people = data.load("adult")
    numbers = [people[name] for name in ("age", "education-num", "hours-per-week")]
    numbers += [np.log1p(people[name]) for name in ("capital-gain", "capital-loss")]
    kinds = [people.equals(c, kind) for c in ("workclass", "marital-status", "occupation", "relationship") for kind in people.categories[c]]
    X, y, men = np.column_stack([*numbers, *kinds]).astype(float), people.equals("income", ">50K"), people.equals("sex", "Male")
    learned, fresh, found = slice(0, rows), slice(rows, None), {}
    for name, constraints in (("free", []), ("fair", [GroupGap(at_most=0.1, lookback=1000)])):
        model = ConstrainedClassifier(constraints, radius=3.0, scale=True).fit(X[learned], y[learned], groups=men[learned])
        scores, man = model.decision_function(X[fresh]), men[fresh]
        high = scores > 0.0
        found[name] = {
            "accuracy": float((high == y[fresh]).mean()),
            "score_gap": float(scores[man].mean() - scores[~man].mean()),
            "rate_gap": float(high[man].mean() - high[~man].mean()),
        }
    return found


if __name__ == "__main__":
    print(main(*map(int, sys.argv[1:])))
