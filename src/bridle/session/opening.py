"""How a session in a database is made, or resumed where it was: whatever is given must be what it was made with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from bridle import validate
from bridle.budgets import Gate, Pacer
from bridle.core import InputError
from bridle.database.rows import StoreError
from bridle.session import capsule
from bridle.session.durable import DurableCore
from bridle.session.replay import Restore
from bridle.session.rounds import HistoryEntry
from bridle.session.savefile import SessionOptions
from bridle.session.verbs import SessionVerbs

if TYPE_CHECKING:
    from bridle.database.store import EventStore


def open_core(
    make: Callable[..., SessionVerbs],
    restore: Restore,
    store: EventStore,
    name: str,
    policy: Any | None,
    x1: ArrayLike | None,
    snapshot_every: int | None,
    gates: Mapping[str, Gate | Pacer] | None,
    wait: float,
    replayed: Callable[[HistoryEntry], object] | None,
    options: SessionOptions,
) -> DurableCore:
    """The core of a session: `make` makes a new plain session, `restore` one from a save file; the rest is as for `Session.core`."""
    found = store.find(name)
    if found is None:
        if policy is None:
            raise InputError(f"policy must be given: {store.name} has no session {validate.show(name)} yet")
        spec = DurableCore.spec(make(policy, x1, **options)._image(False), gates, snapshot_every)
        try:
            found = store.create(name, spec)
        except InputError:
            found = store.find(name)  # somebody else was faster
            if found is None:
                raise
    made = capsule.opened(found.spec, f"session {name!r}")
    if policy is not None:
        capsule.refuse_another_policy(policy, made.saved, name)
    given: dict[str, object] = {**options} if x1 is None else {**options, "x1": x1}
    capsule.refuse_other_options(given, made.saved, name)
    capsule.refuse_other_budgets(gates, made, name)
    own = policy if made.saved.header.get("policy") is None else None
    core = DurableCore(store, found, store.take(found, wait), restore, own, made)
    try:
        core.rebuild(replayed=replayed)
        if snapshot_every is not None:
            core.every = validate.whole("snapshot_every", snapshot_every)
    except BaseException:
        with suppress(StoreError):
            core.close()
        raise
    return core
