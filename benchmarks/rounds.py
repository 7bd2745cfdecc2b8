"""What one round of Algorithm 1 costs on each path, as ratios to a hand-inlined NumPy loop on the same stream in the same run.

Linear costs and constraints, d = 30, L2 ball, preset practice. Repeats are interleaved; the table shows the median and the spread of the
ratios. Every path is checked to end at the same decision before anything is timed. A second table has logistic regression under a limit on
the loss of the rare class, one row at a time through a session, against river's `learn_one` on the same rows (if river is installed). A
third has mixtures of 26 rules by their weights, against AdaGrad; a fourth the same a round at a time, with actions in two dimensions.
"""

from __future__ import annotations

import math
import platform
import statistics
import time
from functools import partial

import numba
import numpy as np
from rich.console import Console
from rich.table import Table

import bridle
from parts.toy import size

D, ROUNDS, RUNS, REPEATS = size((30, 20_000, 256, 5), (4, 100, 4, 3))
RULES = size(26, 3)


def plain_numpy(problem, policy) -> np.ndarray:
    """Algorithm 1 as one would write it in a notebook: no records, no checks, no totals."""
    record = policy.record
    lam, beta, V, diameter = record.potential.lam, record.beta, record.V, record.learner.diameter
    x, Q, S = np.zeros(D), 0.0, 0.0
    for block in _blocks(problem):
        for c, a, b in zip(block.cost.a, block.constraints[0].a, block.constraints[0].b, strict=True):
            g = a @ x + b
            if g > 0.0:
                Q += beta * g
                p = V * beta * c + lam * np.exp(lam * Q) * beta * a
            else:
                p = V * beta * c
            S += p @ p
            x = x - diameter / np.sqrt(2.0 * S) * p
            n = np.sqrt(x @ x)
            if n > 1.0:
                x = x / n
    return x


def _blocks(problem):
    from bridle.problems.dealing import deal_blocks

    return deal_blocks(problem.adversary, problem.seed, problem.horizon, D)


def fused(problem, policy) -> np.ndarray:
    """The same as one loop that a compiler sees as a whole: no call, no temporary array. Nothing that plays round by round is faster."""
    record = policy.record
    x, sums = np.zeros(D), np.zeros(2)
    for block in _blocks(problem):
        limit = block.constraints[0]
        _fused(block.cost.a, limit.a, limit.b, x, record.potential.lam, record.beta, record.V, record.learner.diameter, sums)
    return x


def fused_loop(costs, rows, levels, x, lam, beta, V, diameter, sums):
    """Rounds of Algorithm 1 for a compiler, on x and the sums Q and S, which go on from where they are."""
    d, p, (Q, S) = len(x), np.empty(len(x)), sums
    for t in range(len(costs)):
        g = levels[t]
        for i in range(d):
            g += rows[t, i] * x[i]
        weight = 0.0
        if g > 0.0:
            Q += beta * g
            weight = lam * np.exp(lam * Q) * beta
        for i in range(d):
            p[i] = V * beta * costs[t, i] + weight * rows[t, i]
            S += p[i] * p[i]
        step, n = diameter / np.sqrt(2.0 * S), 0.0
        for i in range(d):
            x[i] -= step * p[i]
            n += x[i] * x[i]
        if n > 1.0:
            shrink = 1.0 / np.sqrt(n)
            for i in range(d):
                x[i] *= shrink
    sums[0], sums[1] = Q, S
    return x


_fused = numba.njit(fastmath={"reassoc", "contract"}, error_model="numpy")(fused_loop)


def session(problem, policy, **settings) -> np.ndarray:
    """Decide and observe, in Python unless told, with every check on the input; `settings` are the session's own, such as certify=False."""
    driven = bridle.Session(policy, **{"engine": "python", **settings})
    for block in _blocks(problem):
        for c, a, b in zip(block.cost.a, block.constraints[0].a, block.constraints[0].b, strict=True):
            x = driven.decide()
            driven.observe(f=float(c @ x), df=c, g=float(a @ x + b), dg=a)
    return driven.decide()


def main() -> None:
    problem = bridle.problem("halfspaces", horizon=ROUNDS, dim=D)
    policy = bridle.policy_for("sinha2024", problem, preset="practice")
    sweep = bridle.policy_for("sinha2024", problem, lam=list(np.geomspace(1e-4, 1e-1, RUNS)))

    def engine(name, which=policy):
        return lambda: which.decide(bridle.play(which, problem, engine=name).state)

    paths = {
        "NumPy loop, inlined by hand": (lambda: plain_numpy(problem, policy), 1),
        "numba loop, fused by hand": (lambda: fused(problem, policy), 1),
        "play, engine python": (engine("python"), 1),
        "play, engine compiled": (engine("compiled"), 1),
        "Session": (lambda: session(problem, policy), 1),
        "Session, certify=False": (lambda: session(problem, policy, certify=False), 1),
        "Session, engine compiled": (lambda: session(problem, policy, engine="compiled"), 1),
        "Session, engine compiled, certify=False": (lambda: session(problem, policy, certify=False, engine="compiled"), 1),
        "play, engine jax": (engine("jax"), 1),
        f"play, engine jax, {RUNS} runs at once": (engine("jax", sweep), RUNS),
    }
    ends = [run() for run, runs in paths.values() if runs == 1]  # also warms every path up
    for end in ends[1:]:
        assert np.abs(end - ends[0]).max() < 1e-10, "the paths do not compute the same decisions"
    show(f"Algorithm 1, d = {D}, T = {ROUNDS:,}", "NumPy", {name: (run, ROUNDS * runs) for name, (run, runs) in paths.items()})
    mixtures()
    against_river()


