"""The Python that the numba engine compiles: the functions that loops call, and the text of a whole module."""

from __future__ import annotations

import hashlib
import linecache
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bridle.engines.codegen.statements import Item, Note, printed

_OPENING = '''"""Written by bridle from the trace of a policy and its adversary; its name is the hash of this text."""

import math

import numpy as np
'''
_COMPILER = "from numba import njit\n"
_NO_COMPILER = """

def njit(**options):
    return lambda function: function
"""
_FUNCTIONS = """

@njit(error_model="numpy")
def _max(a, b):
    return a if (a >= b or a != a) else b


@njit(error_model="numpy")
def _min(a, b):
    return a if (a <= b or a != a) else b


@njit(error_model="numpy")
def _pick(flag, a, b):
    return a if flag else b


@njit(error_model="numpy")
def _real(flag):
    return 1.0 if flag else 0.0


@njit(error_model="numpy")
def _whole(flag):
    return 1 if flag else 0


@njit(error_model="numpy")
def _bits(x):
    return np.float64(x).view(np.int64)


@njit(error_model="numpy")
def _logistic(x):
    return 1.0 / (1.0 + math.exp(-x)) if x >= 0.0 else math.exp(x) / (1.0 + math.exp(x))


@njit(error_model="numpy")
def _exp(x):
    # To a unit in the last place, without a branch or a call, so that several runs share its instructions. x = k log 2 + r.
    y = min(max(-746.0, x), 710.0)  # what is no number becomes one, and comes back at the end
    k = np.floor(y * 1.4426950408889634 + 0.5)
    r = y - k * 0.6931471803691238 - k * 1.9082149292705877e-10
    p = 1.6059043836821613e-10 * r + 2.08767569878681e-09  # Taylor's series, from 1/13!
    p = p * r + 2.505210838544172e-08
    p = p * r + 2.755731922398589e-07
    p = p * r + 2.7557319223985893e-06
    p = p * r + 2.48015873015873e-05
    p = p * r + 0.0001984126984126984
    p = p * r + 0.001388888888888889
    p = p * r + 0.008333333333333333
    p = p * r + 0.041666666666666664
    p = p * r + 0.16666666666666666
    p = p * r + 0.5
    i = np.int64(k)
    half = i >> 1  # in two steps, for what is near the largest or the smallest float
    low, high = np.int64((half + 1023) << 52).view(np.float64), np.int64((i - half + 1023) << 52).view(np.float64)
    return (1.0 + (r + r * r * p)) * low * high if x == x else x


@njit(error_model="numpy")
def _within(i, most):
    return 0 if i < 0 else (most if i > most else i)


"""
_OPTIONS = "nogil=True, error_model='numpy', fastmath={'reassoc', 'contract'}"


def preamble(interpreted: bool = False) -> str:
    """What the loops call; part of every source, so that its hash covers it."""
    return _OPENING + (_NO_COMPILER if interpreted else _COMPILER) + _FUNCTIONS


@dataclass(frozen=True)
class PythonSource:
    """The function ``run``: its parameters and its body."""

    parameters: Sequence[str]
    body: Sequence[Item]

    def text(self, interpreted: bool = False) -> str:
        """The whole module; `interpreted` for one that needs no compiler."""
        return preamble(interpreted) + f"@njit({_OPTIONS})\n" + self.function()

    def function(self, note: Note | None = None) -> str:
        """The function alone, if wished with a note beside the lines."""
        return "\n".join([f"def run({', '.join(self.parameters)}):", *printed(self.body, 1, note)]) + "\n"

    def interpreted(self) -> Callable[..., object]:
        """The function as plain Python: the same loops, without a compiler."""
        text, scope = self.text(interpreted=True), dict[str, Callable[..., object]]()
        execute(text, f"<bridle {hashlib.sha256(text.encode()).hexdigest()[:12]}>", scope)
        return scope["run"]


def execute(text: str, name: str, scope: dict[str, Any]) -> None:
    """Run a source in a scope; debuggers and tracebacks show its lines under the name."""
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    exec(compile(text, name, "exec"), scope)
