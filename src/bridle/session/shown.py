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
        """Draw certified regret and CCV so far, with the theorem's bounds, as a figure of matplotlib, neither shown nor kept by pyplot.

        A session keeps totals, not rounds. Against t it is drawn where it has a journal (`Session.open`), which is replayed for it, or a
        history.
        Without either the figure shows where the session stands.

        Parameters
        ----------
        what : str or sequence of str, default ("regret", "ccv")
            "regret", "ccv" or both.
        rounds : sequence of dict, optional
            What `history` was told. It need not be given where `history` is the `append` of a list.
        ax : Axes or sequence of Axes, optional
            Axes of your own, one for each chart.
        width : {"column", "page"}, optional
            The width of a column or a page of a journal.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.

        Raises
        ------
        InputError
            There is nothing to draw, or matplotlib is not installed.
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
