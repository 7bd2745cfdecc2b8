"""
Never violating a fixed constraint
==================================

Where a constraint stays the same and one action is known to meet it with room to spare, ``hutchinson2025`` never
breaks it: every decision is proved feasible before it is played. That safety costs regret at the start. ``anytime``
needs no safe action, reaches the limit at once, and breaks it on the way.

Read more: :doc:`/zero-violation`.
"""

import matplotlib.pyplot as plt
import numpy as np

import bridle

rounds = 400
cost = bridle.Affine([-1.0, 0.0])  # pulls to the right
wall = bridle.Quadratic(2.0 * np.eye(2), offset=-0.36)  # |x|^2 <= 0.36, so that x[0] = 0.6 is the best action
told = {"horizon": rounds, "lipschitz": 2.0, "slater": 0.36}  # at x = 0 the limit holds with 0.36 to spare
policies = {
    "hutchinson2025": bridle.policy("hutchinson2025", bridle.Ball(2), **told, preset="practice"),
    "anytime": bridle.policy("anytime", bridle.Ball(2)),
}
paths, totals = {}, {}
for name, policy in policies.items():
    session = bridle.Session(policy, x1=[0.0, 0.0])
    paths[name] = [session.step(cost=cost, constraints=[wall])[0] for _ in range(rounds)]
    totals[name] = (session.cost + 0.6 * rounds, session.ccv)

# %%
# Regret is against x[0] = 0.6, the best action that keeps the limit. The safe policy stops short of it: what it was
# told of the constraint does not prove that more is safe.

for name, (regret, ccv) in totals.items():
    print(f"{name:15} regret {regret:6.1f}   cumulative violation {ccv:.3f}")

# %%

fig, axis = plt.subplots(figsize=(8, 4), layout="constrained")
for (name, path), color in zip(paths.items(), ("#0072B2", "#D55E00"), strict=True):
    axis.plot(np.arange(1, rounds + 1), path, color=color, label=f"{name}: regret {totals[name][0]:.0f}, CCV {totals[name][1]:.2f}")
axis.axhline(0.6, color="black", linestyle="--", linewidth=1, label="the limit")
axis.set(xlabel="round", ylabel="decision x[0]", xscale="log", title="From a safe action at 0 towards a limit at 0.6")
axis.legend(loc="lower right")
plt.show()
