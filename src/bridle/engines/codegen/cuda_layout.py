"""Which lane of a run holds which elements of an array.

Element e is held by lane e % lanes, in its place e // lanes. A short array is held by every group of as many lanes as it needs, so that a
sum over it ends in fewer steps; where elements run out, lanes hold the last one once more, so that no lane ever waits for others to do what
it does not. A vector that a round multiplies by another as a matrix is held by rows: some lanes share a row, and what is left of the vector
comes after it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple


class Grid(NamedTuple):
    """A matrix that is the beginning of vectors of length `whole`: `share` lanes hold a row, each `steps` of its elements."""

    rows: int
    columns: int
    whole: int
    share: int
    steps: int

    @property
    def size(self) -> int:
        return self.rows * self.columns

    @property
    def column(self) -> str:
        """The column of a lane's element number s."""
        place = f"column + {self.share} * s"
        return f"(s < {self.steps - 1} ? {place} : min({place}, {self.columns - 1}))" if self.columns % self.share else f"({place})"

    @property
    def inside(self) -> str:
        """Whether element number s is the lane's own, not one held once more."""
        return f"(s < {self.steps - 1} || column + {self.share} * s < {self.columns})"

    def opening(self) -> list[str]:
        return [f"const int row = min(lane / {self.share}, {self.rows - 1}), column = lane % {self.share};"]


class Piece(NamedTuple):
    """A loop over elements that lanes hold in the same way: its indices, its steps, and what finds the element."""

    mark: str
    indices: list[str]
    sizes: list[int]
    first: int
    steps: int
    finds: list[str]
    counts: str
    """Which of a lane's elements count, where the last of them is another lane's too; empty where all do."""
    low: int
    high: int
    width: int
    first_held: str = ""
    """Which lanes' elements count, where whole lanes hold what others do."""
    guard: str = ""

    def guarded(self, lines: list[str]) -> list[str]:
        return [f"if ({self.guard}) {{", *lines, "}"] if self.guard else lines

    def holds(self, wide: list[tuple[str, int]], lanes: int, grid: Grid | None) -> bool:
        """Whether the lane that does an element in this loop holds the element with these indices of an array of these sizes."""
        names, sizes = [name for name, _ in wide], [size for _, size in wide]
        if not self.mark:
            return False
        if self.mark != "@":
            assert grid is not None
            return names == (["e"] if len(sizes) == 1 else ["row", "col"]) and is_gridded(sizes, grid)
        size = math.prod(sizes)
        if (grid is not None and is_gridded(sizes, grid)) or names != self.indices or sizes[1:] != self.sizes[1:]:
            return False
        return self.width in (lanes, spread(size, lanes))


def is_gridded(sizes: Sequence[int], grid: Grid) -> bool:
    """Whether an array of these sizes is held by the rows of the grid."""
    return list(sizes) in ([grid.whole], [grid.size], [grid.rows, grid.columns])


def spread(size: int, lanes: int) -> int:
    """Over how many lanes an array is spread: all, or the fewest that have a place for each element.

    >>> spread(311, 32), spread(10, 32), spread(17, 32)
    (32, 16, 32)
    """
    return min(lanes, 1 << max(size - 1, 0).bit_length())


