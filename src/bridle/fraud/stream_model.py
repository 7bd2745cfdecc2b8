"""The protocol `stream`: what a practitioner would accept.

Rows come in the order of time. A row's features are scaled by the rows before it; it is scored before it is learned, and learned once. A
model's score is read off its loss of the round, so that what is judged is what was played: for the logistic model f = ln(1 + e^{-s}) on a
fraud and ln(1 + e^{s}) on a legitimate row, s the score.

The cost is the loss of every row. The constraint is about frauds alone: the loss of each is to be at most a tolerance. No finite model
brings the loss of a fraud to zero, so without a tolerance nothing would be feasible.

`SETTING` was chosen by `select` on the first fifth of the stream, before the rest was scored.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from bridle import data, domains, policies
from bridle.adapters.scaling import past_scaled, squashed
from bridle.core import BridleWarning, Constants, Round
from bridle.fraud.baselines import RowProgress
from bridle.fraud.scores import average_precision, roc_auc
from bridle.functions import Excess, LogisticLoss
from bridle.game.play import Trace, play, policy_for
from bridle.networks import NetworkRound, weights
from bridle.policies import Configured
from bridle.problems import Problem
from bridle.problems.base import constants_of
from bridle.problems.recorded import RecordedRounds

HIDDEN, REACH, START = 10, 100.0, 0.3
"""The network's hidden units, its longest weights (none come near), and the deviation of the weights that it starts from."""

RADIUS = 10.0
"""The longest weights: no contestant here comes near it."""

CHOICE = 0.2
"""The share of the stream, its first rows, on which settings are chosen."""


class StreamRows(NamedTuple):
    """The stream as it comes: the raw features (the first is the time) and 1 for a fraud."""

    raw: np.ndarray
    fraud: np.ndarray


@dataclass(frozen=True)
class Contestant:
    """A model, the policy that trains it, and what the constraint tolerates.

    `squash` is the most deviations from the mean that a feature can show, reached smoothly (0: no limit); without `time`, the first column
    is left out.
    """

    name: str
    policy: str
    parameters: dict[str, object] = field(default_factory=dict)
    tolerance: float = 0.1
    squash: float = 2.0
    time: bool = True
    model: str = "logistic"
    about: str = ""


def load(path: object = None, verify: bool = True, progress: RowProgress | None = None) -> StreamRows:
    """The real transactions."""
    return rows_of(data.load("creditcard", path, verify, progress))


def rows_of(table: data.Data) -> StreamRows:
    """The rows of the data set."""
    return StreamRows(np.ascontiguousarray(table.values[:, :-1]), np.ascontiguousarray(table.values[:, -1]))


def head(rows: StreamRows, share: float) -> StreamRows:
    """The first rows of the stream."""
    n = int(share * len(rows.fraud))
    return StreamRows(rows.raw[:n], rows.fraud[:n])


def features(rows: StreamRows, squash: float, time: bool) -> np.ndarray:
    """What the models see: every row scaled by those before it, squashed to within `squash` deviations, and a constant."""
    scaled = past_scaled(rows.raw if time else rows.raw[:, 1:])
    seen = squashed(scaled, squash) if squash > 0.0 else scaled
    return np.column_stack([seen, np.ones(len(seen))])


def logistic(rows: StreamRows, tolerance: float, squash: float = 2.0, time: bool = True) -> Problem:
    """Logistic regression on the stream, the loss of each fraud at most `tolerance`."""
    a, label = features(rows, squash, time), 2.0 * rows.fraud - 1.0
    n, d = a.shape
    cost = LogisticLoss(a, label, np.ones(n))
    missed = Excess(LogisticLoss(a, label, rows.fraud), np.full(n, tolerance))
    domain = domains.Ball(d, radius=RADIUS)
    size = float(np.linalg.norm(a, axis=1).max())
    constants = constants_of(domain, lipschitz=size, bound=RADIUS * size + 1.0, affine=False)
    return Problem(domain, RecordedRounds(Round(cost, (missed,)), 0.0), {**constants, "rounds": n}, "fraud stream", {"horizon": n})


def network(rows: StreamRows, tolerance: float, squash: float = 2.0, time: bool = True) -> Problem:
    """The paper's network on the stream, the loss of each fraud at most `tolerance`; its loss is not convex."""
    a = features(rows, squash, time)[:, :-1]
    n, inputs = a.shape
    domain = domains.Ball(weights(inputs, HIDDEN), radius=REACH)
    # On the ball no weight of the output is longer than it, and a sigmoid's slope is at most 1/4.
    G = ((float((a**2).sum(axis=1).max()) + 1.0) * REACH**2 / 16.0 + HIDDEN + 1.0) ** 0.5
    constants: Constants = {
        "constraints": 1, "lipschitz": G, "diameter": domain.diameter(), "convex": False, "time_varying": True, "rounds": n,
    }  # fmt: skip
    table = NetworkRound(a, rows.fraud, np.full(n, tolerance), np.ones(n))
    return Problem(domain, RecordedRounds(table, 0.0), constants, "fraud stream, network", {"horizon": n})


def begin(problem: Problem, seed: int) -> np.ndarray:
    """Where the network starts: small random weights, so that its hidden units differ."""
    return np.asarray(problem.domain.project(START * np.random.default_rng(seed).standard_normal(problem.domain.dim)))