def mixtures() -> None:
    """The weights of 26 rules, compiled, against AdaGrad in 30 dimensions: whole games, whose draws are part of the round."""
    ball, simplex = bridle.problem("halfspaces", ROUNDS, dim=D), bridle.problem("halfspaces", ROUNDS, dim=RULES, domain="simplex")
    games = {"adagrad": ball, "adahedge": simplex, "mlpoly": simplex, "track": simplex}
    configured = {name: bridle.policy_for(name, where) for name, where in games.items()}
    for name, where in games.items():
        bridle.play(configured[name], where, engine="compiled")
    paths = {
        f"{name}, {f'{RULES} rules' if where is simplex else f'd = {D}'}": (
            partial(bridle.play, configured[name], where, engine="compiled"),
            ROUNDS,
        )
        for name, where in games.items()
    }
    show(f"Mixtures, engine compiled, T = {ROUNDS:,}", "adagrad", paths)
    show(
        f"Mixtures, a round at a time, T = {ROUNDS:,}",
        "adagrad",
        {
            f"Session, {name}, {f'{RULES} rules, d = 2' if rules else f'd = {D}'}, engine {engine}": (ruled(name, rules, engine), ROUNDS)
            for engine in ("compiled", "python")
            for name, rules in (("adagrad", False), ("adahedge", True), ("mlpoly", True))
        },
    )


def ruled(name: str, rules: bool, engine: str):
    """Rounds of a session, one at a time: with 26 rules whose proposals are checked, mixed and learned from in Python, or without."""
    rng, dim = np.random.default_rng(0), 2 if rules else D
    session = bridle.Session(
        bridle.policy(name, bridle.Box(0.0, 1.0, dim=dim), **({"rules": RULES} if rules else {})), engine=engine, certify=False
    )
    slopes, said = rng.standard_normal((ROUNDS, dim)), rng.uniform(size=(ROUNDS, RULES, dim)) if rules else None
    g, dg = np.zeros(1), np.zeros((1, dim))

    def run() -> None:
        for t in range(ROUNDS):
            session.decide(**({} if said is None else {"rules": said[t]}))
            session.observe(f=0.0, df=slopes[t], g=g, dg=dg)

    run()  # compiled now
    return run


def show(title: str, base: str, paths) -> None:
    """Time the paths in turn, several times, and print each one's time a round and its ratio to the first."""
    times: dict[str, list[float]] = {name: [] for name in paths}
    for _ in range(REPEATS):
        for name, (run, rounds) in paths.items():
            begun = time.perf_counter()
            run()
            times[name].append((time.perf_counter() - begun) / rounds)
    first = next(iter(times.values()))
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    table = Table(title=f"{title}, {machine}, {REPEATS} interleaved repeats")
    for column in ("path", "us per run and round", f"ratio to {base}", "spread"):
        table.add_column(column, justify="left" if column == "path" else "right")
    for name, spent in times.items():
        ratios = [mine / theirs for mine, theirs in zip(spent, first, strict=True)]
        table.add_row(
            name, f"{1e6 * statistics.median(spent):.3g}", f"{statistics.median(ratios):.3g}", f"{min(ratios):.3g} - {max(ratios):.3g}"
        )
    Console(width=120).print(table)


def against_river() -> None:
    """Logistic regression, one row at a time; the session also keeps the loss of every rare row at 1 or less."""
    try:
        from river import linear_model, optim
    except ModuleNotFoundError:
        print("river is not installed: logistic regression is left out (pip install river)")
        return
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((ROUNDS, D)) / np.sqrt(D)
    rare = rows @ rng.standard_normal(D) > 1.5
    signs, labels = np.where(rare, 1.0, -1.0).tolist(), rare.tolist()
    dicts = [dict(enumerate(row)) for row in rows.tolist()]
    longest = float(np.linalg.norm(rows, axis=1).max())
    policy = bridle.policy("sinha2024", bridle.Ball(D, radius=5.0), horizon=ROUNDS, lipschitz=longest, preset="practice")

    def river() -> None:
        model = linear_model.LogisticRegression(optimizer=optim.SGD(0.1))
        for row, label in zip(dicts, labels, strict=True):
            model.learn_one(row, label)

    def ours(engine: str, certify: bool) -> None:
        driven = bridle.Session(policy, engine=engine, certify=certify)
        for row, sign in zip(rows, signs, strict=True):
            margin = sign * float(row.dot(driven.decide()))
            away = math.exp(-abs(margin))
            loss = max(-margin, 0.0) + math.log1p(away)
            grad = row * (-sign * (away if margin >= 0.0 else 1.0) / (1.0 + away))
            if sign > 0.0:
                driven.observe(loss, grad, loss - 1.0, grad)
            else:
                driven.observe(loss, grad)

    paths = {"river, LogisticRegression.learn_one": river}
    for engine in ("python", "compiled"):
        for certify in (True, False):
            paths[f"Session, engine {engine}" + ("" if certify else ", certify=False")] = partial(ours, engine, certify)
    for run in paths.values():
        run()
    show(f"Logistic regression, d = {D}, {ROUNDS:,} rows", "river", {name: (run, ROUNDS) for name, run in paths.items()})


if __name__ == "__main__":
    main()
