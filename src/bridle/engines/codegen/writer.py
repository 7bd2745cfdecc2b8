"""One traced round, read as plain arithmetic and written down as statements.

JAX traces the game's round into a list of array operations, all of fixed shapes. A `Writer` goes through that list: scalars become
variables, arrays that are read more than once become buffers, all others are written into the loop that reads them, and what does not
depend on the round is done before the first one. No algorithm is known here, only arithmetic.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from bridle.engines.codegen.elementwise import formula, number
from bridle.engines.codegen.equations import LANES, Equation, Equations, Variable, kind_of, line_of
from bridle.engines.codegen.fuse import add_nest
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
from bridle.engines.round import CannotCompile

T = TypeVar("T")

Shape: TypeAlias = tuple[int, ...]

NESTED = {"jit", "pjit", "closed_call", "custom_jvp_call", "custom_vjp_call", "remat", "core_call"}
"""Operations that hold a traced function."""

_SAME = {"copy", "copy_p", "stop_gradient", "optimization_barrier", "reduce_precision", "sharding_constraint"}
_LIGHT = {"add", "sub", "mul", "neg"}
_TYPE = {"f": "np.float64", "i": "np.int64", "b": "np.bool_"}


class Value(NamedTuple):
    """An array or a scalar: how an element is written, given its indices.

    `cheap` where an element can be read again and again: it is a look-up, or an addition or product of look-ups, which is `light`; `fixed`
    where it is the same in every round; `origin` is the equation it came from.
    """

    shape: Shape
    kind: str  # "f", "i" or "b"
    read: Callable[[Sequence[Expression]], Expression]
    cheap: bool
    fixed: bool
    light: bool = False
    origin: Equation | None = None

    @property
    def single(self) -> bool:
        """Whether there is but one element."""
        return math.prod(self.shape) == 1

    @property
    def first(self) -> Expression:
        """The first element, or the one there is."""
        return self.read(zeros(self.shape))


class Operation(NamedTuple):
    """An operation of the trace without a formula: its operands; the shape and kind of its first result, and whether that is fixed."""

    equation: Equation
    operands: list[Value]
    shape: Shape
    kind: str
    fixed: bool

    @property
    def params(self) -> dict[str, Any]:
        """What the trace says of it."""
        params: dict[str, Any] = self.equation.params
        return params

    def value(self, read: Callable[[Sequence[Expression]], Expression], cheap: bool) -> Value:
        """Its result, element by element."""
        return Value(self.shape, self.kind, read, cheap, self.fixed)


class Writer:
    """Statements before the rounds and in them, and the arrays they need; up to `wide` runs have room in an array."""

    other_engine = "jax"
    """The engine to use instead where an operation is not known."""

    def __init__(self, wide: int = 1) -> None:
        self.wide = wide
        self.names = 0
        self.uses: Counter[Variable] = Counter()
        self.origin: Equation | None = None
        self.before: list[Item] = []
        self.body: list[Item] = []
        self.entry: list[Item] = []
        self.buffers: dict[str, CodeLine] = {}
        self.views: dict[str, CodeLine] = {}
        self.height = 0
        self.spare: int | None = None  # where the memory is free, if there is one
        self.lines = self.body

    def refused(self, operation: str) -> CannotCompile:
        """The error that says what is not known, where it comes from, and what to do."""
        line = "" if self.origin is None else line_of(self.origin)
        source = f"{line} traces to" if line else "this policy or problem traces to"
        return CannotCompile(f"the compiled engine does not know the operation {operation} that {source}; use engine {self.other_engine!r}")

    # Equations

    def count(self, jaxpr: Equations) -> None:
        """How often every variable is read."""
        for equation in jaxpr.eqns:
            self.uses.update(var for var in equation.invars if not hasattr(var, "val"))
        self.uses.update(var for var in jaxpr.outvars if not hasattr(var, "val"))

    def equations(self, jaxpr: Equations, known: dict[Variable, Value], origin: Equation | None = None) -> None:
        """Write down every equation; `known` gets the values of its variables. `origin` is the one that holds them all, if there is one."""
        outside = self.origin
        for equation in jaxpr.eqns:
            self.origin = origin or equation
            results = self.equation(equation, [self.value(var, known) for var in equation.invars])
            for var, value in zip(equation.outvars, results, strict=True):
                result = value if value.origin is not None else value._replace(origin=self.origin)
                known[var] = self.buffered(result) if self.uses[var] > 1 or result.single else result
        self.origin = outside

    def equation(self, equation: Equation, operands: list[Value]) -> list[Value]:
        """The results of one equation."""
        name, params, out = equation.primitive.name, equation.params, equation.outvars[0]
        shape, kind, fixed = tuple(out.aval.shape), kind_of(out), all(value.fixed for value in operands)
        if name in NESTED:
            return self.inline(params, operands, self.origin)  # JAX keeps such functions: their own lines are those of the first caller
        if name in _SAME:
            return list(operands)
        if (code := formula(name, params, operands[0].kind if operands else "", kind)) is not None:
            result = self.elementwise(code, operands, shape, kind, fixed)
            again = name in _LIGHT and all(value.cheap and not value.light for value in operands)
            return [result if result.single else result._replace(light=again, cheap=again)]
        method = getattr(self, f"do_{name.replace('-', '_')}", None)
        if method is None:
            raise self.refused(repr(name))
        made = method(Operation(equation, operands, shape, kind, fixed))
        return [made] if isinstance(made, Value) else list(made)

    def inline(self, params: dict[str, Any], operands: list[Value], origin: Equation | None = None) -> list[Value]:
        """The results of a traced function that an equation holds; `origin` where its own equations do not tell where they come from."""
        closed = next(params[key] for key in ("jaxpr", "call_jaxpr", "fun_jaxpr") if key in params)
        inner: Equations = getattr(closed, "jaxpr", closed)
        constants = [self.fixed_array(np.asarray(each)) for each in getattr(closed, "consts", ())]
        self.count(inner)
        known = dict(zip([*inner.constvars, *inner.invars], [*constants, *operands], strict=True))
        # What goes in was computed outside: what is read more than once in here must be cheap already.
        known = {var: self.buffered(value) if self.uses[var] > 1 else value for var, value in known.items()}
        self.equations(inner, known, origin)
        return [self.value(var, known) for var in inner.outvars]

    def elementwise(
        self, code: Callable[[list[Expression]], Expression], operands: list[Value], shape: Shape, kind: str, fixed: bool
    ) -> Value:
        """An operation on elements; operands have the shape of the result, or none at all, or a single element along some axis."""
        operands = [value if math.prod(value.shape) == math.prod(shape) else self.buffered(value) for value in operands]

        def read(at: Sequence[Expression]) -> Expression:
            fitted = [[i if n > 1 else spell("0") for i, n in zip(at, value.shape, strict=False)] for value in operands]
            return code([value.read(place) for value, place in zip(operands, fitted, strict=True)])

        if math.prod(shape) == 1:
            return self.scalar(read(zeros(shape)), shape, kind, fixed)
        return Value(shape, kind, read, False, fixed)

    # Statements

    def say(self, template: str, *parts: Part) -> None:
        """A line by itself."""
        self.lines.append(CodeLine(spell(template, *parts), self.origin))

    @contextmanager
    def block(self, template: str, *parts: Part) -> Iterator[None]:
        """Inside a block under this head."""
        block, outer = CodeBlock(spell(template, *parts), [], self.origin), self.lines
        outer.append(block)
        self.lines = block.body
        yield
        self.lines = outer

    @contextmanager
    def branch(self, template: str, *parts: Part) -> Iterator[None]:
        """Inside a block that may stay empty."""
        with self.block(template, *parts):
            self.lines.append(CodeLine(spell("pass")))
            yield

    @contextmanager
    def nested(self, shape: Sequence[int], index: str = "i", least: int = 2) -> Iterator[list[Expression]]:
        """Inside loops over these axes, the one over runs innermost; one element has no loop, and the index 0, unless `least` is 1."""
        loops = [axis for axis in laid_out(shape, range(len(shape))) if shape[axis] >= least or shape[axis] == 0]
        with ExitStack() as stack:
            for axis in loops:
                stack.enter_context(self.block("for {} in range({}):", f"{index}{axis}", span(shape[axis])))
            yield [spell(f"{index}{axis}" if axis in loops else "0") for axis in range(len(shape))]

    @contextmanager
    def early(self, fixed: bool) -> Iterator[None]:
        """Where statements go: before the rounds where they are the same in each, and no loop of the trace is being written."""
        outer = self.lines
        if fixed and outer is self.body:
            self.lines = self.before
        yield
        self.lines = outer

    def loop(self, shape: Sequence[int], statement: Callable[[list[Expression]], Statement]) -> None:
        """One statement for every index. Axes of one element need no loop; those of none have one that does nothing."""
        order = laid_out(shape, range(len(shape)))
        loops = [axis for axis in order if shape[axis] != 1]
        at = [spell(f"i{loops.index(axis)}" if axis in loops else "0") for axis in range(len(shape))]
        add_nest(self.lines, Nest([span(shape[axis]) for axis in loops], statement(at)))

    def statement(self, target: Expression, value: Expression, test: Expression | None = None, sums: Access | None = None) -> Statement:
        """What is written to an element or a variable; where there is a `test`, done if it holds; `sums` is where a sum is gathered."""
        return Statement(only_access(target), value, test, self.origin, sums)

    # Arrays and variables

    def name(self, kind: str) -> str:
        """A name that is not taken."""
        self.names += 1
        return f"{kind}{self.names}"

    def buffer(self, shape: Sequence[int], kind: str) -> str:
        """The name of a new array."""
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

    # Values

    def value(self, var: Variable, known: dict[Variable, Value]) -> Value:
        """The value of a variable of the trace, or of a number in it."""
        if hasattr(var, "val"):
            array = np.asarray(var.val)
            return literal(array.item(), tuple(array.shape), kind_of(var))
        return known[var]

    def fixed_array(self, array: np.ndarray) -> Value:
        """An array of numbers that the trace holds."""
        kind = {"f": "f", "i": "i", "u": "i", "b": "b"}[array.dtype.kind]
        if array.ndim == 0:
            return literal(array.item(), (), kind)
        if LANES in array.shape:
            raise self.refused("a table of one number for every run")
        name = self.name("b")
        self.entry.append(CodeLine(spell(f"{name} = np.array({array.tolist()!r})")))
        return named(name, array.shape, kind, True)

    def scalar(self, code: Expression, shape: Shape, kind: str, fixed: bool) -> Value:
        """A single element, in a variable of its own."""
        element = access(self.name("v"))
        with self.early(fixed):
            add_nest(self.lines, Nest((), self.statement(element, code)))
        return Value(shape, kind, lambda at: element, True, fixed)

    def new_array(self, shape: Shape, kind: str, fixed: bool) -> Value:
        """A buffer that nothing has been written to."""
        return named(self.buffer(shape, kind), shape, kind, fixed)

    def stored(self, value: Value) -> Value:
        """The value in a buffer or variable of its own."""
        outside, self.origin = self.origin, value.origin or self.origin
        if value.single:
            stored = self.scalar(value.first, value.shape, value.kind, value.fixed)
        else:
            stored = self.new_array(value.shape, value.kind, value.fixed)
            with self.early(value.fixed):
                self.loop(value.shape, lambda at: self.statement(stored.read(at), value.read(at)))
        self.origin = outside
        return stored._replace(origin=value.origin)

    def buffered(self, value: Value) -> Value:
        """The value itself if it is cheap, else in a buffer or variable: reading an element twice must not compute it twice."""
        return value if value.cheap else self.stored(value)

    def assign(self, target: Value, value: Value) -> None:
        """Every element of a buffer or variable takes the value's."""
        outside, self.origin = self.origin, value.origin or self.origin
        self.loop(target.shape, lambda at: self.statement(target.read(at), value.read(at)))
        self.origin = outside


def literal(value: float, shape: Shape, kind: str) -> Value:
    """A number of the trace."""
    text = number(value, kind)
    code = spell("({})" if text.startswith("-") else "{}", text)
    return Value(shape, kind, lambda at: code, True, True)


def named(name: str, shape: Shape, kind: str, fixed: bool) -> Value:
    """The elements of a buffer or an argument."""
    return Value(shape, kind, lambda at: access(name, *laid_out(shape, at)) if shape else access(name), True, fixed)


def is_own(value: Value) -> bool:
    """Whether the value is a buffer or variable of this round, not one that a state's new value may overwrite."""
    part = value.first.parts[0]
    return isinstance(part, Access) and part.name.startswith(("b", "v"))


def zeros(axes: Sequence[int]) -> list[Expression]:
    """The index of the first element."""
    return [spell("0")] * len(axes)


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
