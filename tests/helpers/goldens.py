"""What every policy and every way to drive it did when the goldens were recorded, as digests, checksums and a few full transcripts.

Each case plays 200 rounds that depend on the decisions. A digest is of exact bits: it is compared on the kind of machine where the goldens
were recorded. The checksums (three sums over all decisions, and the totals) are compared everywhere, with a tolerance.

After a change of behaviour that is meant, record again and name the change in the commit:

    PYTHONPATH=tests python -m helpers.goldens
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import bridle
from bridle import policies

ROUNDS = 200
PATH = Path(__file__).with_suffix(".json")
TYPICAL = {"horizon": ROUNDS, "lipschitz": 1.0, "bound": 2.0, "modulus": 0.5, "slater": 0.1, "exp_concavity": 1.0}
TRANSCRIPTS = ("anytime plain python", "sinha2024 plain python", "rate plain python", "soft tickets python", "anytime changes")
"""The cases whose certificate, report and last decisions are kept in full."""


def machine() -> str:
    """The bits of sums and functions on this kind of machine: BLAS kernels, vector units and NumPy's own loops differ."""
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((257, 257)), rng.standard_normal(257)
    probe = [A @ b, A[:3] @ A[:, :3], np.exp(A), np.log(np.abs(A)), np.sqrt(np.abs(b)), np.linalg.svd(A[:9, :9])[1], np.array([b @ b])]
    return _digest(np.concatenate([np.ravel(part) for part in probe]))


def _digest(value: np.ndarray | str) -> str:
    raw = value.encode() if isinstance(value, str) else np.ascontiguousarray(value, dtype=float).tobytes()
    return hashlib.sha256(raw).hexdigest()[:16]


def policy_named(name: str, **more: Any) -> Any:
    """The policy on a small domain that it is for, with typical values of what it needs."""
    item = policies.entry(name)
    domain: Any = bridle.Simplex(3) if "simplex" in item.domains else bridle.Box(-1.0, 1.0, dim=3)
    needed = {p.name: TYPICAL.get(p.name, 1.0) for p in policies.parameters(name) if p.required}
    seeded = {"seed": 7} if item.randomised else {}
    safe = {"safe": [-1.0, -1.0, -1.0]} if any(p.name == "safe" for p in policies.parameters(name)) else {}
    return bridle.policy(name, domain, **needed, **seeded, **safe, **more)


def constraints_for(policy: Any) -> int:
    """Two constraints, unless the policy was made for another number."""
    each = getattr(policies.registry.record_of(policy), "each", None)
    return 2 if each is None else len(each)


def functions(t: int, dim: int, k: int) -> tuple[Any, list[Any]]:
    """The cost and the constraints of a round: affine, with slopes of length 1, and satisfied at a point of every domain."""
    rng = np.random.default_rng([11, t])
    c, A = rng.standard_normal(dim) - 0.6, rng.standard_normal((k, dim))
    c, A = c / np.linalg.norm(c), A / np.linalg.norm(A, axis=1, keepdims=True)
    point = np.full(dim, 1.0 / dim)
    slack = rng.exponential(0.1, k) * (rng.random(k) < 0.5)
    return bridle.Affine(c), [bridle.Affine(a, -float(a @ point) - s) for a, s in zip(A, slack, strict=True)]


def revealed(t: int, x: np.ndarray, k: int) -> dict[str, Any]:
    """What a round reveals at an action, as numbers."""
    cost, constraints = functions(t, len(x), k)
    return {
        "f": cost.value(x), "df": cost.grad(x), "g": [g.value(x) for g in constraints], "dg": [g.grad(x) for g in constraints]
    }  # fmt: skip


def plain(session: Any, k: int) -> Iterator[np.ndarray]:
    for t in range(ROUNDS):
        cost, constraints = functions(t, 3, k)
        yield session.step(cost, constraints)


def tickets(session: Any, k: int) -> Iterator[np.ndarray]:
    """Up to four rounds wait; every seventh is forgotten, and the rest come back out of order."""
    waiting: list[tuple[int, Any]] = []
    for t in range(ROUNDS):
        ticket = session.ask()
        yield ticket.x
        waiting.append((t, ticket))
        if len(waiting) == 4:
            (one, first), (other, second) = waiting.pop(t % 4), waiting.pop(0)
            session.observe(**revealed(one, first.x, k), ticket=first)
            session.forget(second) if t % 7 == 0 else session.observe(**revealed(other, second.x, k), ticket=second)


def known(session: Any, k: int) -> Iterator[np.ndarray]:
    for t in range(ROUNDS):
        rng = np.random.default_rng([12, t])
        A = rng.standard_normal((1, 3))
        x = session.decide(known=(A, A @ np.full(3, 1.0 / 3.0) + 0.05) if t % 3 else None)
        session.observe(**revealed(t, x, k))
        yield x


