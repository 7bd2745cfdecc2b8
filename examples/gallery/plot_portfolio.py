"""
A portfolio under a limit on risk
=================================

The risk of a split is predicted from the last 60 days, so the limit of a day is known before acting:
``decide(known=...)`` keeps it, always. Growth is not known. Prices are made up: three risky assets and cash.

Read more: :doc:`/portfolio`.
"""

import matplotlib.pyplot as plt
import numpy as np

import bridle

rng = np.random.default_rng(0)
days, lookback, risk = 500, 60, 0.15
volatility = np.where(np.arange(days)[:, None] < 280, 1.0, 1.8) * [0.008, 0.02, 0.012, 0.0]  # a rougher market from day 280 on
relatives = np.exp([0.0002, 0.0006, 0.0004, 0.0] + volatility * rng.standard_normal((days, 4)))

session = bridle.Session(bridle.policy("ons", bridle.Simplex(4), exp_concavity=1.0))
predicted, equal, grown = [], [], []
for t in range(lookback, days):
    covariance = 252 * np.cov(relatives[t - lookback : t].T)
    x = session.decide(known=bridle.Quadratic(2 * covariance, offset=-(risk**2)))  # x' covariance x <= risk^2
    growth = relatives[t] @ x
    session.observe(f=-np.log(growth), df=-relatives[t] / growth)
    grown.append(np.exp(-session.cost))
    predicted.append(np.sqrt(x @ covariance @ x))
    equal.append((np.sqrt(covariance.sum()) / 4, np.log(relatives[t].mean())))
predicted, equal = np.array(predicted), np.array(equal)

# %%
# The session proves how far it is from the best split that kept every limit. The proof is against every market, so
# it is wide.

wealth, beside = np.exp(-session.cost), np.exp(equal[:, 1].sum())
print(f"wealth: {wealth:.3f}, equal shares {beside:.3f} with the limit broken on {np.mean(equal[:, 0] > risk):.0%} of the days")
print(f"proved: no split that kept every limit has more than {session.certificate().regret_algorithm:.2f} more log-wealth")

# %%
# What is lost: in a market that rises, equal shares without a limit may grow more. The limit is on the risk that
# was predicted, not on the loss that came.

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.plot(100 * equal[:, 0], color="#D55E00", label="equal shares, no limit")
left.plot(100 * predicted, color="#0072B2", label="bridle, limit known")
left.axhline(100 * risk, color="black", linestyle="--", linewidth=1, label="limit")
left.set(xlabel="day", ylabel="predicted volatility over a year (%)", title="Won: the limit holds on every day")
left.legend(loc="lower right")
right.plot(np.exp(np.cumsum(equal[:, 1])), color="#D55E00", label=f"equal shares: {beside:.2f}")
right.plot(grown, color="#0072B2", label=f"bridle: {wealth:.2f}")
right.set(xlabel="day", ylabel="wealth (from 1)", title="What it grew to")
right.legend()
plt.show()
