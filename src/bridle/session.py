"""A policy driven round by round by a caller: decide, observe, save, resume."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterable
from os import PathLike
from typing import Any

import numpy as np

from bridle import records, savefile, validate
from bridle.core import BridleWarning, Feedback, InputError
from bridle.game import domain_of, record_of

LARGEST = 1e70
"""Numbers of a larger size are refused: they come from a broken source, and the squared products of two of them would not be finite."""

LOOK = 64
"""Every so many rounds the state is asked whether the policy's assumptions still hold."""


class Session:
    """One policy and its state; totals of what was observed.

    `history`, if given, is called after every round with a dict: round, x, f, g, violation, cost and ccv.

    >>> import bridle
    >>> session = Session(bridle.policy("sinha2024", bridle.Ball(2), horizon=100, lipschitz=1.0))
    >>> session.decide()
    array([0., 0.])
    >>> session.observe(f=0.3, df=[1.0, 0.0], g=0.1, dg=[0.0, 1.0])
    >>> session.rounds, session.cost, session.ccv
    (1, 0.3, 0.1)
    """

    def __init__(self, policy: Any, x1: Any = None, *, domain: Any = None, history: Callable[[dict[str, Any]], Any] | None = None) -> None:
        record = record_of(policy)
        for method in ("init", "decide", "update"):
            if not hasattr(record, method):
                raise InputError(f"policy must have a method `{method}`; {validate.show(policy)} has none")
        if getattr(policy, "runs", None) is not None:
            raise InputError(f"policy stands for {policy.runs} runs; a session drives one: give every parameter as a number")
        if history is not None and not callable(history):
            raise InputError(f"history must be callable, not {validate.show(history)}")
        domain = domain_of(policy) if domain is None else domain
        if domain is None and x1 is None:
            raise InputError("x1 must be given: the policy does not say what its domain is")
        start = validate.vector("x1", domain.center() if x1 is None else x1, None if domain is None else domain.dim)
        if domain is not None and not domain.contains(start):
            raise InputError(f"x1 must lie in the domain; {validate.show(start)} does not")
        self.policy, self.history = policy, history
        self._record, self._start = record, start
        self._state = record.init(start)
        self._x = np.asarray(record.decide(self._state), dtype=float)
        if self._x.shape != start.shape or not _sound(self._x, self._state):
            raise InputError(
                f"policy must start with numbers and a finite decision of shape {start.shape}; {validate.show(record)} does not"
            )
        each = getattr(record, "each", None)
        told = getattr(policy, "parameters", {}).get("constraints")
        self._k: int | None = len(each) if each is not None else None if told is None else int(told)
        self._rounds, self._cost = 0, 0.0
        self._hard = np.zeros(self._k or 1)
        self._warned: set[str] = set()

    @property
    def rounds(self) -> int:
        """How many rounds have been observed."""
        return self._rounds

    @property
    def cost(self) -> float:
        """The total cost so far."""
        return self._cost

    @property
    def ccv(self) -> float:
        """The cumulative constraint violation so far: of the constraint that has been violated most."""
        return float(self._hard.max())

    @property
    def violations(self) -> np.ndarray:
        """The cumulative violation of every constraint."""
        return self._hard.copy()

    @property
    def state(self) -> Any:
        """The policy's state, a plain record; a copy, so that nothing done to it reaches the session."""
        return records.transform(lambda leaf: leaf.copy() if isinstance(leaf, np.ndarray) else leaf, self._state)

    def decide(self) -> np.ndarray:
        """The decision of this round; the same until `observe` is called."""
        return np.array(self._x, dtype=float)

    def observe(self, f: Any = 0.0, df: Any = None, g: Any = None, dg: Any = None, modulus: Any = None) -> None:
        """Take in what was revealed at the decision: cost and constraint values and their gradients.

        `g` is a number or ``(k,)``, `dg` is ``(dim,)`` or ``(k, dim)``; `modulus` is the strong convexity of this round's cost, where
        it is known. A round without a cost leaves out f and df, one without a constraint g and dg. k may change from round to round
        unless the policy was made for a certain number of constraints.
        """
        d = len(self._x)
        if (g is None) != (dg is None):
            raise InputError("g must be given with dg" if g is None else "dg must be given with g")
        if df is None and not (isinstance(f, (int, float)) and f == 0):
            raise InputError(f"df must be given with f = {validate.show(f)}")
        if g is None:
            g, dg = np.zeros(self._k or 1), np.zeros((self._k or 1, d))
        f, df, g = validate.number("f", f), np.zeros(d) if df is None else validate.vector("df", df, d), validate.array("g", g)
        if g.ndim > 1 or g.size == 0:
            raise InputError(f"g must be a number or a vector of one value per constraint, not an array of shape {g.shape}")
        g = g.reshape(-1)
        if self._k is not None and len(g) != self._k:
            raise InputError(f"g must hold {self._k} constraint value{'s' if self._k > 1 else ''}, not {len(g)}")
        dg = validate.array("dg", dg)
        if dg.shape != (len(g), d) and not (len(g) == 1 and dg.shape == (d,)):
            raise InputError(f"dg must have shape {(len(g), d)}, not {dg.shape}")
        modulus = None if modulus is None else validate.positive("modulus", modulus)
        for name, value in (("f", f), ("df", df), ("g", g), ("dg", dg), ("modulus", modulus or 0.0)):
            if (size := np.abs(value).max()) > LARGEST:
                raise InputError(f"{name} must be at most {LARGEST:g} in size, not {size:.3g}")
        self._take(Feedback(self._x, f, df, g, dg.reshape(len(g), d), modulus))

    def step(self, cost: Any, constraints: Iterable[Any] = ()) -> np.ndarray:
        """One whole round from functions: decide, evaluate, observe; gives the decision that was played.

        Each function is a `Function` (a constraint may hold several), a pair (value, gradient) of callables, or one callable, whose
        gradient JAX then takes.

        >>> import bridle
        >>> session = Session(bridle.policy("sinha2024", bridle.Ball(2), horizon=100, lipschitz=1.0))
        >>> session.step(cost=bridle.Affine([1.0, 0.0]), constraints=[(lambda x: x[1] - 0.5, lambda x: [0.0, 1.0])])
        array([0., 0.])
        """
        if callable(constraints) or hasattr(constraints, "value") or not isinstance(constraints, Iterable):
            raise InputError(f"constraints must be a list of functions, not {validate.show(constraints)}")
        x = self.decide()
        f, df = _evaluate("cost", cost, x)
        values, rows = [], []
        for i, constraint in enumerate(constraints):
            value, grad = _evaluate(f"constraints[{i}]", constraint, x)
            values.append(value.reshape(-1))
            rows.append(grad.reshape(-1, len(x)))
        if not values:
            self.observe(f=f, df=df)
        else:
            self.observe(f=f, df=df, g=np.concatenate(values), dg=np.concatenate(rows))
        return x

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything needed to go on to one `.npz` file, atomically."""
        totals = {"rounds": float(self._rounds), "cost": self._cost, "hard": self._hard}
        savefile.write(path, self.policy, self._start, self._state, totals)

    @classmethod
    def load(cls, path: str | PathLike[str], policy: Any = None, history: Callable[[dict[str, Any]], Any] | None = None) -> Session:
        """The session that was saved, bit for bit; `policy` is needed where the one that was saved is not registered."""
        saved = savefile.read(path)
        policy = saved.make_policy() if policy is None else policy
        try:
            session = cls(policy, saved.start, history=history)
        except InputError as wrong:
            raise InputError(f"cannot load {saved.path}: {wrong}") from None
        session._state = saved.fill(session._state)
        session._x = session._record.decide(session._state)
        session._rounds, session._cost, session._hard = saved.totals
        return session

    def _take(self, feedback: Feedback) -> None:
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # what comes of it is looked at below
                state = self._record.update(self._state, feedback)
                x = np.asarray(self._record.decide(state), dtype=float)
            if x.shape != self._x.shape or not _sound(x, state):
                raise OverflowError(f"shape {x.shape}, values {validate.show(x)}")
        except OverflowError as wrong:
            raise InputError(f"the policy's next decision cannot be used ({wrong}); nothing was changed") from None
        violation = np.maximum(feedback.g, 0.0)
        k = max(len(self._hard), len(violation))
        self._hard = np.pad(self._hard, (0, k - len(self._hard))) + np.pad(violation, (0, k - len(violation)))
        self._state, self._x = state, x
        self._cost += feedback.f
        self._rounds += 1
        self._look()
        if self.history is not None:
            self.history(
                {
                    "round": self._rounds, "x": np.array(feedback.x), "f": feedback.f, "g": feedback.g.copy(),
                    "violation": violation.copy(), "cost": self._cost, "ccv": self.ccv,
                }
            )  # fmt: skip

    def _look(self) -> None:
        """Warn, once each, of what a user should know; never stop."""
        horizon = getattr(self.policy, "parameters", {}).get("horizon")
        if horizon is not None and self._rounds == int(horizon) + 1:
            self._warn(f"round {self._rounds} is past the policy's horizon of {horizon:g}: it goes on, but its bounds do not hold any more")
        if self._rounds % LOOK == 0 and hasattr(self._record, "alarm"):
            self._warn(self._record.alarm(self._state), "alarm")

    def _warn(self, message: str, kind: str = "horizon") -> None:
        if message and kind not in self._warned:
            self._warned.add(kind)
            warnings.warn(message, BridleWarning, stacklevel=5)


def _sound(x: np.ndarray, state: Any) -> bool:
    """Whether a decision is finite and its state holds no NaN."""
    return bool(np.isfinite(x).all()) and not any(np.isnan(leaf).any() for leaf in records.leaves(state).values())


def _evaluate(name: str, function: Any, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Value and gradient at x of a function given in any of the accepted forms: () and (d,), or (k,) and (k, d) where it holds several."""
    value, grad = _call(name, function, x.copy())
    value, grad = validate.array(f"the value of {name}", value), validate.array(f"the gradient of {name}", grad)
    if value.ndim > (0 if name == "cost" else 1):
        raise InputError(f"the value of {name} must be a number, not an array of shape {value.shape}")
    if grad.shape != (*value.shape, len(x)):
        raise InputError(f"the gradient of {name} must have shape {(*value.shape, len(x))}, not {grad.shape}")
    return value, grad


def _call(name: str, function: Any, x: np.ndarray) -> tuple[Any, Any]:
    if hasattr(function, "value") and hasattr(function, "grad"):
        return function.value(x), function.grad(x)
    if isinstance(function, tuple) and len(function) == 2 and all(callable(part) for part in function):
        value, grad = function
        return value(x), grad(x)
    if not callable(function):
        raise InputError(f"{name} must be a function or a pair of functions (value, gradient), not {validate.show(function)}")
    try:
        engine = importlib.import_module("bridle.engines.jax")
    except ModuleNotFoundError:
        raise InputError(
            f"{name} is one callable, and its gradient needs JAX: pip install 'bridle[jax]', or give a pair (value, gradient)"
        ) from None
    return engine.value_and_gradient(name, function, x)  # type: ignore[no-any-return]
