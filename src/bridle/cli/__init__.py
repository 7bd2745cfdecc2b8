"""The command line: `bridle advise`, `policies`, `problems`, `play`, `compare`, `fraud`, `demo`, `data`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from bridle.cli import data, output
from bridle.cli.advise import advise
from bridle.cli.compare import compare
from bridle.cli.fraud import fraud
from bridle.cli.listing import policies, problems
from bridle.cli.play import demo, play
from bridle.core import InputError, Interrupted

app = typer.Typer(
    add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None,
    help="Decisions made online under constraints that are revealed too late.",
)  # fmt: skip
for command in (policies, problems, play, compare, fraud, advise, demo):
    app.command()(command)
app.add_typer(data.app, name="data")


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
    """Run the command line: bad usage or bad input is one line on standard error and exit status 2."""
    words = sys.argv[1:] if arguments is None else arguments
    output.typed[:] = words
    stopped = "interrupted; nothing was written"
    try:
        status = app(args=words or ["--help"], prog_name="bridle", standalone_mode=False)
    except USAGE_ERROR as error:
        status = _fail(error.format_message())  # type: ignore[attr-defined]
    except InputError as error:
        status = _fail(str(error))
    except (MemoryError, ArithmeticError) as error:
        status = _fail(f"too large or too small to compute: {error}")
    except Interrupted as message:
        status, stopped = 130, str(message)
    except (KeyboardInterrupt, typer.Abort):
        status = 130
    except BrokenPipeError:
        sys.stderr.close()
        status = 141
    if status == 130:
        _fail(stopped)
    sys.exit(status if isinstance(status, int) else 0)


USAGE_ERROR: type[Exception] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
"""What every complaint about usage is, both where typer depends on click and where it carries its own copy."""


def _fail(message: str) -> int:
    sys.stderr.write("bridle: " + " ".join(message.split()) + "\n")
    return 2
