"""Rows as a table of pandas or of Polars, whichever is installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from bridle import validate
from bridle.core import Unavailable

KINDS = ("pandas", "polars")


def frame(rows: Sequence[Mapping[str, object]], kind: str | None = None) -> Any:
    """The rows as a DataFrame of this kind; None takes pandas where it is installed, else Polars.

    A number that is not known is NaN in pandas and null in Polars.
    """
    if kind is not None:
        validate.one_of("kind", kind, KINDS)
    there = [name for name in KINDS if find_spec(name) is not None]
    if kind not in (None, *there):
        raise Unavailable(f"kind={kind!r} needs the package {kind}: pip install {kind}")
    if not there:
        raise Unavailable("a frame needs pandas or polars: pip install pandas")
    if (kind or there[0]) == "pandas":
        import pandas

        return pandas.DataFrame(list(rows))
    import polars

    return polars.DataFrame(list(rows), infer_schema_length=None)
