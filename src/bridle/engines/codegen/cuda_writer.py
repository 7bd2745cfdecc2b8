"""The statements of a kernel, written from the equations of a traced round: how loops, variables and arrays are put in CUDA C.

Scalars are variables that every lane holds. `cuda_layout` says which lane holds which elements of an array; code names elements without
saying where they live (`cuda_code`), which `cuda_memory` decides when all statements are known. Sums and sorts are in `cuda_folds`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from bridle.engines.codegen.backend import Early, Shape, Value
from bridle.engines.codegen.cuda_code import TYPE, ZERO, Code, Element, Own, Var, code, filled, flat, written
from bridle.engines.codegen.cuda_layout import ELEMENT, ROW_AND_COLUMN, MatrixGrid, Piece, pieces
from bridle.engines.codegen.cuda_memory import UNROLL, KernelArray
from bridle.engines.codegen.cuda_schedule import Declaration, Definition, Edge, KernelStatement, Unit
from bridle.engines.codegen.equations import Equation
from bridle.engines.codegen.lower import Writer

Lines = list[str | Code]

_HEAD = {"when": "if ({}) {", "elsewhen": "else if ({}) {", "otherwise": "else {", "forever": "while (true) {"}


class CudaWriter(Writer[Code, Code]):
    """Statements before the rounds, at the top of a round, and in it."""

    engine = "cuda"
    quotient = "/"
    called: ClassVar[dict[str, str]] = {
        "max": "_max", "min": "_min", "abs": "_abs", "sign": "_sign", "is_finite": "_finite", "logistic": "_logistic",
        "bitcast_convert_type": "__double_as_longlong", "pow": "pow", "square": "_square", "sqrt": "_root", "exp": "_exp",
        "log1p": "_log1p",
    } | {name: name for name in ("log", "expm1", "tanh", "floor", "ceil", "atan2", "sin", "cos")}  # fmt: skip

    def __init__(self, lanes: int, runs: int, grid: MatrixGrid | None) -> None:
        super().__init__()
        self.lanes, self.runs, self.grid = lanes, runs, grid
        self.piece: Piece | None = None  # the loop over elements that is being written
        self.window: tuple[int, int] | None = None  # the part of an array that is being read
        self.arrays: dict[str, KernelArray] = {}
        self.array_reads: set[Callable[[Sequence[Code]], Code]] = set()  # how whole arrays are read
        self.state_reads: set[Callable[[Sequence[Code]], Code]] = set()
        self.scalars: dict[str, Definition] = {}
        self.fixed_scalars: dict[str, Code] = {}
        self.drawn: set[str] = set()  # numbers that come of the round's draw alone
        self.tables: list[str] = []
        self.before: list[KernelStatement] = []
        self.top: list[KernelStatement] = []
        self.body: list[KernelStatement] = []
        self.lines, self.depth = self.body, 0
        self.diverges = False

    # Code

    def code(self, template: str, *parts: Code | str | int) -> Code:
        return filled(template, *parts)

    def variable_code(self, name: str) -> Code:
        return code(Var(name))

    @property
    def in_round(self) -> bool:
        """Whether what is written now is done in every round, and not in a loop or branch of the trace."""
        return self.lines is self.body and self.depth == 0

    # Statements

    def add(self, statement: KernelStatement, origin: Equation | None = None) -> None:
        """Write a statement down, for the equation at hand unless it is for another one."""
        statement.origin = origin or self.origin
        self.lines.append(statement)

    def unit(self, *lines: str | Code, declares: str = "") -> None:
        """Lines that belong together, as one statement."""
        self.add(Unit(*lines, declares=declares))

    def begin(self, what: str, *details: Code | str | int) -> None:
        if what == "repeat":
            name, count = details
            head = code(f"for (int {name} = 0; {name} < {count}; ++{name}) {{")
        else:
            self.diverges = True
            head = filled(_HEAD[what], *details)
        self.add(Edge(head, 1))
        self.depth += 1

    def end(self) -> None:
        self.add(Edge(code("}"), -1))
        self.depth -= 1

    def leave_unless(self, test: Code) -> None:
        self.add(Edge(code("if (!(", test, ")) break;")))

    def only_if(self, test: Code, statement: Code) -> Code:
        return code("if (", test, ") ", statement)

    def loop(self, shape: Sequence[int], statement: Callable[[list[Code]], Code]) -> None:
        if math.prod(shape) == 1:
            self.unit(code(statement(self.zeros(shape)), ";"))
        else:
            self.unit(*self.each(shape, lambda at: [code(statement(at), ";")]))

    def each(
        self,
        shape: Sequence[int],
        statements: Callable[[list[Code]], Lines],
        alone: bool = False,
        after: Callable[[Piece], Lines] = lambda piece: [],
    ) -> Lines:
        """Every lane does the elements that it holds: number s of its own is element e of all. `alone` where no two may do the same."""
        lines: Lines = []
        outside = self.piece
        wide = [axis for axis, n in enumerate(shape) if n > 1]
        for piece in pieces([shape[axis] for axis in wide], self.lanes, None if alone else self.grid, alone):
            at = self.zeros(shape)
            for axis, name in zip(wide, piece.indices, strict=True):
                at[axis] = name
            self.piece = piece
            inside = [*piece.finds, *piece.guarded(statements(at))]
            head = (
                [self.pragma(piece.steps), f"for (int s = {piece.first}; s < {piece.first + piece.steps}; ++s) {{"]
                if piece.steps > 1
                else [f"{{ const int s = {piece.first};"]
            )
            lines += [*head, *inside, "}", *after(piece)]
        self.piece = outside
        return lines

    def pragma(self, steps: int) -> str:
        """How far the compiler is to write out a loop of so many steps."""
        return "#pragma unroll" if steps <= UNROLL else "#pragma unroll 4"

    def in_order(self, shape: Sequence[int], statement: Callable[[list[Code]], Code]) -> None:
        at = [code(f"i{axis}") if n > 1 else ZERO for axis, n in enumerate(shape)]
        heads = [f"for (int i{axis} = 0; i{axis} < {n}; ++i{axis})" for axis, n in enumerate(shape) if n > 1]
        self.unit("if (lane == 0)", *heads, "{", code(statement(at), ";"), "}")

    def store(self, target: Value[Code], at: Sequence[Code], element: Code) -> Code:
        return code(written(target.read(at)), " = ", element)

    def buffer(self, shape: Sequence[int], kind: str) -> str:
        name = self.name("b")
        self.arrays[name] = KernelArray("buffer", math.prod(shape), kind)
        return name

    def variable(self, name: str, kind: str, element: Code) -> None:
        if self.lines is self.before:
            self.fixed_scalars[name] = element
        if self.in_round:
            self.scalars[name] = Definition(kind, element)
            names = list(element.names())
            if kind == "f" and names and all(each in self.drawn for each in names) and next(element.elements(), None) is None:
                self.drawn.add(name)
        self.add(Declaration(name, kind, element))

    def early(self, fixed: bool) -> AbstractContextManager[None]:
        return Early(self, fixed and self.in_round)

    # Values

    def number(self, value: float, kind: str) -> str:
        if kind == "b":
            return "true" if value else "false"
        if kind == "i":
            return f"{int(value)}LL"
        return repr(float(value)) if math.isfinite(value) else "NAN" if value != value else "INFINITY" if value > 0 else "-INFINITY"

    def literal(self, number: float, shape: Shape, kind: str) -> Value[Code]:
        value = super().literal(number, shape, kind)
        element = replace(self.only(value), number=float(number) if kind == "f" else None)
        return value._replace(read=lambda at: element)

    def named(self, name: str, shape: Shape, kind: str, fixed: bool) -> Value[Code]:
        if math.prod(shape) == 1 and name not in self.arrays:
            element = code(Var(name))
            return Value(shape, kind, lambda at: element, True, fixed)
        array = Value(shape, kind, lambda at: code(Element(name, self.place(shape, at), self.window)), True, fixed)
        self.array_reads.add(array.read)
        return array

    def place(self, shape: Sequence[int], at: Sequence[Code]) -> Code | Own:
        """Where an element is in an array, or that it is the very one that the loop around is about, and the lane holds it."""
        wide = [axis for axis, n in enumerate(shape) if n > 1]
        piece, indices, sizes = self.piece, [at[axis] for axis in wide], [shape[axis] for axis in wide]
        if piece is not None and piece.own is not None and piece.holds(indices, sizes, self.lanes, self.grid):
            return piece.own
        return flat(shape, at)

    def own(self, name: str, is_written: bool = False) -> Element:
        """The element of an array that the loop around is about."""
        assert self.piece is not None
        assert self.piece.own is not None
        return Element(name, self.piece.own, None, is_written)

    def is_own(self, value: Value[Code]) -> bool:
        first = self.only(value).parts[0]
        name = first.name if isinstance(first, Var) else first.array if isinstance(first, Element) else ""
        return name.startswith(("b", "v"))

    def fixed_array(self, array: np.ndarray) -> Value[Code]:
        kind = {"f": "f", "i": "i", "u": "i", "b": "b"}[array.dtype.kind]
        if array.ndim == 0:
            return self.literal(array.item(), (), kind)
        name, shape = self.name("c"), array.shape
        numbers = ", ".join(self.number(each, kind) for each in array.reshape(-1).tolist())
        self.tables.append(f"static __device__ const {TYPE[kind]} {name}[] = {{{numbers}}};")
        return Value(shape, kind, lambda at: code(Var(name), "[", flat(shape, at), "]"), True, True)

    def do_slice(self, equation: Equation, operands: list[Value[Code]], shape: Shape, kind: str, fixed: bool) -> list[Value[Code]]:
        """Which part of an array is read is noted: others than its holders need no more of it."""
        part, array = super().do_slice(equation, operands, shape, kind, fixed)[0], operands[0]
        if len(shape) != 1 or array.read not in self.array_reads:
            return [part]
        start, limit = (equation.params[name][0] for name in ("start_indices", "limit_indices"))

        def read(at: Sequence[Code]) -> Code:
            outside, self.window = self.window, (start, limit)
            element = part.read(at)
            self.window = outside
            return element

        noted = part._replace(read=read)
        if self.grid and array.read in self.state_reads and array.shape == (self.grid.whole,) and self.grid.size <= start:
            # What a round begins with is read before it writes anything, so that nobody waits for it.
            outside, self.lines = self.lines, self.top
            noted = self.stored(noted)
            self.lines = outside
        return [noted]

    def do_reshape(self, equation: Equation, operands: list[Value[Code]], shape: Shape, kind: str, fixed: bool) -> list[Value[Code]]:
        """Between the rows and columns of the grid and the vector they lie in, the element stays the same."""
        reshaped, value, grid = super().do_reshape(equation, operands, shape, kind, fixed)[0], operands[0], self.grid
        new, old = ([(axis, n) for axis, n in enumerate(axes) if n > 1] for axes in (shape, value.shape))
        if grid is None or {tuple(n for _, n in axes) for axes in (new, old)} != {(grid.rows, grid.columns), (grid.rows * grid.columns,)}:
            return [reshaped]
        here, there = (ROW_AND_COLUMN, ELEMENT) if len(new) == 2 else (ELEMENT, ROW_AND_COLUMN)

        def read(at: Sequence[Code]) -> Code:
            if [at[axis] for axis, _ in new] != here:
                return reshaped.read(at)
            place = self.zeros(value.shape)
            for (axis, _), name in zip(old, there, strict=True):
                place[axis] = name
            return value.read(place)

        return [reshaped._replace(read=read)]

    def do_concatenate(self, equation: Equation, operands: list[Value[Code]], shape: Shape, kind: str, fixed: bool) -> list[Value[Code]]:
        """Read off the parts in place, so that an element is made by the lane that owns it."""
        axis, parts = equation.params["dimension"], [self.buffered(value) for value in operands]

        def read(at: Sequence[Code]) -> Code:
            element: Code | None = None
            end = shape[axis]
            low, high = (self.piece.low, self.piece.high) if self.piece and at[axis] == self.piece.indices[0] else (0, end)
            for part in reversed(parts):
                size = part.shape[axis]
                start = end - size
                if start < high and low < end:
                    inside = filled("({} - {})", at[axis], start)
                    if size == 1:
                        inside = ZERO
                    elif self.lanes > 1:
                        inside = filled("_kept({} - {}, {})", at[axis], start, size - 1)
                    here = part.read([inside if i == axis and start else each for i, each in enumerate(at)])
                    # Where both are there to be read, reading both is faster than a branch.
                    both = kind == "f" and self.lanes > 1 and start > 0
                    choice = "_either({} < {}, {}, {})" if both else "({} < {} ? {} : {})"
                    element = here if element is None else filled(choice, at[axis], end, here, element)
                end = start
            assert element is not None
            return element

        return [Value(shape, kind, read, False, fixed)]

    # One element at a time

    def special(self, name: str, params: dict[str, Any], operands: list[Value[Code]], kind: str) -> Callable[[list[Code]], Code] | None:
        if name == "rem":
            return lambda parts: filled("fmod({}, {})" if kind == "f" else "({} % {})", *parts)
        if name == "not":
            return lambda parts: filled("(!{})" if kind == "b" else "(~{})", *parts)
        if name == "rsqrt":
            return lambda parts: filled("_over(1.0, _root({}))", *parts)
        if name == "integer_pow":
            y = params["y"]
            return lambda parts: filled("_power<{}>({})" if y > 0 else "_over(1.0, _power<{}>({}))", abs(y), *parts)
        return None

    def converted(self, element: Code, before: str, after: str) -> Code:
        if after == "b":
            return element if before == "b" else filled("({} != 0)", element)
        if before == "b" and after == "f":
            return filled("_real({})", element)
        return element if before == after == "f" else filled("(({}){})", TYPE[after], element)
