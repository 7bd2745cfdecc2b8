"""Random numbers as arithmetic: a stream whose state is a part of its owner's, so that every engine and every resumed session draws alike.

An algorithm draws nothing from outside. One that must randomise carries a stream in its own state: the seed fixes where the stream begins,
`uniform` takes it one number further, and both are pure. The generator is MRG32k3a, two recurrences of order three,

    a_n = (1403580 a_{n-2} -  810728 a_{n-3}) mod 4294967087
    b_n = ( 527612 b_{n-1} - 1370589 b_{n-3}) mod 4294944443,      u_n = ((a_n - b_n) mod 4294967087) / 4294967088, or the largest for 0

which was made for floats: every product is below 2^53, so that the arithmetic is exact on every engine, and the numbers are the same bits.
Its period is about 2^191. There is one generator for each coordinate, begun at numbers that NumPy's `SeedSequence` makes of the seed.

Reference: P. L'Ecuyer. Good Parameters and Implementations for Combined Multiple Recursive Random Number Generators. Operations Research,
    1999.

>>> stream, u = uniform(seeded(7, 3))
>>> u.shape, bool((u > 0.0).all() and (u < 1.0).all())
((3,), True)
"""

from __future__ import annotations

from math import pi
from typing import NamedTuple

import numpy as np

from bridle import ops, validate
from bridle.learners.base import Setting
from bridle.ops import Array, floor, log, norm, ratio, sqrt, vector

FIRST, SECOND = 4294967087.0, 4294944443.0
"""The moduli of the two recurrences, both prime."""


class DrawStream(NamedTuple):
    """The last three numbers of both recurrences, the oldest first: one of each for every coordinate."""

    a0: Array
    a1: Array
    a2: Array
    b0: Array
    b1: Array
    b2: Array

    def for_runs(self, x1: Array) -> DrawStream:
        """The stream for every run that the first decision `x1` stands for."""
        return DrawStream(*(vector(x1, part) + part for part in self))


def seeded(seed: Setting, width: int) -> DrawStream:
    """The stream of `width` numbers a time that begins at a seed, or one for each run of a sweep over seeds."""
    seeds = validate.setting("seed", seed, zero=True)
    if np.any(np.floor(seeds) != seeds) or np.any(np.asarray(seeds) > 2.0**53):
        raise validate.refused("seed must be a whole number, 0 or above and at most 2^53", seed)
    rows = [np.random.SeedSequence(int(each)).generate_state(6 * width, np.uint64).reshape(6, width) for each in np.ravel(seeds)]
    moduli = np.array([FIRST] * 3 + [SECOND] * 3)[:, None].astype(np.uint64)
    parts = np.stack([(row % (moduli - np.uint64(1)) + np.uint64(1)).astype(float) for row in rows], axis=1)  # 0 0 0 would stay there
    return DrawStream(*(part if np.ndim(seeds) else part[0] for part in parts))


def uniform(stream: DrawStream) -> tuple[DrawStream, Array]:
    """The stream one step further, and numbers between 0 and 1, without either, one for each coordinate."""
    a0, a1, a2, b0, b1, b2 = stream
    a = _reduced(1403580.0 * a1 - 810728.0 * a0, FIRST)
    b = _reduced(527612.0 * b2 - 1370589.0 * b0, SECOND)
    difference = a - b
    u = (difference + FIRST * (difference <= 0.0)) / (FIRST + 1.0)
    return DrawStream(a1, a2, a, b1, b2, b), u


def _reduced(value: Array, modulus: float) -> Array:
    """A whole number modulo another: exact, though the quotient was rounded."""
    rest = value - floor(value / modulus) * modulus
    rest = rest + modulus * (rest < 0.0)
    return rest - modulus * (rest >= modulus)


def direction(stream: DrawStream, normals: Array | None) -> tuple[DrawStream, Array]:
    """The stream further on, and a direction: uniform on the unit sphere of what is at right angles to every one of `normals`.

    These are the rows of a matrix, of unit length and at right angles to each other; None where there are none. Gaussian numbers, by Box
    and Muller's formula, point everywhere alike.
    """
    stream, u = uniform(stream)
    stream, w = uniform(stream)
    z = sqrt(-2.0 * log(u)) * ops.cos((2.0 * pi) * w)
    if normals is not None:
        z = z - (z @ normals.T) @ normals
    return stream, z * ratio(1.0, norm(z))
