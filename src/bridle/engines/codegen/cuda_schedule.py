"""The statements of a round of a kernel as they are put in order: what comes early, and what is done on one side of a branch alone."""

from __future__ import annotations

import re
from dataclasses import dataclass

NAME = re.compile(r"\b[a-z]+[0-9]+\b")
VARIABLE = re.compile(r"\bv[0-9]+\b")


@dataclass
class Unit:
    """Statements that belong together; `edge` where control flows in or out."""

    text: str
    edge: bool = False


@dataclass
class Gate:
    """A number that is 0 unless the draw `gate` is not, and then what `lines` say; `long` are variables that others may want later."""

    head: str
    gate: str
    made: str
    long: list[str]
    lines: list[str]
    edge: bool = False

    @property
    def text(self) -> str:
        return "\n".join([self.head, *self.lines])


@dataclass
class Choice:
    """A loop in two versions, one for each outcome of a test, and the statements that only one of them needs."""

    test: str
    sides: tuple[list[str], list[str]]
    edge: bool = False

    @property
    def text(self) -> str:
        one, two = ("\n".join(side) for side in self.sides)
        return f"if ({self.test}) {{\n{one}\n}} else {{\n{two}\n}}"


Statement = Unit | Gate | Choice


def declared(text: str) -> str:
    """The variable that a statement declares."""
    match = re.match(r"(?:double|bool|long long) (v[0-9]+)\b", text)
    return match[1] if match else ""


def hoisted(units: list[Statement], name: str) -> list[Statement]:
    """The statements, with the one that declares a number, and what goes into it, as early as can be."""
    at = next((i for i, unit in enumerate(units) if declared(unit.text) == name), None)
    if at is None or "\n" in units[at].text or "\x01" in units[at].text:
        return units
    unit = units[at]
    inputs = [each for each in dict.fromkeys(VARIABLE.findall(unit.text)) if each != name]  # in order: a set's differs from run to run
    for each in inputs:
        units = hoisted(units, each)
    rest = [other for other in units if other is not unit]
    after = max((i for i, other in enumerate(rest) if declared(other.text) in inputs), default=-1) + 1
    return [*rest[:after], unit, *rest[after:]]


def behind(units: list[Statement], name: str) -> set[str]:
    """The number, and those that go into it by single statements."""
    found, new = set(), {name}
    while new:
        found |= new
        texts = [unit.text for unit in units if declared(unit.text) in new and "\n" not in unit.text]
        new = {part for text in texts for part in VARIABLE.findall(text)} - found
    return found


def sunk(units: list[Statement]) -> list[Statement]:
    """Statements that only one side of a choice needs, moved there."""
    for choice in [unit for unit in units if isinstance(unit, Choice)]:
        depth, start = 0, 0
        at = next(i for i, unit in enumerate(units) if unit is choice)
        for i, unit in enumerate(units[:at]):
            depth += (unit.text.endswith("{") - unit.text.startswith("}")) if unit.edge else 0
            start = start if depth == 0 and not unit.edge else i + 1
        for unit in reversed(units[start:at]):
            name = declared(unit.text)
            if not name or "\n" in unit.text or "\x01" in unit.text or isinstance(unit, Choice) or unit.text.count(";") != 1:
                continue
            word = re.compile(rf"\b{name}\b")
            sides = [any(word.search(line) for line in side) for side in choice.sides]
            elsewhere = word.search(choice.test) or any(word.search(other.text) for other in units if other not in (unit, choice))
            if not elsewhere and sides.count(True) == 1:
                choice.sides[sides.index(True)].insert(0, unit.text)
                units = [other for other in units if other is not unit]
    return units
