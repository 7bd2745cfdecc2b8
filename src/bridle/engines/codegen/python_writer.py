"""How statements, loops and sums are spelled in Python, for a compiler of loops."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, ClassVar, TypeVar

import numpy as np

from bridle.engines.codegen.backend import Early, Shape, Value
from bridle.engines.codegen.equations import LANES, Equation
from bridle.engines.codegen.fuse import add_nest
from bridle.engines.codegen.lower import Writer
from bridle.engines.codegen.statements import (
    Access,
    CodeBlock,
    CodeLine,
    Expression,
    Item,
    Nest,
    Part,
    Statement,
    access,
    only_access,
    spell,
)

PythonValue = Value[Expression]
T = TypeVar("T")

_START = {"add": "0.0", "mul": "1.0", "max": "-np.inf", "min": "np.inf", "and": "True", "or": "False"}
_STEP = {"add": "{} + {}", "mul": "{} * {}", "max": "_max({}, {})", "min": "_min({}, {})", "and": "{} & {}", "or": "{} | {}"}
_TYPE = {"f": "np.float64", "i": "np.int64", "b": "np.bool_"}
_HEADS = {"when": "if {}:", "elsewhen": "elif {}:", "otherwise": "else:", "forever": "while True:", "repeat": "for {} in range({}):"}


class PythonWriter(Writer[Expression, Statement]):
    """Statements before the rounds and in them, and the arrays they need; up to `wide` runs have room in an array."""

    engine = "numba"
    quotient = "//"
    light = 1
    called: ClassVar[dict[str, str]] = {
        "max": "_max", "min": "_min", "sqrt": "math.sqrt", "exp": "math.exp", "log": "math.log", "log1p": "math.log1p",
        "expm1": "math.expm1", "tanh": "math.tanh", "abs": "abs", "floor": "np.floor", "ceil": "np.ceil", "sign": "np.sign",
        "is_finite": "math.isfinite", "logistic": "_logistic", "bitcast_convert_type": "_bits", "atan2": "math.atan2", "sin": "math.sin",
        "cos": "math.cos",
    }  # fmt: skip

    def __init__(self, wide: int = 1) -> None:
        super().__init__()
        self.wide = wide
        self.before: list[Item] = []
        self.body: list[Item] = []
        self.entry: list[Item] = []
        self.buffers: dict[str, CodeLine] = {}
        self.views: dict[str, CodeLine] = {}
        self.height = 0
        self.spare: int | None = None  # where the memory is free, if there is one
        self.lines = self.body
        self.outer: list[list[Item]] = []  # what the blocks around are written to

    def formula(
        self, name: str, params: dict[str, Any], operands: list[PythonValue], kind: str
    ) -> Callable[[list[Expression]], Expression] | None:
        if name == "exp" and math.prod(operands[0].shape) > 1:  # in a loop over the elements: several share its instructions
            return lambda parts: self.code("_exp({})", parts[0])
        return super().formula(name, params, operands, kind)

    # Statements

    def code(self, template: str, *parts: Part) -> Expression:
        return spell(template, *parts)

    def say(self, template: str, *parts: Part) -> None:
        """A line by itself."""
        self.lines.append(CodeLine(spell(template, *parts), self.origin))

    def begin(self, what: str, *details: Part) -> None:
        if what == "repeat":
            details = (details[0], span(details[1]) if isinstance(details[1], int) else details[1])
        self.open(_HEADS[what], *details)
        if "when" in what or what == "otherwise":
            self.lines.append(CodeLine(spell("pass")))

    def open(self, template: str, *parts: Part) -> None:
        """The head of a block."""
        block = CodeBlock(spell(template, *parts), [], self.origin)
        self.lines.append(block)
        self.outer.append(self.lines)
        self.lines = block.body

    def end(self) -> None:
        self.lines = self.outer.pop()

    def leave_unless(self, test: Expression) -> None:
        self.lines.append(CodeBlock(spell("if not {}:", test), [CodeLine(spell("break"))], self.origin))

    def only_if(self, test: Expression, statement: Statement) -> Statement:
        return Statement(statement.target, statement.value, test, statement.origin)

    def loop(self, shape: Sequence[int], statement: Callable[[list[Expression]], Statement]) -> None:
        """Axes of one element need no loop; those of none have one that does nothing."""
        order = laid_out(shape, range(len(shape)))
        loops = [axis for axis in order if shape[axis] != 1]
        at = [spell(f"i{loops.index(axis)}" if axis in loops else "0") for axis in range(len(shape))]
        add_nest(self.lines, Nest([span(shape[axis]) for axis in loops], statement(at)))

    in_order = loop

    @contextmanager
    def nested(self, shape: Sequence[int], index: str = "i", least: int = 2) -> Iterator[list[Expression]]:
        """Inside loops over these axes, the one over runs innermost; one element has no loop, and the index 0, unless `least` is 1."""
        loops = [axis for axis in laid_out(shape, range(len(shape))) if shape[axis] >= least or shape[axis] == 0]
        for axis in loops:
            self.begin("repeat", f"{index}{axis}", shape[axis])
        yield [spell(f"{index}{axis}" if axis in loops else "0") for axis in range(len(shape))]
        for _ in loops:
            self.end()

    def statement(self, target: Expression, value: Expression) -> Statement:
        """What is written to an element or a variable."""
        return Statement(only_access(target), value, None, self.origin)

    def store(self, target: PythonValue, at: Sequence[Expression], code: Expression) -> Statement:
        return self.statement(target.read(at), code)

    def buffer(self, shape: Sequence[int], kind: str) -> str:
        name = self.name("b")
        if LANES in shape and kind == "f":
            self.rows(name, shape)
        elif self.spare is not None and kind == "f":
            self.buffers[name] = CodeLine(spell("{} = {}", name, part_of_memory(self.spare, tuple(shape))))
            self.spare += math.prod(shape)
        else:
            sizes = ", ".join(map(span, laid_out(shape, shape)))
            self.buffers[name] = CodeLine(spell(f"{name} = np.empty(({sizes},), {_TYPE[kind]})"))
        return name

    def rows(self, name: str, shape: Sequence[int]) -> None:
        """Room for an array of several runs: rows of one table, so that the compiler can see that no two of them overlap."""
        inner = [size for size in shape if size != LANES]
        begin, self.height = self.height, self.height + math.prod(inner)
        if not inner:
            view = f"[{begin}]"
        else:
            view = f"[{begin}:{self.height}]" + (f".reshape(({', '.join(map(str, inner))}, {self.wide}))" if len(inner) > 1 else "")
        self.views[name] = CodeLine(spell(f"{name} = table{view}"))

    def variable(self, name: str, kind: str, code: Expression) -> None:
        add_nest(self.lines, Nest((), self.statement(access(name), code)))

    def variable_code(self, name: str) -> Expression:
        return access(name)

    def early(self, fixed: bool) -> AbstractContextManager[None]:
        return Early(self, fixed and self.lines is self.body)

    # Values

    def number(self, value: float, kind: str) -> str:
        value = {"f": float, "i": int, "b": bool}[kind](value)
        return repr(value) if math.isfinite(value) else "np.nan" if value != value else "np.inf" if value > 0 else "-np.inf"

    def named(self, name: str, shape: Shape, kind: str, fixed: bool) -> PythonValue:
        return Value(shape, kind, lambda at: access(name, *laid_out(shape, at)) if shape else access(name), True, fixed)

    def dealt(self, name: str, shape: Shape, kind: str) -> PythonValue:
        """A draw, which has a leading axis of time."""
        return Value(shape, kind, lambda at: access(name, "t", *laid_out(shape, at)), True, False)

    def is_own(self, value: PythonValue) -> bool:
        first = self.only(value).parts[0]
        return isinstance(first, Access) and first.name.startswith(("b", "v"))

    def fixed_array(self, array: np.ndarray) -> PythonValue:
        kind = {"f": "f", "i": "i", "u": "i", "b": "b"}[array.dtype.kind]
        if array.ndim == 0:
            return self.literal(array.item(), (), kind)
        if LANES in array.shape:
            raise self.refused("a table of one number for every run")
        name = self.name("b")
        self.entry.append(CodeLine(spell(f"{name} = np.array({array.tolist()!r})")))
        return self.named(name, array.shape, kind, True)

    def special(
        self, name: str, params: dict[str, Any], operands: list[PythonValue], kind: str
    ) -> Callable[[list[Expression]], Expression] | None:
        if name in ("pow", "rem"):
            return lambda parts: spell("({} {} {})", parts[0], "**" if name == "pow" else "%", parts[1])
        if name == "not":
            return lambda parts: spell("(not {})" if kind == "b" else "(~{})", parts[0])
        if name == "square":
            return lambda parts: spell("({}) ** 2", parts[0])
        if name == "rsqrt":
            return lambda parts: spell("(1.0 / math.sqrt({}))", parts[0])
        if name == "integer_pow":
            return lambda parts: spell("(({}) ** {})" if params["y"] > 0 else "(1.0 / ({}) ** {})", parts[0], abs(params["y"]))
        return None

    def converted(self, code: Expression, before: str, after: str) -> Expression:
        if before == after:
            return code
        if after == "b":
            return spell("({} != 0)", code)
        if before == "b":
            return spell("{}({})", "_real" if after == "f" else "_whole", code)
        return spell("{}({})", "float" if after == "f" else "int", code)

    # Operations with loops of their own

    def fold(self, step: str, value: PythonValue, axes: Sequence[int], shape: Shape, kind: str) -> PythonValue:
        start = spell("0" if kind == "i" and step == "add" else _START[step])
        inner = [value.shape[axis] for axis in axes]
        kept = [axis for axis in range(len(value.shape)) if axis not in axes]

        def element(outer: Sequence[Expression], index: Sequence[Expression]) -> Expression:
            here = dict(zip(kept, outer, strict=True)) | dict(zip(axes, index, strict=True))
            return value.read([here[axis] for axis in range(len(value.shape))])

        if math.prod(inner) == 1:  # there is nothing to add up
            return Value(shape, kind, lambda at: element(at, self.zeros(inner)), value.cheap, value.fixed)
        array = None if math.prod(shape) == 1 else self.new_array(shape, kind, value.fixed)
        total = access(self.name("v"))
        with self.early(value.fixed):
            if array is not None and LANES in shape:
                self.fold_runs(step, start, array, inner, element)
                return array
            with self.nested(shape, "k") as at:
                add_nest(self.lines, Nest((), self.statement(total, start)))
                self.loop(inner, lambda i: self.statement(total, spell(_STEP[step], total, element(at, i))))
                if array is not None:
                    self.loop((), lambda _: self.store(array, at, total))
        return array if array is not None else Value(shape, kind, lambda at: total, True, value.fixed)

    def fold_runs(
        self,
        step: str,
        start: Expression,
        array: PythonValue,
        inner: list[int],
        element: Callable[[Sequence[Expression], Sequence[Expression]], Expression],
    ) -> None:
        """Runs are added up side by side: each element of the sum is all runs' before the next is begun."""
        lane = array.shape.index(LANES)
        with self.nested([1 if axis == lane else size for axis, size in enumerate(array.shape)], "k") as at:

            def place(run: Expression) -> list[Expression]:
                return [*at[:lane], run, *at[lane + 1 :]]

            def add(i: list[Expression]) -> Statement:
                here = place(i[-1])
                return self.store(array, here, spell(_STEP[step], array.read(here), element(here, i[:-1])))

            self.loop([LANES], lambda run: self.store(array, place(run[0]), start))
            self.loop([*inner, LANES], add)

    def extreme(self, value: PythonValue, axis: int, shape: Shape, sign: str) -> PythonValue:
        array = self.new_array(shape, "i", False) if math.prod(shape) > 1 else None
        best, where = access(self.name("v")), access(self.name("v"))
        with self.nested(shape, "k") as at:
            first, element = (value.read([*at[:axis], spell(j), *at[axis:]]) for j in ("0", "j"))
            self.say("{} = {}", best, first)
            self.say("{} = 0", where)
            self.open("for j in range(1, {}):", value.shape[axis])
            self.open("if {} {} {}:", element, sign, best)
            self.say("{} = {}", best, element)
            self.say("{} = j", where)
            self.end()
            self.end()
            if array is not None:
                self.say("{} = {}", array.read(at), where)
        return array if array is not None else Value(shape, "i", lambda at: where, True, False)

    def running(self, array: PythonValue, axis: int, reverse: bool, step: str) -> None:
        shape = array.shape
        # The loop over the axis must not be left out, even where it has a single step.
        with self.nested([n - 1 if i == axis else n for i, n in enumerate(shape)], least=1) as at:
            here, last = list(at), list(at)
            here[axis] = spell("({} - {})", shape[axis] - 2, at[axis]) if reverse else spell("({} + 1)", at[axis])
            last[axis] = spell("({} - {})", shape[axis] - 1, at[axis]) if reverse else at[axis]
            self.say("{} = {}", array.read(here), spell(_STEP[step], array.read(last), array.read(here)))

    def do_sort(self, equation: Equation, operands: list[PythonValue], shape: Shape, kind: str, fixed: bool) -> list[PythonValue]:
        axis = equation.params["dimension"]
        if equation.params["num_keys"] != 1 or axis != len(shape) - 1:
            raise self.refused("'sort' of several keys or other than the last axis")
        if shape[-1] == 1:
            return list(operands)
        parts, order = [self.stored(value._replace(fixed=False)) for value in operands], access(self.name("b"))
        with self.nested(shape[:-1], least=1) as at:
            rows = [part.read([*at, spell(":")]) for part in parts]
            if len(rows) == 1:
                self.say("{} = np.sort({})", rows[0], rows[0])
            else:
                self.say("{} = np.argsort({}, kind='mergesort')", order, rows[0])
                for row in rows:
                    self.say("{} = {}[{}]", row, row, order)
        return parts

    def do_eigh(self, equation: Equation, operands: list[PythonValue], shape: Shape, kind: str, fixed: bool) -> list[PythonValue]:
        matrix = self.stored(operands[0]._replace(fixed=False))
        if matrix.shape[-1] == 1:
            ones = self.stored(Value(matrix.shape, "f", lambda at: spell("1.0"), False, False))
            return [ones, Value(matrix.shape[:-1], "f", lambda at: matrix.read([*at, spell("0")]), True, False)]
        vectors, values = (self.new_array(shape, "f", False) for shape in (matrix.shape, matrix.shape[:-1]))
        everything = spell(":")
        with self.nested(matrix.shape[:-2], least=1) as at:
            here, pair = matrix.read([*at, everything, everything]), access(self.name("v"))
            # XLA symmetrises first; only one triangle is read otherwise.
            self.say("{} = np.linalg.eigh(0.5 * ({} + {}.T))", pair, here, here)
            self.say("{} = {}[0]", values.read([*at, everything]), pair)
            self.say("{} = {}[1]", vectors.read([*at, everything, everything]), pair)
        return [vectors, values]


def span(size: int) -> str:
    """The length of an axis as it is written."""
    return "lanes" if size == LANES else str(size)


def laid_out(shape: Sequence[int], axes: Sequence[T]) -> list[T]:
    """What belongs to the axes of an array in the order they have in memory: the one over runs comes last."""
    return [each for size, each in zip(shape, axes, strict=True) if size != LANES] + [
        each for size, each in zip(shape, axes, strict=True) if size == LANES
    ]


def part_of_memory(begin: int, shape: Shape) -> str:
    """A part of the memory as an array of this shape."""
    if not shape:
        return f"memory[{begin}]"
    flat = f"memory[{begin}:{begin + math.prod(shape)}]"
    return flat if len(shape) == 1 else f"{flat}.reshape(({', '.join(map(str, shape))}))"
