"""What the parts of a session say of a run, each figure at numbers worked out by hand: charges, gains, proofs, and theorems."""

from __future__ import annotations

from math import inf, nan, sqrt
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import bridle
from bridle.core import Alarm, Bound
from bridle.session.proof import Proof
from helpers.inside import proved, told

pytestmark = pytest.mark.filterwarnings("ignore::bridle.core.BridleWarning")


class Proving:
    """A policy that stays where it is, on a disk of radius 2; `regret`, `squares` and `alarm` are what it says of itself."""

    def __new__(cls, *said: Any, **more: Any) -> Any:
        methods = {name: staticmethod(value) for name, value in more.items() if callable(value)}
        return object.__new__(type(cls.__name__, (cls,), methods))

    def __init__(self, regret: Any = None, squares: Any = None, alarm: Any = None, **more: Any) -> None:
        self.domain, self.asked = bridle.Ball(2, radius=2.0), []
        self.regret, self.squares, self.said = regret, squares, alarm

    def init(self, x1: Any) -> Any:
        return (x1,)

    def decide(self, state: Any) -> Any:
        return state[0]

    def update(self, state: Any, feedback: Any) -> Any:
        return state

    def alarm(self, state: Any) -> Any:
        return self.said

    def certified_regret(self, state: Any) -> Any:
        return self.regret

    def certified_squares(self, state: Any, squares: float, gain: float) -> Any:
        self.asked.append((squares, gain))
        return self.squares


class Theorem:
    """A registered policy's entry that remembers what its theorem was asked."""

    def __init__(self, *bounds: Bound, time_varying: bool = True, only_limits: bool = False, **parameters: Any) -> None:
        self.bounds, self.parameters = list(bounds), parameters
        self.entry = SimpleNamespace(time_varying=time_varying, only_limits=only_limits)
        self.asked: list[tuple[dict[str, Any], float]] = []

    def bound(self, constants: Any, t: float) -> Bound:
        self.asked.append((constants, t))
        return self.bounds[min(len(self.asked), len(self.bounds)) - 1]


def near(value: Any, **more: Any) -> Any:
    return pytest.approx(value, **({"rel": 1e-7, "abs": 1e-7} | more))


def session_of(policy: Any, rounds: int = 3, **more: Any) -> bridle.Session:
    """Rounds at the middle with a cost of slope 3 along u_1, and a constraint that is violated by 1/4, of slope 1/2 along u_2."""
    session = bridle.Session(policy, **more)
    for _ in range(rounds):
        session.observe(f=0.0, df=[3.0, 0.0], g=0.25, dg=[0.0, 0.5])
    return session


def parts_of(session: bridle.Session, configured: Any = None) -> Proof:
    parts = proved(session).complete()
    return parts if configured is None else told(parts, configured)


# --- what is assumed --------------------------------------------------------------------------------------------------------------------


def test_why_constraints_need_not_agree():
    parts = parts_of(session_of(Proving()))
    assert (parts.apart, parts.moving, parts.noisy, parts.parameter("drift")) == ("", False, False, None)
    for given, words, moving, noisy in (
        ({"drift": 0.0, "noise": 0.0}, "", False, False),
        ({"drift": 0.5}, "the feasible action may move (drift), and no single one is compared with", True, False),
        ({"noise": 0.5}, "constraint values are noisy, so that no single one proves anything", False, True),
        ({"drift": [0.0, 0.5], "noise": 1.0}, "the feasible action may move (drift), and no single one is compared with", True, True),
    ):
        told_parts = told(parts, Theorem(**given))
        assert (told_parts.apart, told_parts.moving, told_parts.noisy) == (words, moving, noisy)
    assert parts._replace(ledger=None).conflict is None


def test_a_proof_of_noisy_values_is_none():
    session = bridle.Session(Proving())
    session.observe(f=0.0, df=[0.0, 0.0], g=9.0, dg=[0.0, 1.0])  # no action is as far away as that
    parts = parts_of(session)
    assert parts.conflict is not None
    assert told(parts, Theorem(noise=0.1)).conflict is None
    assert told(parts, Theorem(drift=0.1)).conflict is not None


