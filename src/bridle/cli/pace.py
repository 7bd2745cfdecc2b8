"""The command `bridle pace`: what a `Pacer` would have made of auctions that were recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bridle.cli import output
from bridle.storage import Facts

if TYPE_CHECKING:
    from bridle.showing.tables import TextTable


def pace(
    file: Annotated[str, typer.Argument(help="A .csv or .npz with columns `value` and `price`: the highest bid of the others.")],
    budget: Annotated[float | None, typer.Option(help="What may be spent in all, in the units of the prices.")] = None,
    share: Annotated[float | None, typer.Option(help="In place of --budget: the share of what all auctions would cost together.")] = None,
    auction: Annotated[str, typer.Option(help="second: the winner pays the others' highest bid; first: its own.")] = "second",
    goal: Annotated[str, typer.Option(help="value: as much value as money can buy; profit: value less what was paid.")] = "value",
    price: Annotated[float | None, typer.Option(help="The price of money to start from, such as the last period's.")] = None,
    json_file: output.JsonOption = None,
) -> None:
    """Pace a budget over recorded auctions.

    It shows the value won, the money spent, and the best choice in hindsight.
    """
    from bridle import validate
    from bridle.budgets import Pacer
    from bridle.core import InputError
    from bridle.problems._auctions import AuctionLog

    if (budget is None) == (share is None):
        given = "neither" if budget is None else f"--budget {budget:g} and --share {share:g}"
        raise InputError(f"one of --budget and --share must be given, not {given}")
    log = AuctionLog.read(file, "FILE")
    money = validate.positive("--budget", budget) if share is None else validate.positive("--share", share) * log.cost
    pacer = Pacer(validate.positive("budget", money), log.rounds, goal=goal, unit=log.unit, auction=auction, price=price)
    with output.quiet_progress("pacing"):
        found = log.play(pacer)
    facts = {
        "file": file,
        "auctions": log.rounds,
        "auction": auction,
        "goal": goal,
        "budget": pacer.budget,
        "spent": found.paid,
        "won": found.won,
        "value": found.value,
        "profit": found.value - found.paid,
        "best": found.best,
        "share_of_best": found.share,
        "price": pacer.price,
        "loss_certified": pacer.certified_loss,
    }
    output.show(pace_table(facts), pace_notes(facts), facts, json_file)


def pace_table(facts: Facts) -> TextTable:
    """What came of it, a line a figure."""
    from bridle.showing import number
    from bridle.showing.tables import TextTable

    title = f"{facts['file']}: {facts['auctions']:,} {facts['auction']}-price auctions, bids for {facts['goal']}"
    names = {
        "budget": "budget", "spent": "spent", "won": "auctions won", "value": "value won", "profit": "value less money",
        "best": "value of the best choice in hindsight", "share_of_best": "share of that", "price": "price of money at the end",
    }  # fmt: skip
    rows = [[shown, number(facts[name])] for name, shown in names.items()]
    return TextTable(("quantity", "measured"), rows, title, numeric=1)


def pace_notes(facts: Facts) -> list[str]:
    """What a reader should be told in words."""
    notes = ["the best choice knows all auctions in advance, spends the same budget and pays the others' highest bids"]
    if facts["loss_certified"] is not None:
        notes.append(f"were the auctions independent draws, on average no choice would have made {facts['loss_certified']:.4g} more")
    return notes
