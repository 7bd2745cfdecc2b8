"""The data sets as a table for the command line."""

from __future__ import annotations

from typing import Any


def table(rows: list[dict[str, Any]]) -> Any:
    """A table of facts about data sets."""
    from rich.table import Table

    made = Table(title="Data sets")
    for heading, side in (("name", "left"), ("what it is", "left"), ("rows", "right"), ("columns", "right"), ("size", "right")):
        made.add_column(heading, justify="right" if side == "right" else "left", no_wrap=heading == "name")
    made.add_column("source")
    made.add_column("in the cache")
    for row in rows:
        size = f"{row['bytes'] / 1e6:.1f} MB"
        sources = ", else ".join(row["sources"])
        made.add_row(
            row["name"], row["description"], f"{row['rows']:,}", str(row["columns"]), size, sources, "yes" if row["cached"] else "no"
        )
    return made
