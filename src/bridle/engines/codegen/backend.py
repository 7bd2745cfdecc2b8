"""What a back end of the lowering defines (how its language spells statements, loops and sums), and the values it works on."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from bridle.core import InputError
from bridle.engines.codegen.equations import Equation, Equations, Variable, kind_of, line_of

C = TypeVar("C")
"""The code of an element in a back end."""
S = TypeVar("S")
"""A statement in a back end."""
I = TypeVar("I")
"""What a list of statements holds."""

Shape = tuple[int, ...]


class Value(NamedTuple, Generic[C]):
    """An array or a scalar: how an element is written, given its indices.

    `cheap` where that is little more than a look-up; `fixed` where it is the same in every round; `weight` is how many operations it takes;
    `origin` is the equation it came from.
    """

    shape: Shape
    kind: str  # "f", "i" or "b"
    read: Callable[[Sequence[C]], C]
    cheap: bool
    fixed: bool
    weight: int = 0
    origin: Equation | None = None

    @property
    def single(self) -> bool:
        """Whether there is but one element."""
        return math.prod(self.shape) == 1


class BackEnd(ABC, Generic[C, S]):
    """The source as it grows: the hooks of a language, and how values get variables and buffers of their own."""

    engine: str
    other_engine = "jax"
    """The engine to use instead where an operation is not known."""
    called: ClassVar[dict[str, str]]
    """The functions of one element or two, by the name of the traced operation."""
    quotient: str
    """Division of whole numbers, rounded down."""
    light: ClassVar[int] = 0
    """So many additions or products are done again rather than kept in a buffer."""

    def __init__(self) -> None:
        self.names = 0
        self.uses: Counter[Variable] = Counter()
        self.origin: Equation | None = None

    def refused(self, operation: str) -> InputError:
        """The error that says what is not known, where it comes from, and what to do."""
        line = "" if self.origin is None else line_of(self.origin)
        source = f"{line} traces to" if line else "this policy or problem traces to"
        return InputError(
            f"the {self.engine} engine does not know the operation {operation} that {source}; use engine {self.other_engine!r}"
        )

    # What a back end defines

    @abstractmethod
    def code(self, template: str, *parts: C | str | int) -> C:
        """The template with parts in place of its ``{}``."""

    @abstractmethod
    def number(self, value: float, kind: str) -> str:
        """A number as the language writes it."""

    @abstractmethod
    def special(self, name: str, params: dict[str, Any], operands: list[Value[C]], kind: str) -> Callable[[list[C]], C] | None:
        """An elementwise operation that is neither infix nor called."""

    @abstractmethod
    def converted(self, code: C, before: str, after: str) -> C:
        """An element of one kind as one of another."""

    @abstractmethod
    def begin(self, what: str, *details: C | str | int) -> None:
        """The head of a block: "when" or "elsewhen" a test holds, "otherwise", "forever", or "repeat" with a name so often."""

    @abstractmethod
    def end(self) -> None:
        """The end of a block."""

    @abstractmethod
    def leave_unless(self, test: C) -> None:
        """Leave the loop "forever" where the test does not hold."""

    @abstractmethod
    def loop(self, shape: Sequence[int], statement: Callable[[list[C]], S]) -> None:
        """One statement for every index, in any order."""

    @abstractmethod
    def in_order(self, shape: Sequence[int], statement: Callable[[list[C]], S]) -> None:
        """One statement for every index, one after the other, where two may write to one place."""

    @abstractmethod
    def store(self, target: Value[C], at: Sequence[C], code: C) -> S:
        """The statement that writes an element."""

    @abstractmethod
    def only_if(self, test: C, statement: S) -> S:
        """A statement that is done where the test holds."""

    @abstractmethod
    def buffer(self, shape: Sequence[int], kind: str) -> str:
        """The name of a new array."""

    @abstractmethod
    def variable(self, name: str, kind: str, code: C) -> None:
        """A new scalar."""

    @abstractmethod
    def variable_code(self, name: str) -> C:
        """How a scalar is read."""

    @abstractmethod
    def early(self, fixed: bool) -> AbstractContextManager[None]:
        """Where statements go: before the rounds where they are the same in each, and no loop of the trace is being written."""

    @abstractmethod
    def named(self, name: str, shape: Shape, kind: str, fixed: bool) -> Value[C]:
        """The elements of a buffer or an argument."""

    @abstractmethod
    def is_own(self, value: Value[C]) -> bool:
        """Whether the value is a buffer or variable of this round, not one that a state's new value may overwrite."""

    @abstractmethod
    def fixed_array(self, array: np.ndarray) -> Value[C]:
        """An array of numbers that the trace holds."""

    @abstractmethod
    def fold(self, step: str, value: Value[C], axes: Sequence[int], shape: Shape, kind: str) -> Value[C]:
        """A reduction over some axes by "add", "mul", "max", "min", "and" or "or"."""

    @abstractmethod
    def extreme(self, value: Value[C], axis: int, shape: Shape, sign: str) -> Value[C]:
        """Where along the axis the largest (">") or smallest ("<") element is; the first of equals."""

    @abstractmethod
    def running(self, array: Value[C], axis: int, reverse: bool, step: str) -> None:
        """Running sums or maxima of a buffer along an axis, in place."""

    @abstractmethod
    def inline(self, params: dict[str, Any], operands: list[Value[C]], origin: Equation | None = None) -> list[Value[C]]:
        """The results of a traced function that an equation holds; `origin` where its own equations do not tell where they come from."""

    # Values

    def joined(self, between: str, parts: Sequence[C | str]) -> C:
        """Parts with a sign between any two."""
        return self.code(between.join(["{}"] * len(parts)), *parts)

    def zeros(self, axes: Sequence[int]) -> list[C]:
        """The index of the first element."""
        return [self.code("0")] * len(axes)

    def only(self, value: Value[C]) -> C:
        """The one element of a value."""
        return value.read(self.zeros(value.shape))

    def name(self, kind: str) -> str:
        self.names += 1
        return f"{kind}{self.names}"

    def scalar(self, code: C, shape: Shape, kind: str, fixed: bool) -> Value[C]:
        """A single element, in a variable of its own."""
        name = self.name("v")
        with self.early(fixed):
            self.variable(name, kind, code)
        element = self.variable_code(name)
        return Value(shape, kind, lambda at: element, True, fixed)

    def stored(self, value: Value[C]) -> Value[C]:
        """The value in a buffer or variable of its own."""
        outside, self.origin = self.origin, value.origin or self.origin
        if value.single:
            stored = self.scalar(self.only(value), value.shape, value.kind, value.fixed)
        else:
            stored = self.new_array(value.shape, value.kind, value.fixed)
            with self.early(value.fixed):
                self.loop(value.shape, lambda at: self.store(stored, at, value.read(at)))
        self.origin = outside
        return stored._replace(origin=value.origin)

    def new_array(self, shape: Shape, kind: str, fixed: bool) -> Value[C]:
        """A buffer that nothing has been written to."""
        return self.named(self.buffer(shape, kind), shape, kind, fixed)

    def buffered(self, value: Value[C]) -> Value[C]:
        """The value itself if it is cheap, else in a buffer or variable: reading an element twice must not compute it twice."""
        return value if value.cheap else self.stored(value)

    def value(self, var: Variable, known: dict[Variable, Value[C]]) -> Value[C]:
        """The value of a variable of the trace, or of a number in it."""
        if hasattr(var, "val"):
            array = np.asarray(var.val)
            return self.literal(array.item(), tuple(array.shape), kind_of(var))
        return known[var]

    def literal(self, number: float, shape: Shape, kind: str) -> Value[C]:
        text = self.number(number, kind)
        code = self.code("({})" if text.startswith("-") else "{}", text)
        return Value(shape, kind, lambda at: code, True, True)

    def assign(self, target: Value[C], value: Value[C]) -> None:
        """Every element of a buffer or variable takes the value's."""
        outside, self.origin = self.origin, value.origin or self.origin
        self.loop(target.shape, lambda at: self.store(target, at, value.read(at)))
        self.origin = outside

    def count(self, jaxpr: Equations) -> None:
        """How often every variable is read."""
        for equation in jaxpr.eqns:
            self.uses.update(var for var in equation.invars if not hasattr(var, "val"))
        self.uses.update(var for var in jaxpr.outvars if not hasattr(var, "val"))


class _Growing(Protocol[I]):
    """A source with statements before the rounds and in them, and the list that is being written to."""

    lines: list[I]
    before: list[I]
    body: list[I]


class Early(Generic[I]):
    """Statements said inside go before the rounds, if they may."""

    def __init__(self, writer: _Growing[I], early: bool) -> None:
        self.writer, self.early = writer, early

    def __enter__(self) -> None:
        if self.early:
            self.writer.lines = self.writer.before

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.early:
            self.writer.lines = self.writer.body
