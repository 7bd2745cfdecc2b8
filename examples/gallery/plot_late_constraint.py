"""
A decision meets a constraint that comes too late
=================================================

One round: the policy decides, the world then reveals a cost and a constraint, the decision pays for both, and the
next decision is better. Six moments of one game in the plane show it. The cost pulls to the right; each half-plane
forbids a part of the disc, and is seen only after the decision.

Read more: :doc:`/anytime`.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Circle

import bridle

rng = np.random.default_rng(258)
session = bridle.Session(bridle.policy("anytime", bridle.Ball(2)), x1=[0.85, 0.25])
steps = []
for _ in range(6):
    x = session.decide()
    angle = np.arctan2(x[1], x[0]) + rng.uniform(-0.9, 0.9)  # the world answers the decision
    a, b = np.array([np.cos(angle), np.sin(angle)]), rng.uniform(0.35, 0.55)
    g = float(a @ x - b)  # above 0: violated
    session.observe(f=float(-x[0]), df=[-1.0, 0.0], g=g, dg=a)
    steps.append((x, a, b, g, session.decide(), session.ccv))

# %%
# Red: the violation, which nobody could have known before. Grey: constraints that were revealed earlier; the policy
# remembers those that it broke. A violation is paid in full and counts for ever (CCV); there is no way to take it
# back.


def draw(axis, number):
    """Round `number` of the game: what is forbidden, what was decided, and where the next decision goes."""
    x, a, _, g, following, ccv = steps[number]
    disc = axis.add_patch(Circle((0, 0), 1.0, facecolor="#EAF3FA", edgecolor="#555555"))
    across = np.linspace(-1.6, 1.6, 2)
    for earlier in range(number + 1):
        normal, offset = steps[earlier][1:3]
        along = np.array([-normal[1], normal[0]])
        ends = normal * offset + across[:, None] * along
        beyond = np.vstack([ends, ends[::-1] + 3.0 * normal])
        new = earlier == number
        axis.fill(*beyond.T, color="#D55E00" if new else "#999999", alpha=0.30 if new else 0.18, linewidth=0, clip_path=disc)
        axis.plot(*ends.T, color="#D55E00" if new else "#999999", linewidth=1.6 if new else 0.8, clip_path=disc)
    if g > 0.0:
        axis.plot(*np.array([x, x - g * a]).T, color="red", linewidth=2.5, zorder=3)
    axis.annotate("", following, x, arrowprops={"arrowstyle": "->", "color": "#0072B2"})
    axis.plot(*x, "o", color="black", zorder=4)
    axis.plot(*following, "o", color="#0072B2", markersize=5, zorder=4)
    axis.set(xlim=(-1.05, 1.05), ylim=(-1.05, 1.05), aspect="equal", xticks=[], yticks=[])
    axis.set_title(f"round {number + 1}: violation {max(g, 0.0):.2f}, CCV {ccv:.2f}", fontsize=10)


fig, axes = plt.subplots(2, 3, figsize=(9, 6.6), layout="constrained")
for number, axis in enumerate(axes.flat):
    draw(axis, number)
fig.suptitle("Black: the decision. Orange: the constraint revealed after it. Blue: the next decision.", fontsize=11)
if len(sys.argv) > 1:  # python plot_late_constraint.py round.png
    fig.savefig(sys.argv[1], dpi=110)
plt.show()

# %%
# Keeping to the constraints costs something too: the cheapest decision of the disc would be its rightmost point.
# That is what regret measures.

print(f"cost {session.cost:.2f} over {session.rounds} rounds, cumulative violation {session.ccv:.2f}")
