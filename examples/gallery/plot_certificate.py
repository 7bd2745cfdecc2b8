"""
What a run proves of itself
===========================

A certificate bounds the regret of the run that has happened, from the values and gradients that were observed, for
every feasible action at once. The theorem bounds every run that could have happened. The first is usually far
smaller.

Read more: :doc:`/guides/read-a-certificate`.
"""

import matplotlib.pyplot as plt
import numpy as np

import bridle

rng = np.random.default_rng(0)
session = bridle.Session(bridle.policy("anytime", bridle.Ball(3)))
looks, rows = np.unique(np.geomspace(4, 1000, 24).astype(int)), []
for t in range(1, 1001):
    x = session.decide()
    a = rng.standard_normal(3)
    a = np.append(abs(a[0]), a[1:]) / np.linalg.norm(a)
    session.observe(f=-x[0], df=[-1.0, 0.0, 0.0], g=a @ x - 0.3, dg=a)
    if t in looks:
        found = session.certificate()
        rows.append((found.regret, found.regret_algorithm, found.bound.regret, session.ccv, found.bound.ccv))

# %%
# The report says the same in sentences.

print(session.report())

# %%
# A certified regret below zero means: every feasible action would have cost more. It does not mean that nothing was
# lost: the right panel has the violation that was the price. Certificates assume convexity, and that values and
# gradients are right.

table = np.array(rows)
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.plot(looks, table[:, 2], "--", color="black", label="theorem: any stream with such gradients")
left.plot(looks, table[:, 1], color="#009E73", label="the policy's proof, this run")
left.plot(looks, table[:, 0], color="#0072B2", label="certificate: observations alone")
left.axhline(0.0, color="black", linewidth=0.6)
left.set(xlabel="round", ylabel="regret at most (units of cost)", title="Upper bounds on regret", xscale="log")
left.legend()
right.loglog(looks, table[:, 4], "--", color="black", label="theorem")
right.loglog(looks, np.maximum(table[:, 3], 1e-2), color="#D55E00", label="measured")
right.set(xlabel="round", ylabel="CCV (units of the constraint)", title="Cumulative violation")
right.legend()
plt.show()
