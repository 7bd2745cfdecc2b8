"""The nearest mixture of vertices, step by step at fixed numbers: which vertex is dropped, how often vertices are asked for, and scales."""

from __future__ import annotations

import numpy as np
import pytest

from bridle.domains.vertex_mixtures import VertexMixture, _onto, nearest_mixture

OBTUSE = np.array([[0.0, 0.0], [1.0, 0.0], [-3.0, 1.0]])


@pytest.mark.parametrize(
    ("weights", "points", "kept"),
    [
        ([0.2, 0.5, 0.3], [[0.0, 0.0], [-3.0, 1.0]], [0.74, 0.26]),  # 0.5 / (0.5 + 4.2) is less than 0.3 / (0.3 + 1): the second goes
        ([0.2, 0.7, 0.1], [[0.0, 0.0]], [1.0]),  # 0.1 / (0.1 + 1) is less than 0.7 / (0.7 + 4.2): the third goes, and then the second
    ],
)
def test_the_vertex_that_comes_to_nothing_first_is_dropped(weights, points, kept):
    """Towards (-1.2, -1), whose weights on this triangle are 6.2, -4.2 and -1."""
    found = _onto(np.array([-1.2, -1.0]), VertexMixture(OBTUSE, np.array(weights)), 1.0)
    np.testing.assert_allclose(found.points, points)
    np.testing.assert_allclose(found.weights, kept, atol=1e-12)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_few_vertices_are_asked_for_whatever_the_scale(size):
    """A cube of 3 dimensions: the first is that along x itself, and every other one brings the mixture nearer."""
    for x, nearest in (([0.25, 0.5, 0.75], [0.25, 0.5, 0.75]), ([2.0, 0.5, -1.0], [1.0, 0.5, 0.0]), ([3.0, 3.0, 3.0], [1.0, 1.0, 1.0])):
        asked = []

        def vertex(v, asked=asked):
            asked.append(v / np.linalg.norm(v))
            return size * (v < 0.0)

        found = nearest_mixture(size * np.array(x), vertex, size * np.sqrt(3.0))
        np.testing.assert_allclose(found.mean, size * np.array(nearest), atol=1e-12 * size)
        np.testing.assert_allclose(asked[0], -np.array(x) / np.linalg.norm(x))
        assert len(asked) <= 6
        assert (found.weights > 0.0).all()
        assert found.weights.sum() == pytest.approx(1.0)
