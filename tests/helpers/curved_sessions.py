"""Sessions of policies that were told a modulus, against opponents that leave costs out, vary their moduli and adapt to the decisions.

`game(name, seed)` plays one and gives what was measured beside `session.bound()`. The best feasible action is known: the limits of a game
are those of one fixed set, an interval in one dimension and a ball's halfspaces through a feasible point otherwise. Run as a program it
plays many games of every policy and prints how often a bound was wrong, how often there was none, and how near the nearest came.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any, NamedTuple

import numpy as np

import bridle

POLICIES: dict[str, dict[str, Any]] = {
    "sinha2024-strong": {},
    "yuan2018-strong": {},
    "yi2023-strong": {},
    "yi2023-strong prox": {"form": "prox"},
    "guo2022-strong": {},
    "vaze2025-strong": {},
    "yi2022": {},
    "anytime": {},
    "anytime told V": {"V": 3.0},
    "anytime value": {"form": "value", "halfspace": False},
}
"""Every policy that is told a modulus and has a bound in sessions, by a name of its variant."""

STYLES = (
    "honest",
    "no costs at first",
    "gaps",
    "smaller moduli",
    "flat at first",
    "mixed",
    "nothing to see",
    "late slope",
    "larger moduli",
)
MOVES = ("pull away", "pull back", "stand still", "random")


class Outcome(NamedTuple):
    """Regret against the best feasible action and the CCV, and the bounds on them; `why` says why there is none."""

    regret: float
    ccv: float
    regret_bound: float | None
    ccv_bound: float | None
    why: str

    @property
    def wrong(self) -> bool:
        return any(
            most is not None and measured > most + 1e-9 * (1.0 + abs(most))
            for measured, most in ((self.regret, self.regret_bound), (self.ccv, self.ccv_bound))
        )


class Totals(NamedTuple):
    """The sum of (q_s/2) |u - c_s|^2 + <b_s, u> as a function of u."""

    q: float
    linear: np.ndarray
    constant: float

    def plus(self, q: float, center: np.ndarray, slope: np.ndarray) -> Totals:
        return Totals(self.q + q, self.linear + slope - q * center, self.constant + 0.5 * q * float(center @ center))

    def value(self, u: np.ndarray) -> float:
        return 0.5 * self.q * float(u @ u) + float(self.linear @ u) + self.constant


def policy_for(label: str, domain: Any, mu: float, G: float, T: int) -> Any:
    """The policy of this variant, told what it must know."""
    name = label.split()[0]
    given = {"horizon": T, "lipschitz": G, "modulus": mu}
    wanted = {parameter.name for parameter in bridle.policies.parameters(name)}
    if name == "anytime" and POLICIES[label].get("form") != "value":
        wanted -= {"lipschitz"}
    return bridle.policy(name, domain, **{key: value for key, value in given.items() if key in wanted}, **POLICIES[label])


def _moduli(style: str, mu: float, t: int, T: int, rng: np.random.Generator) -> float | None:
    """The modulus of round t's cost; None for no cost at all."""
    if style == "no costs at first":
        return None if t < T // 2 else mu
    if style == "gaps":
        return None if rng.uniform() < 0.5 else mu
    if style == "smaller moduli":
        return mu * rng.choice([0.0, 1e-3, 0.3, 1.0])
    if style == "flat at first":
        return 0.0 if t < T // 10 else mu
    if style == "mixed":
        return None if rng.uniform() < 0.3 else mu * rng.choice([0.0, 0.1, 1.0, 3.0])
    if style == "nothing to see":
        return None if t % 7 else 0.01 * mu
    if style == "late slope":
        return mu if t < T // 3 else 0.0 if t < T // 2 else mu
    return mu * rng.uniform(1.0, 4.0) if style == "larger moduli" else mu