def test_which_alarm_ends_a_bound():
    for alarm, broken in ((None, ""), (Alarm("mild", voids_bound=False), ""), (Alarm("hard", voids_bound=True), "hard")):
        parts = parts_of(session_of(Proving(regret=1.0, squares=2.0, alarm=alarm)))
        assert parts.broken == broken
        assert parts.alarms == [] if alarm is None else parts.alarms == [alarm]
        assert parts.own_regret() == (1.0 if not broken else None)
        assert (parts.squared_bound(parts.ledger) is None) == bool(broken)


def test_the_longest_gradient_of_what_lipschitz_is_about():
    assert parts_of(session_of(Proving())).longest_gradient == near(3.0)
    assert told(parts_of(session_of(Proving())), Theorem(only_limits=True)).longest_gradient == near(0.5)
    assert parts_of(session_of(Proving()))._replace(ledger=None).longest_gradient is None
    steep = bridle.Session(Proving())
    steep.observe(f=0.0, df=[1.0, 0.0], g=-1.0, dg=[0.0, 7.0])
    assert parts_of(steep).longest_gradient == near(7.0)


# --- the policy's own proof -------------------------------------------------------------------------------------------------------------


def test_what_an_action_can_gain():
    """3 rounds of 3 u_1 on a disk of radius 2: 18; of an action that moves 36."""
    session = session_of(Proving())
    parts = parts_of(session)
    assert parts.gain(parts.ledger) == near(18.0)
    assert told(parts, Theorem(drift=1.0)).gain(parts.ledger) == near(36.0)
    session.observe(f=0.0, df=[0.0, 4.0], ticket=session.ask())
    parts = parts_of(session)
    assert parts.gain(parts.ledger) == near(2.0 * sqrt(9.0**2 + 4.0**2))


def test_the_most_that_squares_can_be():
    """The proof is asked with the sum of |grad f|^2 and the gain; D^2 = 16 more for every round that was lost."""
    policy = Proving(squares=5.0)
    session = session_of(policy)
    parts = parts_of(session)
    assert parts.squared_bound(parts.ledger) == near(5.0)
    assert policy.asked[-1] == (near(27.0), near(18.0))
    session.forget(session.ask())
    session.forget(session.ask())
    parts = parts_of(session)
    assert parts.squared_bound(parts.ledger) == near(5.0 + 2.0 * 16.0)
    for squares, expected in ((None, None), (nan, -inf), (inf, inf)):
        policy.squares = squares
        parts = parts_of(session_of(policy))
        assert parts.squared_bound(parts.ledger) == expected
    parts.ledger.domain = parts.ledger.domain._replace(domain=None)  # then nobody knows what an action can gain
    policy.squares = 5.0
    assert parts.squared_bound(parts.ledger) is None


def test_several_copies_may_each_gain_what_their_rounds_do():
    policy = Proving(regret=1.5, squares=5.0)
    session = session_of(policy)
    first, second = session.ask(), session.ask()
    for ticket in (second, first):
        session.observe(f=0.0, df=[0.0, 4.0], g=-1.0, dg=[0.0, 1.0], ticket=ticket)
    parts = parts_of(session)
    assert len(parts.played) == 2
    assert parts.own_regret() == 3.0
    assert parts.squared_bound(parts.ledger) == near(10.0)
    assert policy.asked[-1] == (near(27.0 + 32.0), near((9.0 + 8.0) * 4.0))  # D sum |grad f|
    policy.regret = None
    assert parts.own_regret() is None


def test_a_lost_round_adds_to_what_squares_can_be():
    session = session_of(Proving(squares=5.0))
    session.forget(session.ask())
    parts = parts_of(session)
    assert parts.state.slow.late.lost == 1
    assert parts.squared_bound(parts.ledger) == near(5.0 + 16.0)


