"""Where the arrays of a kernel live, and where its lanes must wait for each other.

Both passes go by the elements that the statements read and write, once these are in order. An array is in the registers of the lanes that
hold its elements, and as far as others read it in shared memory too; or in shared memory alone, where lanes write what others hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeAlias

from bridle.engines.codegen.cuda_code import Code, Element, Own, code
from bridle.engines.codegen.cuda_layout import MatrixGrid, slots
from bridle.engines.codegen.cuda_schedule import Edge, KernelStatement
from bridle.engines.codegen.equations import Equation

UNROLL = 40
"""Loops of at most so many steps are written out by the compiler, so that arrays stay in registers."""

BARRIER = code("__syncwarp(mask);")


class KernelArray(NamedTuple):
    """An array of the kernel: "buffer", "state" or "constant"."""

    role: str
    size: int
    kind: str


class Home(NamedTuple):
    """Where an array is: in registers if `held`, and from element `low` to `high` in shared memory."""

    name: str
    held: bool
    low: int = 0
    high: int = 0
    whole: bool = False
    """Whether a lane has all of the array."""

    @property
    def shared(self) -> str:
        """What the array is called in shared memory."""
        return f"m{self.name}" if self.held and not self.whole else self.name

    def in_registers(self, element: Element) -> bool:
        """Whether a lane has this element in a register, and reads it there."""
        return isinstance(element.place, Own) and self.held and not self.whole

    def mirrors(self, element: Element) -> bool:
        """Whether what a lane writes to this element of its own goes to shared memory too."""
        own = element.place
        return self.held and self.high > self.low and isinstance(own, Own) and not (own.part == "grid" and own.size <= self.low)

    def spelled(self, element: Element, place: str) -> str:
        """The element in C; `place` is where it is in memory, if it is not the lane's own."""
        if not isinstance(element.place, Own):
            return f"{self.shared}[{place}]"
        if not self.in_registers(element):
            return f"{self.name}[e]"
        return f"{self.name}[s] = {self.shared}[e]" if element.written and self.mirrors(element) else f"{self.name}[s]"


Homes: TypeAlias = Mapping[str, Home]


def homes_of(
    arrays: Mapping[str, KernelArray], statements: Iterable[KernelStatement], lanes: int, grid: MatrixGrid | None
) -> dict[str, Home]:
    """Where every array is, given all that the statements read and write."""
    if lanes == 1:
        return {name: Home(name, array.role != "constant", whole=True) for name, array in arrays.items()}
    homes = {name: Home(name, True) for name in arrays}
    for element in (element for statement in statements for element in statement.elements()):
        if not isinstance(element.place, Own):
            name = element.array
            old, array = homes[name], arrays[name]
            # What comes after the grid is a piece of its own; all other arrays are in shared memory as a whole, if at all.
            after = grid.size if grid is not None and array.size == grid.whole else array.size
            low = after if element.window is not None and element.window[0] >= after and not 0 == old.low < old.high else 0
            loose = element.written or not old.held or array.role == "constant" or slots(array.size, lanes, grid) > UNROLL
            homes[name] = Home(name, not loose, 0 if loose else low, array.size)
    # A constant that is not held is read where it is, in global memory.
    return {name: Home(name, False) if not home.held and arrays[name].role == "constant" else home for name, home in homes.items()}


Note: TypeAlias = Callable[[Equation], str]
"""What a comment is to say about the statements of an equation."""


def synchronised(
    statements: Iterable[KernelStatement], arrays: Mapping[str, KernelArray], homes: Homes, lanes: int, note: Note | None = None
) -> list[Code]:
    """The lines of the statements, with the lanes brought together between accesses of different lanes to one array.

    With a `note`, statements of other equations than those before them begin with a comment.
    """
    lines: list[Code] = []
    comment = ""
    pending: set[tuple[str, bool, bool]] = set()  # what was read or written since: array, whether written, whether by its holder alone
    for statement in [*statements, Edge(code(""))]:
        uses = set()
        for element in statement.elements():
            home = homes[element.array]
            if not home.in_registers(element) or (element.written and home.mirrors(element)):
                alone = element.place == Own("all") and (home.held or arrays[element.array].size % lanes == 0)
                uses.add((element.array, element.written, alone))
        clash = any(a == b and (w or v) and not (mine and yours) for a, w, mine in uses for b, v, yours in pending)
        if clash or (statement.edge and pending):
            lines.append(BARRIER)
            pending = set()
        pending |= uses
        if note is not None and statement.origin is not None and comment != (comment := note(statement.origin)) and comment:
            lines.append(code(f"// {comment}"))
        lines += statement.lines
        if statement.edge and pending:
            lines.append(BARRIER)
            pending = set()
    return lines


def spelled(lines: Iterable[Code], homes: Homes) -> list[str]:
    """The lines as text."""

    def spell(element: Element) -> str:
        place = element.place.text(spell) if isinstance(element.place, Code) else ""
        return homes[element.array].spelled(element, place)

    return [line.text(spell) for line in lines]
