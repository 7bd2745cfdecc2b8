"""A shop's prices for a season of limited stock: policy `soft` beside the rules that shops use, for docs/pricing.md.

The season is days 365 to 728 of problem `pricing`; the year before is history, which everybody has seen. All the stock is there on the
first day and none comes: what is wanted beyond it is turned away, whoever sets the prices. After each day everybody learns what was wanted
at the prices that were set, and what prices do to sales (in one row 30 percent too little). Each rule has a grid of knobs and shows, row by
row, those that earned most on these very seasons, and those that were fixed in advance; `soft` is told nothing. That its limit is the day's
share of what is *left* was chosen on seeds 11 and 12.
"""

from __future__ import annotations

import itertools
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import bridle
from bridle.backends import quadratic_in_bands
from parts.toy import size, target

DAYS, SEEDS = size(364, 12), size((1, 2, 3), (1,))
KINDS: dict[str, dict[str, float]] = {
    "as it is": {},
    "all days alike": {"season": 0.0, "shock": 0.0},
    "months up or down by half": {"shock": 0.5},
    "scarce, stock 0.7": {"stock": 0.7},
    "30 % more demand than last year": {"growth": 1.3},
    "12 products": {"dim": 12},
    "slopes taken 30 % too flat": {"misjudged": 0.7},
}
"""Parameters of the problem, how many times last year's demand comes, and how many times the true slopes everybody believes in."""

BEGIN, END = "<!-- measured by benchmarks/pricing.py -->", "<!-- end -->"


class Curve(NamedTuple):
    """What is wanted at the prices x:  A x + b."""

    A: np.ndarray
    b: np.ndarray

    def best(self, season: Season, room: np.ndarray | None = None, price: np.ndarray | float = 0.0) -> np.ndarray:
        """The prices that earn most on it, where a unit costs `price` and no more than `room` may be wanted."""
        d, w = len(self.b), season.w
        H = -(w[:, None] * self.A + self.A.T * w)
        bands = [(np.eye(d), season.low, season.high)] + ([] if room is None else [(self.A, None, room - self.b)])
        x, _ = quadratic_in_bands(H, self.A.T @ np.broadcast_to(price, d) - w * self.b, bands)
        return season.high if x is None else np.clip(x, season.low, season.high)


class Season(NamedTuple):
    """A season and the year before it, day by day, and what there is to sell."""

    history: list[Curve]
    days: list[Curve]
    w: np.ndarray
    stock: np.ndarray
    low: np.ndarray
    high: np.ndarray
    misjudged: float

    @property
    def dim(self) -> int:
        return len(self.w)


def drawn(seed: int, misjudged: float = 1.0, growth: float = 1.0, **given: float) -> Season:
    """The season of a shop."""
    problem = bridle.problem("pricing", horizon=2 * DAYS, seed=seed, **given)
    shop, (wanted,) = problem.adversary.stream, problem.adversary.replay(0, 2 * DAYS).constraints
    curves = [Curve(A, b) for A, b in zip(wanted.A, wanted.b + shop.stock, strict=True)]
    before, stock = [Curve(A / growth, b / growth) for A, b in curves[:DAYS]], np.full(len(shop.w), DAYS * shop.stock)
    return Season(before, curves[DAYS:], shop.w, stock, problem.domain.low, problem.domain.high, misjudged)


class Seen:
    """What everybody knows: the days so far as curves, of which the slopes may be misjudged, and what is left of the stock."""

    def __init__(self, season: Season) -> None:
        self.season, self.left, self.day = season, season.stock.copy(), 0
        self.curves: list[Curve] = []
        for day in season.history:
            self.learn(day, np.ones(season.dim))

    def learn(self, day: Curve, x: np.ndarray) -> Curve:
        A = self.season.misjudged * day.A
        self.curves.append(Curve(A, day.A @ x + day.b - A @ x))
        return self.curves[-1]

    def mean(self, days: int) -> Curve:
        last = self.curves[-days:]
        return Curve(np.mean([curve.A for curve in last], axis=0), np.mean([curve.b for curve in last], axis=0))

    @property
    def ahead(self) -> int:
        return DAYS - self.day


Rule = Callable[[Seen], np.ndarray]
Making = Callable[[Season, tuple[float, ...]], Rule]


def fixed(season: Season, knobs: tuple[float, ...]) -> Rule:
    """The prices that would have been best last year, with so many times the stock."""
    x = Seen(season).mean(DAYS).best(season, knobs[0] * season.stock / DAYS)
    return lambda seen: x


