"""The loops as Python: what `explain` shows, what is run without a compiler, and what `llvm` makes machine code of.

The functions that loops call are written here, once, in the same few words of Python as the loops. Only `_bits`, `_float` and what
comes from `math` and NumPy has a meaning of its own in `llvm`.
"""

from __future__ import annotations

import hashlib
import linecache
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bridle.engines.codegen.statements import Item, Note, printed

PREAMBLE = '''"""Written by bridle from the trace of a policy and its adversary."""

import math
from math import inf, nan

import numpy as np


def _bits(x):
    return np.float64(x).view(np.int64)


def _float(i):
    return np.int64(i).view(np.float64)


def _max(a, b):
    return a if (a >= b or a != a) else b


def _min(a, b):
    return a if (a <= b or a != a) else b


def _pick(flag, a, b):
    return a if flag else b


def _real(flag):
    return 1.0 if flag else 0.0


def _whole(flag):
    return 1 if flag else 0


def _within(i, most):
    return 0 if i < 0 else (most if i > most else i)


def _sign(x):
    return 1.0 if x > 0.0 else (-1.0 if x < 0.0 else x)


def _power(x, n):
    result = 1.0
    while True:
        if n & 1 == 1:
            result = result * x
        n = n >> 1
        if n == 0:
            break
        x = x * x
    return result


def _exp(x):
    # To a unit in the last place, without a branch or a call, so that several runs share its instructions, and with the same bits on
    # every processor and under every C library. x = k log 2 + r.
    y = 710.0 if x > 710.0 else (x if x > -746.0 else -746.0)  # what is no number becomes one, and comes back at the end
    k = np.floor(y * 1.4426950408889634 + 0.5)
    r = y - k * 0.6931471803691238 - k * 1.9082149292705877e-10
    s = r * r  # Taylor's series up to 1/13!, in pairs, which need not wait for each other
    q = s * s
    p = 0.5 + 0.16666666666666666 * r + (0.041666666666666664 + 0.008333333333333333 * r) * s
    p = p + (0.001388888888888889 + 0.0001984126984126984 * r + (2.48015873015873e-05 + 2.7557319223985893e-06 * r) * s) * q
    p = p + (2.755731922398589e-07 + 2.505210838544172e-08 * r + (2.08767569878681e-09 + 1.6059043836821613e-10 * r) * s) * (q * q)
    i = int(k)
    half = i >> 1  # in two steps, for what is near the largest or the smallest float
    low = _float((half + 1023) << 52)
    high = _float((i - half + 1023) << 52)
    return (1.0 + (r + s * p)) * low * high if x == x else x


def _logistic(x):
    small = _exp(-abs(x))
    return (1.0 if x >= 0.0 else small) / (1.0 + small)


def _before(a, b):
    return a < b or (a == a and b != b)


def _order(keys, order, spare):
    # The places of the elements from the smallest to the largest, NaN last and equals as they are: few by insertion, many by merging.
    for i in range(len(keys)):
        order[i] = i
    if len(keys) <= 32:
        for i in range(1, len(keys)):
            place = i
            while True:
                if place == 0:
                    break
                if not _before(keys[i], keys[order[place - 1]]):
                    break
                order[place] = order[place - 1]
                place = place - 1
            order[place] = i
    else:
        width = 1
        while True:
            if width >= len(keys):
                break
            left = 0
            middle = 0
            right = 0
            end = 0
            for i in range(len(keys)):
                if i % (2 * width) == 0:
                    left = i
                    middle = _min(i + width, len(keys))
                    right = middle
                    end = _min(middle + width, len(keys))
                one = keys[order[_within(left, len(keys) - 1)]]
                two = keys[order[_within(right, len(keys) - 1)]]
                if right < end and (left >= middle or _before(two, one)):
                    spare[i] = order[right]
                    right = right + 1
                else:
                    spare[i] = order[left]
                    left = left + 1
            for i in range(len(keys)):
                order[i] = spare[i]
            width = 2 * width


def _eigh(matrix, vectors, values):
    # Jacobi's method: planes are turned until what is off the diagonal is nothing beside the whole; the turns together are the vectors.
    for m in range(len(matrix)):
        for n in range(len(matrix)):
            vectors[m, n] = _real(m == n)
            if n < m:  # XLA symmetrises first
                matrix[m, n] = 0.5 * (matrix[m, n] + matrix[n, m])
                matrix[n, m] = matrix[m, n]
    for sweep in range(40):  # some six to ten are enough; what is not finite must not keep it going
        off = 0.0
        whole = 0.0
        for m in range(len(matrix)):
            for n in range(len(matrix)):
                whole = whole + matrix[m, n] * matrix[m, n]
                off = off + _pick(m == n, 0.0, matrix[m, n] * matrix[m, n])
        if not off > 1e-32 * whole:
            break
        for m in range(len(matrix) - 1):
            for n in range(m + 1, len(matrix)):
                if matrix[m, n] != 0.0:
                    ratio = (matrix[n, n] - matrix[m, m]) / (2.0 * matrix[m, n])
                    tangent = _pick(ratio < 0.0, -1.0, 1.0) / (abs(ratio) + math.sqrt(ratio * ratio + 1.0))
                    cosine = 1.0 / math.sqrt(tangent * tangent + 1.0)
                    sine = tangent * cosine
                    for i in range(len(matrix)):
                        one = matrix[i, m]
                        two = matrix[i, n]
                        matrix[i, m] = cosine * one - sine * two
                        matrix[i, n] = sine * one + cosine * two
                        one = vectors[i, m]
                        two = vectors[i, n]
                        vectors[i, m] = cosine * one - sine * two
                        vectors[i, n] = sine * one + cosine * two
                    for i in range(len(matrix)):
                        one = matrix[m, i]
                        two = matrix[n, i]
                        matrix[m, i] = cosine * one - sine * two
                        matrix[n, i] = sine * one + cosine * two
    for m in range(len(matrix)):
        values[m] = matrix[m, m]
    for m in range(len(matrix)):
        least = m
        for n in range(m + 1, len(matrix)):
            least = _pick(values[n] < values[least], n, least)
        one = values[m]
        values[m] = values[least]
        values[least] = one
        for i in range(len(matrix)):
            one = vectors[i, m]
            vectors[i, m] = vectors[i, least]
            vectors[i, least] = one


'''


@dataclass(frozen=True)
class PythonSource:
    """The function ``run``: its parameters and its body.

    `arrays` are the shapes of the arrays of floats that it is given, by the text that stands for them, such as ``inputs[3]``; the length of
    a first axis that is not known is 0, and "lanes" that of the one over several runs, which have room for `wide`.
    """

    parameters: Sequence[str]
    body: Sequence[Item]
    arrays: dict[str, tuple[int | str, ...]] = field(default_factory=dict)
    wide: int = 1

    def text(self) -> str:
        """The whole module."""
        return PREAMBLE + self.function()

    def function(self, note: Note | None = None) -> str:
        """The function alone, if wished with a note beside the lines."""
        return "\n".join([f"def run({', '.join(self.parameters)}):", *printed(self.body, 1, note)]) + "\n"

    def interpreted(self) -> Callable[..., object]:
        """The function as plain Python: the same loops, without a compiler."""
        text, scope = self.text(), dict[str, Callable[..., object]]()
        execute(text, f"<bridle {hashlib.sha256(text.encode()).hexdigest()[:12]}>", scope)
        return scope["run"]


def execute(text: str, name: str, scope: dict[str, Any]) -> None:
    """Run a source in a scope; debuggers and tracebacks show its lines under the name."""
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    exec(compile(text, name, "exec"), scope)
