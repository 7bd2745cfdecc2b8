"""What is written, as data: expressions, statements, loops and blocks. Text is made of them at the very end.

>>> x, v = (access(name, "i0") for name in ("a0", "a1"))
>>> step = Statement(only_access(access("b2", "i0")), spell("({} - {} * {})", x, access("v1"), v))
>>> step.text()
'b2[i0] = (a0[i0] - v1 * a1[i0])'
>>> sorted(step.reads), sorted(step.writes)
(['a0', 'a1', 'v1'], ['b2'])
>>> print(*printed([Nest(["30"], step)], 0), sep="\\n")
for i0 in range(30):
    b2[i0] = (a0[i0] - v1 * a1[i0])
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from bridle.engines.codegen.equations import Equation


@dataclass(frozen=True, slots=True)
class Access:
    """A variable, or the element of an array at an index."""

    name: str
    index: tuple[Expression, ...] = ()

    def text(self) -> str:
        return f"{self.name}[{', '.join(each.text() for each in self.index)}]" if self.index else self.name


@dataclass(frozen=True, slots=True)
class Expression:
    """Text with the accesses to variables and arrays that stand in it."""

    parts: tuple[str | Access, ...]

    def text(self) -> str:
        return "".join(part if isinstance(part, str) else part.text() for part in self.parts)

    def accesses(self) -> Iterator[Access]:
        """Every access, also those inside of others' indices."""
        for part in self.parts:
            if isinstance(part, Access):
                yield part
                for index in part.index:
                    yield from index.accesses()

    def without_index(self, name: str) -> Expression:
        """The expression where an array has become a variable."""
        return Expression(tuple(part if isinstance(part, str) else _without_index(part, name) for part in self.parts))


PARTS = 4
"""Sums are gathered in so many parts."""

Part: TypeAlias = str | int | Access | Expression
Place: TypeAlias = tuple[Expression, ...]
"""Where an element of an array is; empty for a variable."""

Origin: TypeAlias = Equation | int | None
"""Where a line comes from: an equation of the trace, an argument by its number, or neither."""


def spell(template: str, *parts: Part) -> Expression:
    """The template with parts in place of its ``{}``, one after the other.

    >>> spell("({} + {})", access("a0", "i0"), 1).parts
    ('(', Access(name='a0', index=(Expression(parts=('i0',)),)), ' + 1)')
    """
    first, *texts = template.split("{}")
    pieces: list[str | Access] = [first]
    for part, text in zip(parts, texts, strict=True):
        pieces += part.parts if isinstance(part, Expression) else [part if isinstance(part, Access) else str(part)]
        pieces.append(text)
    merged: list[str | Access] = []  # neighbouring texts are one, so that what reads the same is equal
    for piece in pieces:
        if isinstance(piece, str) and merged and isinstance(merged[-1], str):
            merged[-1] += piece
        elif piece != "":
            merged.append(piece)
    return Expression(tuple(merged))


def access(name: str, *index: Part) -> Expression:
    """A variable, or an element of an array, as an expression."""
    return Expression((Access(name, tuple(each if isinstance(each, Expression) else spell("{}", each) for each in index)),))


def only_access(expression: Expression) -> Access:
    """The access that an expression consists of."""
    (part,) = expression.parts
    assert isinstance(part, Access)
    return part


def _without_index(part: Access, name: str) -> Access:
    return Access(part.name, () if part.name == name else tuple(each.without_index(name) for each in part.index))


@dataclass(frozen=True)
class Statement:
    """``target = value``; where there is a `test`, done if it holds."""

    target: Access
    value: Expression
    test: Expression | None = None
    origin: Origin = None
    sums: Access | None = None
    """Where a sum over the first of the loops around it is gathered, in a few parts: see `Nest.in_parts`."""

    @cached_property
    def reads(self) -> dict[str, set[Place]]:
        """Where each variable and array is read. The place to write to may be looked up; what may stay as it is counts as read."""
        read = [each for index in self.target.index for each in index.accesses()]
        read += self.value.accesses()
        if self.test is not None:
            read += [*self.test.accesses(), self.target]
        found: dict[str, set[Place]] = {}
        for each in read:
            found.setdefault(each.name, set()).add(each.index)
        return found

    @cached_property
    def writes(self) -> dict[str, set[Place]]:
        """Where the one variable or array is written."""
        return {self.target.name: {self.target.index}}

    def without_index(self, name: str) -> Statement:
        """The statement where an array has become a variable."""
        test = None if self.test is None else self.test.without_index(name)
        return Statement(_without_index(self.target, name), self.value.without_index(name), test, self.origin, self.sums)

    def gathered(self, part: Expression) -> Statement:
        """The statement where what is summed up goes to one of the parts."""
        if self.sums is None:
            return self
        place = Access(self.sums.name, (part, *self.sums.index))
        parts = (place if each == self.target else each for each in self.value.parts)
        return Statement(place, Expression(tuple(parts)), self.test, self.origin)

    def text(self) -> str:
        plain = f"{self.target.text()} = {self.value.text()}"
        return plain if self.test is None else f"if {self.test.text()}: {plain}"


