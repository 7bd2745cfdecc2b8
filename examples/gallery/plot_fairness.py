"""
Equal opportunity between two groups
====================================

Of those who would pay back, loans go to nine in ten of one group and to fewer of the other, because the score is
noisier there. ``EqualOpportunity`` moves one threshold for each group until the shares differ by at most what was
asked. The applicants are made up; ``examples/fair_adult.py`` has a census.

Read more: :doc:`/adapters`.
"""

import matplotlib.pyplot as plt
import numpy as np

from bridle.adapters.sklearn import ConstrainedClassifier, EqualOpportunity

rng = np.random.default_rng(0)
rows = 4000
group = (rng.random(rows) < 0.35).astype(float)
ability = rng.standard_normal(rows)
pays = ability + 0.4 * rng.standard_normal(rows) > 0.0
shown = ability + np.where(group > 0, 1.0, 0.3) * rng.standard_normal(rows)  # what the bank sees
X = np.column_stack([shown, rng.standard_normal((rows, 2))])


def streamed(constraints, part=100):
    """Decide a part of the rows, then learn it: the decisions, made before any label of the part was known."""
    model, given = ConstrainedClassifier(constraints=constraints), []
    for start in range(0, rows, part):
        here = slice(start, start + part)
        given.append(model.predict(X[here], groups=group[here]) if start else np.zeros(part, dtype=bool))
        model.partial_fit(X[here], pays[here], groups=group[here], classes=[False, True])
    return np.concatenate(given).astype(bool)


free, fair = streamed([]), streamed([EqualOpportunity(gap=0.05)])

# %%
# The gap closes, and accuracy pays for it.

after = np.arange(rows) >= 1000
for name, loans in (("no limit", free), ("gap at most 0.05", fair)):
    shares = [loans[after & pays & (group == g)].mean() for g in (0, 1)]
    right = np.mean(loans[after] == pays[after])
    print(f"{name:17} loans to {shares[0]:.3f} and {shares[1]:.3f} of those who pay back; accuracy {right:.3f}")

# %%
# The bound behind it needs rows: a gap of 0.05 means little before some 1,600 counted rows of each group. The
# picture shows the gap so far.

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for name, loans, color in (("no limit", free, "#D55E00"), ("EqualOpportunity(gap=0.05)", fair, "#0072B2")):
    found = [np.cumsum(loans & pays & (group == g)) / np.maximum(np.cumsum(pays & (group == g)), 1) for g in (0, 1)]
    left.plot(np.arange(rows)[500:], (found[0] - found[1])[500:], color=color, label=name)
    right.plot(np.arange(rows)[500:], (np.cumsum(loans == pays) / np.arange(1, rows + 1))[500:], color=color, label=name)
left.axhline(0.05, color="black", linestyle="--", linewidth=1, label="asked for")
left.axhline(0.0, color="black", linewidth=0.6)
left.set(xlabel="applicant", ylabel="gap in the share of loans", title="Won: the gap among those who pay back")
right.set(xlabel="applicant", ylabel="accuracy so far", title="Lost: accuracy")
left.legend()
plt.show()
