"""What was changed on the way: where limits stand since, and how often they may be violated.

A limit moves by an offset that is added to its values: g_i(x) + offset <= 0 is what holds from then on. Constraints may be others in every
round, so that to a policy whose theorem allows that, and to every certificate, it is one more stream: what is proved is about the actions
that keep each limit as it stood in its own round. Totals and violations are of the limits as they stood. Policies whose theorem is about
constraints that stay the same, or that were told how far inside of them an action lies (``slater=``), do not allow it.

A limit on how often has its share changed (`bridle.policies.levels.with_shares`): what is reported and proved of it is then about the
rounds since, and what was counted before is in the list of changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from bridle import policies, validate
from bridle.core import ChangeLimit, InputError
from bridle.policies.levels import fraction, with_shares
from bridle.policies.registry import Configured
from bridle.session.proof import Proof
from bridle.session.rates import limit_names
from bridle.session.state import Plan, SessionState

MOST_LISTED = 1000
"""So many changes are listed, the latest."""


def changed(plan: Plan, state: SessionState, command: ChangeLimit) -> tuple[Plan, SessionState]:
    """The plan and the state once a limit is changed, or one `InputError`."""
    limit, offset, at_most = command
    if (offset is None) == (at_most is None):
        raise InputError("one of offset and at_most must be given: where the limit moves to, or how often it may be violated")
    i = which_limit(limit, plan.names, state.slow.limits.k or state.most_seen)
    offsets = state.slow.changes.offsets
    if offset is not None:
        refuse_moving(plan.configured, offset > (offsets[i] if i < len(offsets) else 0.0))
        moved = [*offsets, *[0.0] * (i + 1 - len(offsets))]
        moved[i] = offset
        state = state.with_slow(changes=state.slow.changes._replace(offsets=tuple(moved) if any(moved) else ()))
        return plan, noted(state, limit=i, offset=offset)
    assert at_most is not None
    rates = Proof.of(plan, state).rates()
    if not rates or plan.configured is None:
        raise InputError("at_most cannot be given: the policy of this session keeps no limits on how often; move the limit with offset")
    before = asdict(rates[0 if len(rates) == 1 else i])
    return with_share(plan, noted(state, limit=i, at_most=at_most, before=before), plan.configured, i, at_most)


def noted(state: SessionState, **what: Any) -> SessionState:
    """With one more entry in the list of changes."""
    changes = state.slow.changes
    listed = (*changes.listed, {"round": state.now.rounds, **what})[-MOST_LISTED:]
    return state.with_slow(changes=changes._replace(listed=listed))


def with_share(plan: Plan, state: SessionState, configured: Configured, i: int, at_most: float) -> tuple[Plan, SessionState]:
    """A session in which limit i may be violated in another share of the rounds: its count begins anew."""
    record: Any = plan.record
    shares = np.array(record.level.share, dtype=float)
    shares[slice(None) if record.any else i] = float(fraction(at_most))
    domain, parameters = configured.recipe
    other = policies.policy(configured.name, domain, **{**parameters, "at_most": shares.tolist() if len(shares) > 1 else float(shares[0])})
    for at, copy in enumerate(state.copies):
        level = with_shares(record.level, other.record.level, copy.state.level)
        state = state.with_copy(at, copy._replace(state=copy.state._replace(level=level)))
    return plan.changed(policy=other, record=other.record), state


def which_limit(limit: object, names: Sequence[str], k: int | None) -> int:
    """The place of a limit that is given by its name or its number."""
    if isinstance(limit, str):
        called = list(names) or (limit_names(k) if k else [])
        if limit not in called:
            raise InputError(f"limit must be the name of a limit ({', '.join(map(repr, called)) or 'they have none'}), not {limit!r}")
        return called.index(limit)
    i = validate.whole("limit", limit, 0)
    if i >= (k or 1000):
        raise InputError(f"limit must be below {k or 1000}, the number of limits, not {i}")
    return i


def refuse_moving(configured: Configured | None, tighter: bool) -> None:
    """One error where a policy's theorem does not allow that a limit moves."""
    if configured is None:
        return
    if not configured.entry.time_varying:
        raise InputError(
            f"offset cannot be given: policy {configured.name} is for limits that stay the same, and says nothing once one has moved"
        )
    if tighter and configured.parameters.get("slater") is not None:
        raise InputError(
            f"offset must be 0 or below for policy {configured.name}, which was told how far inside of the limits an action lies (slater)"
        )
