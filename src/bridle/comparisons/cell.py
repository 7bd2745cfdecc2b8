"""A cell of a comparison: one policy in one game, its full configuration, the key made of it, and the row that playing it gives.

Everything here runs in workers too: a cell says all there is to know, and its row is plain numbers and text.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from typing import Any, TypeAlias, get_origin

import numpy as np

import bridle
from bridle import policies, records
from bridle.comparisons.keys import canonical, digest, fingerprint, hash_own_source
from bridle.comparisons.rows import COLUMNS, FACT_COLUMNS, GameRow, grouped
from bridle.comparisons.store import ComparatorFacts, StoreEntry
from bridle.core import BridleWarning, InputError, Unavailable
from bridle.game import metrics
from bridle.game.play import Trace, play, policy_for, unplayed
from bridle.game.summary import bound_curves, plain, summary
from bridle.policies.own import OwnPolicy
from bridle.problems import Problem, problem, problem_names
from bridle.solvers.block_stream import NoComparator
from bridle.solvers.hindsight import MOST_DIMENSIONS

SCHEMA = 2
"""The version of the rows and of what is stored beside them."""

POINTS = 32
"""The most rounds at which a row keeps its curves."""

Settings: TypeAlias = dict[str, str | float | bool | None]
"""Parameters by name, with values that a key can be made of."""


@dataclass(frozen=True)
class Instance:
    """A problem with its settings, its length and its seed: what every policy that is compared on it meets.

    `problem` is a name or the path of a file; `inputs` are the hashes of the files and data that it is made from.
    """

    problem: str
    settings: Settings
    horizon: int
    seed: int
    inputs: dict[str, str] = field(default_factory=dict)

    @property
    def shown(self) -> str:
        """The problem's name for people: of a file, without its folder."""
        return self.problem if self.problem in problem_names() else os.path.basename(self.problem)

    @cached_property
    def identity(self) -> dict[str, object]:
        return {
            "schema": SCHEMA, "bridle": bridle.__version__, "sources": fingerprint(), "problem": self.shown,
            "problem_settings": self.settings, "horizon": self.horizon, "seed": self.seed, "inputs": self.inputs,
        }  # fmt: skip

    @cached_property
    def key(self) -> str:
        """The SHA-256 of everything that the stream and the best action for it depend on."""
        return digest(self.identity)

    @property
    def weight(self) -> float:
        """How much work it is to find the best action, in rounds played."""
        return HINDSIGHT * self.horizon

    def make(self) -> Problem:
        """The problem; the last few are kept, because several policies meet each."""
        return _make(self.key, self.problem, canonical(self.settings), self.horizon, self.seed)


HINDSIGHT = 0.2
"""What a round costs in the search for the best action, beside playing it: for telling how much time is left."""


@lru_cache(maxsize=16)
def _make(key: str, name: str, settings: str, horizon: int, seed: int) -> Problem:
    return problem(name, horizon, seed, **json.loads(settings))


@dataclass(frozen=True)
class Cell:
    """A policy with its settings, in one game on one engine; `own` is where the policy comes from, if it is of the user's own."""

    instance: Instance
    policy: str
    settings: Settings
    engine: str = "python"
    own: OwnPolicy | None = None

    @cached_property
    def key(self) -> str:
        """The SHA-256 of everything that the numbers of the row depend on."""
        source = hash_own_source(self.policy) if self.own is None else self.own.hash
        mine = {"policy": self.policy, "settings": self.settings, "engine": self.engine, "policy_source": source}
        return digest({**self.instance.identity, **mine})

    @cached_property
    def game(self) -> str:
        """What cells have in common that differ in the seed alone."""
        where = self.instance
        return canonical([where.problem, where.settings, where.horizon, self.policy, self.settings, self.engine])

    @property
    def weight(self) -> float:
        """How much work it is, in rounds played."""
        return float(self.instance.horizon)

    @property
    def empty_row(self) -> GameRow:
        """What the row says before anything is played, and nothing in the columns that a game fills."""
        where = self.instance
        blank: dict[str, object] = {name: [] if get_origin(kind) is list else None for name, kind in COLUMNS.items()}
        return blank | {
            "key": self.key, "problem": where.shown, "problem_label": label(where.shown, where.settings),
            "problem_settings": canonical(where.settings), "policy": self.policy, "label": label(self.policy, self.settings),
            "settings": canonical(self.settings), "horizon": where.horizon, "seed": where.seed, "engine": self.engine,
            "curve_regret": None, "bridle_version": bridle.__version__,
        }  # fmt: skip

    def __str__(self) -> str:
        where = self.instance
        game = f"{label(self.policy, self.settings)} on {label(where.shown, where.settings)}"
        return f"{game}, horizon {where.horizon}, seed {where.seed}, engine {self.engine}"


