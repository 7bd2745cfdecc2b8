"""
Limits read with noise: on average, or not at all
=================================================

If the value of a constraint is measured with errors, no policy can keep a hard limit cheaply: it must answer every
positive reading, true or not. ``soft`` adds readings up, so that errors cancel, and keeps the limit on average.
``anytime`` flees from it.

Read more: :doc:`/budgets`.
"""

import matplotlib.pyplot as plt
import numpy as np

import bridle

rounds = 1500
names = {"anytime (hard limits)": ("anytime", {}), "soft (on average)": ("soft", {"noise": 0.58})}
played = {}
for name, (policy, settings) in names.items():
    rng = np.random.default_rng(0)
    session, xs = bridle.Session(bridle.policy(policy, bridle.Ball(2), **settings), certify=False), np.empty(rounds)
    for t in range(rounds):
        x = session.decide()
        xs[t] = x[0]
        session.observe(f=-x[0], df=[-1.0, 0.0], g=x[0] + 0.3 + rng.uniform(-1.0, 1.0), dg=[1.0, 0.0])
    played[name] = xs

# %%
# The best action has x[0] = -0.3. Regret is what was lost against it; the true sum of the constraint is what was
# overspent.

for name, xs in played.items():
    print(f"{name:22} regret {np.sum(-0.3 - xs):7.1f}   true sum of the constraint {np.sum(xs + 0.3):7.1f}")

# %%

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for (name, xs), color in zip(played.items(), ("#D55E00", "#0072B2"), strict=True):
    left.plot(xs, color=color, linewidth=0.8, label=name)
    right.plot(np.cumsum(xs + 0.3), color=color, label=name)
left.axhline(-0.3, color="black", linestyle="--", linewidth=1, label="the limit")
left.set(xlabel="round", ylabel="decision x[0]", title="Every reading is wrong by up to 1")
left.legend(loc="upper right")
rounds_so_far = np.arange(1, rounds + 1)
right.plot(rounds_so_far, np.sqrt(rounds_so_far), color="#999999", linewidth=0.8, label="sqrt(t), for scale")
right.axhline(0.0, color="black", linewidth=0.6)
right.set(xlabel="round", ylabel="true sum of the constraint", title="Above 0: overspent. Far below 0: wasted", yscale="symlog")
right.legend(loc="lower left")
plt.show()
