"""What was changed on the way, in a session whose journal remembers it: where limits stand since.

A limit moves by an offset that is added to its values: g_i(x) + offset <= 0 is what holds from then on. Constraints may be others in every
round, so that to a policy whose theorem allows that, and to every certificate, it is one more stream: what is proved is about the actions
that keep each limit as it stood in its own round. Totals and violations are of the limits as they stood. Policies whose theorem is about
constraints that stay the same, or that were told how far inside of them an action lies (``slater=``), do not allow it.

A limit on how often has its share changed (`bridle.policies.levels.with_shares`): what is reported and proved of it is then about the
rounds since, and what was counted before is in the list of changes.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from bridle import policies, validate
from bridle.core import InputError
from bridle.ops import Array
from bridle.policies.levels import fraction, with_shares
from bridle.policies.registry import Configured
from bridle.session import savefile
from bridle.session.feedback import Numbers
from bridle.session.rates import limit_names
from bridle.session.savefile import Saved, SessionImage

MOST_LISTED = 1000
"""So many changes are listed, the latest."""


class Changes(NamedTuple):
    """The offset of each limit; what was changed when, as JSON has it."""

    offsets: tuple[float, ...] = ()
    listed: tuple[dict[str, Any], ...] = ()

    @classmethod
    def restored(cls, facts: Mapping[str, Any]) -> Changes:
        """What `facts` gave."""
        return cls(tuple(map(float, facts["offsets"])), tuple(facts["listed"]))

    def facts(self) -> dict[str, Any]:
        """All of it, as JSON has it."""
        return {"offsets": list(self.offsets), "listed": list(self.listed)}

    def moved(self, i: int, offset: float) -> Changes:
        """With this offset for limit i."""
        offsets = [*self.offsets, *[0.0] * (i + 1 - len(self.offsets))]
        offsets[i] = offset
        return self._replace(offsets=tuple(offsets) if any(offsets) else ())

    def noted(self, **what: Any) -> Changes:
        """With one more entry in the list."""
        return self._replace(listed=(*self.listed, what)[-MOST_LISTED:])


def raised_limits(g: Numbers, offsets: Sequence[float]) -> Array:
    """The values of the limits as they stand; where several points were tried, in the row of each."""
    values = validate.array("g", g)
    rows = np.atleast_1d(values)
    n = min(rows.shape[-1], len(offsets))
    rows[..., :n] += offsets[:n]
    return values


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


def changed_limit(
    changes: Changes, image: SessionImage, limit: str | int, offset: float | None, at_most: float | None
) -> tuple[Changes, Saved | None]:
    """What is changed once a limit is; with the session as a save file where its policy is another since. Else one `InputError`."""
    if (offset is None) == (at_most is None):
        raise InputError("one of offset and at_most must be given: where the limit moves to, or how often it may be violated")
    parts, k = image.parts, image.limits.k or (len(image.totals.hard) if image.rounds else None)
    i = which_limit(limit, parts.names, k)
    if offset is not None:
        before = changes.offsets[i] if i < len(changes.offsets) else 0.0
        refuse_moving(parts.configured, offset > before)
        return changes.moved(i, offset).noted(round=image.rounds, limit=i, offset=offset), None
    assert at_most is not None
    rates = parts.rates()
    if not rates or parts.configured is None:
        raise InputError("at_most cannot be given: the policy of this session keeps no limits on how often; move the limit with offset")
    report = rates[0 if len(rates) == 1 else i]
    noted = changes.noted(round=image.rounds, limit=i, at_most=at_most, before=asdict(report))
    return noted, _with_share(image, parts.configured, i, at_most)


def _with_share(image: SessionImage, configured: Configured, i: int, at_most: float) -> Saved:
    """A session as a save file, in which limit i may be violated in another share of the rounds: its count begins anew."""
    parts, record = image.parts, configured.record
    shares = np.array(record.level.share, dtype=float)
    shares[slice(None) if record.any else i] = float(fraction(at_most))
    domain, parameters = configured.recipe
    settings = {**parameters, "at_most": shares.tolist() if len(shares) > 1 else float(shares[0])}
    other = policies.policy(configured.name, domain, **settings)
    pending = parts.pending.clone()
    pending.copies = [
        copy._replace(state=copy.state._replace(level=with_shares(record.level, other.record.level, copy.state.level)))  # type: ignore[attr-defined]
        for copy in pending.copies
    ]
    changed = image._replace(parts=parts._replace(configured=other, record=other.record, pending=pending))
    file = io.BytesIO()
    savefile.write(file, savefile.packed(changed))
    return savefile.parsed(file.getvalue(), "the session with another limit")