def last_days(season: Season, knobs: tuple[float, ...]) -> Rule:
    """The prices that would have been best over the last days, if each day ahead gets so many times its share of what is left."""
    return lambda seen: seen.mean(int(knobs[0])).best(season, knobs[1] * seen.left / seen.ahead)


def markdown_by_stock(season: Season, knobs: tuple[float, ...]) -> Rule:
    """A price, lowered by so much for each percent of the stock that should have been sold by now and was not, or raised."""
    return lambda seen: np.clip(knobs[0] - knobs[1] * (seen.left / season.stock - seen.ahead / DAYS), season.low, season.high)


def dual_price(season: Season, knobs: tuple[float, ...]) -> Rule:
    """What a unit of stock is worth rises while too much is sold and falls while too little is; prices are best for that worth."""
    worth = np.zeros(season.dim)

    def propose(seen: Seen) -> np.ndarray:
        nonlocal worth
        if seen.day:
            sold = seen.curves[-1].A @ played[-1] + seen.curves[-1].b
            worth = np.maximum(0.0, worth + knobs[0] * season.w * (sold - season.stock / DAYS))
        played.append(seen.mean(int(knobs[1])).best(season, price=worth))
        return played[-1]

    played: list[np.ndarray] = []
    return propose


RULES: dict[str, tuple[Making, tuple[tuple[float, ...], ...], tuple[float, ...]]] = {
    "best price of last year": (fixed, ((0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1, 1.15, 1.2, 1.3),), (1.0,)),
    "best price of the last days": (last_days, ((3, 7, 28, 91), (0.9, 0.95, 1.0, 1.05, 1.1)), (7, 1.0)),
    "markdown by stock": (markdown_by_stock, ((0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2), (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)), (1.0, 2.0)),
    "dual price": (dual_price, ((0.003, 0.01, 0.03, 0.1, 0.3), (7, 28)), (0.03, 28)),
}
"""How each rule is made, its grid of knobs, and the knobs with which it is handed to `soft`, chosen before anything was measured."""


class Outcome(NamedTuple):
    """Revenue, what was turned away and left over as shares of the stock, and the prices and what was left day by day."""

    revenue: float
    turned_away: float
    left_over: float
    prices: np.ndarray
    left: np.ndarray


def sell(season: Season, decide: Rule, learn: Callable[[np.ndarray, Curve], None] | None = None) -> Outcome:
    """The season played out."""
    seen, revenue, turned, prices = Seen(season), 0.0, np.zeros(season.dim), []
    left = [seen.left]
    for day in season.days:
        x = decide(seen)
        wanted = day.A @ x + day.b
        sold = np.minimum(wanted, seen.left)
        revenue += float(season.w @ (x * sold))
        turned += wanted - sold
        seen.left = seen.left - sold
        left.append(seen.left)
        curve = seen.learn(day, x)
        seen.day += 1
        prices.append(x)
        if learn is not None:
            learn(x, curve)
    turned_away, left_over = float((turned / season.stock).mean()), float((seen.left / season.stock).mean())
    return Outcome(revenue, turned_away, left_over, np.array(prices), np.array(left))


def soft(season: Season, mixed: bool = False) -> Outcome:
    """The policy, told nothing: from list prices on, or mixing the four rules."""
    own = [make(season, usual) for make, _, usual in RULES.values()]
    box, share = bridle.Box(season.low, season.high), season.stock / DAYS
    session = bridle.Session(
        bridle.policy("soft", box, rules=list(RULES)) if mixed else bridle.policy("soft", box), x1=None if mixed else np.ones(season.dim)
    )

    def decide(seen: Seen) -> np.ndarray:
        nonlocal share
        share = seen.left / seen.ahead
        return session.decide(rules=np.array([rule(seen) for rule in own])) if mixed else session.decide()

    def learn(x: np.ndarray, day: Curve) -> None:
        wanted = day.A @ x + day.b
        revenue = float(season.w @ (x * wanted))
        session.observe(f=-revenue, df=-season.w * wanted - day.A.T @ (season.w * x), g=wanted - share, dg=day.A)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bridle.BridleWarning)  # no prices keep every day's share: the limit is on average
        return sell(season, decide, learn)


OURS = {"`soft`": False, "`soft`, the four rules mixed": True}


def whole(season: Season) -> Curve:
    """The average day of the season."""
    return Curve(np.mean([day.A for day in season.days], axis=0), np.mean([day.b for day in season.days], axis=0))


def best_fixed(season: Season) -> float:
    """What the best prices of the whole season would have earned, the stock kept."""
    average = whole(season)
    x = average.best(season, season.stock / DAYS)
    return DAYS * float(season.w @ (x * (average.A @ x + average.b)))


