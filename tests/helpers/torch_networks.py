"""A small network and the losses that it is trained on under limits."""

from __future__ import annotations

import numpy as np
import torch


def network(dtype=torch.float64):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).to(dtype)


def losses(model, seed, constraints=1):
    """A cost that wants large outputs, and constraints that want them small for some rows."""
    rows = torch.from_numpy(np.random.default_rng(seed).standard_normal((16, 5))).to(next(model.parameters()))
    out = model(rows)[:, 0]
    return (out - 2.0).square().mean(), [out[i::4].mean() - 0.5 for i in range(constraints)]