def slots(size: int, lanes: int, grid: Grid | None) -> int:
    """How many elements a lane holds."""
    if grid is not None and size in (grid.whole, grid.size):
        return grid.steps + -(-(size - grid.size) // lanes)
    return -(-size // lanes)


def pieces(sizes: list[int], lanes: int, grid: Grid | None, alone: bool) -> list[Piece]:
    """The loops over an array of these sizes, all above 1; `alone` where no two lanes may do the same element."""
    if grid is not None and is_gridded(sizes, grid):
        finds = [f"const int col = {grid.column}, e = row * {grid.columns} + col;"]
        counts = grid.inside if grid.columns % grid.share else ""
        held = f"lane < {grid.rows * grid.share}" if grid.rows * grid.share < lanes else ""
        names = ["row", "col"] if len(sizes) == 2 else ["e"]
        made = [Piece(f"@0:{grid.size}", names, sizes, 0, grid.steps, finds, counts, 0, grid.size, lanes, held)]
        rest = sizes[0] - grid.size if len(sizes) == 1 else 0
        if rest > 0:
            steps = -(-rest // lanes)
            place, test = _last(f"lane + {lanes} * (s - {grid.steps})", grid.steps, steps, rest, lanes)
            finds = [f"const int e = {grid.size} + {place};"]
            made.append(Piece("@1", ["e"], sizes, grid.steps, steps, finds, test, grid.size, sizes[0], lanes))
        return made
    size = math.prod(sizes)
    width = lanes if alone else spread(size, lanes)
    steps = -(-size // width)
    lane = "lane" if width == lanes else f"lane % {width}"
    place = "s" if lanes == 1 else lane if steps == 1 else f"{lane} + {width} * s"
    test = ""
    if not alone and size % width:
        place, test = _last(place, 0, steps, size, width)
    names, finds = [f"i{axis}" for axis in range(len(sizes))], [f"const int e = {place};"]
    for axis, name in enumerate(names):
        beyond = math.prod(sizes[axis + 1 :])
        found = f"e / {beyond}" if beyond > 1 else "e"
        finds.append(f"const int {name} = {found}{f' % {sizes[axis]}' if axis else ''};")
    guard = f"e < {size}" if alone and size % width else ""
    return [Piece("" if alone else "@", names, sizes, 0, steps, finds, test, 0, size, width, guard=guard)]


def _last(place: str, first: int, steps: int, size: int, width: int) -> tuple[str, str]:
    """The place of an element, kept below `size` in the last step, and whether it was."""
    if size % width == 0:
        return place, ""
    if steps == 1:
        return f"min({place}, {size - 1})", f"{place} < {size}"
    before = f"s < {first + steps - 1}"
    return f"({before} ? {place} : min({place}, {size - 1}))", f"{before} || {place} < {size}"


def grid_of(traced: Any, lanes: int) -> Grid | None:
    """The matrix that lies in the traced arguments and is multiplied by a vector, if there is one, and lanes for its rows."""
    jaxpr = traced.jaxpr
    made = {var: equation for equation in jaxpr.eqns for var in equation.outvars}
    for equation in jaxpr.eqns:
        if equation.primitive.name != "dot_general" or lanes == 1:
            continue
        (left, _), (batch, _) = equation.params["dimension_numbers"]
        matrix = equation.invars[0]
        if batch or tuple(left) != (1,) or hasattr(matrix, "val") or len(matrix.aval.shape) != 2 or len(equation.invars[1].aval.shape) != 1:
            continue
        source, begin = matrix, 0
        while (step := made.get(source)) is not None and step.primitive.name in ("reshape", "slice") and not begin:
            begin = step.params["start_indices"][0] if step.primitive.name == "slice" else 0
            source = step.invars[0]
        rows, columns = matrix.aval.shape
        if source in jaxpr.invars and not begin and len(source.aval.shape) == 1 and 1 < rows <= lanes and columns > 1:
            share = min(lanes // rows, columns)
            return Grid(rows, columns, source.aval.shape[0], share, -(-columns // share))
    return None


def flat(shape: Sequence[int], at: Sequence[str]) -> str:
    """The place of an element in an array laid out row by row.

    >>> flat((4, 1, 3), ("i0", "0", "i2"))
    'i0 * 3 + i2'
    """
    parts = [
        i if (beyond := math.prod(shape[axis + 1 :])) == 1 else f"{i} * {beyond}"
        for axis, i in enumerate(at)
        if shape[axis] > 1 and i != "0"
    ]
    return " + ".join(parts) or "0"


def unravel(name: str, shape: Sequence[int]) -> list[str]:
    """The indices of element `name` of an array laid out row by row.

    >>> unravel("m", (4, 1, 3))
    ['(m / 3)', '0', '(m % 3)']
    """
    wide, made = [axis for axis, n in enumerate(shape) if n > 1], []
    for axis, n in enumerate(shape):
        beyond = math.prod(shape[axis + 1 :])
        code = f"{name} / {beyond}" if beyond > 1 else name
        made.append("0" if n == 1 else code if len(wide) == 1 else f"({code}{f' % {n}' if axis != wide[0] else ''})")
    return made
