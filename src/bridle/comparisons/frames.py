"""The rows of a comparison elsewhere: as a table of pandas or Polars, whichever is installed, and as a Parquet file and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bridle import storage, validate
from bridle.comparisons.rows import COLUMNS, GameRow
from bridle.core import InputError, Unavailable
from bridle.storage import StrPath

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


# --- Parquet ------------------------------------------------------------------------------------------------------------------------

NAME = "results.parquet"
"""What the file is called in the folder of a comparison."""


def write_parquet(rows: list[GameRow], path: Path) -> None:
    """The rows as a Parquet file, in the place of one that may be there."""
    validate.require_package("pyarrow", "report")
    import pyarrow as pa
    from pyarrow import parquet

    kinds: dict[object, object] = {str: pa.string(), float: pa.float64(), int: pa.int64(), bool: pa.bool_()}
    kinds |= {list[kind]: pa.list_(arrow) for kind, arrow in kinds.items()}  # type: ignore[valid-type]
    schema = pa.schema([(name, kinds[kind]) for name, kind in COLUMNS.items()])
    table = pa.Table.from_pylist(list(rows), schema=schema)
    with storage.replacing(path) as file:
        parquet.write_table(table, file)


def read_parquet(path: StrPath) -> list[GameRow]:
    """The rows of such a file, or of the folder of a comparison."""
    validate.require_package("pyarrow", "report")
    import pyarrow as pa
    from pyarrow import parquet

    place = Path(path) / NAME if Path(path).is_dir() else Path(path)
    try:
        table = parquet.read_table(place)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"cannot read {place}: {' '.join(str(error).split())[:200]}") from None
    missing = [name for name in COLUMNS if name not in table.column_names]
    if missing:
        raise InputError(f"cannot read {place}: it has no column {missing[0]}, so it is not a comparison of this version of bridle")
    rows: list[GameRow] = table.select(list(COLUMNS)).to_pylist()
    return rows
