"""Portfolios under a limit on risk that is known before acting, beside the rules that people use, for docs/portfolio.md.

The limit: volatility over a year, as the last 60 days predict it, of at most 15 %; on days on which no portfolio keeps that, the least
there is. Every setting is fixed in advance, for all sets of prices. Trading costs 0.1 % of what is bought or sold, in a column of its own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from math import log
from pathlib import Path
from typing import NamedTuple

import numpy as np

import bridle
from bridle.problems import portfolios
from bridle.solvers.nearest_in_norm import nearest_where
from parts.toy import TOY, size, target

LOOKBACK, VOLATILITY, COST = size(60, 8), 0.15, 0.001
SETS = size(portfolios.PRICES, ("nyse-o",))
SHOWN = "nyse-o"
BEGIN, END = "<!-- measured by benchmarks/portfolio.py -->", "<!-- end -->"


class Stream(NamedTuple):
    """Price relatives of the days, the covariance of a year that the days before predict, the limit, and what varies least."""

    relatives: np.ndarray
    covariance: np.ndarray
    limit: np.ndarray
    least: np.ndarray


def stream(data: str) -> Stream:
    """The days of a data set, or at toy size a few that are drawn."""
    if TOY:
        returns = np.exp(0.012 * np.random.default_rng(0).standard_normal((40, 4)))
        market = portfolios._market("toy", returns, LOOKBACK)
    else:
        market = portfolios.of_data_set(data, LOOKBACK)
    covariance, d = 0.5 * market.P, market.P.shape[-1]
    least = np.array([nearest_where(bridle.Simplex(d), np.zeros(d), (), each) for each in covariance])
    floor = np.einsum("ti,tij,tj->t", least, covariance, least)
    return Stream(market.cost.a, covariance, np.maximum(VOLATILITY**2, floor * (1.0 + 1e-6)), least)


def towards(x: np.ndarray, least: np.ndarray, covariance: np.ndarray, limit: float) -> np.ndarray:
    """x moved towards what varies least, as far as the limit needs."""
    a, b, c = (float(u @ covariance @ v) for u, v in ((x - least, x - least), (x - least, least), (least, least)))
    if a + 2.0 * b + c <= limit:
        return x
    share = (-b + np.sqrt(max(b * b + a * (limit - c), 0.0))) / a
    return least + min(max(share, 0.0), 1.0) * (x - least)


# --- what people do -------------------------------------------------------------------------------------------------------------------


def even(days: Stream) -> np.ndarray:
    return np.full(days.relatives.shape, 1.0 / days.relatives.shape[1])


def held(days: Stream) -> np.ndarray:
    worth = np.cumprod(np.vstack([np.ones(days.relatives.shape[1]), days.relatives[:-1]]), axis=0)
    return worth / worth.sum(axis=1, keepdims=True)


def least_variance(days: Stream) -> np.ndarray:
    return days.least


def even_moved(days: Stream) -> np.ndarray:
    return np.array([towards(x, *rest) for x, *rest in zip(even(days), days.least, days.covariance, days.limit, strict=True)])


# --- bridle ---------------------------------------------------------------------------------------------------------------------------


def sessions(policy: str, known: bool, **settings: float) -> Callable[[Stream], np.ndarray]:
    """A policy that is told the limit of a day before it, or finds out."""

    def play(days: Stream) -> np.ndarray:
        T, d = days.relatives.shape
        session, chosen = bridle.Session(bridle.policy(policy, bridle.Simplex(d), **settings), certify=False), np.empty((T, d))
        for t in range(T):
            risk = bridle.Quadratic(2.0 * days.covariance[t], offset=-float(days.limit[t]))
            x = session.decide(known=risk) if known else session.decide()
            growth, limits = float(days.relatives[t] @ x), {} if known else {"g": float(risk.value(x)), "dg": risk.grad(x)}
            session.observe(f=-log(growth), df=-days.relatives[t] / growth, **limits)
            chosen[t] = x
        return chosen

    return play


def mixed(days: Stream) -> np.ndarray:
    """The online Newton step on the weights of three rules that keep the limit, so that every mixture does."""
    T, d = days.relatives.shape
    policy = bridle.policy("ons", bridle.Simplex(d), rules=["1/n moved", "least variance", "held, moved"], exp_concavity=1.0)
    session, chosen, left = bridle.Session(policy, certify=False), np.empty((T, d)), np.full(d, 1.0 / d)
    for t, even in enumerate(even_moved(days)):
        holding = towards(left, days.least[t], days.covariance[t], float(days.limit[t]))
        x = session.decide(rules=[even, days.least[t], holding])
        growth = float(days.relatives[t] @ x)
        session.observe(f=-log(growth), df=-days.relatives[t] / growth)
        chosen[t], left = x, days.relatives[t] * x / growth
    return chosen


RULES = {
    "1/n, rebalanced": even,
    "1/n, bought and held": held,
    "least variance": least_variance,
    "1/n moved as far as needed": even_moved,
}
OURS = {
    "`anytime`": sessions("anytime", False),
    "`adagrad`, known": sessions("adagrad", True),
    "`ons`, known": sessions("ons", True, exp_concavity=1.0),
    "`ons` on 3 rules": mixed,
}


class Worth(NamedTuple):
    """The share of days above 15 %, growth and volatility in a year, traded in a day, and growth after the cost of trading."""

    violated: float
    growth: float
    volatility: float
    turnover: float
    net: float


def worth(days: Stream, chosen: np.ndarray) -> Worth:
    growth = np.log(np.einsum("ti,ti->t", days.relatives, chosen))
    risk = np.einsum("ti,tij,tj->t", chosen, days.covariance, chosen)
    traded = portfolios.traded(days.relatives, chosen)
    net = growth + np.log(1.0 - 2.0 * COST * traded)  # what is bought has been sold
    year = portfolios.YEAR
    above = float((risk > VOLATILITY**2 * (1.0 + 1e-9)).mean())
    return Worth(above, year * growth.mean(), year**0.5 * growth.std(), traded.mean(), year * net.mean())


def measure() -> tuple[list[dict[str, object]], dict[str, np.ndarray]]:
    """A row for each set of prices; and, of the one that is shown, the wealth and the risk day by day."""
    rows, shown = [], {}
    for data in SETS:
        days = stream(data)
        chosen = {name: play(days) for name, play in (RULES | OURS).items()}
        found = {name: [float(number) for number in worth(days, each)] for name, each in chosen.items()}
        unavoidable = float((days.limit > VOLATILITY**2).mean())
        rows.append({"data": data, "days": len(days.limit), "assets": days.least.shape[1], "unavoidable": unavoidable, "found": found})
        print(markdown(rows[-1:]), flush=True)
        if data == SHOWN:
            shown = {name: np.einsum("ti,ti->t", days.relatives, each) for name, each in chosen.items()}
            shown |= {f"risk of {name}": np.sqrt(np.einsum("ti,tij,tj->t", each, days.covariance, each)) for name, each in chosen.items()}
    return rows, shown


def markdown(rows: list[dict[str, object]]) -> str:
    """The table of the documentation: a line for each set and contender."""
    lines = []
    for row in rows:
        beyond = f"on {100 * row['unavoidable']:.1f} % of the days no portfolio keeps 15 %"
        head = f"**{row['data']}**: {row['days']:,} days, {row['assets']} assets; {beyond}"
        lines += [
            "",
            head,
            "",
            "| | days above 15 % | growth | volatility | traded a day | growth after costs |",
            "|---|---|---|---|---|---|",
        ]
        for name, (above, growth, volatility, turnover, net) in row["found"].items():
            cells = f"{100 * above:.1f} % | {growth:.3f} | {volatility:.3f} | {100 * turnover:.2f} % | {net:.3f}"
            lines.append(f"| {name} | {cells} |")
    return "\n".join(lines[1:])


def picture(shown: dict[str, np.ndarray], path: Path) -> None:
    """Wealth on the set that is shown, and predicted volatility beside the limit."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, (above, below) = pyplot.subplots(2, 1, figsize=(9.0, 6.5), sharex=True, height_ratios=(3, 2), layout="constrained")
    lines = {
        "1/n, rebalanced": ("0.6", "-"), "1/n moved as far as needed": ("0.25", "-"), "`anytime`": ("tab:red", "-"),
        "`adagrad`, known": ("tab:green", "-"), "`ons`, known": ("tab:blue", "-"),
    }  # fmt: skip
    for name, (colour, style) in lines.items():
        label = name.replace("`", "")
        above.plot(np.cumprod(shown[name]), style, color=colour, label=label, linewidth=1.2)
        below.plot(100.0 * shown[f"risk of {name}"], style, color=colour, linewidth=0.8)
    below.axhline(100.0 * VOLATILITY, color="black", linewidth=1.0, linestyle="--")
    below.annotate("limit 15 %", (1.0, 100.0 * VOLATILITY), (4, 0), ("axes fraction", "data"), "offset points", va="center", fontsize=9)
    above.set(yscale="log", ylabel="wealth, from 1", title=f"{SHOWN}: volatility of at most 15 %, known before acting")
    above.set_yticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
    above.minorticks_off()
    above.legend(frameon=False, fontsize=9)
    below.set(ylabel="predicted volatility, %", xlabel="trading day", ylim=(0.0, None))
    for axis in (above, below):
        axis.grid(alpha=0.25)
    figure.savefig(path, dpi=120)


def main() -> None:
    rows, shown = measure()
    here, docs = Path(__file__), Path(__file__).parent.parent / "docs"
    target(here.with_name("portfolio.json")).write_text(json.dumps(rows, indent=1) + "\n")
    picture(shown, target(docs / "portfolio.png"))
    page = target(docs / "portfolio.md")
    text = page.read_text()
    page.write_text(f"{text[: text.index(BEGIN) + len(BEGIN)]}\n\n{markdown(rows)}\n\n{text[text.index(END) :]}")


if __name__ == "__main__":
    sys.exit(main())
