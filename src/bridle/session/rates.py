"""Limits on how often, as a session reports them: what was asked, what came out, and what is proved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bridle.core import CountsRates, capability
from bridle.policies.levels import Tally


@dataclass(frozen=True)
class RateLimit:
    """A limit on how often, and how it fared.

    `at_most` is the share that was asked for, `measured` the share of the `counted` rounds that violated (None before the first), `proved`
    the share that is proved to be the most, whatever the stream had done; None where no safe action was given, and `why` says so. `open`:
    how many rounds wait for their feedback, and are not counted yet. `violated` and `unavoidable` are numbers of rounds: the latter are
    those in which the safe action was due and the limit was violated all the same. All are about what was played. `exact`: whether the
    whole numbers of the level agree with these, as they must.
    """

    name: str
    at_most: float
    measured: float | None
    proved: float | None
    counted: int
    open: int
    violated: int
    unavoidable: int
    exact: bool
    why: str = ""


def limit_names(k: int, names: Sequence[str] = ()) -> list[str]:
    """What k limits are called: by their names, where the user has given some.

    >>> limit_names(1), limit_names(2), limit_names(2, ["latency", "spend"])
    (['the limit'], ['limit 0', 'limit 1'], ['latency', 'spend'])
    """
    return list(names) if len(names) == k else ["the limit"] if k == 1 else [f"limit {i}" for i in range(k)]


NO_SAFE_ACTION = "no safe action was given (safe=), so that nothing bounds the level"


def rates_of(record: object, states: Sequence[object], waiting: int, names: Sequence[str] = ()) -> tuple[RateLimit, ...]:
    """The limits on how often that a policy keeps, over the states of all its copies; none where it keeps none. `names` are the limits'."""
    counting = capability(record, CountsRates)
    if counting is None:
        return ()
    tallies: list[Tally] = [counting.tally(state) for state in states]
    first = tallies[0]
    violated, counted, unavoidable = (
        np.sum([getattr(each, name) for each in tallies], axis=0) for name in ("violated", "counted", "unavoidable")
    )
    # Copies that have played nothing can have violated nothing.
    allowed = np.sum([each.most for each in tallies if each.counted.any()] or [first.most], axis=0)
    exact = np.all([each.identity == 0.0 for each in tallies], axis=0)
    return tuple(
        RateLimit(
            name,
            share,
            violations / n if n else None,
            None if np.isinf(most) else min(1.0, most / n) if n else 1.0,
            int(n),
            waiting,
            int(violations),
            int(excused),
            bool(holds),
            NO_SAFE_ACTION if np.isinf(most) else "",
        )
        for name, share, violations, n, excused, most, holds in zip(
            ["any limit"] if first.any else limit_names(len(counted), names),
            first.share.tolist(),
            violated.tolist(),
            counted.tolist(),
            unavoidable.tolist(),
            allowed.tolist(),
            exact.tolist(),
            strict=True,
        )
    )
