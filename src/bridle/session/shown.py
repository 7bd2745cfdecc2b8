"""How a session shows itself: in a few lines of text."""

from __future__ import annotations

from typing import Any, NamedTuple

from bridle.showing import count, number, short


class LookedAt(NamedTuple):
    """What is shown of a session: what it is and by which name, the plain session that holds the figures, and whether it can go on."""

    called: str
    session: Any
    stands: str


class ShownSession:
    """What a session shows of itself."""

    policy: Any

    def _looked_at(self) -> LookedAt:
        return LookedAt(type(self).__name__, self, "ready")

    def __repr__(self) -> str:
        called, session, stands = self._looked_at()
        waiting = [f"{session.pending:,} pending"] if session.pending else []
        figures = [count(session.rounds, "round"), f"cost {number(session.cost)}", f"CCV {number(session.ccv)}", *waiting, stands]
        return f"{called}: {short(self.policy)}\n  {', '.join(figures)}"
