"""A cell of a comparison: one policy in one game, its full configuration, the key made of it, and the row that playing it gives.

Everything here runs in workers too: a cell says all there is to know, and its row is plain numbers and text.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import bridle
from bridle import policies
from bridle.core import BridleWarning, InputError, Unavailable
from bridle.game import metrics
from bridle.game.play import Trace, play, policy_for, unplayed
from bridle.game.summary import BOUNDED, bound_curves, plain, summary
from bridle.problems import Problem, problem, problem_names
from bridle.solvers.hindsight import MOST_DIMENSIONS, NoComparator

SCHEMA = 1
"""The version of the rows and of what is stored beside them."""

POINTS = 32
"""The most rounds at which a row keeps its curves."""

APART = (
    "__main__",
    "advice",
    "alarms",
    "analysis",
    "certificates",
    "charts",
    "checks",
    "cli",
    "compare",
    "executors",
    "figures",
    "files",
    "fraud",
    "halfspaces",
    "intake",
    "page",
    "savefile",
    "session",
    "standing",
    "store",
    "terminal",
    "tickets",
    "wording",
)
"""How the names of the modules begin that show, keep or check results but do not make them."""

TEXT, NUMBER, WHOLE, FLAG, TEXTS, NUMBERS, WHOLES = "text", "number", "whole", "flag", "texts", "numbers", "wholes"
MEASURED = ("cost", "regret", "ccv", "ccv_max", "soft_violation", "interval_violation", "squared_ccv")
BOUNDS = (*(bound for _, bound in BOUNDED), "regret_bound_paper", "ccv_bound_paper", "interval_bound_paper")
FACTS = {
    "dim": WHOLE, "constraints": WHOLE,
    **dict.fromkeys((*MEASURED, *BOUNDS), NUMBER),
    **dict.fromkeys(("regret_why", "bound_why", "paper_why"), TEXT),
    **dict.fromkeys([f"{bound}_holds" for _, bound in BOUNDED], FLAG),
    "us_per_round": NUMBER, "seconds": NUMBER, "warnings": TEXTS,
}  # fmt: skip
"""What a row takes from the summary of its game, and of what kind each is."""

CURVES = {
    "curve_rounds": WHOLES, "curve_cost": NUMBERS, "curve_ccv": NUMBERS, "curve_regret": NUMBERS, "curve_regret_bound": NUMBERS,
    "curve_ccv_bound": NUMBERS,
}  # fmt: skip
COLUMNS = {
    "key": TEXT, "problem": TEXT, "problem_label": TEXT, "problem_settings": TEXT, "policy": TEXT, "label": TEXT, "settings": TEXT,
    "horizon": WHOLE, "seed": WHOLE, "engine": TEXT, "does_not_apply": TEXT, **FACTS, **CURVES, "bridle_version": TEXT,
}  # fmt: skip
"""Every column of a row, and its kind."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Instance:
    """A problem with what it was given, its length and its seed: what every policy that is compared on it meets.

    `problem` is a name or the path of a file; `inputs` are the hashes of the files and data that it is made from.
    """

    problem: str
    settings: dict[str, Any]
    horizon: int
    seed: int
    inputs: dict[str, str] = field(default_factory=dict)

    @property
    def shown(self) -> str:
        """The problem's name for people: of a file, without its folder."""
        return self.problem if self.problem in problem_names() else os.path.basename(self.problem)

    @cached_property
    def identity(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA, "bridle": bridle.__version__, "sources": fingerprint(), "problem": self.shown,
            "problem_settings": self.settings, "horizon": self.horizon, "seed": self.seed, "inputs": self.inputs,
        }  # fmt: skip

    @cached_property
    def key(self) -> str:
        """The SHA-256 of everything that the stream and the best action for it depend on."""
        return digest(self.identity)

    def make(self) -> Problem:
        """The problem; the last few are kept, because several policies meet each."""
        return _make(self.key, self.problem, canonical(self.settings), self.horizon, self.seed)


