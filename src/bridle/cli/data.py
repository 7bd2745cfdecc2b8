"""The commands `bridle data list` and `bridle data fetch`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bridle.cli import output

if TYPE_CHECKING:
    from bridle.data import DataSetFacts
    from bridle.showing.tables import TextTable

app = typer.Typer(rich_markup_mode=None, help="List and fetch the real data sets.")


@app.command("list")
def list_sets(json_file: output.JsonOption = None) -> None:
    """List the data sets.

    Each with what it is, where it comes from, and whether the cache holds it.
    """
    from bridle.data import facts, names

    rows = [facts(name) for name in names()]
    output.show(data_table(rows), [], rows, json_file)


@app.command("fetch")
def fetch_set(
    name: Annotated[str, typer.Argument(help="A name from `bridle data list`.")],
    path: Annotated[
        str | None, typer.Option("--data", metavar="PATH", help="Take the raw file from PATH instead of downloading it.")
    ] = None,
    json_file: output.JsonOption = None,
) -> None:
    """Fetch a data set into the cache.

    The raw file is verified. The cache is $BRIDLE_DATA, else the user's cache folder.
    """
    from bridle.data import facts, fetch

    with output.quiet_progress("fetching") as progress:
        fetch(name, path, progress)
    row = facts(name)
    output.show(data_table([row]), [f"{row['path']}: {row['bytes']:,} bytes, SHA-256 {row['sha256']}"], row, json_file)


def data_table(rows: list[DataSetFacts]) -> TextTable:
    """A table of facts about data sets."""
    from bridle.showing.tables import TextTable

    lines = [
        [
            row["name"], row["description"], ", else ".join(row["sources"]), "yes" if row["cached"] else "no", f"{row['rows']:,}",
            str(row["columns"]), f"{row['bytes'] / 1e6:.1f} MB",
        ]
        for row in rows
    ]  # fmt: skip
    return TextTable(("name", "what it is", "source", "in the cache", "rows", "columns", "size"), lines, "Data sets", numeric=4)
