"""The statements of a round of a kernel, and the order they are put in: what comes early, and what is done on one side of a branch alone.

A statement says which variables its code names, which one it declares, and which elements of arrays it reads and writes. All passes go by
that. They may assume that a variable is declared once, and that statements come in an order in which everything is declared before use.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from bridle.engines.codegen.cuda_code import TYPE, Code, Element, Var, code
from bridle.engines.codegen.equations import Equation


class KernelStatement:
    """What is written at one place of a round; nothing comes between its lines."""

    lines: list[Code]
    declares: str = ""
    """The variable that it declares, if it declares one."""
    edge: bool = False
    """Whether control flows in or out here."""
    opens: int = 0
    """1 for the head of a block, -1 for its end."""
    origin: Equation | None = None
    """The equation that it was written for, if it was for one."""

    def names(self) -> set[str]:
        """The variables that its code names, those it declares among them."""
        return {name for line in self.lines for name in line.names()}

    def elements(self) -> Iterable[Element]:
        """The elements of arrays that it reads and writes."""
        return (element for line in self.lines for element in line.elements())


class Unit(KernelStatement):
    """Lines that belong together.

    >>> Unit("double v1; {", "v1 = p[0]; }", declares="v1").declares
    'v1'
    """

    def __init__(self, *lines: str | Code, declares: str = "") -> None:
        self.lines, self.declares = [code(line) for line in lines], declares


class Edge(KernelStatement):
    """The head of a block, its end, or the way out of it."""

    edge = True

    def __init__(self, line: Code, opens: int = 0) -> None:
        self.lines, self.opens = [line], opens


class Declaration(KernelStatement):
    """A new variable, and its value."""

    def __init__(self, name: str, kind: str, value: Code) -> None:
        self.declares, self.kind, self.value = name, kind, value
        self.assignment = code(Var(name), " = ", value, ";")
        self.lines = [code(TYPE[kind], " ", self.assignment)]

    def inputs(self) -> list[str]:
        """The variables of the round that the value is made of, in order."""
        return round_variables(self.value)

    @property
    def movable(self) -> bool:
        """Whether it may stand wherever its inputs are known: it reads no array."""
        return next(iter(self.elements()), None) is None


class Guarded(KernelStatement):
    """A number that is 0 unless the draw `gate` is not, and then what `branch` makes of it."""

    def __init__(self, name: str, gate: str, branch: list[Code]) -> None:
        self.declares, self.gate, self.branch = name, gate, branch

    @property
    def lines(self) -> list[Code]:  # type: ignore[override]
        return [code("double ", Var(self.declares), " = 0.0;"), *self.branch]


class Choice(KernelStatement):
    """A loop in two versions, one for each outcome of a test, and the statements that only one of them needs."""

    def __init__(self, test: Code, sides: tuple[list[Code], list[Code]]) -> None:
        self.test, self.sides = test, sides

    @property
    def lines(self) -> list[Code]:  # type: ignore[override]
        one, two = self.sides
        return [code("if (", self.test, ") {"), *one, code("} else {"), *two, code("}")]


class Definition(NamedTuple):
    """A variable of the round: its kind and what it is."""

    kind: str
    value: Code


def round_variables(value: Code) -> list[str]:
    """The variables of the round that code names, each once, in order."""
    return [name for name in dict.fromkeys(value.names()) if name.startswith("v")]


def long_parts(scalars: Mapping[str, Definition], name: str) -> list[str]:
    """The variables behind this one, and it, that come of exponentials or logarithms, in order; none where there are none."""
    if name not in scalars:
        return []
    parts: list[str] = []
    for other in round_variables(scalars[name].value):
        parts += [each for each in long_parts(scalars, other) if each not in parts]
    return [*parts, name] if parts or scalars[name].value.slow else []


def hoisted(statements: list[KernelStatement], name: str) -> list[KernelStatement]:
    """The statements, with the one that declares a number, and what goes into it, as early as can be."""
    statement = next((each for each in statements if each.declares == name), None)
    if not isinstance(statement, Declaration) or not statement.movable:
        return statements
    inputs = statement.inputs()
    for each in inputs:
        statements = hoisted(statements, each)
    others = [other for other in statements if other is not statement]
    after = max((i for i, other in enumerate(others) if other.declares in inputs), default=-1) + 1
    return [*others[:after], statement, *others[after:]]


def behind(statements: list[KernelStatement], name: str) -> set[str]:
    """The number, and those that go into it by single declarations."""
    reached, new = set(), {name}
    while new:
        reached |= new
        inputs = [each.inputs() for each in statements if isinstance(each, Declaration) and each.declares in new]
        new = {part for parts in inputs for part in parts} - reached
    return reached


def sunk(statements: list[KernelStatement]) -> list[KernelStatement]:
    """Statements that only one side of a choice needs, moved there."""
    for choice in [each for each in statements if isinstance(each, Choice)]:
        depth, start = 0, 0
        at = next(i for i, each in enumerate(statements) if each is choice)
        for i, each in enumerate(statements[:at]):
            depth += each.opens
            start = start if depth == 0 and not each.edge else i + 1
        for each in reversed(statements[start:at]):
            if not isinstance(each, Declaration) or not each.movable:
                continue
            needed = [any(each.declares in line.names() for line in side) for side in choice.sides]
            elsewhere = each.declares in choice.test.names() or any(
                each.declares in other.names() for other in statements if other is not each and other is not choice
            )
            if not elsewhere and needed.count(True) == 1:
                choice.sides[needed.index(True)].insert(0, each.lines[0])
                statements = [other for other in statements if other is not each]
    return statements


def remembered(
    statements: list[KernelStatement], scalars: Mapping[str, Definition], successors: Mapping[str, str], settings: set[str]
) -> tuple[list[Code], list[KernelStatement]]:
    """What long functions make of numbers of the state alone, the old or the new ones, is worked out again only when these change.

    `successors` has the variable that a state's number becomes; `settings` are variables that no round changes. The lines that come
    before the rounds, and the statements of a round.
    """
    numbers = {*successors, *successors.values()}
    closed: dict[str, set[str]] = {}  # what depends on these alone, and on which
    for name, (_, value) in scalars.items():
        parts = list(value.names())
        plain = name not in numbers and next(value.elements(), None) is None
        if plain and all(part in numbers | settings or part in closed for part in parts):
            closed[name] = {part for part in parts if part in numbers}.union(*(closed[part] for part in parts if part in closed))
    groups: list[set[str]] = []  # of what shares a number
    for name, keys in closed.items():
        if scalars[name].value.slow and keys:
            apart = [group for group in groups if not group & keys]
            groups = [*apart, keys.union(*(group for group in groups if group & keys))]
    lasting: list[Code] = []
    for keys in groups:
        memo: set[str] = set()
        for name in reversed(list(closed)):
            used = any(name in scalars[other].value.names() for other in memo)
            memo |= {name} if used or (closed[name] & keys and scalars[name].value.slow) else set()
        before, statements = _remember(statements, memo, sorted(keys))
        lasting += before
    return lasting, statements


def _remember(statements: list[KernelStatement], memo: set[str], keys: list[str]) -> tuple[list[Code], list[KernelStatement]]:
    """The statements that declare `memo` in a branch that is taken where a key is not what it was."""
    whole, moved = statements, [each for each in statements if isinstance(each, Declaration) and each.declares in memo]
    rest = [each for each in statements if each not in moved]
    # The numbers that it depends on come as early as they can, so that the branch does not part what could overlap.
    for key in keys:
        rest = hoisted(rest, key)
    after = max((i for i, each in enumerate(rest) if each.declares in keys), default=-1) + 1
    needed = {name for each in rest for name in each.names() if name in memo}
    if any(name in needed for each in rest[:after] for name in each.names()):
        return [], whole  # needed before the numbers are all known
    lines = [each.assignment if each.declares in needed else each.lines[0] for each in moved]
    lines += [code(f"{key}k = ", Var(key), ";") for key in keys]
    kinds = {each.declares: each.kind for each in moved}
    before = [code(f"{TYPE[kinds[name]]} {name};") for name in sorted(needed)] + [code(f"double {key}k = NAN;") for key in keys]
    stale = _either_of(code(Var(key), f" != {key}k") for key in keys)
    gates = [each for each in rest if isinstance(each, Guarded) and any(each.declares in behind(rest, key) for key in keys)]
    if len(gates) != 1:
        # Whole warps take the branch or do not: for a run that need not, it comes to the same.
        block = Unit(code("if (_any(", stale, ")) {"), *lines, "}")
        return before, [*rest[:after], block, *rest[after:]]
    return before, _with_gate(gates[0], rest, after, keys, stale, lines)


def _with_gate(
    gate: Guarded, statements: list[KernelStatement], after: int, keys: list[str], stale: Code, lines: list[Code]
) -> list[KernelStatement]:
    """One branch for both a gate and what is remembered.

    Whether the gate is closed, and the numbers then are what they were, is known when the round begins.
    """
    parts = set().union(*(behind(statements, key) for key in keys))
    chain = [
        each.lines[0]
        for each in statements[:after]
        if isinstance(each, Declaration) and each.declares in parts and gate.declares in behind(statements, each.declares)
    ]
    flag = f"{gate.declares}k"
    test = code("_any(", Var(gate.gate), " != 0.0 || ", stale, ")")
    first = Unit(f"bool {flag}; {{", code("const double ", Var(gate.declares), " = 0.0;"), *chain, code(f"{flag} = ", test, ";"), "}")
    gate.branch = [code(f"if ({flag}) {{"), *gate.branch, *chain, *lines, code("}")]
    return [first, *statements]


def _either_of(tests: Iterable[Code]) -> Code:
    first, *rest = tests
    return code(first, *(part for test in rest for part in (" || ", test)))
