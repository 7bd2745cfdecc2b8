"""
A budget spread over auctions
=============================

A ``Pacer`` bids so that a budget lasts until the last auction. Its gate makes sure of the budget to the cent; its
price learns what money will be worth later. Beside it: bidding the full value until the money is gone.

Read more: :doc:`/pacing`.
"""

import matplotlib.pyplot as plt
import numpy as np

import bridle

rounds, budget = 4000, 200.0
rng = np.random.default_rng(1)
values, others = rng.random(rounds), np.round(rng.random(rounds), 2)

pacer, gate = bridle.Pacer(budget=budget, rounds=rounds), bridle.Gate(budget)
spent, greedy_spent, price = np.empty(rounds), np.empty(rounds), np.empty(rounds)
profit = greedy_profit = 0.0
for t, (value, other) in enumerate(zip(values, others, strict=True)):
    price[t] = pacer.price
    won = other <= pacer.bid(value)
    pacer.pay(other if won else 0.0)
    profit += (value - other) * won
    if other <= value and gate.allows(other):  # greedy: whatever is worth its price
        gate.pay(other)
        greedy_profit += value - other
    spent[t], greedy_spent[t] = pacer.spent, gate.spent

# %%
# The best choice within the budget, with every auction known in advance, buys where value over price is highest.
# Nobody can do that before the end.

order = np.argsort(-(values / np.maximum(others, 0.01)))
affordable = order[np.cumsum(others[order]) <= budget]
best = float(np.sum(np.maximum(values - others, 0.0)[affordable]))
print(f"profit: pacer {profit:.1f}, greedy {greedy_profit:.1f}, best in hindsight {best:.1f}; certified loss {pacer.certified_loss:.0f}")

# %%
# What is lost: the pacer leaves cheap auctions at the beginning, when its price is still a guess. The certificate
# is about independent rounds; where the world moves it promises nothing but the budget.

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.plot(spent, color="#0072B2", label=f"pacer: profit {profit:.0f}")
left.plot(greedy_spent, color="#D55E00", label=f"greedy: profit {greedy_profit:.0f}")
left.plot([0, rounds], [0, budget], color="#999999", linewidth=0.8, label="evenly")
left.axhline(budget, color="black", linestyle="--", linewidth=1, label="budget: cannot be passed")
left.set(xlabel="auction", ylabel="spent (euro)", title=f"The budget; best in hindsight: profit {best:.0f}")
left.legend(loc="lower right", fontsize=8)
right.plot(price[1:], color="#0072B2", linewidth=0.9)
right.set(xlabel="auction", ylabel="price of one euro, on top of itself", title="What a euro will be missed by", ylim=(0, None))
plt.show()