@lru_cache(maxsize=16)
def _make(key: str, name: str, settings: str, horizon: int, seed: int) -> Problem:
    return problem(name, horizon, seed, **json.loads(settings))


@dataclass(frozen=True)
class Cell:
    """A policy with what it was given, in one game on one engine."""

    instance: Instance
    policy: str
    settings: dict[str, Any]
    engine: str = "python"

    @cached_property
    def key(self) -> str:
        """The SHA-256 of everything that the numbers of the row depend on."""
        source = _hash_source(own_source(self.policy))
        mine = {"policy": self.policy, "settings": self.settings, "engine": self.engine, "policy_source": source}
        return digest({**self.instance.identity, **mine})

    @property
    def columns(self) -> Row:
        """What the row says before anything is played, and nothing in the columns that a game fills."""
        where = self.instance
        empty: Row = {name: [] if kind in (TEXTS, NUMBERS, WHOLES) else None for name, kind in COLUMNS.items()}
        return empty | {
            "key": self.key, "problem": where.shown, "problem_label": label(where.shown, where.settings),
            "problem_settings": canonical(where.settings), "policy": self.policy, "label": label(self.policy, self.settings),
            "settings": canonical(self.settings), "horizon": where.horizon, "seed": where.seed, "engine": self.engine,
            "curve_regret": None, "bridle_version": bridle.__version__,
        }  # fmt: skip

    def __str__(self) -> str:
        where = self.instance
        shown = f"{label(self.policy, self.settings)} on {label(where.shown, where.settings)}"
        return f"{shown}, horizon {where.horizon}, seed {where.seed}, engine {self.engine}"


def canonical(value: Any) -> str:
    """The one JSON text of a value.

    >>> canonical({"b": 1, "a": "x"})
    '{"a":"x","b":1}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(value: Any) -> str:
    """The SHA-256 of a value's canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def label(name: str, settings: dict[str, Any]) -> str:
    """A name with what it was given, as people read it.

    >>> label("sinha2024", {"preset": "practice"})
    'sinha2024 preset=practice'
    """
    return " ".join([name, *(f"{key}={value}" for key, value in settings.items())])


@cache
def fingerprint() -> str:
    """A hash of the sources that results depend on, so that a changed algorithm is not answered with the old one's rows."""
    home = Path(bridle.__file__).parent
    names = sorted(path.relative_to(home).as_posix() for path in home.rglob("*.py"))
    kept = {name: hash_file(home / name) for name in names if not name.startswith(APART)}
    return digest(kept)


def hash_file(path: str | os.PathLike[str]) -> str:
    """The SHA-256 of a file."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as wrong:
        raise Unavailable(f"cannot read {os.fspath(path)}: {wrong.strerror}") from None


def own_source(policy: str) -> str:
    """The file that a policy of the user's own comes from; empty for the library's, which are in the fingerprint."""
    code = getattr(policies.entry(policy).factory, "__code__", None)
    name = code.co_filename if code else ""
    return "" if name.startswith(os.path.dirname(bridle.__file__) + os.sep) else name


@cache
def _hash_source(name: str) -> str:
    return hash_file(name) if name and os.path.isfile(name) else name


# --- what workers do ------------------------------------------------------------------------------------------------------------------

Job = tuple[Instance | Cell, dict[str, Any] | None]
"""An instance, to find the best action for its stream; or a cell to play, with what was found where that does not depend on the policy."""


def work(jobs: Sequence[Job]) -> tuple[str, list[dict[str, Any]]]:
    """Do the jobs one after the other: the fingerprint of the sources that did them, and an entry for each as the store keeps it."""
    with _alone():
        return fingerprint(), [measure(what) if isinstance(what, Instance) else perform(what, found) for what, found in jobs]


def measure(instance: Instance) -> dict[str, Any]:
    """The entry of an instance's comparator: the best fixed feasible action of a stream that does not depend on the decisions."""
    begun = time.perf_counter()
    try:
        best = metrics.comparator(unplayed(instance.make()))
    except Unavailable:
        raise
    except (InputError, *BEYOND) as reason:  # where there is no such game, each cell of it will say so
        facts: dict[str, Any] = {"why": why(reason)}
    else:
        facts = plain({"cost": best.cost, "costs": best.costs, "x": best.x if len(best.x) <= MOST_DIMENSIONS else None, "why": None})
    return {"key": instance.key, "comparator": facts, "spent": time.perf_counter() - begun}