def scores(trace: Trace, fraud: np.ndarray) -> np.ndarray:
    """The log-odds of fraud that the model gave each row before it learned the row, from the loss that it had."""
    costs = np.asarray(trace.costs)
    odds = np.log(np.expm1(costs))
    sign = 1.0 - 2.0 * fraud
    return np.asarray(odds * sign.reshape(-1, *[1] * (odds.ndim - 1)))


def quiet_play(
    policy: Configured, problem: Problem, engine: str, progress: RowProgress | None = None, x1: np.ndarray | None = None
) -> Trace:
    """A game whose notes are kept in the trace and not said aloud: no setting here is covered by a theorem, and the report says why."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BridleWarning)
        return play(policy, problem, engine=engine, keep="rounds", progress=progress, x1=x1)


class Setting(NamedTuple):
    """One point of the grid that settings are chosen from; `pull` is lam times the squared diameter."""

    time: bool
    squash: float
    tolerance: float
    diameter: float
    V: float
    pull: float

    def contestant(self, name: str) -> Contestant:
        """The contestant with this setting."""
        parameters: dict[str, object] = {
            "diameter": self.diameter, "V": self.V, "lam": self.pull / self.diameter**2, "halfspace": False,
        }  # fmt: skip
        about = "step and weights chosen on the first fifth of the stream; no halfspaces"
        return Contestant(name, "anytime", parameters, self.tolerance, self.squash, self.time, about=about)


SETTING = Setting(time=True, squash=2.0, tolerance=0.1, diameter=2.0, V=0.003, pull=1.0 / 32.0)
"""What `select` finds best on the first fifth of the stream: fixed there, and not looked at again."""

NETWORK: dict[str, object] = {"diameter": 3.0, "V": 0.01, "lam": 1.0 / 288.0, "halfspace": False}
"""The best of twelve pairs of diameter (1 to 30) and V (0.001 to 0.1) for the network, on the same rows, with lam = 1/(32 diameter^2)."""


def contestants(setting: Setting) -> list[Contestant]:
    """Those of ours: the chosen setting, policies as they come, and what is left without the constraint."""
    seen = (setting.tolerance, setting.squash, setting.time)
    ours = [
        setting.contestant("anytime, chosen setting"),
        Contestant(
            "anytime, as it comes",
            "anytime",
            {},
            *seen,
            about="nothing told: D is the domain's, V from the first gradient, halfspaces kept",
        ),
        Contestant("no constraint, same step", "adagrad", {"diameter": setting.diameter}, *seen, about="the cost alone"),
    ]
    for preset in ("theory", "tight", "practice"):
        about = "told the number of rows and the longest row in advance"
        ours.append(Contestant(f"Algorithm 1, {preset}", "sinha2024", {"preset": preset}, *seen, about=about))
    ours.append(
        Contestant("network, anytime", "anytime", NETWORK, *seen, model="network", about="30-10-1, the setting chosen on the same rows")
    )
    ours.append(Contestant("network, no constraint", "adagrad", {"diameter": 3.0}, *seen, model="network", about="30-10-1, the cost alone"))
    for preset in ("theory", "tight", "practice"):
        parameters: dict[str, object] = {"preset": preset, "diameter": 10.0}
        about = "30-10-1, D = 10 as in the paper's code; told the number of rows and a Lipschitz constant in advance"
        ours.append(Contestant(f"network, Algorithm 1, {preset}", "sinha2024", parameters, *seen, model="network", about=about))
    return ours


def play_contestant(rows: StreamRows, who: Contestant, engine: str, progress: RowProgress | None = None, seed: int = 0) -> Trace:
    """One contestant on the stream."""
    problem = (network if who.model == "network" else logistic)(rows, who.tolerance, who.squash, who.time)
    policy = policy_for(who.policy, problem, **who.parameters)
    return quiet_play(policy, problem, engine, progress, begin(problem, seed) if who.model == "network" else None)


class SettingGrid(NamedTuple):
    """The values from which settings are chosen, by the fields of `Setting`."""

    time: tuple[bool, ...] = (True, False)
    squash: tuple[float, ...] = (1.0, 2.0, 3.0, 5.0, 0.0)
    tolerance: tuple[float, ...] = (0.02, 0.1)
    diameter: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)
    V: tuple[float, ...] = (0.001, 0.003, 0.01)
    pull: tuple[float, ...] = (1.0 / 32.0, 0.25)


GRID = SettingGrid()


def merit(auc: float, precision: float) -> float:
    """What settings are ranked by: the mean of the log-odds of both areas, so that what is left to 1 counts the same in each."""
    return float(0.5 * np.log(auc / (1.0 - auc)) + 0.5 * np.log(precision / (1.0 - precision)))


def select(rows: StreamRows, engine: str = "jax") -> Iterator[tuple[Setting, float, float]]:
    """Every setting of the grid with both areas on these rows; those that see the same stream are played in one call."""
    for time, squash, tolerance in itertools.product(GRID.time, GRID.squash, GRID.tolerance):
        problem = logistic(rows, tolerance, squash, time)
        batch = [Setting(time, squash, tolerance, *rest) for rest in itertools.product(GRID.diameter, GRID.V, GRID.pull)]
        columns: dict[str, Any] = {
            "diameter": [each.diameter for each in batch],
            "V": [each.V for each in batch],
            "lam": [each.pull / each.diameter**2 for each in batch],
        }
        policy = policies.policy("anytime", problem.domain, halfspace=False, **columns)
        odds = scores(quiet_play(policy, problem, engine), rows.fraud)
        for i, each in enumerate(batch):
            yield each, roc_auc(rows.fraud, odds[:, i]), average_precision(rows.fraud, odds[:, i])
