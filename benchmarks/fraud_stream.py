"""The fraud stream in time order: the setting chosen anew on the first fifth, every contestant on all rows.

The figures go to benchmarks/fraud-stream.json, docs/fraud.md and its pictures.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

from rich.console import Console

from bridle.fraud import Options, stream, stream_model
from parts.toy import TOY, size, target, transactions

HERE = Path(__file__).parent
RESULTS, DOCS = HERE / "fraud-stream.json", HERE.parent / "docs"
BEGIN, END = "<!-- measured by benchmarks/fraud_stream.py -->\n", "<!-- end -->\n"


def markdown(facts: dict) -> str:
    """The table of docs/fraud.md."""
    rows = [f"| {' | '.join(stream.HEAD)} |", "|---" * len(stream.HEAD) + "|"]
    return "\n".join([*rows, *(f"| {' | '.join(line)} |" for line in stream.contest_table(facts["contestants"]).rows)]) + "\n"


def shrink() -> None:
    """Toy size: drawn rows, and a grid of two settings."""
    stream_model.load = lambda _path=None: stream_model.rows_of(transactions())
    stream_model.GRID = stream_model.SettingGrid((True,), (2.0,), (0.1,), (2.0,), (0.003, 0.01), (0.25,))


def main() -> None:
    if TOY:
        shrink()
    with tempfile.TemporaryDirectory() as folder:
        outcome = stream.command(Options(out=folder, choose=True, engine=size(None, "python")))
        for name in ("areas", "alerts"):
            shutil.copyfile(Path(folder) / f"{name}.png", target(DOCS / f"fraud-{name}.png"))
    facts = outcome.facts
    for line in facts["contestants"]:
        del line["alerts"], line["seconds"]
    target(RESULTS).write_text(json.dumps(facts, indent=1) + "\n")
    page = target(DOCS / "fraud.md")
    before, _, rest = page.read_text().partition(BEGIN)
    page.write_text(before + BEGIN + markdown(facts) + END + rest.partition(END)[2])
    console = Console(width=150)
    console.print(outcome.table)
    for note in outcome.notes[:3]:
        console.print(note, highlight=False)


if __name__ == "__main__":
    main()
