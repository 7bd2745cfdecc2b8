"""Which lane of a run holds which elements of an array.

Element e is held by lane e % lanes, in its place e // lanes. A short array is held by every group of as many lanes as it needs, so that a
sum over it ends in fewer steps; where elements run out, lanes hold the last one once more, so that no lane ever waits for others to do what
it does not. A vector that a round multiplies by another as a matrix is held by rows: some lanes share a row, and what is left of the vector
comes after it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from bridle.engines.codegen.cuda_code import ZERO, Code, Own, code
from bridle.engines.codegen.equations import Traced

ELEMENT = [code("e")]
ROW_AND_COLUMN = [code("row"), code("col")]
"""How the loops of a kernel call the element that they are about, and its row and column in the grid."""

SHARE = 20
"""Where runs are few, a lane takes up to so many elements of the widest array: fewer lanes exchange less, more wait less."""

BUSY = 128
"""From so many lanes to a multiprocessor on, what counts is how much all of them do, not how long one of them waits."""

HELD = 32
"""So many elements of an array can a lane hold in registers."""


def lanes_for(runs: int, widest: int, cores: int, matrix: bool = False) -> int:
    """How many lanes play a run whose widest array is so wide; as measured on an H200 (`benchmarks/gpu.py --lanes`).

    Every lane repeats the scalar work of a round, so fewer lanes do less in all; but each must hold its share of the widest array. Where
    the lanes share a matrix by its rows, a run of few has a whole warp.

    >>> lanes_for(30, 311, 132), lanes_for(30, 311, 132, True), lanes_for(256, 30, 132), lanes_for(65_536, 30, 132)
    (16, 32, 2, 1)
    """
    lanes = next(n for n in (1, 2, 4, 8, 16, 32) if n == 32 or (-(-widest // n) <= SHARE and not matrix))
    while lanes > 1 and runs * lanes > cores * BUSY and -(-widest // (lanes // 2)) <= HELD:
        lanes //= 2
    return lanes


def runs_of_block(runs: int, lanes: int, cores: int) -> int:
    """A block is a warp where runs are few, so that they spread over the chip, and up to four where they share what they read."""
    warps = -(-runs * lanes // 32)
    return 32 // lanes * max(1, min(4, warps // (2 * cores)))


class MatrixGrid(NamedTuple):
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

    own: Own | None
    """How the lane holds the element of a turn; None where it may hold another one."""
    indices: list[Code]
    sizes: list[int]
    first: int
    steps: int
    finds: list[str]
    counts: str
    """The C condition that is false for padding, an element held a second time; empty if there is none."""
    low: int
    high: int
    width: int
    first_held: str = ""
    """The C condition that is false for lanes all of whose elements are padding; empty if there are none."""
    guard: str = ""
    """The C condition that is false for turns beyond the last element; empty if there are none."""

    def guarded(self, lines: Sequence[str | Code]) -> list[str | Code]:
        """The lines, done only in the turns that are of an element."""
        return [f"if ({self.guard}) {{", *lines, "}"] if self.guard else list(lines)

    def holds(self, indices: list[Code], sizes: list[int], lanes: int, grid: MatrixGrid | None) -> bool:
        """Whether the lane that does an element in this loop holds the element with these indices of an array of these sizes."""
        if self.own is None:
            return False
        if self.own.part != "all":
            assert grid is not None
            return indices == (ELEMENT if len(sizes) == 1 else ROW_AND_COLUMN) and is_gridded(sizes, grid)
        size = math.prod(sizes)
        if (grid is not None and is_gridded(sizes, grid)) or indices != self.indices or sizes[1:] != self.sizes[1:]:
            return False
        return self.width in (lanes, spread(size, lanes))


def is_gridded(sizes: Sequence[int], grid: MatrixGrid) -> bool:
    """Whether an array of these sizes is held by the rows of the grid."""
    return list(sizes) in ([grid.whole], [grid.size], [grid.rows, grid.columns])


def spread(size: int, lanes: int) -> int:
    """Over how many lanes an array is spread: all, or the fewest that have a place for each element.

    >>> spread(311, 32), spread(10, 32), spread(17, 32)
    (32, 16, 32)
    """
    return min(lanes, 1 << max(size - 1, 0).bit_length())


def slots(size: int, lanes: int, grid: MatrixGrid | None) -> int:
    """How many elements a lane holds."""
    if grid is not None and size in (grid.whole, grid.size):
        return grid.steps + -(-(size - grid.size) // lanes)
    return -(-size // lanes)


def pieces(sizes: list[int], lanes: int, grid: MatrixGrid | None, alone: bool) -> list[Piece]:
    """The loops over an array of these sizes, all above 1; `alone` where no two lanes may do the same element."""
    if grid is not None and is_gridded(sizes, grid):
        finds = [f"const int col = {grid.column}, e = row * {grid.columns} + col;"]
        counts = grid.inside if grid.columns % grid.share else ""
        held = f"lane < {grid.rows * grid.share}" if grid.rows * grid.share < lanes else ""
        names = ROW_AND_COLUMN if len(sizes) == 2 else ELEMENT
        loops = [Piece(Own("grid", grid.size), names, sizes, 0, grid.steps, finds, counts, 0, grid.size, lanes, held)]
        rest = sizes[0] - grid.size if len(sizes) == 1 else 0
        if rest > 0:
            steps = -(-rest // lanes)
            place, test = _last(f"lane + {lanes} * (s - {grid.steps})", grid.steps, steps, rest, lanes)
            finds = [f"const int e = {grid.size} + {place};"]
            loops.append(Piece(Own("rest"), ELEMENT, sizes, grid.steps, steps, finds, test, grid.size, sizes[0], lanes))
        return loops
    size = math.prod(sizes)
    width = lanes if alone else spread(size, lanes)
    steps = -(-size // width)
    lane = "lane" if width == lanes else f"lane % {width}"
    place = "s" if lanes == 1 else lane if steps == 1 else f"{lane} + {width} * s"
    test = ""
    if not alone and size % width:
        place, test = _last(place, 0, steps, size, width)
    finds = [f"const int e = {place};"]
    for axis in range(len(sizes)):
        beyond = math.prod(sizes[axis + 1 :])
        index = f"e / {beyond}" if beyond > 1 else "e"
        finds.append(f"const int i{axis} = {index}{f' % {sizes[axis]}' if axis else ''};")
    names = [code(f"i{axis}") for axis in range(len(sizes))]
    guard = f"e < {size}" if alone and size % width else ""
    return [Piece(None if alone else Own("all"), names, sizes, 0, steps, finds, test, 0, size, width, guard=guard)]


def _last(place: str, first: int, steps: int, size: int, width: int) -> tuple[str, str]:
    """The place of an element, kept below `size` in the last step, and whether it was."""
    if size % width == 0:
        return place, ""
    if steps == 1:
        return f"min({place}, {size - 1})", f"{place} < {size}"
    before = f"s < {first + steps - 1}"
    return f"({before} ? {place} : min({place}, {size - 1}))", f"{before} || {place} < {size}"


def grid_of(traced: Traced, lanes: int) -> MatrixGrid | None:
    """The matrix that lies in the traced arguments and is multiplied by a vector, if there is one, and lanes for its rows."""
    jaxpr = traced.jaxpr
    source_of = {var: equation for equation in jaxpr.eqns for var in equation.outvars}
    for equation in jaxpr.eqns:
        if equation.primitive.name != "dot_general" or lanes == 1:
            continue
        (left, _), (batch, _) = equation.params["dimension_numbers"]
        matrix = equation.invars[0]
        if batch or tuple(left) != (1,) or hasattr(matrix, "val") or len(matrix.aval.shape) != 2 or len(equation.invars[1].aval.shape) != 1:
            continue
        source, begin = matrix, 0
        while (step := source_of.get(source)) is not None and step.primitive.name in ("reshape", "slice") and not begin:
            begin = step.params["start_indices"][0] if step.primitive.name == "slice" else 0
            source = step.invars[0]
        rows, columns = matrix.aval.shape
        if source in jaxpr.invars and not begin and len(source.aval.shape) == 1 and 1 < rows <= lanes and columns > 1:
            share = min(lanes // rows, columns)
            return MatrixGrid(rows, columns, source.aval.shape[0], share, -(-columns // share))
    return None


def unravel(name: str, shape: Sequence[int]) -> list[Code]:
    """The indices of element `name` of an array laid out row by row.

    >>> [index.parts for index in unravel("m", (4, 1, 3))]
    [('(m / 3)',), ('0',), ('(m % 3)',)]
    """
    wide, indices = [axis for axis, n in enumerate(shape) if n > 1], []
    for axis, n in enumerate(shape):
        beyond = math.prod(shape[axis + 1 :])
        text = f"{name} / {beyond}" if beyond > 1 else name
        indices.append(ZERO if n == 1 else code(text if len(wide) == 1 else f"({text}{f' % {n}' if axis != wide[0] else ''})"))
    return indices
