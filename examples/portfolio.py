"""A portfolio under a limit on risk that is known every morning: your prices, 15 % volatility, and what it cost to keep to it."""

import sys

import numpy as np

import bridle

LOOKBACK, VOLATILITY, COST = 60, 0.15, 0.001  # days; the limit, over a year; what a unit bought or sold costs


def invented(days: int, seed: int) -> np.ndarray:
    """Price relatives of six assets that a market moves, calm and rough in turn."""
    rng, t = np.random.default_rng(seed), np.arange(days)
    size = 0.006 * (1.0 + 1.5 * (np.sin(2.0 * np.pi * t / 250.0) > 0.5))[:, None]
    market = size * rng.standard_normal((days, 1))
    own = 0.008 * rng.standard_normal((days, 6))
    return np.exp(0.0003 + np.array([0.5, 0.8, 1.0, 1.2, 1.5, 2.0]) * market + own)


def main(path: str | None = None, days: int = 600, seed: int = 0) -> dict[str, float]:
    """Play the online Newton step on a CSV file of prices, or on made-up ones; what came of it, and of 1/n."""
    relatives = invented(days, seed) if path is None else bridle.problems.portfolios.read_prices(path)
    relatives = np.column_stack([relatives, np.ones(len(relatives))])  # and cash, with which every limit can be kept
    T, d = relatives.shape
    session = bridle.Session(bridle.policy("ons", bridle.Simplex(d), exp_concavity=1.0))
    chosen, risks = [], []
    for t in range(LOOKBACK, T):
        covariance = 252.0 * np.cov(relatives[t - LOOKBACK : t].T)
        limit = bridle.Quadratic(2.0 * covariance, offset=-(VOLATILITY**2))
        x = session.decide(known=limit)
        growth = float(relatives[t] @ x)
        session.observe(f=-np.log(growth), df=-relatives[t] / growth)
        chosen.append(x)
        risks.append(float(np.sqrt(x @ covariance @ x)))
    played, x = relatives[LOOKBACK:], np.array(chosen)
    traded = bridle.problems.portfolios.traded(played, x)
    growth = np.log((played * x).sum(axis=1))
    return {
        "growth": 252.0 * float(growth.mean()),
        "growth after costs": 252.0 * float((growth + np.log(1.0 - 2.0 * COST * traded)).mean()),
        "growth of 1/n without cash, which does not keep the limit": 252.0 * float(np.log(played[:, :-1].mean(axis=1)).mean()),
        "volatility": float(np.sqrt(252.0) * growth.std()),
        "largest predicted volatility": max(risks),
        "traded a day": float(traded.mean()),
        "proved: log-wealth behind the best portfolio that keeps every limit, at most": float(session.certificate().regret_algorithm),
    }


if __name__ == "__main__":
    for name, value in main(*sys.argv[1:2]).items():
        print(f"{name:78s} {value:8.4f}")