def game(label: str, seed: int, T: int | None = None, engine: str = "python") -> Outcome:
    """One game: a domain, a told modulus, an opponent's style, and T rounds."""
    rng = np.random.default_rng([seed, sum(map(ord, label))])
    T = int(rng.choice([1, 3, 20, 120, 400])) if T is None else T
    d, style, mu = int(rng.choice([1, 1, 1, 2, 3])), STYLES[seed % len(STYLES)], float(10.0 ** rng.uniform(-1, 1))
    domain = bridle.Box(np.full(d, -1.0), np.full(d, 1.0)) if rng.uniform() < 0.5 else bridle.Ball(d, radius=0.47)
    D = domain.diameter()
    steep = float(rng.choice([0.05, 1.0, 3.0])) * mu * D  # of the limits
    extra = float(rng.choice([0.0, 0.0, 2.0]))  # costs may be more curved than anybody says
    G = max(steep, (1.0 + extra) * 4.0 * mu * D)
    ends = np.sort(rng.uniform(-0.4, 0.4, 2))
    feasible = domain.project(rng.uniform(-0.4, 0.4, d)) if d > 1 else rng.uniform(*ends, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = bridle.Session(policy_for(label, domain, mu, G, T), x1=domain.project(np.full(d, 9.0)), engine=engine)
        total, paid, ccv, halfspaces = Totals(0.0, np.zeros(d), 0.0), 0.0, 0.0, []
        moves = rng.choice(MOVES, 4)
        for t in range(T):
            x, move = session.decide(), moves[4 * t // T]
            if d == 1:  # limits are the two ends of an interval
                side = 1.0 if x[0] > ends[1] or (x[0] >= ends[0] and rng.uniform() < 0.5) else -1.0
                a, level = np.array([side]), side * ends[int(side > 0)]
            else:  # halfspaces whose boundary is not beyond the feasible action
                a = x - feasible if rng.uniform() < 0.7 and np.any(x != feasible) else rng.standard_normal(d)
                a = a / np.linalg.norm(a)
                level = float(a @ feasible) + rng.choice([0.0, 0.1])
                halfspaces.append((a, level))
            length = steep * rng.uniform(0.2, 1.0)
            g, dg = length * (float(a @ x) - level), length * a
            ccv += max(0.0, g)
            m = _moduli(style, mu, t, T, rng)
            if m is None:
                session.observe(g=g, dg=dg)
                continue
            away = x - feasible
            targets = {"pull away": domain.project(x + away), "pull back": domain.project(-9.0 * x), "stand still": x}
            center = targets.get(move, domain.project(rng.standard_normal(d)))
            slope = np.zeros(d)
            if move in ("pull back", "random") and rng.uniform() < 0.8:
                slope = 2.0 * mu * D * rng.uniform() * (np.sign(away[0]) if d == 1 else 1.0) * (x - center) / max(D, 1e-9)
            if style == "late slope" and t < T // 3:
                center, slope = x, np.zeros(d)
            q = m * (1.0 + extra)
            df = q * (x - center) + slope
            f = 0.5 * q * float((x - center) @ (x - center)) + float(slope @ x)
            told = {} if m == mu else {"modulus": m}
            session.observe(f=f, df=df, g=g, dg=dg, **told)
            total, paid = total.plus(q, center, slope), paid + f
        bound = session.bound()
    return Outcome(paid - _least(total, domain, feasible, ends, halfspaces, rng), ccv, bound.regret, bound.ccv, bound.why)  # type: ignore[arg-type]


def _least(total: Totals, domain: Any, feasible: np.ndarray, ends: np.ndarray, halfspaces: list[Any], rng: np.random.Generator) -> float:
    """The least total of a feasible action: exact in one dimension, else the least of many feasible actions."""
    if len(feasible) == 1:
        best = np.clip(-total.linear / total.q, *ends) if total.q > 0.0 else np.zeros(0)
        points = [np.array([end]) for end in ends] + ([best] if len(best) else [])
    else:
        lowest = domain.project(-total.linear / total.q if total.q > 0.0 else -1e3 * total.linear)
        shares = np.append(np.linspace(0.0, 1.0, 50), rng.uniform(0.0, 1.0, 50))
        points = [feasible + share * (lowest - feasible) for share in shares]
        points = [u for u in points if all(float(a @ u) <= level + 1e-12 for a, level in halfspaces)] + [feasible]
    return min(total.value(u) for u in points)


def main(games: int) -> None:
    for label in POLICIES:
        outcomes = [game(label, seed) for seed in range(games)]
        regret = [o.regret / o.regret_bound for o in outcomes if o.regret_bound]
        ccv = [o.ccv / o.ccv_bound for o in outcomes if o.ccv_bound]
        wrong, none = sum(o.wrong for o in outcomes), sum(o.regret_bound is None for o in outcomes)
        nearest = f"regret at most {max(regret):.3f} of its bound, CCV {max(ccv):.3f}"
        print(f"{label:20s} {games} games, {wrong} wrong, {none} without a bound, {nearest}", sorted({o.why for o in outcomes} - {""})[:2])


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