def test_a_proof_may_be_beside_the_run_by_a_millionth():
    """No action loses more than 18, so that regret is at least -18; squares are 3 (1/2)^2."""
    allowed = 1e-6 * 36.0
    for regret, fine in ((-18.0 - 0.9 * allowed, True), (-18.0 - 1.1 * allowed, False)):
        parts = parts_of(session_of(Proving(regret=regret)))
        absurd = parts.absurd()
        assert (absurd is None) is fine
        assert parts.own_proof() == ((regret, None) if fine else (None, None))
    assert absurd is not None
    assert absurd.figures == {"regret": regret, "least": near(-18.0)}
    assert absurd.text.startswith("by the policy's own proof regret is at most -18, while no action can have lost more than 18: no action")
    assert absurd.text.endswith("values or gradients are wrong or noisy, or the diameter given is too small")
    squared = parts.ledger.counted.limits.distances
    assert squared == near(0.75)
    for squares, fine in ((squared * (1.0 - 1.9e-6), True), (squared * (1.0 - 2.1e-6), False)):
        parts = parts_of(session_of(Proving(squares=squares)))
        assert (parts.absurd() is None) is fine
        assert parts.absurd(squares_too=False) is None
    assert parts.absurd().figures == {"squared": near(0.75), "most": squares}
    assert "squared distances add up to at most 0.749998, while they are 0.75: no action" in parts.absurd().text
    parts = parts_of(session_of(Proving(squares=nan)))
    assert "squared distances add up to no number at all, while they are 0.75" in parts.absurd().text
    moving = told(parts, Theorem(drift=1.0))
    assert "or the diameter or the drift given is too small" in moving.absurd().text
    assert parts_of(session_of(Proving(regret=-100.0)))._replace(ledger=None).absurd() is None


# --- charges ----------------------------------------------------------------------------------------------------------------------------


def test_what_a_dropped_round_may_add():
    """At most G D a cost and a constraint, D = 4: G as declared, or the longest seen where that is more."""
    session = session_of(Proving())
    assert parts_of(session).charge() == (0.0, 0.0, True)
    session.forget(session.ask())
    session.forget(session.ask())
    parts = parts_of(session)
    assert parts.state.slow.late.lost == 2
    assert parts.charge() == (near(2 * 3.0 * 4.0), near(2 * 0.5 * 4.0), False)
    for given, expected in ((5.0, (40.0, 40.0, True)), (1.0, (24.0, 8.0, True))):
        assert told(parts, Theorem(lipschitz=given)).charge() == near(expected)
    only = told(parts, Theorem(lipschitz=5.0, only_limits=True))  # what was declared is about the constraints alone
    assert only.charge() == (near(24.0), near(40.0), False)
    assert parts._replace(ledger=None).charge() == (0.0, 0.0, True)


# --- the theorem ------------------------------------------------------------------------------------------------------------------------


def bound_of(session: bridle.Session, theorem: Theorem, constraints: int = 1) -> Bound:
    return told(parts_of(session), theorem, constraints).bound()


def test_the_theorem_is_asked_with_what_was_told_and_what_was_seen():
    theorem = Theorem(Bound(10.0, 9.0), modulus=0.3, slater=0.2, smoothness=4.0, bound=0.1, horizon=99, lipschitz=50.0, time_varying=False)
    found = bound_of(session_of(Proving()), theorem, constraints=7)
    assert found == Bound(10.0, 9.0)
    ((constants, t),) = theorem.asked
    np.testing.assert_array_equal(constants.pop("feasible"), [0.0, 0.0])
    assert constants == {
        "modulus": 0.3, "slater": 0.2, "smoothness": 4.0, "bound": near(0.25), "lipschitz": near(3.0), "diameter": near(4.0),
        "constraints": 7, "time_varying": False,
    }  # fmt: skip
    assert t == 3.0
    larger = Theorem(Bound(10.0, 9.0), bound=0.7)
    bound_of(session_of(Proving()), larger)
    assert larger.asked[0][0]["bound"] == 0.7
    noisy = Theorem(Bound(10.0, 9.0), bound=0.1, noise=0.2)  # the values seen are not the constraints' own
    bound_of(session_of(Proving()), noisy)
    assert noisy.asked[0][0]["bound"] == 0.1


def test_the_bounds_of_copies_and_charges_add_up():
    """Of two copies; a dropped round adds 3 D to regret and 2 to violation."""
    session = session_of(Proving())
    first, second = session.ask(), session.ask()
    for ticket in (second, first):
        session.observe(f=0.0, df=[3.0, 0.0], g=-1.0, dg=[0.0, 0.5], ticket=ticket)
    session.forget(session.ask())
    theorem = Theorem(Bound(10.0, 20.0, soft=30.0), Bound(1.0, 2.0, soft=3.0, why="so it is"))
    found = bound_of(session, theorem)
    assert sorted(t for _, t in theorem.asked) == [1.0, 4.0]
    assert found == Bound(near(11.0 + 12.0), near(22.0 + 2.0), soft=near(33.0 + 2.0), why="so it is")
    theorem = Theorem(Bound(10.0, 20.0, soft=30.0), Bound(1.0, None, soft=3.0))
    found = bound_of(session, theorem)
    assert (found.ccv, found.soft) == (None, near(33.0 + 2.0))
    assert found.regret == near(23.0)
    none = bound_of(session, Theorem(Bound(None, 20.0)))
    assert (none.regret, none.soft) == (None, None)


