"""
Where no policy can do better
=============================

On the paper's lower-bound problem every policy has at least sqrt(T)/4 of regret and of cumulative violation (CCV).
The problem grows with the horizon: T rounds need T dimensions. All policies end at the same point, between the
lower bound and their own upper bounds.

Read more: :doc:`/theorems`.
"""

import matplotlib.pyplot as plt
import numpy as np

import bridle
from bridle.game.summary import summary

horizons = np.array([25, 100, 400, 900])
names = ["anytime", "sinha2024", "ogd"]
found = {name: [] for name in names}
for horizon in horizons:
    problem = bridle.problem("lower-bound", horizon=int(horizon), seed=0, dim=int(horizon))
    for name in names:
        trace = bridle.play(bridle.policy_for(name, problem), problem)
        bound = summary(trace)
        found[name].append((bridle.regret(trace), bridle.ccv(trace), bound["regret_bound"], bound["ccv_bound"]))

# %%
# ``ogd`` ignores constraints, and has no bound on violation. Here it does no worse than the others, because nothing
# helps.

fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharex=True)
for column, (axis, what) in enumerate(zip(axes, ("regret", "CCV"), strict=True)):
    for name, marker, color in zip(names, "os^", ("#0072B2", "#D55E00", "#009E73"), strict=True):
        table = np.array(found[name], dtype=float)
        axis.loglog(horizons, table[:, column], marker=marker, color=color, fillstyle="none", label=name)
        if not np.isnan(table[:, 2 + column]).any():
            axis.loglog(horizons, table[:, 2 + column], color=color, linestyle="--", linewidth=1)
    axis.loglog(horizons, np.sqrt(horizons) / 4, color="black", linestyle=":", label="no policy is below: sqrt(T)/4")
    axis.set(xlabel="horizon T (rounds)", ylabel=f"{what} at T", title=f"{what}. Dashed: upper bounds of the theorems")
axes[0].legend()
plt.show()
