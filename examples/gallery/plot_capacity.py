"""
Capacity before demand, short in at most 5 % of the slots
=========================================================

Capacity is switched on before demand is known. At most one slot in twenty may have too little. Policy ``rate``
holds that share on every stream; a rule with a margin chosen by hand holds it only as long as the world stays as it
was.

Read more: :doc:`/capacity`.
"""

import matplotlib.pyplot as plt
import numpy as np

import bridle

slots, day = 1500, 96
rng = np.random.default_rng(0)
t = np.arange(slots)
demand = (10 + 6 * np.sin(2 * np.pi * t / day)) * np.exp(0.2 * rng.standard_normal(slots))
demand[900:] *= 1.5  # the world moves: half as much again, from one slot to the next

box = bridle.Box(0.0, 60.0, dim=1)  # 60 units are installed, and always enough
session = bridle.Session(bridle.policy("rate", box, at_most=0.05, safe=[60.0]), certify=False)
held = np.empty(slots)
for slot in range(slots):
    held[slot] = session.decide()[0]
    session.observe(f=held[slot], df=[1.0], g=demand[slot] - held[slot], dg=[-1.0])

# %%
# The rule beside it: the same slot of the day before, and a margin that was right for the first 900 slots, chosen
# with those slots in hand.

yesterday = np.concatenate([np.full(day, 16.0), demand[:-day]])
margin = np.quantile(demand[day:900] / yesterday[day:900], 0.95)
by_rule = margin * yesterday
limit = session.rates[0]
print(f"rate: short in {limit.measured:.1%}, proved at most {limit.proved:.1%}, whatever had come")
for name, series in (("rate", held), ("margin of the past", by_rule)):
    print(f"{name:19} capacity held {series.mean() / demand.mean():.2f} times demand; short in {np.mean(demand > series):.1%} of the slots")

# %%
# What is lost: ``rate`` holds more capacity than the rule on some days, and its proof allows more than the 5 % that
# were asked for in a short run.

fig, (top, bottom) = plt.subplots(2, 1, figsize=(9, 6), layout="constrained")
window = slice(780, 1080)
top.plot(t[window], demand[window], color="#999999", label="demand")
top.plot(t[window], held[window], color="#0072B2", label="held by rate")
top.plot(t[window], by_rule[window], color="#D55E00", linewidth=0.9, label="yesterday + margin")
top.axvline(900, color="black", linewidth=0.6)
top.set(ylabel="capacity (units)", title="Demand grows by half in slot 900")
top.legend(ncols=3)
for name, series, color in (("rate", held, "#0072B2"), ("yesterday + margin", by_rule, "#D55E00")):
    short = np.cumsum(demand > series) / (t + 1.0)
    bottom.plot(t[50:], 100 * short[50:], color=color, label=name)
proved = np.minimum((0.05 * (t + 1) + 81) / (t + 1), 1.0)
bottom.plot(t[200:], 100 * proved[200:], color="black", linestyle="--", label="the most that is proved for rate")
bottom.axhline(5.0, color="black", linewidth=0.6)
bottom.set(
    xlabel="slot (15 minutes)", ylabel="slots with too little so far (%)", title="Share of slots with too little; 5 % were asked for"
)
bottom.legend()
plt.show()