def rules(session: Any, k: int) -> Iterator[np.ndarray]:
    for t in range(ROUNDS):
        proposals = np.random.default_rng([13, t]).dirichlet(np.ones(3), size=4)
        if t % 5 == 0:
            proposals[t % 4] = np.nan
        x = session.decide(rules=proposals)
        session.observe(**revealed(t, x, k))
        yield x


def hints(session: Any, k: int) -> Iterator[np.ndarray]:
    for t in range(ROUNDS):
        x = session.decide()
        told = revealed(t, x, k)
        x = session.decide(hint={"df": told["df"], "g": told["g"], "dg": told["dg"], "x": x} if t % 2 else None)
        session.observe(**revealed(t, x, k))
        yield x


def played(session: Any, k: int) -> Iterator[np.ndarray]:
    for t in range(ROUNDS):
        x = session.decide()
        done = x if t % 3 else 0.9 * x + 0.1 / 3.0
        session.observe(**revealed(t, done, k), played=done if t % 3 == 0 else None)
        yield x


WAYS: dict[str, tuple[Callable[[Any, int], Iterator[np.ndarray]], dict[str, Any]]] = {
    "plain": (plain, {}), "tickets": (tickets, {}), "known": (known, {}), "rules": (rules, {"rules": 4}), "hints": (hints, {}),
    "played": (played, {}),
}  # fmt: skip
"""How a session may be driven, and what its policy is told for it."""


class Golden(dict[str, Any]):
    """One case: digests of its decisions, certificate and report, and checksums."""

    def __init__(self, decisions: list[np.ndarray], session: Any, full: bool) -> None:
        X = np.array(decisions, dtype=float)
        weights = np.cos(np.outer(np.arange(1, X.size + 1), [0.1, 0.7, 1.3]))
        facts = [float(session.cost), *map(float, session.violations), *map(float, session.balances)]
        super().__init__(decisions=_digest(X), sums=_rounded([*(np.ravel(X) @ weights), *facts]))
        try:
            certificate, report = session.certificate().json(), session.report()
        except bridle.InputError:
            return  # a policy that sees values alone keeps none
        self |= {"certificate": _digest(certificate), "report": _digest(report)}
        if full:
            self |= {"last": X[-3:].tolist(), "certificate in full": json.loads(certificate), "report in full": report.splitlines()}


def _rounded(numbers: Any) -> list[float]:
    return [float(f"{float(number):.9g}") for number in numbers]


def session_case(name: str, way: str, engine: str) -> dict[str, Any]:
    """A session of the policy, driven in this way; "refused" where it does not apply, in whatever words."""
    drive, told = WAYS[way]
    policy_named(name)
    try:
        policy = policy_named(name, **told)
        session = bridle.Session(policy, engine=engine)
        decisions = list(drive(session, constraints_for(policy)))
    except bridle.InputError:
        return {"refused": True}
    return Golden(decisions, session, f"{name} {way} {engine}" in TRANSCRIPTS)


def changes_case(name: str) -> dict[str, Any]:
    """A durable session whose limits change; reopened twice, so that its journal is replayed; every call committed."""
    with tempfile.TemporaryDirectory() as folder:
        url, decisions = f"sqlite:///{folder}/run.db", []
        policy = policy_named(name)
        k = constraints_for(policy)
        for part in range(4):
            with bridle.Session.open(url, "run", policy=policy) as session:
                for t in range(50 * part, 50 * part + 50):
                    x = session.decide()
                    session.observe(**revealed(t, x, k))
                    decisions.append(x)
                session.change_limit(part % k, **({"at_most": 0.1 + 0.05 * part} if name == "rate" else {"offset": -0.02 * part}))
                golden = Golden(decisions, session, f"{name} changes" in TRANSCRIPTS)
        return golden


def play_case(name: str, engine: str) -> dict[str, Any]:
    """A game on random halfspaces, or on the experts' problem where the policy is for a simplex: totals and what is promised."""
    domain = bridle.Simplex(3) if "simplex" in policies.entry(name).domains else None
    given = {"dim": 3} if domain is None else {"domain": domain}
    problem = bridle.problem("halfspaces", horizon=ROUNDS, seed=5, **given)
    try:
        trace = bridle.play(bridle.policy_for(name, problem), problem, engine=engine, keep="decisions")
    except bridle.InputError:
        return {"refused": True}
    X = np.asarray(trace.decisions, dtype=float)
    bound = trace.policy.bound(problem.constants, ROUNDS)
    weights = np.cos(np.outer(np.arange(1, X.size + 1), [0.1, 0.7, 1.3]))
    measured = [np.ravel(X) @ weights, [bridle.regret(trace), bridle.ccv(trace), bridle.ccv_max(trace), bridle.interval_violation(trace)]]
    promised = [np.nan if number is None else float(number) for number in (bound.regret, bound.ccv)]
    return {"decisions": _digest(X), "sums": _rounded([*np.concatenate(measured), *np.nan_to_num(promised, nan=-1.0)])}


