"""
Feedback that comes late
========================

``session.ask()`` gives a ticket for each decision. What came of it may be told much later, in any order. The delay
costs regret and violation; the bound grows with the number of rounds that wait, and the picture shows both.

Read more: :doc:`/guides/late-labels`.
"""

import matplotlib.pyplot as plt
import numpy as np

import bridle

rounds, delays = 600, [0, 2, 5, 10, 20, 40]
found = []
for delay in delays:
    rng, waiting = np.random.default_rng(0), []
    session = bridle.Session(bridle.policy("anytime", bridle.Ball(3)), pending=1000)
    for t in range(rounds + delay):
        if t < rounds:
            normal = rng.standard_normal(3)
            waiting.append((session.ask(), np.append(abs(normal[0]), normal[1:]) / np.linalg.norm(normal)))
        if t >= delay:
            ticket, a = waiting.pop(0)
            session.observe(f=-ticket.x[0], df=[-1.0, 0.0, 0.0], g=a @ ticket.x - 0.3, dg=a, ticket=ticket)
    certificate = session.certificate()
    found.append((session.ccv, certificate.regret, certificate.bound.ccv, certificate.bound.regret))

# %%
# A round that begins while others wait is played by a copy of the policy that waits for nothing; copies share the
# constraints that they have seen.

table = np.array(found)
for delay, (ccv, regret, bound, _) in zip(delays, table, strict=True):
    print(f"{delay:2} rounds late: CCV {ccv:5.1f} (bound {bound:5.0f}), certified regret {regret:6.1f}")

# %%

fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for axis, column, what in ((axes[0], 0, "CCV (units of the constraint)"), (axes[1], 1, "regret (units of cost)")):
    axis.plot(
        delays, table[:, column], "o-", color="#0072B2", label="measured" if column == 0 else "certified: no feasible action has more"
    )
    axis.plot(delays, table[:, column + 2], "--", color="black", label="the theorem's bound")
    axis.set(
        xlabel="delay (rounds)",
        ylabel=what,
        yscale="symlog",
        title=what.split(" ")[0].replace("regret", "Regret") + f" after {rounds} rounds",
    )
    axis.legend()
plt.show()
