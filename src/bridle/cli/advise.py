"""The command `bridle advise`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from bridle import validate
from bridle.cli import output
from bridle.core import InputError

if TYPE_CHECKING:
    from bridle.advice import Advice, Answer

T = TypeVar("T")


def _yes(name: str) -> Any:
    """An option that is yes or no, with the question as its help."""
    flag = name.replace("_", "-")
    return typer.Option(f"--{flag}/--no-{flag}", help=_HELP[name], show_default=False)


_HELP = {
    "costs": "Besides the limits there is a cost to keep low (so unless told otherwise), or not.",
    "noise": "The limits' values are measured with errors.",
    "rules": "There are rules that decide already: an autoscaler, last week's value, a heuristic.",
    "moving": "The world moves: an action that is right today is wrong some day.",
    "slater": "An action is known that keeps every limit with room to spare.",
    "strongly_convex": "Costs are strongly convex, such as squared errors.",
    "linear": "Limits are linear in the action.",
    "few": "An action has few coordinates, ten or so at most.",
    "delay": "Feedback comes late.",
}


def advise(
    limit: Annotated[
        str | None,
        typer.Option(
            metavar="safety|average|share|budget|none",
            help="How often a limit binds: every violation counts, on average, in all but a share of rounds, or as a total.",
        ),
    ] = None,
    known: Annotated[
        str | None, typer.Option(metavar="nothing|limits|features|forecast", help="What is known of a round before acting.")
    ] = None,
    rules: Annotated[bool | None, _yes("rules")] = None,
    moving: Annotated[bool | None, _yes("moving")] = None,
    constraints: Annotated[
        str | None, typer.Option(metavar="fixed|changing|none", help="Whether limits change, and whether there are any.")
    ] = None,
    horizon: Annotated[str | None, typer.Option(metavar="N|unknown", help="How many rounds there will be.")] = None,
    costs: Annotated[bool | None, _yes("costs")] = None,
    noise: Annotated[bool | None, _yes("noise")] = None,
    slater: Annotated[bool | None, _yes("slater")] = None,
    strongly_convex: Annotated[bool | None, _yes("strongly_convex")] = None,
    linear: Annotated[bool | None, _yes("linear")] = None,
    few: Annotated[bool | None, _yes("few")] = None,
    delay: Annotated[bool | None, _yes("delay")] = None,
    json_file: output.JsonOption = None,
) -> None:
    """Say which policy to use for your task.

    It gives the guarantee, what the policy needs, and code that runs. Without options, on a terminal, it asks. What you do not say is taken
    to be unknown.
    """
    from bridle import advice

    options: dict[str, Answer] = {
        "limit": limit, "known": known, "rules": rules, "moving": moving, "constraints": constraints, "costs": costs, "noise": noise,
        "slater": slater, "strongly_convex": strongly_convex, "linear": linear, "few": few, "delay": delay,
    }  # fmt: skip
    answers: dict[str, Answer] = {name: value for name, value in options.items() if value is not None}
    if horizon is not None:
        answers["horizon"] = _horizon(horizon)
    elif not answers and sys.stdin.isatty():
        answers = _ask()
    result = advice.advise(**answers)
    output.show_text(_text(result), {"answers": advice.complete_answers(**answers), **result.facts()}, json_file)


def _horizon(text: str) -> int | None:
    if text.strip().lower() == "unknown":
        return None
    value = validate.from_text(text.strip())
    if isinstance(value, str):
        raise InputError(f"horizon must be a number of rounds or unknown, not {text!r}")
    return validate.whole("horizon", value)


def _ask() -> dict[str, Answer]:
    """The answers to the questions that decide, one after the other."""
    from bridle import advice

    answers: dict[str, Answer] = {}
    while (name := advice.next_question(answers)) is not None:
        answers[name] = _answer(name)
    for name in advice.further_questions(answers):
        answers[name] = _answer(name)
    return answers


def _answer(name: str) -> Answer:
    from bridle import advice

    question, usual = advice.QUESTIONS[name], getattr(advice.Answers(), name)
    if name == "horizon":
        return _again(lambda: _horizon(_line(f"{question.text} A number, or unknown", "unknown")))
    if True in question.choices:
        return _again(lambda: _yes_or_no(_line(f"{question.text} y or n", "y" if usual else "n")))
    meanings = "".join(f"\n  {choice}: {words}" for choice, words in question.choices.items())
    return _again(lambda: advice.check_choice(name, _line(f"{question.text}{meanings}\nAnswer", usual)))


def _line(text: str, usual: str) -> str:
    """What is typed, the usual where nothing is. It is asked for on standard error: standard output is for the advice."""
    typer.echo(f"{text} [{usual}]: ", nl=False, err=True)
    line = sys.stdin.readline()
    if not line:
        raise typer.Abort
    return line.strip() or usual


def _yes_or_no(text: str) -> bool:
    if text.lower() not in ("y", "yes", "n", "no"):
        raise InputError(f"the answer must be y or n, not {text!r}")
    return text.lower().startswith("y")


def _again(ask: Callable[[], T]) -> T:
    """Ask until the answer can be understood."""
    while True:
        try:
            return ask()
        except InputError as error:
            typer.echo(str(error), err=True)


def _text(advice: Advice) -> str:
    """The advice for people."""
    lines = [f"Use {advice.use}: {advice.why}.", "", f"Guarantee. {advice.guarantee}"]
    if advice.assumes:
        lines.append(f"It assumes {', '.join(advice.assumes)}.")
    if advice.needs:
        lines += ["", "It must be told:", *(f"  {name}: {words}" if words else f"  {name}" for name, words in advice.needs.items())]
    if advice.notes:
        lines += ["", *(f"Note: {note}." for note in advice.notes)]
    return "\n".join([*lines, "", advice.snippet.rstrip("\n")])
