"""Places on a page, limits on each provider's attention: policy `soft` beside the rules in use, for docs/recommendation.md.

Hours of problem `recommendation`, with clicks drawn at random: in an hour `PLACES` places are shown, and a provider's click rate is known
as well as its share of them tells. What attention a place gets is known after the hour. Limits are on each provider's share of all
attention in the end. Each rule has a grid of knobs and shows, row by row, those with most clicks on these very streams among those that
kept the limits to one percent of an even share (where none did, those that broke them least), and those that were fixed in advance. `soft`
is told nothing; that it mixes each rule with three memories, and not with one or with the whole grid, was chosen on seed 11.
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
from bridle.backends import linear_program
from parts.toy import size, target

HOURS, SEEDS, WEEK = size(90 * 24, 48), size((1, 2, 3), (1,)), size(168, 24)
PLACES, TOLERANCE = 2_000, 0.01
FILMS = {"film ratings, real": {"data": "ratings"}}
KINDS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "no caps": {"most": 6.0},
    "tight: 0.7 to 1.5": {"least": 0.7, "most": 1.5},
    "12 providers": {"dim": 12},
    "100 places an hour": {"places": 100},
} | size(FILMS, {})  # which toys have not fetched
"""Parameters of the problem, and how many places an hour has; real rounds are played as they are, once."""

BEGIN, END = "<!-- measured by benchmarks/recommendation.py -->", "<!-- end -->"


class Stream(NamedTuple):
    """Hours: clicks in 100 places and attention a place, by provider; limits as shares of all attention; places, 0: rates are as seen."""

    clicks: np.ndarray
    attention: np.ndarray
    least: float
    most: float
    places: int
    seed: int

    @property
    def dim(self) -> int:
        return self.clicks.shape[1]


def drawn(seed: int, places: int = PLACES, dim: int = 6, least: float = 0.4, most: float = 2.4, **given: str) -> Stream:
    """The hours of a page, or all the rounds of real data."""
    count = 1_000 if given else HOURS
    problem = bridle.problem("recommendation", horizon=count, seed=seed, dim=dim, least=least, most=most, **given)
    hours, floor, cap = problem.adversary.replay(0, count), least / dim, min(1.0, most / dim)
    diagonals = np.einsum("tii->ti", hours.constraints[0].A[:, dim:] - hours.constraints[0].A[:, :dim])
    return Stream(-hours.cost.a, diagonals / (2.0 - floor - cap), floor, cap, 0 if given else places, seed)


class Estimates:
    """Running means of the click rates that were seen, and how many hours there were."""

    def __init__(self, dim: int, memory: float) -> None:
        self.memory, self.rates, self.hours = memory, np.full(dim, np.nan), 0

    def see(self, rates: np.ndarray) -> None:
        known = ~np.isnan(rates)
        weight = max(self.memory, 1.0 / (self.hours + 1.0))
        old = np.where(np.isnan(self.rates), rates, self.rates)
        self.rates = np.where(known, old + weight * (rates - old), self.rates)
        self.hours += 1


Rule = Callable[[np.ndarray], np.ndarray]
Making = Callable[[Stream, tuple[float, ...]], Rule]


def filled(order: np.ndarray, floor: float, cap: float) -> np.ndarray:
    """Everybody gets the floor; the rest goes to the first in order, up to the cap, then to the next."""
    shares, rest = np.full(len(order), floor), 1.0 - floor * len(order)
    for i in order:
        more = min(cap - floor, rest)
        shares[i] += more
        rest -= more
    return shares + rest / len(order)


def greedy(stream: Stream, knobs: tuple[float, ...]) -> Rule:
    """All places to the best click rate, limits or no limits."""
    return lambda rates: np.eye(stream.dim)[int(rates.argmax())]


def epsilon_greedy(stream: Stream, knobs: tuple[float, ...]) -> Rule:
    """A part of the places evenly, the rest to the best up to its cap, then to the next."""
    return lambda rates: filled(np.argsort(-rates), knobs[1] / stream.dim, max(stream.most, knobs[1] / stream.dim))


def proportional(stream: Stream, knobs: tuple[float, ...]) -> Rule:
    """Shares in proportion to a power of the click rates."""
    return lambda rates: rates ** knobs[1] / (rates ** knobs[1]).sum()


def reranked(stream: Stream, knobs: tuple[float, ...]) -> Rule:
    """The best first, but every provider within its limits as shares of the places, moved in by a margin."""
    floor, even = stream.least + knobs[1] * (1.0 / stream.dim - stream.least), 1.0 / stream.dim
    cap = max(even, stream.most - knobs[1] * (stream.most - even))
    return lambda rates: filled(np.argsort(-rates), floor, cap)


MEMORIES = (0.02, 0.1, 0.3)
RULES: dict[str, tuple[Making, tuple[tuple[float, ...], ...], tuple[float, ...]]] = {
    "greedy": (greedy, (MEMORIES,), (0.1,)),
    "epsilon-greedy with caps": (epsilon_greedy, (MEMORIES, (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8)), (0.1, 0.4)),
    "shares by click rate": (proportional, (MEMORIES, (0.0, 0.5, 1.0, 2.0, 4.0)), (0.1, 1.0)),
    "re-ranking by quota": (reranked, (MEMORIES, (0.0, 0.05, 0.1, 0.2, 0.4, 0.6)), (0.1, 0.1)),
}
"""How each rule is made, its grid of knobs, and those that were chosen before anything was measured; the first is the memory."""


class Outcome(NamedTuple):
    """Clicks in 100 places, how far the provider that is worst off is off its limits over all and in the worst week, and the shares."""

    clicks: float
    off: float
    week: float
    shares: np.ndarray


def play(stream: Stream, decide: Callable[[], np.ndarray], learn: Callable[[np.ndarray, np.ndarray, np.ndarray], None]) -> Outcome:
    """The hours played out."""
    rng, shares = np.random.default_rng([stream.seed, 9]), []
    for rates, attention in zip(stream.clicks, stream.attention, strict=True):
        x = decide()
        shares.append(x)
        if not stream.places:
            learn(x, rates, attention)
            continue
        shown = np.floor(stream.places * x + rng.random(stream.dim))
        clicked = rng.binomial(shown.astype(int), rates / 100.0)
        learn(x, np.where(shown > 0.0, 100.0 * clicked / np.maximum(shown, 1.0), np.nan), attention)
    given = np.array(shares) * stream.attention
    sums = np.concatenate([np.zeros((1, stream.dim)), given.cumsum(axis=0)])
    return Outcome(
        float((np.array(shares) * stream.clicks).sum() / len(shares)),
        off(stream, sums[-1:]),
        off(stream, sums[WEEK:] - sums[:-WEEK]),
        np.array(shares),
    )


def off(stream: Stream, given: np.ndarray) -> float:
    """How far the provider that is worst off is off its limits, in even shares, in the worst of several sums of attention."""
    share = given / given.sum(axis=1, keepdims=True)
    return float(stream.dim * max(0.0, (stream.least - share).max(), (share - stream.most).max()))


def by_rule(stream: Stream, make: Making, knobs: tuple[float, ...]) -> Outcome:
    seen, rule = Estimates(stream.dim, knobs[0]), make(stream, knobs)
    return play(stream, lambda: proposal(seen, rule), lambda x, rates, attention: seen.see(rates))


def proposal(seen: Estimates, rule: Rule) -> np.ndarray:
    """What a rule proposes; even shares for a day, so that every rate has been seen."""
    return np.full(len(seen.rates), 1.0 / len(seen.rates)) if seen.hours < 24 else rule(seen.rates)


def bridled(stream: Stream, policy: str, mixed: bool) -> Outcome:
    """The policy, told nothing, alone or mixing the four rules with three memories each."""
    d, last = stream.dim, Estimates(stream.dim, 0.1)
    own = [(Estimates(d, memory), make(stream, (memory, *usual[1:]))) for make, _, usual in RULES.values() for memory in MEMORIES]
    session = bridle.Session(bridle.policy(policy, bridle.Simplex(d), **({"rules": len(own)} if mixed else {})), certify=False)

    def decide() -> np.ndarray:
        return session.decide(rules=np.array([proposal(*rule) for rule in own])) if mixed else session.decide()

    def learn(x: np.ndarray, rates: np.ndarray, attention: np.ndarray) -> None:
        for seen, _ in own:
            seen.see(rates)
        last.see(rates)
        r = np.where(np.isnan(rates), np.nan_to_num(last.rates), rates)  # who was not shown is taken to be as before
        dg = np.vstack([stream.least * attention - np.diag(attention), np.diag(attention) - stream.most * attention])
        session.observe(f=-float(r @ x), df=-r, g=dg @ x, dg=dg)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bridle.BridleWarning)
        return play(stream, decide, learn)


OURS = {"`anytime`": ("anytime", False), "`soft`": ("soft", False), "`soft`, the rules mixed": ("soft", True)}


def best_fixed(stream: Stream) -> float:
    """Clicks of the best fixed shares that keep the limits over all hours, in 100 places."""
    v, d = stream.attention.sum(axis=0), stream.dim
    rows = np.vstack([stream.least * v - np.diag(v), np.diag(v) - stream.most * v, np.ones(d), -np.ones(d)])
    found = linear_program(-stream.clicks.mean(axis=0), rows, np.concatenate([np.zeros(2 * d), [1.0, -1.0]]), (0.0, None))
    assert found is not None
    return float(stream.clicks.mean(axis=0) @ found.x)


def row(kind: str, given: dict[str, Any]) -> dict[str, Any]:
    """What everybody gets on the streams of a kind."""
    streams = [drawn(seed, **given) for seed in ((0,) if "data" in given else SEEDS)]
    best = [best_fixed(stream) for stream in streams]

    def facts(outcomes: list[Outcome]) -> dict[str, Any]:
        return {
            "clicks": float(np.mean([each.clicks / most for each, most in zip(outcomes, best, strict=True)])),
            "off": float(np.max([each.off for each in outcomes])),
            "week": float(np.max([each.week for each in outcomes])),
        }

    found: dict[str, Any] = {"kind": kind}
    for name, (make, grid, usual) in RULES.items():
        tried = {knobs: facts([by_rule(stream, make, knobs) for stream in streams]) for knobs in itertools.product(*grid)}
        kept = [knobs for knobs in tried if tried[knobs]["off"] <= TOLERANCE]
        knobs = max(kept, key=lambda k, t=tried: t[k]["clicks"]) if kept else min(tried, key=lambda k, t=tried: t[k]["off"])
        found[name] = {**tried[knobs], "knobs": knobs, "in advance": tried[usual]["clicks"], "off in advance": tried[usual]["off"]}
    for name, (policy, mixed) in OURS.items():
        found[name] = facts([bridled(stream, policy, mixed) for stream in streams])
    return found


def markdown(rows: list[dict[str, Any]]) -> str:
    """The table of the documentation."""
    names = [*RULES, *OURS]
    lines = ["| page | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for found in rows:
        cells = []
        for name in names:
            facts = found[name]
            advance = f" ({100 * facts['in advance']:.1f})" if "in advance" in facts else ""
            cells.append(f"{100 * facts['clicks']:.1f}{advance} / {100 * facts['off']:.0f} / {100 * facts['week']:.0f}")
        lines.append(f"| {found['kind']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def picture(path: Path) -> None:
    """One stream: who gets how much attention, and clicks over the days."""
    from matplotlib.figure import Figure

    stream = drawn(SEEDS[0])
    usual = {name: (make, knobs) for name, (make, _, knobs) in RULES.items()}
    shown = {name: by_rule(stream, *usual[name]) for name in ("greedy", "re-ranking by quota")}
    shown["soft, the rules mixed"] = bridled(stream, "soft", True)
    drawing = Figure(figsize=(9.0, 3.4), layout="constrained")
    attention, clicks = drawing.subplots(1, 2)
    for i, (name, outcome) in enumerate(shown.items()):
        given = (outcome.shares * stream.attention).sum(axis=0)
        attention.bar(np.arange(1, stream.dim + 1) + 0.27 * (i - 1), 100.0 * given / given.sum(), 0.27, label=name)
        hours = (outcome.shares * stream.clicks).sum(axis=1)
        clicks.plot(np.arange(1, HOURS + 1) / 24.0, hours.cumsum() / np.arange(1, HOURS + 1), lw=1.2, label=name)
    for limit, name in ((stream.least, "limits"), (stream.most, None)):
        attention.axhline(100.0 * limit, color="0.3", ls="--", lw=1.0, label=name)
    clicks.axhline(best_fixed(stream), color="0.3", ls="--", lw=1.0, label="best fixed shares, in hindsight")
    attention.set(xlabel="provider", ylabel="percent of all attention", title="Who is seen")
    clicks.set(xlabel="day", ylabel="clicks in 100 places, mean so far", title="What is clicked")
    attention.legend(fontsize=7)
    clicks.legend(fontsize=7, loc="upper right")
    drawing.savefig(path, dpi=90)


def main() -> None:
    rows = [row(kind, given) for kind, given in KINDS.items()]
    print(markdown(rows))
    target(Path(__file__).with_name("recommendation.json")).write_text(json.dumps(rows, indent=1) + "\n")
    page = target(Path(__file__).parent.parent / "docs" / "recommendation.md")
    text = page.read_text()
    page.write_text(f"{text[: text.index(BEGIN) + len(BEGIN)]}\n{markdown(rows)}\n{text[text.index(END) :]}")
    picture(target(Path(__file__).parent.parent / "docs" / "recommendation.png"))


if __name__ == "__main__":
    main()
