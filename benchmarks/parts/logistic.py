"""One row at a time of a logistic regression, 30 features: river, scikit-learn and Vowpal Wabbit beside our adapters, sessions and engine.

Our sides run Algorithm 1 on the log-loss with a limit on the loss of each positive row, in a ball of radius 5; they, and the same written
by hand in NumPy, must end with the same weights. The peers run their own stochastic gradient descent without a limit, which is less work.
Every side has its rows in the form it takes them before the clock starts: dicts, arrays, text.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import bridle
from parts.stream import constants
from parts.timing import Side, apart, gathered, interleaved

FEATURES, RADIUS, LIMIT, CLOSE = 30, 5.0, 0.1, 1e-10
ALGORITHM_1: dict[str, Any] = {"horizon": 10**6, "lipschitz": 10.0, "preset": "practice"}


def rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Features and labels of a planted model, one row in five positive."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, FEATURES))
    return X, X @ rng.standard_normal(FEATURES) / FEATURES**0.5 + 0.5 * rng.standard_normal(n) > 1.0


def by_hand(X: np.ndarray, y: np.ndarray, policy: Any) -> np.ndarray:
    """Algorithm 1 on these rows as one would write it."""
    lam, beta, V, diameter = constants(policy)
    x, Q, S = np.zeros(FEATURES + 1), 0.0, 0.0
    for a, positive in zip(X, y, strict=True):
        sign = 1.0 if positive else -1.0
        margin = sign * (a @ x)
        p = (-V * beta * sign / (1.0 + math.exp(margin))) * a
        if positive and (g := math.log1p(math.exp(-margin)) - LIMIT) > 0.0:
            Q += beta * g
            p += (-lam * math.exp(lam * Q) * beta / (1.0 + math.exp(margin))) * a
        S += p @ p
        x = x - diameter / math.sqrt(2.0 * S) * p
        n = math.sqrt(x @ x)
        if n > RADIUS:
            x = x * (RADIUS / n)
    return x


def in_session(X: np.ndarray, y: np.ndarray, policy: Any, **settings: Any) -> np.ndarray:
    """The same through decide and observe; loss and gradient are the caller's business, and timed."""
    session, nothing = bridle.Session(policy, **settings), np.zeros(FEATURES + 1)
    for a, positive in zip(X, y, strict=True):
        x = session.decide()
        sign = 1.0 if positive else -1.0
        margin = sign * float(a @ x)
        loss, slope = math.log1p(math.exp(-margin)), (-sign / (1.0 + math.exp(margin))) * a
        session.observe(loss, slope, loss - LIMIT if positive else -LIMIT, slope if positive else nothing)
    return session.decide()


def unlimited(X: np.ndarray, y: np.ndarray, policy: Any, **settings: Any) -> np.ndarray:
    """Plain online gradient descent through a session: what the peers do."""
    session = bridle.Session(policy, **settings)
    for a, positive in zip(X, y, strict=True):
        sign = 1.0 if positive else -1.0
        margin = sign * float(a @ session.decide())
        session.observe(math.log1p(math.exp(-margin)), (-sign / (1.0 + math.exp(margin))) * a)
    return session.decide()


