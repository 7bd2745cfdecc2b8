"""Card fraud with a network in PyTorch: Adam under a limit on the loss of frauds, and one false alarm in a hundred by a threshold."""

import sys

import numpy as np
import torch

from bridle import data
from bridle.adapters.scaling import past_scaled
from bridle.adapters.torch import ConstrainedOptimizer, FalsePositiveRate, MissLoss, RateLimiter
from figures import in_hindsight, over_time, rates, show


def main(rows: int = 284_807, batch: int = 100) -> dict:
    """Decide about each batch before it is learned."""
    table = data.load("creditcard")
    X, y = np.tanh(past_scaled(table.values[:rows, 1:-1]) / 2.0), torch.tensor(table["Class"][:rows], dtype=torch.float32)
    torch.manual_seed(0)
    ours, theirs = (torch.nn.Sequential(torch.nn.Linear(X.shape[1], 10), torch.nn.Tanh(), torch.nn.Linear(10, 1)) for _ in range(2))
    held = ConstrainedOptimizer(torch.optim.Adam(ours.parameters(), lr=0.01), constraints=[MissLoss(label=1, at_most=1.0)])
    weighted = torch.optim.Adam(theirs.parameters(), lr=0.01)
    limiter, alarms, scores = RateLimiter([FalsePositiveRate(at_most=0.01, base="buffer")]), [], []
    for now, labels in zip(torch.tensor(X, dtype=torch.float32).split(batch), y.split(batch), strict=True):
        out, other = ours(now)[:, 0], theirs(now)[:, 0]
        alarms.append(limiter.learn(out, labels))
        scores.append(other.detach())
        held.step(torch.nn.functional.binary_cross_entropy_with_logits(out, labels), held.measure(out, labels))
        weighted.zero_grad()
        torch.nn.functional.binary_cross_entropy_with_logits(other, labels, pos_weight=torch.tensor(100.0)).backward()
        weighted.step()
    print(held.limits_, limiter.limits_, sep="\n")
    decided = {"bridle, FalsePositiveRate(0.01)": np.concatenate(alarms), "PyTorch, frauds weigh 100": torch.cat(scores) > 0.0}
    decided["PyTorch, threshold afterwards"] = in_hindsight(y, torch.cat(scores), rates(y, np.concatenate(alarms))["recall"])
    return {name: over_time(y, each) for name, each in decided.items()}


if __name__ == "__main__":
    show(main(*map(int, sys.argv[1:])))
