"""The rows of a comparison as a Parquet file, and back."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from bridle import storage, validate
from bridle.comparisons.rows import COLUMNS, GameRow
from bridle.core import InputError

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


def read_parquet(path: str | PathLike[str]) -> list[GameRow]:
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
