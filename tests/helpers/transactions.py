"""Card transactions that are drawn, in the layout of the real ones; tests and benchmarks at toy size use them."""

from __future__ import annotations

import numpy as np

from bridle.data import Data

COLUMNS = ("Time", *(f"V{i}" for i in range(1, 29)), "Amount", "Class")


def invented(rounds: int = 600, frauds: float = 0.05, seed: int = 0) -> Data:
    """Transactions among which frauds differ in their means."""
    rng = np.random.default_rng(seed)
    fraud = 1.0 * (rng.random(rounds) < frauds)
    columns = rng.standard_normal((rounds, 29)) + fraud[:, None] * np.linspace(-2.0, 2.0, 29)
    return Data("creditcard", COLUMNS, np.column_stack([np.arange(rounds), columns, fraud]))
