"""The rows of a comparison as a Parquet file, and back."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import cast, get_type_hints

from bridle import storage, validate
from bridle.comparisons.rows import COLUMNS, GameRow, MovingColumns, RangeColumns
from bridle.core import InputError

NAME = "results.parquet"
"""What the file is called in the folder of a comparison."""

ADDED = (*get_type_hints(RangeColumns), *get_type_hints(MovingColumns), "dynamic_why", "dynamic_bound_holds", "movement_bound_holds")
"""The columns that files of earlier versions do not have: 0.1.0 wrote all the others."""


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
    """The rows of such a file, or of the folder of a comparison; a column that its version did not know is None."""
    validate.require_package("pyarrow", "report")
    import pyarrow as pa
    from pyarrow import parquet

    place = Path(path) / NAME if Path(path).is_dir() else Path(path)
    try:
        table = parquet.read_table(place)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"cannot read {place}: {' '.join(str(error).split())[:200]}") from None
    there = [name for name in COLUMNS if name in table.column_names]
    missing = [name for name in COLUMNS if name not in (*there, *ADDED)]
    if missing:
        raise InputError(f"cannot read {place}: it has no column {missing[0]}, so it is not a comparison's")
    return [cast(GameRow, dict.fromkeys(COLUMNS) | row) for row in table.select(there).to_pylist()]
