"""Loops that have not been written out yet: statements are gathered into as few passes over their arrays as they may share.

A trace makes one statement of one loop at a time. Written out like that, every array goes to memory and comes back for each operation;
side by side in one loop, an element stays in a register from one to the next. A statement may join an earlier loop over the same ranges
where no element that one of them writes is another's business: whatever both touch, they touch at the same place, and nothing between
them in the source has to come first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_NAME = re.compile(r"\b([abnsv]\d+)\b(?=(\[[^\[\]]*\])?)")
"""A name, and ahead of it its index, which may name others; an index that is looked up itself counts as none."""


class Nest:
    """Statements in the same loops, one inside the other: which ranges they have, what is read and written, and where.

    >>> lines = [Nest(0, ["30"], "b1[i0] = a0[i0] * 2.0")]
    >>> place(lines, Nest(0, ["30"], "b2[i0] = b1[i0] + 1.0"))
    >>> place(lines, Nest(0, ["30"], "b3[i0] = b2[i0 + 1]"))
    >>> for line in lines:
    ...     print(line.text)
    for i0 in range(30):
        b1[i0] = a0[i0] * 2.0
        b2[i0] = b1[i0] + 1.0
    for i0 in range(30):
        b3[i0] = b2[i0 + 1]
    """

    def __init__(self, depth: int, ranges: Sequence[str], statement: str) -> None:
        self.depth, self.ranges, self.statements = depth, tuple(ranges), [statement]
        target, _, code = statement.partition(" = ")
        if target.startswith("if "):  # what may stay as it is counts as read
            test, _, target = target.partition(": ")
            code += f" {test} {target}"
        self.reads: dict[str, set[str]] = {}
        self.writes: dict[str, set[str]] = {}
        (name, index), *inner = _NAME.findall(target) or [(target.partition("][")[0], "")]
        self.writes[name] = {index}
        for name, index in [*inner, *_NAME.findall(code)]:  # the place to write to may be looked up too
            self.reads.setdefault(name, set()).add(index)

    def clashes(self, later: Nest) -> bool:
        """Whether the later statements must not come before these."""
        return bool(
            self.writes.keys() & later.reads.keys() or self.reads.keys() & later.writes.keys() or self.writes.keys() & later.writes.keys()
        )

    def takes(self, later: Nest) -> bool:
        """Whether the later statements may join these loops."""
        if self.depth != later.depth or self.ranges != later.ranges:
            return False
        if not self.ranges:
            return True
        indices = [f"i{n}" for n in range(len(self.ranges))]
        for name in (*self.writes, *later.writes):
            here, there = (part.reads.get(name, set()) | part.writes.get(name, set()) for part in (self, later))
            if not here or not there:
                continue
            places = here | there
            if len(places) > 1 or not _covers(next(iter(places)), indices):
                return False
        return True

    def private(self, name: str) -> bool:
        """Whether an array that only these statements know is written before it is read in every turn of the loops, at one place."""
        places = self.reads.get(name, set()) | self.writes.get(name, set())
        if not self.ranges or len(places) != 1 or not _covers(next(iter(places)), [f"i{n}" for n in range(len(self.ranges))]):
            return False
        first = next(statement for statement in self.statements if re.search(rf"\b{name}\b", statement))
        target, _, code = first.partition(" = ")
        return target.startswith(f"{name}[") and not re.search(rf"\b{name}\b", code)

    def join(self, later: Nest) -> None:
        """Let the later statements follow these in the same loops."""
        self.statements += later.statements
        for mine, theirs in ((self.reads, later.reads), (self.writes, later.writes)):
            for name, places in theirs.items():
                mine[name] = mine.get(name, set()) | places

    @property
    def text(self) -> str:
        """The loops, written out."""
        heads = [f"{'    ' * (self.depth + n)}for i{n} in range({size}):" for n, size in enumerate(self.ranges)]
        inside = "    " * (self.depth + len(self.ranges))
        return "\n".join([*heads, *(inside + statement for statement in self.statements)])


def _covers(place: str, indices: list[str]) -> bool:
    """Whether an index names every loop by itself, so that no two turns of the loops touch one element."""
    return set(indices) <= {part.strip() for part in place.strip("[]").split(",")}


def place(lines: list[str | Nest], new: Nest) -> None:
    """Put new statements into the earliest loops that may take them and that nothing keeps them from, or at the end."""
    found = None
    for nest in reversed(lines):
        if isinstance(nest, str):
            break
        if nest.takes(new):
            found = nest
        if nest.clashes(new):
            break
    if found is None:
        lines.append(new)
    else:
        found.join(new)


def contract(lines: Sequence[str | Nest]) -> set[str]:
    """Make variables of the arrays whose elements are read nowhere but in the very turn of a loop that wrote them; which ones they were.

    >>> lines = [Nest(0, ["30"], "b1[i0] = a0[i0] * 2.0")]
    >>> place(lines, Nest(0, ["30"], "a1[i0] = b1[i0] + 1.0"))
    >>> contract(lines), lines[0].statements
    ({'b1'}, ['b1 = a0[i0] * 2.0', 'a1[i0] = b1 + 1.0'])
    """
    where: dict[str, list[str | Nest]] = {}
    for line in lines:
        text = line if isinstance(line, str) else "\n".join(line.statements)
        for name in {name for name, _ in _NAME.findall(text) if name.startswith("b")}:
            where.setdefault(name, []).append(line)
    found = set()
    for name, places in where.items():
        nest = places[0]
        if len(places) == 1 and isinstance(nest, Nest) and nest.private(name):
            found.add(name)
            nest.statements = [re.sub(rf"\b{name}\[[^\[\]]*\]", name, statement) for statement in nest.statements]
    return found
