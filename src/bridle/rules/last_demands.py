"""Rules that go by the last demands, or by none: a quantile, an autoscaler, and all there is (`stock` says what each proposes)."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

import numpy as np

from bridle import validate
from bridle.core import Domain, Feedback
from bridle.domains.closed_form import BoxSet
from bridle.ops import Array
from bridle.rules.demand import box_of, demand_of, share_of, within

RECENT, STAYS = 200, (1, 12)
"""Of how many rounds the quantile is, and for how many an autoscaler does not scale down."""


class LastDemands(NamedTuple):
    """The last demands, the newest at the end, and how many there were."""

    window: Array
    seen: float

    def with_one_more(self, h: Array) -> LastDemands:
        """The oldest is forgotten."""
        return LastDemands(np.concatenate([self.window[1:], h[None]]), self.seen + 1.0)

    @property
    def known(self) -> Array:
        """Those that there are, one a row."""
        return self.window[len(self.window) - min(len(self.window), int(self.seen)) :]


class LastQuantile(NamedTuple):
    """The smallest demand that a share q of the last N did not exceed."""

    domain: BoxSet
    share: float
    last: float

    @property
    def name(self) -> str:
        return f"quantile {self.share:g} of the last {self.last:g}"

    @property
    def compiled(self) -> bool:
        return False

    def init(self, x1: Array) -> LastDemands:
        return LastDemands(np.zeros((int(self.last), len(x1))), 0.0)

    def decide(self, state: LastDemands) -> Array:
        if not state.seen:
            return self.domain.high + 0.0
        ordered = np.sort(state.known, axis=0)
        return within(self.domain, ordered[max(ceil(self.share * len(ordered) - 1e-9), 1) - 1], state.seen)

    def update(self, state: LastDemands, feedback: Feedback) -> LastDemands:
        h = demand_of(feedback)
        return state if h is None else state.with_one_more(h)


class Autoscaler(NamedTuple):
    """What makes the highest of the last N demands a share `target` of the capacity: a target utilisation, and a delay of scaling down."""

    domain: BoxSet
    target: float
    last: float

    @property
    def name(self) -> str:
        return f"autoscaler at {100.0 * self.target:g} %, {self.last:g} rounds"

    @property
    def compiled(self) -> bool:
        return False

    def init(self, x1: Array) -> LastDemands:
        return LastDemands(np.zeros((int(self.last), len(x1))), 0.0)

    def decide(self, state: LastDemands) -> Array:
        return within(self.domain, state.known.max(axis=0, initial=0.0) / self.target, state.seen)

    def update(self, state: LastDemands, feedback: Feedback) -> LastDemands:
        h = demand_of(feedback)
        return state if h is None else state.with_one_more(h)


class Everything(NamedTuple):
    """All there is, always."""

    domain: BoxSet

    @property
    def name(self) -> str:
        return "everything"

    @property
    def compiled(self) -> bool:
        return False

    def init(self, x1: Array) -> tuple[()]:
        return ()

    def decide(self, state: tuple[()]) -> Array:
        return self.domain.high + 0.0

    def update(self, state: tuple[()], feedback: Feedback) -> tuple[()]:
        return state


def last_quantile(domain: Domain, share: float = 0.95, last: int = RECENT) -> LastQuantile:
    """A rule: the smallest demand that a share of the last ones did not exceed.

    Parameters
    ----------
    domain : Domain
        Where actions lie; what the rule proposes is moved into it.
    share : float, default 0.95
        The share, above 0 and at most 1.
    last : int, default 200
        How many of the last demands are looked at, 1 or above, in rounds.

    Examples
    --------
    >>> import bridle
    >>> bridle.rules.last_quantile(bridle.Box(0.0, 10.0, dim=1)).name
    'quantile 0.95 of the last 200'
    """
    return LastQuantile(box_of(domain), share_of("share", share), float(validate.whole("last", last)))


def autoscaler(domain: Domain, target: float = 0.7, last: int = STAYS[-1]) -> Autoscaler:
    """A rule: a target utilisation of what the highest of the last demands needed.

    Parameters
    ----------
    domain : Domain
        Where actions lie; what the rule proposes is moved into it.
    target : float, default 0.7
        The share of the capacity that demand should use, above 0 and at most 1.
    last : int, default 12
        How many of the last demands are looked at, 1 or above, in rounds.

    Examples
    --------
    >>> import bridle
    >>> rule = bridle.rules.autoscaler(bridle.Box(0.0, 10.0, dim=1), target=0.5, last=1)
    >>> bridle.rules.propose([rule], [[1.0], [2.0]])[:, 0, 0].tolist()
    [10.0, 2.0]
    """
    return Autoscaler(box_of(domain), share_of("target", target), float(validate.whole("last", last)))


def everything(domain: Domain) -> Everything:
    """A rule: all there is, in every round.

    Parameters
    ----------
    domain : Domain
        Where actions lie.

    Examples
    --------
    >>> import bridle
    >>> rule = bridle.rules.everything(bridle.Box(0.0, 10.0, dim=1))
    >>> bridle.rules.propose([rule], [[1.0], [2.0]])[:, 0, 0].tolist()
    [10.0, 10.0]
    """
    return Everything(box_of(domain))
