"""The command line: one file of this room for each command, or for two that belong together."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from bridle.cli import data, keys, new, output, sessions
from bridle.cli.advise import advise
from bridle.cli.compare import compare
from bridle.cli.fraud import fraud
from bridle.cli.listing import policies, problems
from bridle.cli.pace import pace
from bridle.cli.play import demo, play
from bridle.cli.serve import serve
from bridle.core import InputError, Interrupted

app = typer.Typer(
    add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None,
    help="Decisions made online under constraints that are revealed too late.",
)  # fmt: skip
for command in (policies, problems, play, compare, pace, fraud, advise, demo, serve):
    app.command()(command)
app.add_typer(data.app, name="data")
app.add_typer(keys.app, name="keys")
app.add_typer(new.app, name="new")
app.add_typer(sessions.app, name="sessions")


def _say_version(wanted: bool) -> None:
    if wanted:
        from bridle import __version__

        typer.echo(f"bridle {__version__}")
        raise typer.Exit


@app.callback()
def everything(
    version: Annotated[bool, typer.Option("--version", help="Say which version this is.", callback=_say_version, is_eager=True)] = False,
) -> None:
    """Decisions made online under constraints that are revealed too late."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line: bad usage, bad input and whatever fails around it is one line on standard error and exit status 2.

    Around it are the disk, the paths, the memory, the streams and their encoding, and the environment's variables. Any other exception is
    a mistake in bridle, and keeps its traceback.
    """
    words = sys.argv[1:] if arguments is None else arguments
    output.typed[:] = words
    with output.streams():
        status = _status(words)
    sys.exit(status)


def _status(words: list[str]) -> int:
    """Do what the words say; what is to be told of a failure is told."""
    try:
        status = app(args=words or ["--help"], prog_name="bridle", standalone_mode=False)
        sys.stdout.flush()  # as long as a failure can be told of
        if status == 130:  # where typer itself has noticed it
            raise KeyboardInterrupt
        return status if isinstance(status, int) else 0
    except USAGE_ERROR as error:
        return _fail(error.format_message())  # type: ignore[attr-defined]
    except InputError as error:
        return _fail(str(error))
    except (MemoryError, ArithmeticError) as error:
        return _fail(f"too large or too small to compute: {error}")
    except RecursionError as error:
        return _fail(f"nested too deeply: {error}")
    except UnicodeEncodeError as error:
        return _fail(f"cannot write {error.object[error.start : error.end]!a} in the encoding {error.encoding}: set PYTHONUTF8=1")
    except Interrupted as message:
        return _fail(str(message), 130)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted; nothing was written", 130)
    except BrokenPipeError:  # whoever was reading has seen enough
        return 141
    except OSError as error:
        return _fail(output.system_error(error))


USAGE_ERROR: type[Exception] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
"""What every complaint about usage is, both where typer depends on click and where it carries its own copy."""


def _fail(message: str, status: int = 2) -> int:
    output.complain(message)
    return status
