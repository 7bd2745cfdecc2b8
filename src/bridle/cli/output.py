"""What the commands share: checking where output goes, showing a table with its notes, and the command as it was typed."""

from __future__ import annotations

import json
import os
import shlex
import sys
from typing import Annotated, Any

import typer

from bridle import storage
from bridle.core import InputError

typed: list[str] = []
"""The arguments of the command that is running."""


def command() -> str:
    """The command that is running, for typing it again."""
    return shlex.join(["bridle", *typed])


def writable(path: str | None) -> str | None:
    """Say before the work, not after it, that a file cannot be written."""
    if path is None or path == "-":
        return path
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path):
        raise InputError(f"cannot write {path}: it is a folder")
    if not os.path.isdir(folder):
        raise InputError(f"cannot write {path}: there is no folder {folder}")
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        raise InputError(f"cannot write {path}: permission denied")
    return path


Json = Annotated[
    str | None,
    typer.Option("--json", metavar="FILE", callback=writable, help="Write the facts as JSON to FILE; - for standard output."),
]


def show(table: Any, notes: list[str], facts: Any, json_file: str | None) -> None:
    """The table and the notes on standard output, and the facts as JSON where they were asked for (in place of both for -)."""
    if json_file == "-":
        sys.stdout.write(_json(facts))
        return
    notes = [*notes, *write_json(facts, json_file)]
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else 200)
    console.print(table)
    for note in notes:
        console.print(note, highlight=False, markup=False)


def show_text(text: str, facts: Any, json_file: str | None) -> None:
    """The text as it is, such as code that is to be copied, on standard output; and the facts as `show` does."""
    if json_file == "-":
        sys.stdout.write(_json(facts))
        return
    sys.stdout.write("\n".join([text, *write_json(facts, json_file)]) + "\n")


def _json(facts: Any) -> str:
    return json.dumps(facts, indent=2, allow_nan=False) + "\n"


def write_json(facts: Any, path: str | None) -> list[str]:
    """The facts as JSON in the file, where one is named; what to tell of it."""
    if path is None:
        return []
    text = _json(facts)
    if os.path.exists(path) and not os.path.isfile(path):  # a pipe or a device is written to, not replaced
        with open(path, "w", encoding="utf-8") as pipe:
            pipe.write(text)
    else:
        with storage.replacing(path) as file:
            file.write(text.encode())
    return [f"facts written to {path}"]
