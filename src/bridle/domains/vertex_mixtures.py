"""Points as mixtures of vertices, where a domain has nothing but a linear minimiser.

Wolfe's method (P. Wolfe, Finding the nearest point in a polytope, Mathematical Programming 1976) keeps a mixture of vertices whose weights
are all above 0, and moves it to the nearest point of the plane through them; where a weight would fall below 0, its vertex is dropped.
At the plane's nearest point the linear minimiser offers another vertex, or proves that none comes nearer. The distance falls with every
vertex that is taken in, so that no set of vertices comes twice.

>>> corners = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
>>> mixture = nearest_mixture(np.array([3.0, 3.0]), lambda v: corners[(corners @ v).argmin()], 4.0)
>>> mixture.mean
array([2., 2.])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bridle.ops import Array

CLOSE = 1e-13
"""Two points are the same if they are this part of the domain's scale apart: some hundred roundings."""

VANISHED = 1e-14
"""A vertex with no more weight than this is dropped."""

STEPS_PER_COORDINATE = 200
"""How many vertices may be taken in for each coordinate before the search is given up: 2 or 3 are usual."""


class VertexMixture(NamedTuple):
    """Vertices, one a row, and their weights, which are above 0 and add up to 1."""

    points: Array
    weights: Array

    @property
    def mean(self) -> Array:
        """The point that they mix to."""
        return self.weights @ self.points


def nearest_mixture(x: Array, vertex: Callable[[Array], Array], scale: float) -> VertexMixture:
    """The mixture of vertices that is nearest to x; ``vertex(v)`` is one of least <v, .>, and `scale` the size of the set.

    Raises RuntimeError where it does not end, which is a vertex that does not minimise what it was asked to.
    """
    mixture = VertexMixture(vertex(-x)[None], np.ones(1))
    away = mixture.mean - x
    for _ in range(STEPS_PER_COORDINATE * (len(x) + 1)):
        length = float(np.linalg.norm(away))
        if length <= CLOSE * scale:
            return mixture
        unit = away / length
        new = vertex(unit)
        gain = float(unit @ (mixture.mean - new))
        if gain <= CLOSE * (scale + length) or (mixture.points == new).all(axis=1).any():
            return mixture
        after = _onto(x, VertexMixture(np.vstack([mixture.points, new]), np.append(mixture.weights, 0.0)), scale)
        after_away = after.mean - x
        if not np.linalg.norm(after_away) < length:  # rounding is all that is left to gain
            return mixture
        mixture, away = after, after_away
    raise RuntimeError(f"the nearest mixture of vertices was not found in {STEPS_PER_COORDINATE} steps a coordinate")


def _onto(x: Array, mixture: VertexMixture, scale: float) -> VertexMixture:
    """The mixture moved to the nearest point of the plane through its vertices, or of one through fewer where weights would be negative."""
    points, weights = mixture
    while True:
        edges = points[1:] - points[0]
        rest = np.linalg.lstsq(edges.T, x - points[0], rcond=None)[0] if len(edges) else np.zeros(0)
        aim = np.append(1.0 - rest.sum(), rest)
        low = aim <= VANISHED
        if not low.any():
            return VertexMixture(points, aim)
        # As far towards the aim as every weight stays 0 or above; the vertex that stops it is dropped.
        shares = weights[low] / np.maximum(weights[low] - aim[low], VANISHED)
        share = min(float(shares.min()), 1.0)
        weights = np.maximum(weights + share * (aim - weights), 0.0)
        kept = weights > VANISHED
        kept[np.flatnonzero(low)[int(shares.argmin())]] = False
        points, weights = points[kept], weights[kept] / weights[kept].sum()
