"""What a caller may give for a number or an array of numbers, and what is none: each kind by its name, made anew at every call."""

from __future__ import annotations

import datetime
from collections.abc import Callable

import numpy as np
import pytest


class NoText:
    def __repr__(self):
        raise RuntimeError("no text")


class NoArray:
    def __array__(self, dtype=None, copy=None):
        raise AttributeError("no array")


class NoNumber:
    def __float__(self):
        raise ZeroDivisionError("no number")


def _nested(depth: int) -> object:
    value: object = 1.0
    for _ in range(depth):
        value = [value]
    return value


def _endless() -> list[object]:
    value: list[object] = []
    value.append(value)
    return value


def _tensor(make: str) -> object:
    torch = pytest.importorskip("torch")
    return {
        "vector": lambda: torch.ones(2, requires_grad=True),
        "scalar": lambda: torch.tensor(1.0, requires_grad=True),
        "list": lambda: [torch.tensor(1.0, requires_grad=True), 1.0],
        "bool": lambda: torch.tensor([True, False]),
    }[make]()


KINDS: dict[str, Callable[[], object]] = {
    "masked": lambda: np.ma.masked_greater([1.0, 9.0], 5.0),
    "masked number": lambda: np.ma.masked,
    "masked in a list": lambda: [np.ma.masked_greater([1.0, 9.0], 5.0), [1.0, 2.0]],
    "dates": lambda: np.array(["2026-01-01", "2026-01-02"], dtype="M8[D]"),
    "durations": lambda: np.array([1, 2], dtype="m8[D]"),
    "duration": lambda: np.timedelta64(3),
    "date of Python": lambda: datetime.date(2026, 1, 1),
    "duration as object": lambda: np.array([np.timedelta64(3), 1.0], dtype=object),
    "record": lambda: np.array([(1.0,), (2.0,)], dtype=[("a", float)]),
    "bools": lambda: np.array([True, False]),
    "bool": lambda: np.bool_(True),
    "bool in a list": lambda: [True, 2.0],
    "bool arrays in a list": lambda: [np.array([True, False]), np.array([1.0, 2.0])],
    "bool as object": lambda: np.array([True, 2.0], dtype=object),
    "texts": lambda: np.array(["1", "2"]),
    "bytes": lambda: b"1",
    "bytearray": lambda: bytearray(b"12"),
    "texts as objects": lambda: np.array(["1", "2"], dtype=object),
    "None as object": lambda: np.array([None, 1.0], dtype=object),
    "arrays as objects": lambda: np.array([np.ones(2), np.ones(3)], dtype=object),
    "complex": lambda: np.array([1.0 + 0.0j, 2.0]),
    "complex number": lambda: 1.0 + 0.0j,
    "ragged": lambda: [[1.0, 2.0], [3.0]],
    "endless": _endless,
    "too deep": lambda: _nested(200),
    "huge": lambda: 10**400,
    "too huge to write out": lambda: 10**5000,
    "huge in a list": lambda: [10**400, 1.0],
    "no text": NoText,
    "no float": NoNumber,
    "no array": NoArray,
    "no array in a list": lambda: [NoArray(), 1.0],
    "nan": lambda: float("nan"),
    "nans": lambda: np.array([np.nan, 1.0]),
    "inf": lambda: -np.inf,
    "long double": lambda: np.longdouble(10.0) ** 400,
    "dict": dict,
    "set": lambda: {1.0, 2.0},
    "generator": lambda: (i for i in range(2)),
    "class": lambda: float,
    "tensor with a gradient": lambda: _tensor("vector"),
    "scalar tensor with a gradient": lambda: _tensor("scalar"),
    "tensor with a gradient in a list": lambda: _tensor("list"),
    "tensor of bools": lambda: _tensor("bool"),
}
