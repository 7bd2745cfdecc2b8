"""What the commands share: options, the progress bar, tables with their notes, JSON, and the command as it was typed."""

from __future__ import annotations

import json
import os
import shlex
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Protocol, TextIO, cast

import typer

from bridle import storage
from bridle.core import BridleWarning, InputError, NotKeptWarning
from bridle.engines import AUTO, ENGINES

if TYPE_CHECKING:
    from rich.console import RenderableType

typed: list[str] = []
"""The arguments of the command that is running."""


def command() -> str:
    """The command that is running, for typing it again."""
    return shlex.join(["bridle", *typed])


# --- streams --------------------------------------------------------------------------------------------------------------------------


class NamedStream:
    """A stream whose failures say which stream it is."""

    def __init__(self, stream: TextIO, name: str) -> None:
        self.stream, self.name = stream, name

    def __getattr__(self, name: str) -> object:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        """As the stream does."""
        with self._naming():
            return self.stream.write(text)

    def flush(self) -> None:
        """As the stream does."""
        with self._naming():
            self.stream.flush()

    @contextmanager
    def _naming(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:  # made anew, it is of the same class
            raise OSError(error.errno, error.strerror or str(error), self.name) from None


@contextmanager
def streams() -> Iterator[None]:
    """The standard streams, such that what cannot be written to them is told of, once; something in the place of one that was closed."""
    before = sys.stdout, sys.stderr
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    out = open(os.open(os.devnull, os.O_RDONLY), "w") if sys.stdout is None else sys.stdout  # noqa: SIM115  (to write to it fails)
    sys.stdout = cast("TextIO", NamedStream(out, "standard output"))
    try:
        yield
    finally:
        for stream in (out, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):  # let it go, so that Python says nothing more of it at the end
                with suppress(OSError, ValueError):
                    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        sys.stdout, sys.stderr = before


def complain(message: str) -> None:
    """One line on standard error, if that can be had."""
    text = " ".join(message.split()).encode(errors="backslashreplace").decode()  # names of files may be no text
    with suppress(OSError, ValueError):
        sys.stderr.write(f"bridle: {text}\n")


def system_error(error: OSError) -> str:
    """What the system says, and of what."""
    reason = error.strerror or " ".join(str(error).split()) or type(error).__name__
    return reason if error.filename is None or isinstance(error.filename, int) else f"{os.fsdecode(error.filename)}: {reason}"


# --- options --------------------------------------------------------------------------------------------------------------------------


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


JsonOption = Annotated[
    str | None,
    typer.Option("--json", metavar="FILE", callback=writable, help="Write the facts as JSON to FILE; - for standard output."),
]
"""The option `--json` of every command."""

ENGINE_NAMES = f"{', '.join(list(ENGINES)[:-1])} or {list(ENGINES)[-1]}"
EngineOption = Annotated[str, typer.Option(help=f"{AUTO}, {ENGINE_NAMES}.")]
"""The option `--engine` of the commands that play."""


# --- progress -------------------------------------------------------------------------------------------------------------------------


class Tell(Protocol):
    """Hears how much is done of how much, and what is being done."""

    def __call__(self, done: float, total: float, now: str = "", /) -> None: ...


@contextmanager
def progress(doing: str) -> Iterator[Tell | None]:
    """A progress bar with the time left, on standard error where that is a terminal; else None."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=None)

        def tell(done: float, total: float, now: str = "") -> None:
            bar.update(task, completed=done, total=total, description=now or doing)

        yield tell


@contextmanager
def quiet() -> Iterator[None]:
    """Without warnings: the results carry them, and say what is not finite. What they do not carry is one line."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BridleWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        warnings.simplefilter("always", NotKeptWarning)
        warnings.showwarning = lambda message, *where, **options: complain(str(message))
        yield


@contextmanager
def quiet_progress(doing: str) -> Iterator[Tell | None]:
    """`progress`, and `quiet`."""
    with quiet(), progress(doing) as tell:
        yield tell


# --- results --------------------------------------------------------------------------------------------------------------------------


def show(table: RenderableType, notes: list[str], facts: object, json_file: str | None) -> None:
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


def show_text(text: str, facts: object, json_file: str | None) -> None:
    """The text as it is, such as code that is to be copied, on standard output; and the facts as `show` does."""
    if json_file == "-":
        sys.stdout.write(_json(facts))
        return
    sys.stdout.write("\n".join([text, *write_json(facts, json_file)]) + "\n")


def _json(facts: object) -> str:
    return json.dumps(facts, indent=2, allow_nan=False) + "\n"


def write_json(facts: object, path: str | None) -> list[str]:
    """The facts as JSON in the file, where one is named; what to tell of it."""
    if path is None:
        return []
    text = _json(facts)
    if os.path.exists(path) and not os.path.isfile(path):  # a pipe or a device is written to, not replaced
        try:
            with open(path, "w", encoding="utf-8") as pipe:
                pipe.write(text)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise InputError(f"cannot write {path}: {error.strerror or error}") from None
    else:
        with storage.replacing(path) as file:
            file.write(text.encode())
    return [f"facts written to {path}"]
