"""Whatever is said to a session, what it claims holds against brute force: totals, counts, charges, regret, bounds, contradictions."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.said_streams import Case, hold, make, play

THROUGH = ("none", "rules", "coordinate", "features")


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["anytime", "soft", "sinha2024", "adagrad", "rate", "mlpoly"])
@given(
    st.integers(0, 10**9), st.sampled_from(THROUGH), st.booleans(), st.booleans(), st.sampled_from(["no", "copies", "pool"]), st.booleans()
)
@settings(max_examples=12, deadline=None)
def test_every_claim_holds_against_brute_force(policy, seed, through, known, played, late, feasible):
    if policy == "mlpoly" and through not in ("rules", "coordinate"):
        through = "rules"
    case = Case(seed, policy, through, known, played, late, feasible)
    session = make(case)
    hold(case, session, play(case, session))


def test_the_claims_are_tight():
    """On a stream of random rounds what was observed gives the regret itself: a claim that were a little less would be broken."""
    case = Case(815147023, "ogd", "rules", known=False, played=True, late="no", feasible=False)
    session = make(case)
    shares = hold(case, session, play(case, session))
    assert shares["any"] > 1.0 - 1e-6
    case = Case(462678596, "soft", "none", known=False, played=False, late="no", feasible=True)
    session = make(case)
    assert hold(case, session, play(case, session))["soft"] > 1.0 - 1e-6
