"""How a session shows itself: in a few lines of text, as a figure, on a card."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from bridle.session.rounds import HistoryEntry
from bridle.showing import count, later, number, short
from bridle.showing.marks import QUANTITIES

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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

    def plot(
        self,
        what: str | Sequence[str] = QUANTITIES,
        *,
        rounds: Sequence[HistoryEntry] | None = None,
        ax: object = None,
        width: str | None = None,
    ) -> Figure:
        """Certified regret and CCV so far, beside what the theorem allows, as a figure.

        A session keeps totals, not rounds. Both are drawn against the round where it has a journal (`Session.open`), which is replayed for
        that; CCV is, where its history was kept. What is known of the present alone is drawn as bars.

        Returns the figure. It is not shown, pyplot does not know it, and its ``savefig`` writes PDF with TrueType
        fonts.

        Parameters
        ----------
        what : {"regret", "ccv"} or a list of them, default ("regret", "ccv")
            Which of the two is drawn; each has axes of its own.
        rounds : list of dict, optional
            What `history` was told. Default: the list of which `history` is the ``append``, as in ``Session(policy, history=log.append)``.
        ax : axes of matplotlib, or a list of them, optional
            Draw on these, one for each chart. Default: on a new figure.
        width : {"column", "page"}, optional
            As wide as the column (3.35 inches) or the page (7 inches) of a journal. Default: for slides and screens.

        Examples
        --------
        >>> import bridle
        >>> log = []
        >>> session = bridle.Session(bridle.policy("anytime", bridle.Ball(2)), history=log.append)
        >>> for _ in range(20):
        ...     x = session.step(cost=bridle.Affine([-1.0, 0.0]), constraints=[bridle.Affine([1.0, 0.0], -0.5)])
        >>> [panel.get_title(loc="left") for panel in session.plot().axes]
        ['Regret after 20 rounds', 'CCV against t']
        """
        pictures, looked = later("bridle.session.pictures"), self._looked_at()
        told = self._told_rounds() if rounds is None else rounds
        curve = self._curve(pictures) if told is None else pictures.from_history(told)
        drawn: Figure = pictures.plot_session(looked.session, curve, what, ax, width)
        return drawn

    def _curve(self, pictures: ModuleType) -> Any:
        """What is known of it round by round, without a history."""
        return None

    def _told_rounds(self) -> Sequence[HistoryEntry] | None:
        """What `history` was told, where that is the `append` of a list that holds something."""
        listener = getattr(self._looked_at().session, "history", None)
        kept = getattr(listener, "__self__", None)
        return kept if isinstance(kept, list) and getattr(listener, "__name__", "") == "append" and kept else None

    def _repr_html_(self) -> str:
        return str(later("bridle.session.pictures").session_card(*self._looked_at(), self._told_rounds()))
