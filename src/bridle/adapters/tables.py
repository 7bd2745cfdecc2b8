"""Tables of rows, dense or sparse, and a number for each row."""

from __future__ import annotations

from collections.abc import Iterator
from math import nan
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from bridle import validate
from bridle.core import InputError
from bridle.engines.round import block_length
from bridle.ops import Array


def blocks_of(X: Any) -> Iterator[tuple[int, Array]]:
    """The rows of a table, dense, and where they begin: all at once, or of a sparse one as many as an engine takes at a time."""
    if not sparse.issparse(X):
        yield 0, X
        return
    length = block_length(X.shape[1] + 1)
    for start in range(0, X.shape[0], length):
        yield start, X[start : start + length].toarray()


def numbers_for(name: str, given: ArrayLike | None, count: int) -> Array | None:
    """A number for each row; truth values are the numbers they stand for, and None is for a row whose number is not known."""
    if given is None:
        return None
    if isinstance(given, (list, tuple)):
        given = [nan if one is None else float(one) if isinstance(one, bool) else one for one in given]
    elif getattr(getattr(given, "dtype", None), "kind", "") == "b":
        given = np.asarray(given).astype(float)
    numbers = validate.floats(name, given, "an array of numbers")
    if numbers.shape != (count,):
        raise InputError(f"{name} must have shape {(count,)}, one number for each row, not {numbers.shape}")
    return numbers