def label(name: str, settings: Settings) -> str:
    """A name with its settings, as people read it.

    >>> label("sinha2024", {"preset": "practice"})
    'sinha2024 preset=practice'
    """
    return " ".join([name, *(f"{key}={value}" for key, value in settings.items())])


# --- what workers do ------------------------------------------------------------------------------------------------------------------


def work(items: Sequence[Instance | Cell], comparators: Mapping[str, ComparatorFacts]) -> tuple[str, list[StoreEntry]]:
    """Find the best action of each instance, and play each cell: the fingerprint of the sources that did it, and an entry for each.

    `comparators` holds what was found before, by the key of the instance, for streams that do not depend on the policy. Cells on such
    streams that differ in the seed alone are played side by side.
    """
    with _one_quiet_thread():
        entries = measure([item for item in items if isinstance(item, Instance)])
        for cells in grouped((item for item in items if isinstance(item, Cell)), lambda cell: cell.game).values():
            shared = [comparators.get(cell.instance.key) for cell in cells]
            traces = [None] * len(cells) if None in shared else _traces(cells)
            entries += [perform(*each) for each in zip(cells, shared, traces, strict=True)]
        return fingerprint(), entries


def measure(instances: Sequence[Instance]) -> list[StoreEntry]:
    """The entries of instances' comparators: the best fixed feasible actions of streams that do not depend on the decisions."""
    begun = time.perf_counter()
    try:
        found = metrics.comparators([unplayed(instance.make()) for instance in instances])
        known = list(map(_comparator_facts, found))
    except Unavailable:
        raise
    except (InputError, *BEYOND) as error:  # where there is no such game, each cell of it will say so
        if len(instances) > 1:  # the fault may be that of one of them
            return [entry for instance in instances for entry in measure([instance])]
        known = [{"why": why(error)}]
    spent = (time.perf_counter() - begun) / max(len(instances), 1)
    return [{"key": instance.key, "comparator": facts, "spent": spent} for instance, facts in zip(instances, known, strict=True)]


def _comparator_facts(best: metrics.Comparator | NoComparator) -> ComparatorFacts:
    if isinstance(best, NoComparator):
        return {"why": why(best)}
    x = best.x if len(best.x) <= MOST_DIMENSIONS else None
    facts: ComparatorFacts = plain({"cost": best.cost, "costs": best.costs, "x": x, "why": None})
    return facts


def perform(cell: Cell, shared: ComparatorFacts | None = None, trace: Trace | None = None) -> StoreEntry:
    """The entry of a cell: its row, and the seconds spent on playing and on the best action in hindsight.

    `shared` is the comparator of its instance, where that does not depend on the policy; `trace` is its game, where it was played already.
    """
    row, spent = cell.empty_row, 0.0
    try:
        facts, curves, spent = _play(cell, shared, trace)
        row = {**row, **facts, **curves, **ranges(cell.instance.make())}
    except Unavailable:
        raise
    except (InputError, *BEYOND) as error:
        row["does_not_apply"] = why(error)
    except Exception as bug:
        if cell.own is not None:
            raise cell.own.broken(bug, f"{cell}: ") from bug
        raise RuntimeError(f"{cell}: {type(bug).__name__}: {bug}") from bug
    return {"key": cell.key, "row": row, "spent": spent}


def _traces(cells: Sequence[Cell]) -> list[Trace | None]:
    """The games of cells that differ in the seed alone, played as one; None for what is to be played by itself.

    So are policies of a user's own, which need not know several runs, and whatever goes wrong beside others: then the row says what does.
    A lone cell is a game of one run too, so that its numbers do not depend on the company to the last bit.
    """
    if cells[0].own is not None:
        return [None] * len(cells)
    try:
        sources = [cell.instance.make() for cell in cells]
        made = [policy_for(cell.policy, source, **cell.settings) for cell, source in zip(cells, sources, strict=True)]
        if all(_same_policy(policy, made[0]) for policy in made):
            seeds, keep = [cell.instance.seed for cell in cells], "totals" if sources[0].measures is None else "decisions"
            several = play(made[0], sources[0], seed=seeds, engine=cells[0].engine, keep=keep)
            return [several.run(i) for i in range(len(cells))]
    except Unavailable:
        raise
    except Exception:
        if len(cells) == 1:
            return [None]
    return [trace for cell in cells for trace in _traces([cell])]


def _same_policy(one: policies.Configured, other: policies.Configured) -> bool:
    """Whether two policies are one; a policy that draws, or is told what differs from seed to seed, is not."""
    same = records.same((one.record, one.domain), (other.record, other.domain))
    return same and canonical(plain(one.parameters)) == canonical(plain(other.parameters))


