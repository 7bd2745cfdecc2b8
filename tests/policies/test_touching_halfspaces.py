"""Halfspaces that touch the ball, or nearly: the proximal step has a point for a disk, and is exact all the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import bridle
from bridle.domains.half_space_cut import BallCut
from bridle.solvers.hinge_prox import hinge

POLICIES = {
    "guo2022": {"lipschitz": 1.0},
    "guo2022-strong": {"modulus": 1.0},
    "yi2021": {"lipschitz": 1.0},
    "yu2020": {"lipschitz": 1.0, "clip": True, "horizon": 50},
    "yi2023": {"lipschitz": 1.0, "form": "prox"},
}


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("radius", [0.47, 1.0, 3.3, 1e-3])
def test_a_limit_that_one_end_of_the_ball_meets_is_played(name, radius):
    session = bridle.Session(bridle.policy(name, bridle.Ball(1, radius=radius), **POLICIES[name]))
    for _ in range(50):
        x = session.decide()
        assert abs(x[0]) <= radius * (1.0 + 1e-12)
        session.observe(f=0.3 * float(x[0]), df=[0.3], g=radius - float(x[0]), dg=[-1.0])
    assert session.rounds == 50


unit = st.floats(-1.0, 1.0)


@settings(max_examples=300, deadline=None)
@given(
    d=st.integers(1, 4), radius=st.sampled_from([0.47, 1.0, 3.3, 1e-6, 1e6]), side=st.sampled_from([-1.0, 1.0]),
    off=st.sampled_from([0.0, 1e-16, -1e-16, 2.2e-16, -2.2e-16, 1e-15, -1e-15, 1e-12, -1e-12, 1e-9, -1e-9, 1e-5, -1e-5]),
    normal=st.lists(unit, min_size=4, max_size=4), from_=st.lists(unit, min_size=4, max_size=4),
    far=st.sampled_from([0.0, 0.5, 1.0, 1.5, 100.0]), along=st.booleans(), c=st.sampled_from([0.0, 0.3, 1.0, 1e3, 1e12]),
)  # fmt: skip
@example(d=1, radius=0.47, side=-1.0, off=0.0, normal=[-1.0] * 4, from_=[0.0] * 4, far=1.0, along=True, c=1e3)
def test_a_touching_hinge_is_solved(d, radius, side, off, normal, from_, far, along, c):
    a = np.array(normal[:d])
    a = a / np.linalg.norm(a) if np.linalg.norm(a) > 1e-3 else np.eye(d)[0]
    middle = radius * np.arange(1.0, d + 1.0)
    level = float(a @ middle) + side * radius * (1.0 + off)
    v = middle + far * radius * (a if along else np.array(from_[:d]))
    ball = bridle.Ball(radius=radius, center=middle)
    x = hinge(ball, v, a, level, c * radius, 1.0)
    size = radius + float(np.linalg.norm(middle)) + float(np.linalg.norm(v - middle))
    assert np.isfinite(x).all()
    assert np.linalg.norm(x - middle) <= radius + 1e-13 * size

    def objective(y):
        return float((y - v) @ (y - v)) + c * radius * max(0.0, float(a @ y) - level)

    rivals = [ball.project(v), ball.project(v - 0.5 * c * radius * a), middle - radius * a, middle + radius * a, middle]
    rivals += [ball.project(v - s * radius * a) for s in np.linspace(0.0, min(c, 200.0), 60)]
    nudge = 1e-15 * size * c * radius + 4e-15 * size * size  # the hinge is as steep as c, and heights are known to rounding
    assert objective(x) <= min(map(objective, rivals)) + 8.0 * nudge


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("height", [1.0, -1.0, 1.0 + 2e-16, -1.0 - 2e-16])
def test_the_disk_of_a_touching_cut_is_a_point(d, height):
    a = np.eye(d)[0]
    cut = BallCut(np.zeros(d), 1.0, a, height)
    for away in (np.zeros(d), a, -a, np.full(d, 0.3)):
        assert cut.on_disk(away) == pytest.approx(height * a)
    both = cut.on_disk(np.stack([a, np.full(d, 0.3)]))
    assert both == pytest.approx(np.stack([height * a] * 2))
