"""`check_domain` rejects what is not a domain, and says what is broken."""

from __future__ import annotations

import numpy as np
import pytest

from bridle import ops
from bridle.checks import check_domain
from bridle.domains import Ball, Box, Simplex


class Twisted:
    """A domain with some methods replaced."""

    def __init__(self, domain, **changes):
        self.__dict__.update(changes, domain=domain)

    def __getattr__(self, name):
        return getattr(self.domain, name)


BOX, BALL, SIMPLEX = Box([1.0, -2.0, 0.5], [2.0, 0.0, 1.0]), Ball(radius=0.5, center=[0.1, 0.2, 3.0]), Simplex(4)
KEPT = BALL.center()


def overwrites(x):
    x += 0.0
    x[:] = BALL.project(x)
    return x


def same_for_all_rows(x):
    away = x - BALL.middle
    return BALL.middle + away * min(1.0, 0.5 / max(np.linalg.norm(away), 0.1))


def radial(x):
    away = x - BOX.center()
    return BOX.center() + away / np.maximum(1.0, (abs(away) / (0.5 * (BOX.high - BOX.low))).max(axis=-1, keepdims=True))


@pytest.mark.parametrize(
    ("domain", "complaint"),
    [
        (Twisted(BOX, project=lambda x: x), "land in the set"),
        (Twisted(BOX, project=lambda x: np.nan * x), "batch must equal"),
        (Twisted(BOX, project=radial), "nearest point"),
        (Twisted(BOX, project=lambda x: BOX.project(x + 1e-9)), "its own results where they are"),
        (Twisted(BOX, project=lambda x: np.round(BOX.project(x), 9)), "points of the set where they are"),
        (Twisted(BOX, project=lambda x: BOX.project(x * (1.0 + 2.0**-52))), "bit for bit"),
        (Twisted(BALL, project=lambda x: BALL.middle + (BALL.project(x) - BALL.middle)), "bit for bit"),
        (Twisted(BALL, project=lambda x: 1.000000001 * BALL.project(x)), "land in the set"),
        (Twisted(BALL, project=same_for_all_rows), "batch must equal"),
        (Twisted(BALL, project=overwrites), "not change its argument"),
        (Twisted(BALL, project=lambda x: BALL.project(x)[..., None]), "keep the shape"),
        (Twisted(BALL, project=lambda x: BALL.project(x.astype(np.float32).astype(float))), "."),
        (Twisted(SIMPLEX, project=lambda x: np.maximum(x, 0.0) / np.maximum(x, 1e-9).sum(axis=-1, keepdims=True)), "."),
        (Twisted(SIMPLEX, project=lambda x: SIMPLEX.project(np.maximum(x, 0.0))), "nearest point"),
        (Twisted(SIMPLEX, diameter=lambda: 1.41), "apart"),
        (Twisted(BALL, diameter=lambda: np.inf), "finite float"),
        (Twisted(BALL, center=lambda: KEPT), "fresh copy"),
        (Twisted(BALL, center=lambda: np.zeros(3)), "must be in the set"),
        (Twisted(BALL, contains=lambda x, tolerance=0.0: True), "reject"),
        (Twisted(BALL, contains=lambda x, tolerance=0.0: False), "must be in the set"),
        (Twisted(BALL, linear_argmin=lambda v: BALL.linear_argmin(-v)), "attain"),
        (Twisted(BALL, linear_min=lambda v: BALL.linear_min(v) - 1e-9), "attain"),
        (Twisted(BALL, linear_argmin=lambda v: BALL.middle - v), "linear_argmin must be in the set"),
        (
            Twisted(BALL, linear_argmin=lambda v: BALL.middle + 0.0 * v, linear_min=lambda v: ops.dot(v, BALL.middle)),
            "anywhere in the set",
        ),
        (Twisted(BALL, linear_min=lambda v: BALL.linear_min(v)[..., 0] if v.ndim > 1 else BALL.linear_min(v)), "shape"),
        (Twisted(BALL, dim=0), "dim"),
    ],
)
def test_check_domain_rejects(domain, complaint):
    with pytest.raises(AssertionError, match=complaint):
        check_domain(domain, points=60)