@dataclass(frozen=True)
class CodeLine:
    """A line that is neither moved nor joined to others."""

    code: Expression
    origin: Origin = None


class Nest:
    """Statements in the same loops, one inside the other: the loops' ranges, and what is read and written, and where."""

    def __init__(self, ranges: Sequence[str], *statements: Statement, first: int = 0) -> None:
        self.ranges, self.first = tuple(ranges), first
        self.indices = [spell(f"i{n}") for n in range(len(self.ranges))]
        self.statements: list[Statement] = []
        self.reads: dict[str, set[Place]] = {}
        self.writes: dict[str, set[Place]] = {}
        self.extend(statements)

    def extend(self, statements: Sequence[Statement]) -> None:
        """Let these statements follow those that are there, in the same loops."""
        self.statements += statements
        for statement in statements:
            for mine, theirs in ((self.reads, statement.reads), (self.writes, statement.writes)):
                for name, places in theirs.items():
                    mine.setdefault(name, set()).update(places)

    def places(self, name: str) -> set[Place]:
        """Where an array is read or written."""
        return self.reads.get(name, set()) | self.writes.get(name, set())

    def in_parts(self) -> list[Item]:
        """The nest where sums are gathered in `PARTS` parts: every one is of each so many-th element, and they are added at the end.

        So many additions need not wait for each other, and what a sum is does not depend on whether a processor does them at once.
        """
        inner, length = self.ranges[1:], int(self.ranges[0])
        whole, rest = divmod(length, PARTS)

        def nest(*statements: Statement) -> Item:
            return Nest(inner, *statements, first=1)

        def at(part: Expression) -> list[Statement]:
            return [each.gathered(part) for each in self.statements]

        part = spell("part")
        sums = [each for each in self.statements if each.sums is not None]
        clear = [Statement(each.gathered(part).target, spell("0.0"), origin=each.origin) for each in sums]
        total = [
            Statement(each.target, spell("{} + (({} + {}) + ({} + {}))", Expression((each.target,)), *parts), origin=each.origin)
            for each in sums
            for parts in [[Expression((each.gathered(spell(str(n))).target,)) for n in range(PARTS)]]
        ]
        place = CodeLine(spell(f"i0 = {PARTS} * block + part"))
        inside = CodeBlock(spell(f"for part in range({PARTS}):"), [place, nest(*at(part))])
        items: list[Item] = [CodeBlock(spell(f"for part in range({PARTS}):"), [nest(*clear)])]
        items.append(CodeBlock(spell(f"for block in range({whole}):"), [inside]))
        if rest:
            left = at(spell(f"(i0 - {length - rest})"))
            items.append(CodeBlock(spell(f"for i0 in range({length - rest}, {length}):"), [nest(*left)]))
        return [*items, nest(*total)]

    def covers(self, place: Place) -> bool:
        """Whether an index names every loop by itself, so that no two turns of the loops touch one element."""
        looked_up = any(each.index for part in place for each in part.accesses())
        return not looked_up and all(index in place for index in self.indices)


@dataclass
class CodeBlock:
    """Lines and loops under a head, such as a test."""

    head: Expression
    body: list[Item]
    origin: Origin = None


Item: TypeAlias = CodeLine | Nest | CodeBlock

Note: TypeAlias = Callable[[Origin], str]
"""What is to be said beside a line, given where it comes from."""


def with_parts(items: Sequence[Item]) -> list[Item]:
    """The items where nests that sum up do so in parts."""
    found: list[Item] = []
    for item in items:
        if isinstance(item, CodeBlock):
            found.append(CodeBlock(item.head, with_parts(item.body), item.origin))
        else:
            sums = isinstance(item, Nest) and any(each.sums is not None for each in item.statements)
            found += item.in_parts() if isinstance(item, Nest) and sums else [item]
    return found


def flattened(items: Sequence[Item]) -> Iterator[Expression | Nest]:
    """Every nest, line and head, in order."""
    for item in items:
        if isinstance(item, Nest):
            yield item
        elif isinstance(item, CodeLine):
            yield item.code
        else:
            yield item.head
            yield from flattened(item.body)


def printed(items: Sequence[Item], depth: int, note: Note | None = None) -> Iterator[str]:
    """The lines of text, indented so deep, each with a note where there is one."""
    for item in items:
        if isinstance(item, Nest):
            for n, size in enumerate(item.ranges):
                yield f"{'    ' * (depth + n)}for i{n + item.first} in range({size}):"
            for statement in item.statements:
                yield _noted("    " * (depth + len(item.ranges)) + statement.text(), statement.origin, note)
        elif isinstance(item, CodeLine):
            yield _noted("    " * depth + item.code.text(), item.origin, note)
        else:
            yield _noted("    " * depth + item.head.text(), item.origin, note)
            yield from printed(item.body, depth + 1, note)


def _noted(line: str, origin: Origin, note: Note | None) -> str:
    words = note(origin) if note is not None else ""
    return f"{line}  # {words}" if words else line
