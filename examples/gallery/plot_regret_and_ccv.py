"""
Regret and violation beside their theorems
==========================================

The paper's Algorithm 1 and bridle's own policy ``anytime`` play the same stream: random half-spaces in ten
dimensions. Both keep the bounds of their theorems. They differ by a factor of several hundred in violation, and
neither bound says so.

Read more: :doc:`/exponents`.
"""

import matplotlib.pyplot as plt

import bridle

horizon = 4000
problem = bridle.problem("halfspaces", horizon=horizon, seed=0, dim=10)
paper = bridle.play(bridle.policy("sinha2024", problem.domain, horizon=horizon, lipschitz=1.0), problem)
own = bridle.play(bridle.policy("anytime", problem.domain), problem)

# %%
# Algorithm 1 must be told the horizon and a Lipschitz constant. ``anytime`` must be told nothing; its bound uses
# ``V``, a weight that it sets in round 1.

games = [
    ("Algorithm 1 (sinha2024)", paper, problem.constants, "#D55E00"),
    ("anytime", own, problem.constants | {"V": own.state.V}, "#0072B2"),
]
for name, trace, constants, _ in games:
    bound = trace.policy.bound(constants, horizon)
    print(f"{name:24} regret {bridle.regret(trace):6.1f} of {bound.regret:4.0f}   CCV {bridle.ccv(trace):7.1f} of {bound.ccv:5.0f}")

# %%
# Regret below zero is not a win. It compares with the best action that meets every constraint, and a policy that
# breaks constraints can be cheaper than that. So read both panels together: what was gained on the left was paid
# for on the right.

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for name, trace, constants, color in games:
    rounds, regret = bridle.regret_curve(trace)
    _, ccv = bridle.ccv_curve(trace)
    bounds = [trace.policy.bound(constants, t) for t in rounds]
    left.plot(rounds, regret, color=color, label=name)
    left.plot(rounds, [bound.regret for bound in bounds], color=color, linestyle="--")
    right.loglog(rounds, ccv, color=color, label=name)
    right.loglog(rounds, [bound.ccv for bound in bounds], color=color, linestyle="--")
left.axhline(0.0, color="black", linewidth=0.6)
left.set(xlabel="round", ylabel="regret (units of cost)", title="Regret. Dashed: the theorem's bound", yscale="symlog")
right.set(xlabel="round", ylabel="CCV (units of the constraint)", title="Cumulative violation. Dashed: the bound")
left.legend()
plt.show()