def perform(cell: Cell, found: dict[str, Any] | None = None) -> dict[str, Any]:
    """The entry of a cell: its row, and the seconds spent on playing and on the best action in hindsight.

    `found` is the comparator of its instance, where that does not depend on the policy.
    """
    try:
        row, spent = _played(cell, found)
    except Unavailable:
        raise
    except (InputError, *BEYOND) as reason:
        row, spent = {"does_not_apply": why(reason)}, 0.0
    except Exception as bug:
        raise RuntimeError(f"{cell}: {type(bug).__name__}: {bug}") from bug
    return {"key": cell.key, "row": cell.columns | row, "spent": spent}


BEYOND = (ArithmeticError, MemoryError, np.linalg.LinAlgError)
"""What a game that leaves the range of floats, or of memory, may raise."""


def why(reason: BaseException) -> str:
    """An error as a reason, on one line."""
    text = " ".join(str(reason).split())
    return text if isinstance(reason, InputError) else f"too large or too small to compute: {text or type(reason).__name__}"


def _played(cell: Cell, found: dict[str, Any] | None) -> tuple[Row, float]:
    made = cell.instance.make()
    policy = policy_for(cell.policy, made, **cell.settings)
    begun = time.perf_counter()
    trace = play(policy, made, engine=cell.engine)
    comparator = _comparator(found) if found is not None else _own(trace)
    spent = time.perf_counter() - begun
    facts = summary(trace, comparator)
    return {name: facts[name] for name in FACTS} | curves(trace, comparator), spent


def _comparator(found: dict[str, Any]) -> metrics.Comparator | NoComparator:
    if found["why"] is not None:
        return NoComparator(found["why"])
    # The action itself stays in the store: a regret needs what it costs.
    return metrics.Comparator(np.zeros(0), float(found["cost"]), np.asarray(found["costs"], dtype=float))


def _own(trace: Trace) -> metrics.Comparator | NoComparator:
    try:
        return metrics.comparator(trace)
    except NoComparator as reason:
        return reason


def curves(trace: Trace, comparator: metrics.Comparator | NoComparator) -> Row:
    """The columns of a row that hold curves, at no more than `POINTS` of the trace's log-spaced rounds."""
    n = len(trace.curve.rounds)
    at = np.unique(np.round(np.linspace(0, n - 1, min(n, POINTS))).astype(int))
    regrets = None if isinstance(comparator, NoComparator) else metrics.regret_curve(trace, comparator)[1][at]
    regret_bounds, ccv_bounds = bound_curves(trace, regrets, at)
    found = {
        "curve_rounds": trace.curve.rounds[at].astype(int), "curve_cost": trace.curve.cost[at],
        "curve_ccv": metrics.ccv_curve(trace)[1][at], "curve_regret": regrets, "curve_regret_bound": regret_bounds,
        "curve_ccv_bound": ccv_bounds,
    }  # fmt: skip
    return {name: plain(found[name]) for name in CURVES}


@contextmanager
def _alone() -> Iterator[None]:
    """One thread of linear algebra, so that workers do not crowd each other and numbers do not depend on how many cores there are; and
    silence, because rows carry the warnings and say what is not finite."""
    with warnings.catch_warnings(), np.errstate(all="ignore"), _libraries().limit(limits=1, user_api="blas"):
        warnings.simplefilter("ignore", BridleWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


@cache
def _libraries() -> Any:
    import scipy.linalg  # noqa: F401  (it brings a library of its own, which must be there to be found)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
