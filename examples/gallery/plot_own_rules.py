"""
Rules of one's own, mixed
=========================

Three rules propose a capacity: yesterday's slot, last week's level with a margin, and everything there is. Policy
``mlpoly`` mixes them and learns what each is worth. A missing unit costs 20 times as much as a unit held. After 600
slots the daily rhythm shifts, and the weights follow.

Read more: :doc:`/rules`.
"""

import matplotlib.pyplot as plt
import numpy as np

import bridle

names = ["same slot", "mean + 8", "everything"]
session = bridle.Session(bridle.policy("mlpoly", bridle.Box(0.0, 40.0, dim=1), rules=names), certify=False)
rng = np.random.default_rng(0)
rounds = 1200
weights, cost, alone = np.empty((rounds, 3)), np.empty(rounds), np.empty((rounds, 3))


def paid(x, need):
    """What capacity x costs when `need` is needed."""
    return x + 20.0 * np.maximum(need - x, 0.0)


for t in range(rounds):
    phase = 0.0 if t < 600 else 2.5
    need = 10.0 + 5.0 * np.sin(t / 20.0 + phase) + rng.normal()
    proposals = np.array([12.5 + 5.0 * np.sin(t / 20.0), 18.0, 40.0])  # the first goes on with the old rhythm
    x = session.decide(rules=proposals[:, None])
    session.observe(f=float(paid(x[0], need)), df=[1.0 - 20.0 * float(need > x[0])])
    weights[t], cost[t], alone[t] = session.weights, paid(x[0], need), paid(proposals, need)

# %%
# The mixture pays for learning: in each half the best rule alone is no dearer, but nobody knows in advance which
# one that is.

for part, where in (("first half", slice(0, 600)), ("second half", slice(600, None))):
    print(part, "mixture", round(cost[where].mean(), 1), dict(zip(names, alone[where].mean(axis=0).round(1).tolist(), strict=True)))

# %%

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.stackplot(np.arange(rounds), weights.T, labels=names, colors=["#0072B2", "#E69F00", "#999999"])
left.axvline(600, color="black", linewidth=0.8)
left.set(xlabel="slot", ylabel="weight", title="What each rule is worth", ylim=(0, 1), xlim=(0, rounds))
left.legend(loc="lower left")
for series, name, color in zip(alone.T, names, ("#0072B2", "#E69F00", "#999999"), strict=True):
    right.plot(np.cumsum(series), color=color, label=f"{name} alone")
right.plot(np.cumsum(cost), color="black", label="the mixture")
right.set(xlabel="slot", ylabel="cost so far (units held)", title="What each would have cost", ylim=(0, 2.2 * cost.sum()))
right.legend()
plt.show()
