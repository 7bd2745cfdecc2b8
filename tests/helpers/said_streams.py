"""Small random streams for sessions to which everything is said that can be: rules, features, known limits, what was played, late feedback.

`play` notes what a brute-force comparison needs: for each round the map from weights to actions, the cost's gradient, the limits' rows and
levels, what was played, and what was known. `hold` solves for the best comparator by linear programs and holds every claim against it.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog

import bridle
from bridle.session.step import standing
from helpers.inside import state

LOW, HIGH = np.array([-1.0, 0.0]), np.array([1.0, 3.0])
BOX = bridle.Box(LOW, HIGH)
LEVELS = (0.05, 0.5)


class Case(NamedTuple):
    """What is said in a stream."""

    seed: int
    policy: str
    through: str  # "none", "rules", "coordinate" or "features"
    known: bool
    played: bool
    late: str  # "no", "copies" or, of a policy that is made for late feedback, "pool"
    feasible: bool
    rounds: int = 24


def drawn(seed: int) -> Case:
    """The case of a seed."""
    rng = np.random.default_rng([seed, 7])
    policy = str(rng.choice(["anytime", "soft", "sinha2024", "adagrad", "ogd", "rate", "mlpoly", "adaftrl"]))
    through = str(rng.choice(["rules", "coordinate"] if policy == "mlpoly" else ["none", "rules", "coordinate", "features"]))
    known, played, feasible = (rng.random(3) < [0.5, 0.5, 0.7]).tolist()
    late = str(rng.choice(["no", "no", "copies", "pool"]))
    return Case(seed, policy, through, known, played, "copies" if late == "pool" and policy != "rate" else late, feasible)


class Noted(NamedTuple):
    """One round as it was: x = B w + b stands for weights w; <p, x> is the cost, N x <= c the limits, A x <= a what was known."""

    B: np.ndarray
    b: np.ndarray
    p: np.ndarray
    N: np.ndarray
    c: np.ndarray
    A: np.ndarray
    a: np.ndarray
    decided: np.ndarray
    played: np.ndarray


def make(case: Case) -> bridle.Session:
    told: dict[str, Any] = {}
    if case.policy in ("sinha2024", "ogd"):
        told = {"lipschitz": 60.0} | ({"horizon": case.rounds} if case.policy == "sinha2024" else {})
    if case.policy == "rate":
        told = {"at_most": [0.2, 0.3], "safe": [0.0, 0.0]}
    if case.through == "features":
        told["features"] = 1
    elif case.through != "none":
        told |= {"rules": 3} | ({"rules_per": "coordinate"} if case.through == "coordinate" else {})
    options = {} if case.late == "no" else {"late": "copies" if case.policy != "rate" else case.late}
    return bridle.Session(bridle.policy(case.policy, BOX, **told), levels=LEVELS, **options)


def inside_of(session: Any) -> Any:
    """The session that plays: a durable one has it inside."""
    return session.journal.session if hasattr(session, "journal") else session


def play(case: Case, session: bridle.Session) -> list[Noted]:
    """The stream; what came of it, in the order in which feedback came."""
    rng = np.random.default_rng(case.seed)
    keeper = rng.uniform(LOW, HIGH)  # what keeps everything, where something does
    weights, scale = rng.dirichlet(np.ones(3), 2 if case.through == "coordinate" else 1), np.zeros(1)
    noted, waiting = [], []

    def act():
        words: dict[str, Any] = {}
        B, b, good, largest = np.eye(2), np.zeros(2), keeper, scale
        if case.through == "features":
            phi = rng.uniform(-1.0, 1.0, 1) * 5.0
            largest = np.maximum(scale, abs(phi))
            row, half = np.append(1.0, phi / np.where(largest > 0.0, largest, 1.0)), 0.5 * (HIGH - LOW)
            B, b = np.zeros((2, 4)), BOX.center()
            B[0, :2], B[1, 2:] = half[0] * row, half[1] * row
            good = keeper  # the function that is constant
            words["features"] = phi
        elif case.through != "none":
            R = rng.uniform(LOW, HIGH, (3, 2))
            if rng.random() < 0.3:
                R[rng.integers(3)] = np.nan
            words["rules"] = R
            good = None
        A, a = np.zeros((0, 2)), np.zeros(0)
        if case.known and rng.random() < 0.7:
            A = rng.standard_normal((1, 2))
            inside = keeper if good is not None else np.nanmean(words["rules"], axis=0)
            a = A @ inside + rng.uniform(0.0, 0.3, 1)
            words["known"] = (A, a)
        if case.late == "no":
            x, ticket = session.decide(**words), None
        else:
            ticket = session.ask(**words)
            x = ticket.x
        if "rules" in words:
            w = session.read(standing) if ticket is None else state(session).slow.late.waiting[ticket.id].x
            if case.policy != "rate":  # which mixes by itself, and is compared with actions
                whole = session.plan.through.awake(words["rules"], w)[0]
                B = whole.T.copy()
                if case.through == "coordinate":
                    B = np.zeros((2, 6))
                    B[0, :3], B[1, 3:] = whole[:, 0], whole[:, 1]
                good = B @ weights.reshape(-1)
        return ticket, x, B, b, good, A, a, largest

    def answer(ticket, x, B, b, good, A, a, largest):
        nonlocal scale
        scale = np.maximum(scale, largest)  # of the rounds whose feedback has come
        y = np.clip(x + rng.normal(0.0, 0.5, 2), LOW, HIGH) if case.played and rng.random() < 0.5 else x
        p, N = rng.standard_normal(2), rng.standard_normal((2, 2))
        if rng.random() < 0.5:  # as dear as can be
            p = p * np.sign(p @ (y - (keeper if good is None else good)) + 1e-300)
        c = N @ (keeper if good is None else good) + rng.uniform(0.0, 0.2, 2)
        if not case.feasible and rng.random() < 0.3:
            c = c - 2.0
        words = {} if y is x else {"played": y}
        if ticket is not None:
            words["ticket"] = ticket
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bridle.BridleWarning)
            session.observe(f=float(p @ y), df=p, g=N @ y - c, dg=N, **words)
        noted.append(Noted(B, b, p, N, c, A, a, x, y))

    for _ in range(case.rounds):
        begun = act()
        if case.late == "no":
            answer(*begun)
            continue
        waiting.append(begun)
        while len(waiting) > 3:
            answer(*waiting.pop(int(rng.integers(len(waiting)))))
    for begun in waiting:
        answer(*begun)
    return noted


def weights_that_count(case: Case) -> dict[str, Any]:
    """The comparators, as a linear program has them."""
    if case.policy == "rate" and case.through != "features":
        return {"bounds": list(zip(LOW, HIGH, strict=True))}
    if case.through == "none":
        return {"bounds": list(zip(LOW, HIGH, strict=True))}
    if case.through == "features":
        return {"bounds": [(-1.0, 1.0)] * 4}
    if case.through == "rules":
        return {"bounds": [(0.0, None)] * 3, "A_eq": np.ones((1, 3)), "b_eq": [1.0]}
    return {"bounds": [(0.0, None)] * 6, "A_eq": np.kron(np.eye(2), np.ones((1, 3))), "b_eq": [1.0, 1.0]}


def least(case: Case, noted: list[Noted], *, limits: bool, known: bool, apart: float = 0.0) -> float | None:
    """The least total cost of a fixed comparator that keeps the limits and what was known, as asked; None where there is none."""
    rows, levels = [], []
    for each in noted:
        for N, c, wanted in ((each.N, each.c, limits), (each.A, each.a, known)):
            if wanted and len(c):
                rows.append(N @ each.B)
                levels.append(c - N @ each.b + apart)
    cost = sum(each.p @ each.B for each in noted)
    more = {"A_ub": np.vstack(rows), "b_ub": np.concatenate(levels)} if rows else {}
    found = linprog(cost, **more, **weights_that_count(case))
    return None if found.status == 2 else float(found.fun + sum(each.p @ each.b for each in noted))


def hold(case: Case, session: bridle.Session, noted: list[Noted]) -> dict[str, float]:
    """Every claim of the session against brute force; the largest share of each bound."""
    proof, close = session.certificate(), 1e-6
    paid = sum(float(each.p @ each.played) for each in noted)
    values = np.array([each.N @ each.played - each.c for each in noted])
    over = np.maximum(values, 0.0)
    assert abs(session.cost - paid) <= close
    assert np.allclose(session.violations, over.sum(axis=0), atol=close)
    assert np.allclose(session.balances, values.sum(axis=0), atol=close)
    assert (proof.cost, proof.ccv, proof.rounds) == (session.cost, session.ccv, len(noted))
    worst = values.max(axis=1)
    assert proof.violated == (worst > 1e-9).sum()
    assert proof.above == tuple((level, int((worst > level).sum())) for level in LEVELS)
    charge = sum(float(each.p @ (each.played - each.decided)) for each in noted)
    if case.through != "features" and not case.known:
        assert abs((0.0 if proof.moved is None else proof.moved.cost) - charge) <= close
    for each in noted:
        assert (each.A @ each.decided <= each.a + 1e-9).all()
    shares = {}

    def below(what: str, regret: float, bound: float | None) -> None:
        if bound is not None:
            assert regret <= bound + close * (1.0 + abs(bound)), (what, regret, bound)
            shares[what] = max(shares.get(what, -np.inf), regret / bound if bound > 0.0 else -np.inf)

    anything, fair, kept = (
        least(case, noted, limits=limits, known=known) for limits, known in ((False, False), (True, False), (True, True))
    )
    assert anything is not None
    below("any", paid - anything, proof.regret_any)
    if proof.conflict is not None:
        assert least(case, noted, limits=True, known=False, apart=-1e-7) is None, "it is feasible"
    if fair is not None and proof.conflict is None:
        below("observed", paid - fair, proof.regret)
    if kept is not None:
        below("algorithm", paid - kept, proof.regret_algorithm)
        below("bound", paid - kept, proof.bound.regret)
        below("ccv", session.ccv, proof.bound.ccv)
        below("soft", float(session.balances.max()), proof.bound.soft)
    for i, limit in enumerate(proof.rates):
        assert (limit.violated, limit.counted, limit.exact) == (int((values[:, i] > 0.0).sum()), len(noted), True)
    return shares