def compare_case() -> dict[str, Any]:
    """The rows of a comparison, without times."""
    with tempfile.TemporaryDirectory() as folder:
        found = bridle.compare(
            ["halfspaces", "minimax"], ["anytime", "sinha2024", "yu2020", "ogd"], horizons=[100, 200], seeds=2, out=Path(folder), jobs=1
        )
        rows = [{key: value for key, value in row.items() if "us_" not in key and "seconds" not in key} for row in found.rows]
    rows.sort(key=lambda row: json.dumps(row, sort_keys=True, default=str))
    numbers = [value for row in rows for key, value in sorted(row.items()) if isinstance(value, float) and np.isfinite(value)]
    return {"keys": sorted({key for row in rows for key in row}), "rows": len(rows), "sums": _rounded(
        [sum(numbers), float(np.dot(numbers, np.cos(np.arange(len(numbers)))))]
    )}  # fmt: skip


def http_case() -> dict[str, Any]:
    """The answers of the decision service to a script: bodies without times and names of runs."""
    from helpers.serving import serving

    said: list[Any] = []
    with tempfile.TemporaryDirectory() as folder, serving(f"sqlite:///{folder}/run.db") as server, server.client() as client:

        def ask(method: str, path: str, body: Any = None) -> Any:
            answer = client.request(method, path, json=body)
            said.append([method, path, answer.status_code, _timeless(answer.json())])
            return answer.json()

        box = {"kind": "box", "low": -1.0, "high": 1.0, "dim": 3}
        ask("POST", "/v1/sessions", {"name": "shop", "policy": "anytime", "domain": box, "names": ["latency", "spend"]})
        for t in range(20):
            x = np.array(ask("POST", "/v1/sessions/shop/decide", {})["x"])
            told = {key: np.asarray(value).tolist() for key, value in revealed(t, x, 2).items()}
            ask("POST", "/v1/sessions/shop/observe", told | {"key": f"order-{t}"})
        ticket = ask("POST", "/v1/sessions/shop/ask", {})
        ask("POST", "/v1/sessions/shop/observe", {"ticket": ticket["ticket"], **told})
        ask("POST", "/v1/sessions/shop/observe", {"f": "much"})
        ask("POST", "/v1/sessions/shop/observe", {"f": 0.1, "df": [1.0]})
        ask("GET", "/v1/sessions/none")
        for page in ("", "/certificate", "/report"):
            ask("GET", f"/v1/sessions/shop{page}")
    return {"answers": len(said), "statuses": [status for _, _, status, _ in said], "bodies": _digest(json.dumps(said, sort_keys=True))}


TIMES = {"created", "updated", "run", "at", "seconds", "time", "uptime", "opened", "since", "last", "request", "id", "request_id"}


def _timeless(body: Any) -> Any:
    if isinstance(body, dict):
        return {key: _timeless(value) for key, value in body.items() if key not in TIMES}
    return [_timeless(value) for value in body] if isinstance(body, list) else body


CHANGING = ("rate", "anytime", "soft", "sinha2024")


def cases() -> dict[str, Callable[[], dict[str, Any]]]:
    """Every case by its name."""
    found: dict[str, Callable[[], dict[str, Any]]] = {}
    for name in policies.names():
        for engine in ("python", "compiled"):
            for way in WAYS:
                found[f"{name} {way} {engine}"] = lambda n=name, w=way, e=engine: session_case(n, w, e)  # type: ignore[misc]
            found[f"{name} play {engine}"] = lambda n=name, e=engine: play_case(n, e)  # type: ignore[misc]
    for name in CHANGING:
        found[f"{name} changes"] = lambda n=name: changes_case(n)  # type: ignore[misc]
    return found | {"compare": compare_case, "http": http_case}


def recorded(case: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What a case does now."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bridle.BridleWarning)
        return dict(case())


def main() -> None:
    """Record everything."""
    import time

    lines, slow = [], []
    for name, case in cases().items():
        begun = time.process_time()
        lines.append(f"{json.dumps(name)}: {json.dumps(recorded(case))}")
        slow.append((time.process_time() - begun, name))
    PATH.write_text(f'{{"machine": "{machine()}",\n' + ",\n".join(lines) + "}\n", encoding="utf-8")
    print(f"{len(lines)} cases, {sum(seconds for seconds, _ in slow):.0f} s;", sorted(slow, reverse=True)[:12])


if __name__ == "__main__":
    main()