def ours(X: np.ndarray, y: np.ndarray, many: int) -> tuple[dict[str, Callable[[], np.ndarray]], dict[str, int]]:
    """Our sides, each giving its weights, the intercept first; and of those that are not timed on `many` rows, on how many."""
    from bridle.adapters import river, sklearn
    from bridle.adapters.linear import LabelledRow, LinearModel, ModelSettings

    wide = np.column_stack((np.ones(len(X)), X))
    policy = bridle.policy("sinha2024", bridle.Ball(FEATURES + 1, RADIUS), **ALGORITHM_1)
    gradient = bridle.policy("ogd", bridle.Ball(FEATURES + 1, RADIUS), lipschitz=10.0)
    limit, settings = [river.MissLoss(label=True, at_most=LIMIT)], {"policy": "sinha2024", "parameters": ALGORITHM_1, "radius": RADIUS}
    dicts = [(dict(enumerate(row)), label) for row, label in zip(X[:many].tolist(), y[:many].tolist(), strict=True)]

    def by_river(engine: str) -> np.ndarray:
        model = river.ConstrainedClassifier(limit, **settings, engine=engine)
        for x, label in dicts:
            model.learn_one(x, label)
        return np.array([model.intercept, *model.weights.values()])

    def by_sklearn() -> np.ndarray:
        model = sklearn.ConstrainedClassifier(limit, **settings)
        model.partial_fit(X[:1], y[:1], classes=[False, True])
        for i in range(1, many):
            model.partial_fit(X[i : i + 1], y[i : i + 1])
        return np.append(model.intercept_, model.coef_)

    def compiled(n: int) -> Callable[[], np.ndarray]:
        def run() -> np.ndarray:
            model = LinearModel(FEATURES, ModelSettings((False, True), limit, "sinha2024", ALGORITHM_1, RADIUS))
            model.take_many(LabelledRow(X[:n], np.where(y[:n], 1.0, -1.0), np.ones(n)), "compiled")
            return model.weights

        return run

    sides: dict[str, Callable[[], np.ndarray]] = {
        "NumPy loop by hand": lambda: by_hand(wide[:many], y[:many], policy),
        "Session": lambda: in_session(wide[:many], y[:many], policy),
        "Session, certify=False": lambda: in_session(wide[:many], y[:many], policy, certify=False),
        "river adapter, learn_one": lambda: by_river("python"),
        "river adapter, learn_one, engine compiled": lambda: by_river("compiled"),
        "scikit-learn adapter, partial_fit, one row": by_sklearn,
        "engine compiled, all rows": compiled(many),
    }
    if "engine" in inspect.signature(bridle.Session).parameters:
        sides["Session, engine compiled"] = lambda: in_session(wide[:many], y[:many], policy, engine="compiled")
        sides["Session, engine compiled, certify=False"] = lambda: in_session(
            wide[:many], y[:many], policy, engine="compiled", certify=False
        )
    sides["engine compiled, all rows of a longer table"] = compiled(len(X))
    sides["Session, no limit, ogd"] = lambda: unlimited(wide[:many], y[:many], gradient)
    return sides, {"engine compiled, all rows of a longer table": len(X)}


def peers(X: np.ndarray, y: np.ndarray, few: int) -> dict[str, Callable[[], Side]]:
    """The peers, each with its own plain logistic regression."""
    n = len(X)

    def by_river() -> Side:
        from river import linear_model

        dicts = [(dict(enumerate(row)), label) for row, label in zip(X.tolist(), y.tolist(), strict=True)]

        def run() -> None:
            model = linear_model.LogisticRegression()
            for x, label in dicts:
                model.learn_one(x, label)

        return Side("river LogisticRegression, learn_one", run, n, "no limit")

    def by_sklearn() -> Side:
        from sklearn.linear_model import SGDClassifier

        def run() -> None:
            model = SGDClassifier(loss="log_loss")
            model.partial_fit(X[:1], y[:1], classes=[False, True])
            for i in range(1, few):
                model.partial_fit(X[i : i + 1], y[i : i + 1])

        return Side("scikit-learn SGDClassifier, partial_fit, one row", run, few, "no limit")

    def by_wabbit() -> Side:
        import vowpalwabbit

        texts = [f"{1 if label else -1} | " + " ".join(f"{i}:{v}" for i, v in enumerate(row)) for row, label in zip(X, y, strict=True)]

        def run() -> None:
            model = vowpalwabbit.Workspace("--quiet --loss_function logistic")
            for text in texts:
                model.learn(text)
            model.finish()

        return Side("Vowpal Wabbit, learn(text)", run, n, "no limit; text is parsed")

    return {"river": by_river, "scikit-learn": by_sklearn, "Vowpal Wabbit": by_wabbit}


def measure(quick: bool) -> dict[str, Any]:
    """All sides on one core."""
    many, long, few, repeats = (500, 5_000, 200, 3) if quick else (20_000, 100_000, 1_000, 7)
    X, y = rows(long)
    sides, lengths = ours(X, y, many)
    same = {name: run() for name, run in sides.items() if name not in lengths and "no limit" not in name}
    far = apart(same, CLOSE)
    noted = {"Session": "certificates", "Session, engine compiled": "certificates", "Session, no limit, ogd": "certificates"}
    mine = [Side(name, run, lengths.get(name, many), noted.get(name, "")) for name, run in sides.items()]
    others, skipped = gathered(peers(X[:many], y[:many], few))
    return {
        "features": FEATURES, "repeats": repeats, "rows_played": many, "apart": far, "compared": len(same),
        "rows": interleaved([*mine, *others.values()], repeats), "skipped": skipped,
    }  # fmt: skip
