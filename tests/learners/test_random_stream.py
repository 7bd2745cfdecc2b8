"""The stream of random numbers that a policy carries in its state: the published generator, exact, and directions that are uniform."""

from __future__ import annotations

import math

import numpy as np
import pytest

import bridle
from bridle.core import InputError
from bridle.domains.inner_ball import inner_ball
from bridle.learners import random_stream


def test_the_generator_is_the_published_one():
    """From 12345 in every place: the first numbers that its author prints."""
    stream, drawn = random_stream.DrawStream(*(np.array([12345.0]) for _ in range(6))), []
    for _ in range(5):
        stream, u = random_stream.uniform(stream)
        drawn.append(float(u[0]))
    assert np.allclose(drawn, [0.1270111220, 0.3185275653, 0.3091860155, 0.8258468629, 0.2216299157], atol=1e-10)


def test_the_generator_is_exact_whole_number_arithmetic():
    stream = random_stream.seeded(3, 4)
    a, b = ([[int(x) for x in part] for part in half] for half in (stream[:3], stream[3:]))
    for _ in range(300):
        stream, u = random_stream.uniform(stream)
        a = [*a[1:], [(1403580 * y - 810728 * x) % 4294967087 for x, y in zip(a[0], a[1], strict=True)]]
        b = [*b[1:], [(527612 * z - 1370589 * x) % 4294944443 for x, z in zip(b[0], b[2], strict=True)]]
        assert [list(map(int, part)) for part in stream] == [*a, *b]
        wanted = [((x - y) % 4294967087 or 4294967087) / 4294967088 for x, y in zip(a[2], b[2], strict=True)]
        assert u.tolist() == wanted


def test_a_seed_fixes_the_stream_and_seeds_differ():
    one, again, other = (random_stream.seeded(seed, 3) for seed in (5, 5, 6))
    assert all((x == y).all() for x, y in zip(one, again, strict=True))
    assert all((x != y).any() for x, y in zip(one, other, strict=True))
    swept = random_stream.seeded([5, 6], 3)
    assert all((part == np.stack([x, y])).all() for part, x, y in zip(swept, one, other, strict=True))
    for bad in (-1, 0.5, [0, 1.5], 2**60, [0, 2**60]):
        with pytest.raises(InputError, match="seed must be"):
            random_stream.seeded(bad, 3)


def test_directions_are_uniform_on_the_sphere_of_the_hull():
    normals = inner_ball(bridle.Simplex(3)).normals
    for normal, d, n in ((None, 3, 3), (normals, 3, 2), (None, 1, 1)):
        stream, drawn = random_stream.seeded(list(range(4000)), d), []
        for _ in range(5):
            stream, u = random_stream.direction(stream, normal)
            drawn.append(u)
        u = np.concatenate(drawn)
        assert np.allclose(np.linalg.norm(u, axis=1), 1.0)
        span = np.eye(d) if normal is None else np.eye(d) - normal.T @ normal
        assert np.allclose(u @ span, u)
        assert np.abs(u.mean(axis=0)).max() < 5.0 / math.sqrt(len(u))
        assert np.abs(u.T @ u / len(u) - span / n).max() < 5.0 / math.sqrt(len(u))
        fourth = 3.0 / (n * (n + 2.0))  # E <u, e>^4 for a unit e of the hull
        e = span[0] / np.linalg.norm(span[0])
        assert abs(np.mean((u @ e) ** 4) - fourth) < 5.0 / math.sqrt(len(u))


def test_a_stream_begins_at_what_numpy_makes_of_the_seed():
    """Six numbers a coordinate, each from 1 to its modulus less 1."""
    made = [int(word) for word in np.random.SeedSequence(11).generate_state(12, np.uint64)]
    for i, (part, modulus) in enumerate(zip(random_stream.seeded(11, 2), [4294967087] * 3 + [4294944443] * 3, strict=True)):
        assert part.tolist() == [made[2 * i + j] % (modulus - 1) + 1 for j in range(2)]
    assert random_stream.seeded(2**53, 1).a0.shape == (1,)
    with pytest.raises(InputError, match="seed must be a whole number"):
        random_stream.seeded(2**53 + 2, 1)


def test_equal_numbers_draw_the_largest_and_a_whole_multiple_is_nothing():
    """a - b = 0 gives FIRST / (FIRST + 1), not 0; and what is a multiple of the modulus leaves 0."""
    zeros = random_stream.DrawStream(*(np.array([part]) for part in (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)))
    assert random_stream.uniform(zeros)[1].tolist() == [4294967087 / 4294967088]
    one = zeros._replace(a1=np.array([float(pow(1403580, -1, 4294967087))]))  # a - b = 1, which is the least
    assert random_stream.uniform(one)[1].tolist() == [1 / 4294967088]
    multiples = np.array([-2.0, -1.0, 0.0, 1.0, 2.0**20]) * 4294967087.0
    for more in (0.0, 1.0, 4294967086.0):
        assert random_stream._reduced(multiples + more, 4294967087.0).tolist() == [more] * 5


def test_a_direction_is_box_and_mullers_formula():
    stream = random_stream.seeded(4, 3)
    after, u = random_stream.uniform(stream)
    after, w = random_stream.uniform(after)
    z = np.array([math.sqrt(-2.0 * math.log(a)) * math.cos(2.0 * math.pi * b) for a, b in zip(u, w, strict=True)])
    further, found = random_stream.direction(stream, None)
    np.testing.assert_allclose(found, z / np.linalg.norm(z), rtol=1e-12)
    assert all((x == y).all() for x, y in zip(further, after, strict=True))
    normal = np.array([[0.6, 0.0, 0.8]])
    z = z - (z @ normal[0]) * normal[0]
    np.testing.assert_allclose(random_stream.direction(stream, normal)[1], z / np.linalg.norm(z), rtol=1e-12)


def test_every_run_has_the_stream_of_its_seed():
    alone, swept = random_stream.seeded(5, 3), random_stream.seeded([5, 6], 3)
    for part, one in zip(alone.for_runs(np.zeros((4, 2))), alone, strict=True):
        np.testing.assert_array_equal(part, np.tile(one, (4, 1)))
    for part, one in zip(alone.for_runs(np.zeros(2)), alone, strict=True):
        np.testing.assert_array_equal(part, one)
    for part, both in zip(swept.for_runs(np.zeros((2, 2))), swept, strict=True):
        np.testing.assert_array_equal(part, both)
