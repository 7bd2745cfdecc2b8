"""The command `bridle fraud`."""

from __future__ import annotations

import warnings
from typing import Annotated

import typer

from bridle.cli import output
from bridle.core import BridleWarning


def fraud(
    protocol: Annotated[
        str, typer.Option(help="paper: section 4 of the paper; stream: in time order, against river and scikit-learn.")
    ] = "paper",
    variant: Annotated[
        str | None, typer.Option(help="code: as the released code does it; text: as the paper says. [default: code]")
    ] = None,
    lambdas: Annotated[
        str | None, typer.Option(metavar="L1,L2", help="The lambdas, or LEAST:MOST:COUNT for a geometric grid. [default: 0.002:1:30]")
    ] = None,
    seeds: Annotated[int | None, typer.Option(metavar="N", help="paper: how many seeds, 0 to N - 1. [default: 3]")] = None,
    engine: Annotated[str | None, typer.Option(help=f"{output.ENGINE_NAMES}. [default: compiled, else jax, where it is installed]")] = None,
    data: Annotated[
        str | None, typer.Option("--data", metavar="PATH", help="creditcard.csv itself; without it the cache, filled where need be.")
    ] = None,
    choose: Annotated[bool, typer.Option("--choose", help="stream: choose the setting anew on the first fifth of the rows.")] = False,
    baselines: Annotated[bool, typer.Option(help="stream: with river and scikit-learn.")] = True,
    out: Annotated[str, typer.Option(metavar="DIR", help="The folder for the results; seeds that it has are not played again.")] = "fraud",
    json_file: output.JsonOption = None,
) -> None:
    """Run the credit-card experiment on the real data.

    You get points, areas, figures, metrics.json and report.html. If you interrupt it, call it again with the same --out: it goes on with
    the seed where it stopped.
    """
    from bridle.fraud import Options, run

    options = Options(out, seeds, engine, data, variant, lambdas, choose, baselines, output.command())
    with warnings.catch_warnings(), output.progress("reading the data") as progress:
        warnings.simplefilter("ignore", BridleWarning)  # the results say it
        outcome = run(protocol, options, progress)
    output.show(outcome.table, outcome.notes, outcome.facts, json_file)
