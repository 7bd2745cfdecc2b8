"""What a session remembers beside its policy's decisions: what was said of this round, what is charged, and what its own rules learn from.

All of it is values: an observation brings a new memory along, which is in force once the observation is counted.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from bridle import records
from bridle.core import Feedback
from bridle.ops import Array, Scalar
from bridle.policies.round_maps import RoundTerms
from bridle.records import Arrays
from bridle.session.certificate import UNMOVED, Moved
from bridle.session.late_feedback import unwritten, written

REMEMBERED = 1000
"""How many observations rules that are functions of the past are shown."""


class Said(NamedTuple):
    """What was said before the round that comes after `begun` others.

    `terms` is what its map is made of; `action` what is played in place of the decision, where that does not keep the limits that are known
    and the policy's state cannot move. Where the state was changed, `at` is the decision that it has since, and `before` what it was, so
    that the last word on a round counts: as long as it is the same copy (`front`) that plays next, and no feedback has come since `turn`.
    """

    begun: int
    terms: Array | None = None
    action: Array | None = None
    at: Array | None = None
    before: object = None
    turn: int = -1
    front: int = 0


Past: TypeAlias = tuple[Feedback, ...]
"""The last observations, as they came, the newest last."""


class Memory(NamedTuple):
    """What the observations so far have left: what is charged, the last of them, the states of policies that are rules, and the largest
    size of every feature. What nobody needs is left empty.
    """

    moved: Moved = UNMOVED
    past: Past = ()
    states: tuple[object, ...] = ()
    scale: Array | None = None


class Boundary(NamedTuple):
    """Where a session's world ends: the map of its rounds, what was said of this one, and its memory.

    `free`: the first round may still choose its weights. `known`: whether limits were known before acting, in some round. `seen` is the
    last observation as it came. The memory is `after` as soon as the session's turn is no longer `turn`, that is, once that observation
    is counted; so a round that is broken off leaves nothing behind.
    """

    through: RoundTerms | None
    free: bool = False
    said: Said | None = None
    seen: Feedback | None = None
    turn: int = -1
    before: Memory = Memory()
    after: Memory = Memory()
    known: bool = False

    def saved(self, memory: Memory, turn: int, front: int) -> dict[str, Scalar]:
        """What a file holds of it, as arrays; `turn` and `front` are the session's now."""
        rounds, cost, hard, signed, violated, above = memory.moved
        begun, terms, action, at, before, said_at, said_to = self.said or Said(-1)
        untouched = before is not None and (said_at, said_to) == (turn, front)
        arrays: dict[str, Scalar] = {
            "numbers": np.array([float(self.free), begun, rounds, cost, violated, float(untouched), float(self.known)])
        }
        arrays |= {"hard": hard, "signed": signed, "above": above}
        arrays |= {} if terms is None else {"terms": written(terms)}
        some = {"action": action, "at": at, "scale": memory.scale}
        arrays |= {name: value for name, value in some.items() if value is not None}
        if memory.past:
            arrays |= {f"past.{name}": value for name, value in _written_past(memory.past).items()}
        arrays |= {f"states.{name}": leaf for name, leaf in records.leaves(memory.states).items()}
        return arrays | (records.leaves(before, "before") if untouched else {})

    def restored(self, saved: Arrays, before: object, states: tuple[object, ...]) -> Boundary:
        """With what a file holds; `before` is the state before it was moved, where it was, and `states` are those of its rules."""
        free, begun, rounds, cost, violated, untouched, known = saved["numbers"].tolist()
        moved = Moved(int(rounds), cost, saved["hard"], saved["signed"], int(violated), saved["above"])
        past = _unwritten_past(records.under("past.", saved))
        memory = Memory(moved, past, states, saved.get("scale"))
        terms = unwritten(saved["terms"]) if "terms" in saved else None
        said = None if begun < 0.0 else Said(int(begun), terms, saved.get("action"), saved.get("at"), before)
        if said is not None and not untouched:
            said = said._replace(before=None)
        return Boundary(self.through, bool(free), said, before=memory, after=memory, known=bool(known))


def frozen(seen: Feedback) -> Feedback:
    """An observation whose arrays nobody can change: rules are shown them again and again."""
    copied = seen._replace(x=seen.x.copy(), df=seen.df.copy(), g=seen.g.copy(), dg=seen.dg.copy())
    for leaf in (copied.x, copied.df, copied.g, copied.dg):
        leaf.flags.writeable = False
    return copied


def _written_past(past: Past) -> Arrays:
    """Observations as arrays, whatever number of constraints each had."""
    return {
        "rows": np.array([[len(each.g), float(each.f), *each.x, *each.df] for each in past]),
        "g": np.concatenate([each.g for each in past]),
        "dg": np.concatenate([each.dg for each in past]),
    }


def _unwritten_past(saved: Arrays) -> Past:
    """What `_written_past` was given."""
    past, at = [], 0
    for row in saved.get("rows", np.zeros((0, 2))):
        k, d = int(row[0]), (len(row) - 2) // 2
        past.append(frozen(Feedback(row[2 : 2 + d], float(row[1]), row[2 + d :], saved["g"][at : at + k], saved["dg"][at : at + k])))
        at += k
    return tuple(past)
