"""What a session and its certificate show of themselves: cost, CCV and certified regret so far, as a figure and on cards.

A session keeps totals, not rounds. What is drawn against t comes from its journal, where it has one, or from what its `history` was told;
without either, where it stands is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bridle import validate
from bridle.core import InputError
from bridle.session.certificates import text as report_text
from bridle.session.certificates.certificate import Certificate
from bridle.session.rates import limit_names
from bridle.session.session import HistoryEntry
from bridle.showing import cards, count, figures, number, short
from bridle.showing.marks import TITLES, UNITS, Axis, Bar, Chart, Quantity, against_round, chosen, line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINTS = 60
"""At how many rounds, log-spaced, a session is looked at."""


class SessionCurve(NamedTuple):
    """What is known of a session after some of its rounds; None where it is not."""

    rounds: list[int]
    ccv: list[float | None]
    ccv_bound: list[float | None]
    regret: list[float | None]
    regret_bound: list[float | None]


def marks(rounds: int) -> list[int]:
    """The log-spaced rounds at which a session of so many is looked at."""
    return sorted({int(t) for t in np.geomspace(1, rounds, min(rounds, POINTS)).round()}) if rounds else []


def from_history(entries: Sequence[HistoryEntry]) -> SessionCurve:
    """The curve of what `history` was told, which is of the past and proves nothing: regret and bounds are known now alone."""
    if not entries:
        raise InputError("rounds must hold what `history` was told of at least one round, not nothing")
    if not all(isinstance(entry, dict) and {"round", "ccv"} <= entry.keys() for entry in entries):
        raise validate.refused("rounds must hold what `history` was told", entries[0])
    told = {entry["round"]: entry for entry in entries}
    seen = sorted(told)
    at = sorted({seen[i - 1] for i in marks(len(seen))})
    nothing: list[float | None] = [None] * len(at)
    return SessionCurve(at, [told[t]["ccv"] for t in at], nothing, nothing, nothing)


def looked_at(session: Any) -> tuple[float | None, ...]:
    """What is known of a session now: CCV and its bound, certified regret and its bound."""
    proof = _proof(session)
    bound = None if proof is None else proof.bound
    return session.ccv, _value(bound, "ccv"), None if proof is None else proof.regret, _value(bound, "regret")


def _proof(session: Any) -> Certificate | None:
    try:
        proof: Certificate = session.certificate()
    except InputError:  # it keeps no certificates
        return None
    return proof


def _value(bound: object, name: str) -> float | None:
    value = getattr(bound, name, None)
    return None if value is None else float(value)


NOTHING = "Nothing is known of this session's regret."


def line_chart(curve: SessionCurve, name: str, what: Quantity) -> Chart:
    """Regret or CCV against t."""
    values = getattr(curve, what)
    lines = [line(0, name, curve.rounds, values, bound=getattr(curve, f"{what}_bound"))] if any(each is not None for each in values) else []
    chart = against_round(what, name, curve.rounds[-1], lines, [NOTHING])
    certified = chart._replace(title="Regret, certified, against t", y=chart.y._replace(title=f"{UNITS['regret']}, at most"))
    return certified if what == "regret" else chart


def bar_chart(session: Any, what: Quantity) -> Chart:
    """Where a session stands: what is proved of its regret, or the violation of each limit, beside what the theorem allows."""
    proof, violations = _proof(session), session.violations.tolist()
    rows: list[tuple[str, float | None]] = [*zip(limit_names(len(violations), session.names), violations, strict=True)]
    if what == "regret":
        rows = [("certified, at most", None if proof is None else proof.regret)]
    rows.append(("theorem", _value(None if proof is None else proof.bound, what)))
    bars = [Bar(int(label == "theorem"), label, value, value, value) for label, value in rows if value is not None]
    title = f"{TITLES[what]} after {count(session.rounds, 'round')}"
    return Chart("standing", "session", session.rounds, title, Axis(UNITS[what]), Axis(""), bars, [NOTHING])


def plot_session(session: Any, curve: SessionCurve | None, what: str | Sequence[str], ax: object, width: str | None) -> Figure:
    """The figure; what is known of the present alone is a bar."""
    name = getattr(session.policy, "name", type(session.policy).__name__)
    parts = [
        bar_chart(session, each)
        if curve is None or sum(value is not None for value in getattr(curve, each)) < 2
        else line_chart(curve, name, each)
        for each in chosen(what)
    ]
    return figures.plot(parts, ax, width, f"{name}, {count(session.rounds, 'round')} observed")


def session_card(called: str, session: Any, stands: str, entries: Sequence[HistoryEntry] | None) -> str:
    """The session on a card of a notebook."""
    violations = session.violations.tolist()
    named = dict(zip(limit_names(len(violations), session.names), violations, strict=True)) if len(violations) > 1 or session.names else {}
    proof = _proof(session) if session.rounds else None
    facts = {
        "policy": short(session.policy),
        "rounds": f"{session.rounds:,} observed, {session.pending:,} pending, {stands}",
        "total cost": number(session.cost),
        "CCV": number(session.ccv) + _at_most(None if proof is None else proof.bound.ccv),
        **{f"violation of {name}": number(value) for name, value in list(named.items())[:8]},
        **({} if proof is None or proof.regret is None else {"regret": f"at most {number(proof.regret)}, certified"}),
        **({"alarms": ", ".join(kind for kind, _ in proof.alarms)} if proof is not None and proof.alarms else {}),
    }
    charts = [line_chart(from_history(entries), "session", "ccv")] if entries else []
    return cards.card(called, facts, charts)


def certificate_card(proof: Certificate) -> str:
    """The certificate on a card of a notebook."""
    above = [(level, rounds) for level, rounds in proof.above if rounds]
    charts = []
    if len(above) > 1:
        levels = line(0, "rounds", [level for level, _ in above], [float(rounds) for _, rounds in above])
        title, y = "Rounds with a violation above a level", Axis("rounds", bottom=0.0)
        charts.append(Chart("levels", "certificate", proof.rounds, title, Axis("level (units of violation)", "log"), y, [levels]))
    return cards.card("Certificate", None, charts, [*report_text.report(proof).splitlines(), "As JSON: certificate.json()."])


def _at_most(bound: object) -> str:
    return "" if bound is None else f" (theorem: at most {number(bound)})"
