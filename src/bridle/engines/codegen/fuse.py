"""Loops that have not been written out yet: statements are gathered into as few passes over their arrays as they may share.

A trace makes one statement of one loop at a time. Written out like that, every array goes to memory and comes back for each operation;
side by side in one loop, an element stays in a register from one to the next. A statement may join an earlier loop over the same ranges
where no element that one of them writes is another's business: whatever both touch, they touch at the same place, and nothing between
them in the source has to come first.

>>> from bridle.engines.codegen.statements import access, only_access, printed, spell
>>> def assign(target, template, *parts):
...     return Nest(["30"], Statement(only_access(access(target, "i0")), spell(template, *parts)))
>>> items = []
>>> add_nest(items, assign("b1", "{} * 2.0", access("a0", "i0")))
>>> add_nest(items, assign("b2", "{} + 1.0", access("b1", "i0")))
>>> add_nest(items, assign("a1", "{}", access("b2", "i0 + 1")))
>>> print(*printed(items, 0), sep="\\n")
for i0 in range(30):
    b1[i0] = a0[i0] * 2.0
    b2[i0] = b1[i0] + 1.0
for i0 in range(30):
    a1[i0] = b2[i0 + 1]
>>> sorted(contract(items))  # b2 is read in another loop
['b1']
>>> print(items[0].statements[1].text())
b2[i0] = b1 + 1.0
"""

from __future__ import annotations

from collections.abc import Sequence

from bridle.engines.codegen.statements import Expression, Item, Nest, Statement, flattened


def add_nest(items: list[Item], new: Nest) -> None:
    """Put new statements into the earliest loops that may take them and that nothing keeps them from, or at the end."""
    home = None
    for nest in reversed(items):
        if not isinstance(nest, Nest):
            break
        if may_join(nest, new):
            home = nest
        if must_follow(nest, new):
            break
    if home is None:
        items.append(new)
    else:
        home.extend(new.statements)


def must_follow(nest: Nest, later: Nest) -> bool:
    """Whether the later statements must not come before these."""
    return bool(
        nest.writes.keys() & later.reads.keys() or nest.reads.keys() & later.writes.keys() or nest.writes.keys() & later.writes.keys()
    )


def may_join(nest: Nest, later: Nest) -> bool:
    """Whether the later statements may join these loops."""
    if nest.ranges != later.ranges:
        return False
    if not nest.ranges:
        return True
    for name in (*nest.writes, *later.writes):
        here, there = nest.places(name), later.places(name)
        if here and there and (len(here | there) > 1 or not nest.covers(next(iter(here)))):
            return False
    return True


def contract(items: Sequence[Item]) -> set[str]:
    """Make variables of the arrays whose elements are read nowhere but in the very turn of a loop that wrote them; which ones they were."""
    users: dict[str, list[Expression | Nest]] = {}
    for item in flattened(items):
        names = {*item.reads, *item.writes} if isinstance(item, Nest) else {each.name for each in item.accesses()}
        for name in names:
            if name.startswith("b"):
                users.setdefault(name, []).append(item)
    contracted = set()
    for name, (first, *others) in users.items():
        if isinstance(first, Nest) and not others and _private(first, name):
            contracted.add(name)
            first.statements = [statement.without_index(name) for statement in first.statements]
    return contracted


def _private(nest: Nest, name: str) -> bool:
    """Whether an array that only these statements know is written before it is read in every turn of the loops, at one place."""
    places = nest.places(name)
    if not nest.ranges or len(places) != 1 or not nest.covers(next(iter(places))):
        return False
    first: Statement = next(each for each in nest.statements if name in each.reads or name in each.writes)
    return name in first.writes and name not in first.reads
