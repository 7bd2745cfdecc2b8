"""The page of the command line, from the commands themselves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from bridle.cli import app
from bridle_site import rst
from bridle_site.docstrings import plain_line


def write(folder: Path) -> None:
    """Write the page."""
    text = [
        *rst.heading("Command line", "="),
        "``bridle COMMAND --help`` says the same in a terminal. Bad input is one line on standard error and exit status 2.",
        "",
    ]
    for path, command in commands(typer.main.get_command(app), ["bridle"]):
        text += described(path, command)
    rst.write(folder / "cli" / "index.rst", text)


def commands(command: Any, path: list[str]) -> Iterator[tuple[list[str], Any]]:
    """Every command that does something, with the words that call it."""
    if hasattr(command, "commands"):
        for name, inner in command.commands.items():
            yield from commands(inner, [*path, name])
    else:
        yield path, command


def described(path: list[str], command: Any) -> list[str]:
    """One command: what it does, how it is called, what it takes."""
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and p.name != "help"]
    words = [f"[{called(p)}]" if not p.required else called(p) for p in arguments]
    usage = " ".join([*path, *words, *(["[OPTIONS]"] if options else [])])
    rows = [[f"``{called(p)}``", help_of(p), "must be given" if p.required else default_of(p)] for p in arguments]
    rows += [[", ".join(f"``{name}``" for name in (*p.opts, *p.secondary_opts)), help_of(p), default_of(p)] for p in options]
    doc = [plain_line(" ".join(part.split())) for part in (command.help or "").split("\n\n") if part.strip()]
    text = [*rst.heading(" ".join(path))]
    for part in doc:
        text += [part, ""]
    text += rst.directive("code-block", "text", None, [usage])
    return [*text, *(rst.table(("takes", "meaning", "where not given"), rows, (28, 54, 18)) if rows else [])]


def help_of(parameter: Any) -> str:
    """What a parameter means."""
    return plain_line(" ".join((parameter.help or "").split()))


def default_of(parameter: Any) -> str:
    """The value where none is given."""
    if parameter.required:
        return "must be given"
    value = parameter.default
    if value is None or value == () or value == []:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"``{value}``"


def called(argument: Any) -> str:
    """How an argument is called in the line of usage."""
    return str(argument.metavar or argument.name.upper())
