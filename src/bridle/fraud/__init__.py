"""The credit-card experiment on the real transactions: `bridle fraud`.

A protocol is a module with a function `command(options, progress)` and a line in `PROTOCOLS`. `paper` repeats section 4 of the paper,
`stream` is what a practitioner would accept: time order, statistics of the past alone, every row scored before it is learned.
This package is not imported by `import bridle`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from bridle import validate
from bridle.storage import Facts as Facts

if TYPE_CHECKING:
    from bridle.showing.tables import TextTable

PROTOCOLS = {"paper": "bridle.fraud.paper", "stream": "bridle.fraud.stream"}
"""The protocols, and the module of each."""

FraudProgress: TypeAlias = Callable[[float, float, str], None]
"""Told how much is done of how much, and what is being done."""


class Options(NamedTuple):
    """What was asked for on the command line; None for what was not given, so that a protocol can refuse what it has no use for."""

    out: str
    seeds: int | None = None
    engine: str | None = None
    data: str | None = None
    variant: str | None = None
    lambdas: str | None = None
    choose: bool = False
    baselines: bool = True
    command: str = "bridle fraud"  # as it was typed: shown on the page, and how to go on after an interruption


class Outcome(NamedTuple):
    """A table for people, sentences below it, and the facts for programs."""

    table: TextTable
    notes: list[str]
    facts: Facts


def run(protocol: str, options: Options, progress: FraudProgress | None = None) -> Outcome:
    """Play a protocol of the experiment; its files go to `options.out`."""
    validate.one_of("protocol", protocol, PROTOCOLS)
    outcome: Outcome = importlib.import_module(PROTOCOLS[protocol]).command(options, progress)
    return outcome