def test_no_bound_is_below_what_has_happened():
    """CCV is 3/4 and so is the sum of the values; rounding is a tolerance times the violation and the scale of every round."""
    session = session_of(Proving(), rounds=3)
    rounding = 1e-9 * (0.75 + 3 * 2.0)  # scale: a slope of 1/2 times the reach of 4
    for name in ("ccv", "soft"):
        fine = bound_of(session, Theorem(Bound(**{"regret": 1.0, name: 0.75 - 0.9 * rounding})))
        assert fine.why == ""
        void = bound_of(session, Theorem(Bound(**{"regret": 1.0, name: 0.75 - 1.1 * rounding})))
        assert void == Bound(why="the violation so far, 0.75, is more than the theorem allows: an assumption does not hold")
        noisy = bound_of(session, Theorem(Bound(**{"regret": 1.0, name: 0.5}), noise=0.1))  # it is about means
        assert (noisy.regret, noisy.why) == (1.0, "")


def test_without_a_ledger_there_is_no_bound_and_nothing_contradicts_it():
    session = session_of(Proving())
    parts = parts_of(session, Theorem(Bound(1.0, 0.1)))._replace(ledger=None)
    assert parts.bound() == Bound(why="no certificates are kept, so the longest gradient is not known")
    assert parts._contradicted(parts.state.now.totals, Bound(1.0, 0.1)) is None


def test_the_words_of_a_theorem_that_does_not_apply():
    session = session_of(Proving())
    parts, theorem = parts_of(session), Theorem(Bound(1.0, 9.0))
    assert parts._void() == "the policy is not registered"
    parts = told(parts, theorem)
    assert parts._void() == ""
    assert parts._replace(ledger=None)._void() == "no certificates are kept, so the longest gradient is not known"
    broken = parts_of(session_of(Proving(alarm=Alarm("out of order", voids_bound=True))), theorem)
    assert broken._void() == "out of order"
    absurd = parts_of(session_of(Proving(regret=-100.0)), theorem)
    assert absurd._void().startswith("by the policy's own proof")
    torn = bridle.Session(Proving())
    torn.observe(f=0.0, df=[0.0, 0.0], g=9.0, dg=[0.0, 1.0])
    assert parts_of(torn, theorem)._void() == "no action satisfies every constraint"
    assert theorem.asked == []


# --- the certificate --------------------------------------------------------------------------------------------------------------------


def test_every_figure_of_a_certificate():
    session = session_of(Proving(regret=100.0, squares=5.0, price=lambda state: [0.5]))
    session.observe(f=2.0, df=[0.0, 0.0], g=-0.5, dg=[0.0, 0.5])
    session.ask()
    found = session.certificate()
    assert (found.rounds, found.pending, found.dropped) == (4, 1, 0)
    assert (found.cost, found.ccv, found.violated) == (2.0, near(0.75), 3)
    assert (found.regret, found.regret_any) == (near(9.0 * sqrt(4.0 - 0.25)), near(18.0))  # u_2 <= -1/2
    assert (found.regret_algorithm, found.squared, found.squared_bound) == (100.0, near(0.75), 5.0)
    assert dict(found.above)[1e-2] == 3
    assert (found.conflict, found.alarms, found.why) == (None, (), "")
    np.testing.assert_array_equal(found.price, [0.5])
    np.testing.assert_allclose(found.balance, [0.25])  # three times 1/4, less 1/2
    unpriced = session_of(Proving()).certificate()
    assert (unpriced.price, unpriced.balance) == (None, None)
    assert found.witness is not None
    assert found.witness[1] <= -0.5 + 1e-6
    assert parts_of(session)._replace(ledger=None).certificate() is None