def best_daily(season: Season) -> float:
    """What no prices can exceed, not even with every day known: the least value of the dual, by steps that shrink."""
    worth, found = np.zeros(season.dim), np.inf
    for n in range(size(60, 3)):
        played = [day.best(season, price=worth) for day in season.days]
        sold = np.array([day.A @ x + day.b for day, x in zip(season.days, played, strict=True)])
        earned = sum(float(season.w @ (x * units)) for x, units in zip(played, sold, strict=True))
        over = sold.sum(axis=0) - season.stock
        found = min(found, earned - float(worth @ over))
        worth = np.maximum(0.0, worth + 2.0 / (1.0 + n / 4.0) * season.w * over / DAYS)
    return found


def row(kind: str, given: dict[str, float]) -> dict[str, Any]:
    """What everybody earns in the seasons of a kind."""
    seasons = [drawn(seed, **given) for seed in SEEDS]
    best = [best_fixed(season) for season in seasons]

    def facts(outcomes: list[Outcome]) -> dict[str, Any]:
        return {
            "revenue": float(np.mean([each.revenue / most for each, most in zip(outcomes, best, strict=True)])),
            "turned away": float(np.mean([each.turned_away for each in outcomes])),
            "left over": float(np.mean([each.left_over for each in outcomes])),
        }

    found: dict[str, Any] = {"kind": kind, "bound": float(np.mean([best_daily(s) / most for s, most in zip(seasons, best, strict=True)]))}
    for name, (make, grid, usual) in RULES.items():
        tried = {knobs: facts([sell(season, make(season, knobs)) for season in seasons]) for knobs in itertools.product(*grid)}
        knobs = max(tried, key=lambda knobs, tried=tried: tried[knobs]["revenue"])
        found[name] = {**tried[knobs], "knobs": knobs, "in advance": tried[usual]["revenue"]}
    for name, mixed in OURS.items():
        found[name] = facts([soft(season, mixed) for season in seasons])
    return found


def markdown(rows: list[dict[str, Any]]) -> str:
    """The table of the documentation."""
    names = [*RULES, *OURS]
    lines = ["| season | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for found in rows:
        cells = []
        for name in names:
            facts = found[name]
            advance = f" ({100 * facts['in advance']:.1f})" if "in advance" in facts else ""
            cells.append(f"{100 * facts['revenue']:.1f}{advance} / {100 * facts['turned away']:.1f}")
        lines.append(f"| {found['kind']} | " + " | ".join(cells) + " |")
    highest = max(found["bound"] for found in rows)
    return "\n".join([*lines, "", f"Prices set anew every day, with the whole season known, could earn at most {100 * highest:.1f}."])


def picture(path: Path) -> None:
    """One season: the price of a product, and what is left of it."""
    from matplotlib.figure import Figure

    season = drawn(SEEDS[0], shock=0.5)
    make, _, usual = RULES["best price of last year"]
    shown = {
        "best price of last year": sell(season, make(season, usual)),
        "soft": soft(season),
        "soft, the four rules mixed": soft(season, True),
    }
    drawing = Figure(figsize=(9.0, 3.4), layout="constrained")
    prices, stock = drawing.subplots(1, 2)
    for name, outcome in shown.items():
        prices.plot(np.arange(1, DAYS + 1), outcome.prices[:, 0], lw=1.2, label=name)
        stock.plot(np.arange(DAYS + 1), 100.0 * outcome.left[:, 0] / season.stock[0], lw=1.2, label=name)
    stock.plot([0, DAYS], [100.0, 0.0], color="0.6", ls=":", lw=1.2, label="an even share a day")
    best = whole(season).best(season, season.stock / DAYS)[0]
    prices.axhline(best, color="0.3", ls="--", lw=1.0, label="best fixed price, in hindsight")
    prices.set(xlabel="day of the season", ylabel="price / list price", title="Price of one product")
    stock.set(xlabel="day of the season", ylabel="stock left, percent", title="What is left of it")
    prices.legend(fontsize=7)
    stock.legend(fontsize=7)
    drawing.savefig(path, dpi=90)


def main() -> None:
    rows = [row(kind, given) for kind, given in KINDS.items()]
    print(markdown(rows))
    target(Path(__file__).with_name("pricing.json")).write_text(json.dumps(rows, indent=1) + "\n")
    page = target(Path(__file__).parent.parent / "docs" / "pricing.md")
    text = page.read_text()
    page.write_text(f"{text[: text.index(BEGIN) + len(BEGIN)]}\n{markdown(rows)}\n{text[text.index(END) :]}")
    picture(target(Path(__file__).parent.parent / "docs" / "pricing.png"))


if __name__ == "__main__":
    main()
