"""What a theorem is asked with where constraints are the steeper ones or costs were not as told, and what a proof of infeasibility ends."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import bridle
from bridle.core import Bound
from bridle.session.certificates import certificate
from bridle.session.certificates.certificate import Conflict
from bridle.session.certificates.feasibility import centered
from helpers.inside import proved, told, with_totals

pytestmark = pytest.mark.filterwarnings("ignore::bridle.core.BridleWarning")


def asked(session: bridle.Session, **given_to_it: Any) -> dict[str, Any]:
    """The constants that the theorem of a session's policy is asked with."""
    given: list[Any] = []
    theorem = SimpleNamespace(
        parameters=given_to_it,
        entry=SimpleNamespace(time_varying=True),
        bound=lambda constants, t: given.append(constants) or Bound(1.0, 1e9),
    )
    with_totals(told(proved(session).complete(), theorem), [0.0], [0.0]).bound()
    return dict(given[0])


@pytest.mark.parametrize(("cost", "limit"), [(3.0, 0.5), (0.5, 7.0)])
def test_the_longest_gradient_of_either_kind_is_the_lipschitz_constant(cost, limit):
    session = bridle.Session(bridle.policy("anytime", bridle.Ball(2)))
    session.observe(f=0.0, df=[cost, 0.0], g=-1.0, dg=[0.0, limit])
    assert asked(session)["lipschitz"] == pytest.approx(max(cost, limit))


def test_what_was_seen_of_curvature_is_passed_on_where_a_modulus_was_told():
    stated = bridle.Session(bridle.policy("anytime", bridle.Ball(2), modulus=0.5))
    for modulus in (0.5, None, 0.25):
        stated.observe(f=0.0, df=[1.0, 0.0], g=-1.0, dg=[0.0, 1.0], **({} if modulus is None else {"modulus": modulus}))
    (copy,) = proved(stated).played
    assert asked(stated)["curvature"] == copy.costs.curvature(3)
    plain = bridle.Session(bridle.policy("anytime", bridle.Ball(2)))
    plain.observe(f=0.0, df=[1.0, 0.0], g=-1.0, dg=[0.0, 1.0])
    assert "curvature" not in asked(plain)


def test_where_nothing_is_feasible_no_proof_and_no_witness_is_given():
    session = bridle.Session(bridle.policy("anytime", bridle.Ball(2)))
    session.observe(f=0.0, df=[1.0, 0.0], g=0.5, dg=[0.0, 1.0])
    parts = proved(session).complete()
    parts.ledger.repair_witness()
    assert parts.own_proof()[0] is not None
    assert parts.ledger.met() is not None
    parts.ledger.conflict = Conflict((), (), (), 0.1, 1)
    assert parts.own_proof() == (None, None)
    assert parts.ledger.met() is None


def test_no_action_that_meets_the_halfspaces_is_nearer():
    """On the simplex, where projections in turn alone end at the wrong face: held against many actions."""
    where = centered(bridle.Simplex(3), 3)
    N = np.array([[-0.833, 0.084, -0.547], [-0.008, 0.964, -0.265]])
    N /= np.linalg.norm(N, axis=1, keepdims=True)
    b, goal = np.array([0.113, 0.042]), np.array([-1.972, -3.162, -3.449])
    z, _ = certificate._nearest_feasible(where, goal, N, b)
    assert where.domain.contains(where.middle + z, 1e-6)
    assert (N @ z <= b + 1e-6).all()
    others = np.random.default_rng(0).dirichlet(np.ones(3), 2000) - where.middle
    others = others[(others @ N.T <= b).all(axis=1)]
    assert len(others) > 100
    assert np.linalg.norm(goal - z) <= np.linalg.norm(goal - others, axis=1).min() + 1e-6


def test_a_distance_that_is_just_the_diameter_is_no_proof():
    """Without an allowance for rounding: 4 along a slope of 1 on a disk of radius 2."""
    where = centered(bridle.Ball(2, radius=2.0), 2, 0.0)
    assert certificate.contradiction_alone(where, 1.0, np.array([4.0]), np.array([[1.0, 0.0]]), 1) is None
    found = certificate.contradiction_alone(where, 1.0, np.array([4.0 + 1e-12]), np.array([[1.0, 0.0]]), 1)
    assert found is not None
    assert found.margin == pytest.approx(1e-12, rel=1e-3)
