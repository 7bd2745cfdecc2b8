"""How many steps the search for a point on a cut takes, on the whole: an answer that is right but slow is no answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bridle
from bridle.domains.facets import facets


class Counting:
    """A domain that counts its projections and linear minimisers."""

    def __init__(self, domain: Any) -> None:
        self.domain, self.projections, self.minimisers = domain, 0, 0

    def project(self, x: Any) -> Any:
        self.projections += 1
        return self.domain.project(x)

    def linear_argmin(self, v: Any) -> Any:
        self.minimisers += 1
        return self.domain.linear_argmin(v)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.domain, name)


def counted(within: Any, scale: float, rounds: int = 40) -> tuple[float, float]:
    """The mean numbers of projections and of linear minimisers for points and costs at random, each with a cut of its own."""
    rng, counts = np.random.default_rng(5), []
    for _ in range(rounds):
        a = rng.standard_normal(within.dim)
        low, high = float(within.linear_min(a)), -float(within.linear_min(-a))
        cut = bridle.Halfspace(a, low + rng.uniform(0.02, 0.9) * (high - low), within=within)
        counting = Counting(within)
        cut = cut._replace(within=counting)
        x, v = within.center() + scale * rng.standard_normal(within.dim), rng.standard_normal(within.dim)
        cut.project(x)
        cut.linear_argmin(v)
        counts.append((counting.projections, counting.minimisers))
    projections, minimisers = np.mean(counts, axis=0)
    return float(projections), float(minimisers)


@pytest.mark.parametrize(
    ("within", "scale", "most"),
    [
        (bridle.Simplex(6), 1.0, 7.8), (bridle.Simplex(6), 1e3, 12.7), (bridle.Simplex(6), 1e6, 19.3), (bridle.L1Ball(6), 1.0, 10.0),
        (bridle.L1Ball(6), 1e3, 16.0), (bridle.Product(bridle.Ball(3), bridle.Simplex(3)), 1.0, 7.2), (bridle.Spectrahedron(3), 1.0, 8.3),
    ],
)  # fmt: skip
def test_a_point_on_a_cut_is_found_in_few_projections(within, scale, most):
    projections, _ = counted(within, scale)
    assert projections <= 1.05 * most


def test_a_linear_minimiser_on_a_cut_is_found_by_halving():
    """At most 64 times, half of the time none: where the cut does not matter."""
    _, minimisers = counted(bridle.Product(bridle.Ball(3), bridle.Simplex(3)), 1.0)
    assert minimisers <= 28.0
    within = Counting(bridle.Simplex(6))
    cut = bridle.Halfspace(np.arange(6.0), 2.0, within=within.domain)._replace(within=within)
    assert cut.linear_argmin(np.arange(6.0)).tolist() == [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert within.minimisers == 1


def test_points_that_are_all_inside_are_given_back_as_they_are():
    for domain in (bridle.Ball(2), bridle.L1Ball(2), bridle.Halfspace([1.0, 0.0], 0.5, within=bridle.Ball(2))):
        inside = np.array([[0.1, 0.2], [-0.3, 0.1]])
        assert domain.project(inside) is inside


def test_a_product_of_l1_balls_has_a_variable_for_each_coordinate():
    """u >= |x - middle|: with the least such u the inequalities hold where the product is, and nowhere else."""
    one, two = bridle.L1Ball(center=[1.0, -2.0]), bridle.L1Ball(center=[0.5], radius=2.0)
    whole = facets(bridle.Product(one, bridle.Box([0.0], [1.0]), two))
    assert (whole.dim, whole.more) == (4, 3)
    A, b = whole.inequalities()
    rng, middle, seen = np.random.default_rng(0), np.array([1.0, -2.0, 0.5, 0.5]), set()
    for _ in range(300):
        x = middle + rng.uniform(-1.5, 1.5, 4) * np.array([0.5, 0.5, 0.5, 1.5])
        away = abs(x - middle)
        inside = away[0] + away[1] <= 1.0 and away[2] <= 0.5 and away[3] <= 2.0
        w = np.concatenate([x, away[[0, 1, 3]]])
        assert bool((A @ w <= b + 1e-12).all()) == bool(inside)
        seen.add(bool(inside))
    assert seen == {True, False}
    rows = whole.halfspaces()
    assert rows.shape == (len(b), 8)
