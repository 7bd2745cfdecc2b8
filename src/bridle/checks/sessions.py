"""What a caller of a session can rely on, whatever the policy."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping

import numpy as np

from bridle import policies
from bridle.checks.case import PolicyCase, bits
from bridle.core import InputError, Policy, Round
from bridle.ops import Array, Scalar
from bridle.session.session import Session
from bridle.session.step import points_to_try
from bridle.validate import show


def check_session(case: PolicyCase, policy: Policy[object], stream: list[Round], report: list[str]) -> list[str]:
    """What a caller of a session can rely on."""
    start = case.domain.center()
    session = case.attempt("Session", Session, policy, start, domain=case.domain)
    half = len(stream) // 2
    if needs := _needs_functions(Session(policy, start, domain=case.domain), stream):
        report.append(f"skipped sessions on {case.name}: {needs}")
        return []
    start += 1.0
    for first_half in stream[:half]:
        _observe(case, session, first_half)
        before, x = bits(session.state), _decided(session)
        x += 1.0
        case.require(bits(session.state) == before, "changing a decision that a session gave out must not change its state")
        case.require(case.domain.contains(_decided(session)), "changing a decision that a session gave out must not change the next one")
    _check_refusals(case, session, stream[half])
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "session.npz")
        session.save(path)
        registered = isinstance(policy, policies.Configured) and policy.name in policies.names()
        other = case.attempt("Session.load", Session.load, path, None if registered else policy)
    for t, one_round in enumerate([*stream[half:], None], half):
        alike = _decided(session).tobytes() == _decided(other).tobytes() and bits(session.state) == bits(other.state)
        case.require(alike, f"a session loaded after {half} rounds must go on bit for bit, and does not after {t}")
        if one_round is not None:
            _observe(case, session, one_round)
            _observe(case, other, one_round)
    _check_excess(case, other, stream[half])
    return ["session", "resume", "refusal"]


def _needs_functions(session: Session, stream: list[Round]) -> str:
    """Why the policy cannot go by values and gradients alone, though it could go by the functions; empty where it can."""
    for one_round in stream:
        try:
            session.observe(**_said(session, one_round))  # type: ignore[arg-type]
        except InputError as no:
            return str(no)
        except Exception:  # a failure, and `_observe` will say so
            return ""
    return ""


def _decided(session: Session) -> Array:
    """The decision of this round, or the points that are tried."""
    return session.read(points_to_try) if session.plan.tries else session.decide()


def _said(session: Session, one_round: Round) -> dict[str, Scalar]:
    """What there is to observe of a round, by the names of the arguments."""
    if session.plan.tries:
        tried = one_round.tried_at(_decided(session))
        return {"f": np.array([each.f for each in tried.each]), "g": np.array([each.g for each in tried.each])}
    feedback = one_round.reveal(session.decide())
    return {"f": feedback.f, "df": feedback.df, "g": feedback.g, "dg": feedback.dg}


def _observe(case: PolicyCase, session: Session, one_round: Round) -> None:
    """One round of a session, whose arrays are overwritten right after it."""
    said = {name: np.array(value) if np.ndim(value) else value for name, value in _said(session, one_round).items()}
    case.attempt("Session.observe", session.observe, **said)
    before = bits(session.state)
    for array in said.values():
        if isinstance(array, np.ndarray):
            array += 7.0
    case.require(bits(session.state) == before, "changing the arrays that a session observed must not change its state")


def _check_refusals(case: PolicyCase, session: Session, one_round: Round) -> None:
    """Input that cannot be used is an InputError and changes nothing."""
    fine = _said(session, one_round)
    for name, value in fine.items():
        missing = [] if session.plan.tries and name == "g" else [None]  # where there are no gradients, a round without constraints has none
        for wrong in (np.asarray(value) * np.nan, np.asarray(value) + np.inf, "much", *missing, np.zeros((*np.shape(value), 2))):
            refused = _refuses(case, session, {**fine, name: wrong})
            case.require(refused, f"a session must refuse {name} = {show(wrong)}")


def _refuses(case: PolicyCase, session: Session, feedback: Mapping[str, object]) -> bool:
    """Whether the session refuses this feedback; if it does, nothing may have changed."""
    before = bits(session.state), _decided(session).tobytes(), session.rounds, session.cost
    try:
        session.observe(**feedback)  # type: ignore[arg-type]
    except InputError:
        now = bits(session.state), _decided(session).tobytes(), session.rounds, session.cost
        case.require(now == before, f"input that is refused must leave the session as it was: {show(feedback)}")
        return True
    except Exception as wrong:
        raise AssertionError(f"{case.name}: Session.observe raised {type(wrong).__name__}, not InputError, for {show(feedback)}") from wrong
    return False


def _check_excess(case: PolicyCase, session: Session, one_round: Round) -> None:
    """What is far too large is refused, or the decision stays in the domain."""
    for name in _said(session, one_round):
        fine = _said(session, one_round)
        if not _refuses(case, session, {**fine, name: 1e60 * np.sign(fine[name])}):
            case.require(case.domain.contains(_decided(session)), f"a decision must be in the domain also when {name} has been 1e60")
    _refuses(case, session, {**_said(session, one_round), "modulus": 0.5})
    case.require(case.domain.contains(_decided(session)), "a decision must be in the domain also when the cost's modulus was told")