BEYOND = (ArithmeticError, MemoryError, np.linalg.LinAlgError)
"""What a game that leaves the range of floats, or of memory, may raise."""


def why(error: BaseException) -> str:
    """An error as a reason, on one line."""
    text = " ".join(str(error).split())
    return text if isinstance(error, InputError) else f"too large or too small to compute: {text or type(error).__name__}"


def _play(cell: Cell, shared: ComparatorFacts | None, trace: Trace | None) -> tuple[GameRow, GameRow, float]:
    known = None if cell.own is None else cell.own.use()
    source = cell.instance.make()
    begun = time.perf_counter() - (0.0 if trace is None else trace.seconds)
    if trace is None:
        policy = policy_for(cell.policy, source, **cell.settings)
        watched = known is not None or source.measures is not None
        trace = play(policy, source, engine=cell.engine, keep="decisions" if watched else "totals")
    if known is not None:
        _require_inside(source, trace)
    comparator = _own_comparator(trace) if shared is None else _shared_comparator(shared)
    spent = time.perf_counter() - begun
    game = summary(trace, comparator)
    curves = curve_columns(trace, comparator)
    if known is not None and policies.entry(cell.policy) is not known:  # it gave the bounds, and may be another's by now
        raise Unavailable(f"another comparison has another policy {cell.policy} on this worker: wait for its end, or give it another name")
    facts = {**game, "measures": canonical(game["measures"]) if game["measures"] else None}
    return {name: facts[name] for name in FACT_COLUMNS}, curves, spent


def _require_inside(source: Problem, trace: Trace) -> None:
    """Refuse a game that left the domain, where cost and constraints mean nothing.

    It is for policies of a user's own: of these only the first rounds are tried before, while registered ones are tested.
    """
    decisions = np.asarray(trace.decisions)
    if not source.domain.contains(decisions):
        first = next((t for t, x in enumerate(decisions, 1) if not source.domain.contains(x)), len(decisions))
        raise InputError(f"a decision must be in the domain, and that of round {first:,} of the game is not")


def ranges(source: Problem) -> dict[str, float | None]:
    """The most that costs of a round can differ, G D, and the most that a round can violate: the largest |g|, and no more than G D.

    >>> ranges(problem("halfspaces", 10, dim=2))
    {'cost_range': 2.0, 'violation_range': 2.0}
    """
    known = source.constants
    G, D, F = known.get("lipschitz"), known.get("diameter", source.domain.diameter()), known.get("bound")
    apart = None if G is None else float(G) * float(D)
    # where some action satisfies every constraint, no other can violate one by more than G D
    most = [value for value in (F, apart if known.get("feasible") is not None else None) if value is not None]
    return {"cost_range": apart, "violation_range": float(min(most)) if most else None}


def _shared_comparator(facts: ComparatorFacts) -> metrics.Comparator | NoComparator:
    if facts["why"] is not None:
        return NoComparator(facts["why"])
    # The action itself stays in the store: a regret needs what it costs.
    return metrics.Comparator(np.zeros(0), float(facts["cost"]), np.asarray(facts["costs"], dtype=float))


def _own_comparator(trace: Trace) -> metrics.Comparator | NoComparator:
    try:
        return metrics.comparator(trace)
    except NoComparator as reason:
        return reason


def curve_columns(trace: Trace, comparator: metrics.Comparator | NoComparator) -> GameRow:
    """The columns of a row that hold curves, at no more than `POINTS` of the trace's log-spaced rounds."""
    rounds, costs = np.asarray(trace.curve.rounds), np.asarray(trace.curve.cost)
    n = len(rounds)
    at = np.unique(np.round(np.linspace(0, n - 1, min(n, POINTS))).astype(int))
    regrets = None if isinstance(comparator, NoComparator) else metrics.regret_curve(trace, comparator)[1][at]
    regret_bounds, ccv_bounds = bound_curves(trace, regrets, at)
    row: GameRow = plain({
        "curve_rounds": rounds[at].astype(int), "curve_cost": costs[at],
        "curve_ccv": metrics.ccv_curve(trace)[1][at], "curve_regret": regrets, "curve_regret_bound": regret_bounds,
        "curve_ccv_bound": ccv_bounds,
    })  # fmt: skip
    return row


@contextmanager
def _one_quiet_thread() -> Iterator[None]:
    """One thread of linear algebra, and no warnings.

    So workers do not crowd each other, and numbers do not depend on how many cores there are. Rows carry the warnings and say what is not
    finite.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"), _libraries().limit(limits=1, user_api="blas"):
        warnings.simplefilter("ignore", BridleWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


@cache
def _libraries() -> Any:
    import scipy.linalg  # noqa: F401  (it brings a library of its own, which must be there to be found)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
