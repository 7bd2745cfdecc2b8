"""
A world that moves: how long to remember
========================================

``anytime`` never forgets: after one peak of demand it stays at the peak. With ``window="auto"`` it mixes memories
of several lengths and learns which is right. What it buys is lower cost; what it pays with is violation after each
change.

Read more: :doc:`/moving`.
"""

import matplotlib.pyplot as plt
import numpy as np

import bridle

rounds = 800
rng = np.random.default_rng(0)
level = np.repeat([2.0, 8.0, 3.0, 5.0], rounds // 4)
demand = level + 0.3 * rng.standard_normal(rounds)

played, ccv = {}, {}
for window in (None, 64, "auto"):
    session = bridle.Session(bridle.policy("anytime", bridle.Box(0.0, 12.0, dim=1), window=window), certify=False)
    held = np.empty(rounds)
    for t in range(rounds):
        held[t] = session.decide()[0]
        session.observe(f=held[t], df=[1.0], g=demand[t] - held[t], dg=[-1.0])
    played[window], ccv[window] = held, session.ccv

# %%
# Cost is what was held; CCV is what was missing, in all.

for window, held in played.items():
    print(f"window={window!s:5} held {held.sum():6.0f}, demand {demand.sum():.0f}; missing in all {ccv[window]:.0f}")

# %%

fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained", width_ratios=(2, 1))
left.plot(demand, color="#BBBBBB", linewidth=0.8, label="demand")
colors = ("#D55E00", "#009E73", "#0072B2")
for (window, held), color in zip(played.items(), colors, strict=True):
    left.plot(held, color=color, linewidth=1.1, label=f"window={window}")
left.set(xlabel="round", ylabel="capacity (units)", title="Demand changes three times")
left.legend()
for (window, held), color in zip(played.items(), colors, strict=True):
    right.plot(held.sum() - demand.sum(), ccv[window], "o", color=color, markersize=9, label=f"window={window}")
right.set(
    xlabel="held beyond demand (units)",
    ylabel="missing in all, CCV (units)",
    title="The trade: lower left is better",
    xlim=(0, None),
    ylim=(0, None),
)
right.legend()
plt.show()
