"""One traced round, read as plain arithmetic: what the engines that write their own loops share.

JAX traces the game's `turn` into a list of some fifty kinds of array operations, all of fixed shapes. A `Writer` goes through that list
and writes it down in some language: scalars are variables, arrays that are read more than once are buffers, all others are written into
the loop that reads them, and what does not depend on the round is done before the first one. No algorithm is known here, only arithmetic.
`loops` writes Python for numba, `warps` writes CUDA C; what they differ in is how a statement, a loop and a sum are spelled.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bridle.core import InputError

Read = Callable[[Sequence[str]], str]

LANES = 999_983
"""How long the axis of several runs is in a trace of them: no other axis is, so that it can be told from all others."""


class Value(NamedTuple):
    """An array or a scalar: how an element is written, given the names of its indices.

    `cheap` where that is little more than a look-up; `fixed` where it is the same in every round; `weight` is how many operations it takes.
    """

    shape: tuple[int, ...]
    kind: str  # "f", "i" or "b"
    read: Read
    cheap: bool
    fixed: bool
    weight: int = 0

    @property
    def single(self) -> bool:
        return math.prod(self.shape) == 1


_SAME = {"copy", "copy_p", "stop_gradient", "optimization_barrier", "reduce_precision", "sharding_constraint"}
_NESTED = {"jit", "pjit", "closed_call", "custom_jvp_call", "custom_vjp_call", "remat", "core_call"}
_FOLD = {"reduce_sum": "add", "reduce_prod": "mul", "reduce_max": "max", "reduce_min": "min", "reduce_and": "and", "reduce_or": "or"}
_LIGHT = {"add", "sub", "mul", "neg"}
_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "shift_right_arithmetic": ">>", "and": "&", "or": "|", "xor": "^",
}  # fmt: skip


class Writer(ABC):
    """The source as it grows; a back end says how its language spells statements, loops and sums."""

    engine: str
    called: ClassVar[dict[str, str]]
    """The functions of one element or two, by the name of the traced operation."""
    quotient: str
    """Division of whole numbers, rounded down."""
    light: ClassVar[int] = 0
    """So many additions or products are done again rather than kept in a buffer."""

    def __init__(self) -> None:
        self.names = 0
        self.uses: Counter[Any] = Counter()

    def refused(self, operation: str) -> InputError:
        return InputError(
            f"the {self.engine} engine does not know the operation {operation} that this policy or problem traces to; use engine 'jax'"
        )

    # What a back end defines

    @abstractmethod
    def number(self, value: Any, kind: str) -> str:
        """A number as the language writes it."""

    @abstractmethod
    def special(self, name: str, params: dict[str, Any], given: list[Value], kind: str) -> Callable[[list[str]], str] | None:
        """An elementwise operation that is neither infix nor called."""

    @abstractmethod
    def converted(self, code: str, before: str, after: str) -> str:
        """An element of one kind as one of another."""

    @abstractmethod
    def say(self, line: str) -> None:
        """A statement."""

    @abstractmethod
    def begin(self, what: str, *details: Any) -> None:
        """The head of a block: "when" or "elsewhen" a test holds, "otherwise", "forever", or "repeat" with a name so often."""

    @abstractmethod
    def end(self) -> None:
        """The end of a block."""

    @abstractmethod
    def leave_unless(self, test: str) -> None:
        """Leave the loop "forever" where the test does not hold."""

    @abstractmethod
    def loop(self, shape: Sequence[int], statement: Callable[[list[str]], str]) -> None:
        """One statement for every index, in any order."""

    @abstractmethod
    def in_order(self, shape: Sequence[int], statement: Callable[[list[str]], str]) -> None:
        """One statement for every index, one after the other, where two may write to one place."""

    @abstractmethod
    def store(self, target: Value, at: Sequence[str], code: str) -> str:
        """The statement that writes an element."""

    @abstractmethod
    def buffer(self, shape: Sequence[int], kind: str) -> str:
        """The name of a new array."""

    @abstractmethod
    def variable(self, name: str, kind: str, code: str) -> None:
        """A new scalar."""

    @abstractmethod
    def early(self, fixed: bool) -> Any:
        """Where statements go: before the rounds where they are the same in each, and no loop of the trace is being written."""

    @abstractmethod
    def named(self, name: str, shape: tuple[int, ...], kind: str, fixed: bool) -> Value:
        """The elements of a buffer or an argument."""

    @abstractmethod
    def fixed_array(self, array: np.ndarray) -> Value:
        """An array of numbers that the trace holds."""

    @abstractmethod
    def fold(self, step: str, value: Value, axes: Sequence[int], shape: Any, kind: str) -> Value:
        """A reduction over some axes by "add", "mul", "max", "min", "and" or "or"."""

    @abstractmethod
    def extreme(self, value: Value, axis: int, shape: Any, sign: str) -> Value:
        """Where along the axis the largest (">") or smallest ("<") element is; the first of equals."""

    @abstractmethod
    def running(self, made: Value, axis: int, reverse: bool, step: str) -> None:
        """Running sums or maxima of a buffer along an axis, in place."""

    # Values

    def name(self, kind: str) -> str:
        self.names += 1
        return f"{kind}{self.names}"

    def scalar(self, code: str, shape: tuple[int, ...], kind: str, fixed: bool) -> Value:
        """A single element, in a variable of its own."""
        name = self.name("v")
        with self.early(fixed):
            self.variable(name, kind, code)
        return Value(shape, kind, lambda at: name, True, fixed)

    def stored(self, value: Value) -> Value:
        """The value in a buffer or variable of its own."""
        if value.single:
            return self.scalar(value.read(["0"] * len(value.shape)), value.shape, value.kind, value.fixed)
        made = self.named(self.buffer(value.shape, value.kind), value.shape, value.kind, value.fixed)
        with self.early(value.fixed):
            self.loop(value.shape, lambda at: self.store(made, at, value.read(at)))
        return made

    def settle(self, value: Value) -> Value:
        """The value such that reading an element twice does not compute it twice."""
        return value if value.cheap else self.stored(value)

    def value(self, var: Any, known: dict[Any, Value]) -> Value:
        if hasattr(var, "val"):
            array = np.asarray(var.val)
            return self.literal(array.item(), tuple(array.shape), kind_of(var))
        return known[var]

    def literal(self, number: Any, shape: tuple[int, ...], kind: str) -> Value:
        code = self.number(number, kind)
        return Value(shape, kind, lambda at: f"({code})" if code.startswith("-") else code, True, True)

    def finish(self, made: list[Value], held: list[Value], unchanged: list[bool], keep: Callable[[int, Value], None]) -> None:
        """The end of a round: what is kept is written down, then every state takes its new value, none before all are known."""
        fresh = [
            value if same or (value.cheap and self.is_own(value)) else self.stored(value._replace(fixed=False))
            for value, same in zip(made, unchanged, strict=False)
        ]
        for n, value in enumerate(made[len(held) :], len(held)):
            keep(n, value)
        for value, old, same in zip(fresh, held, unchanged, strict=True):
            if not same:
                self.loop(old.shape, lambda at, old=old, value=value: self.store(old, at, value.read(at)))  # type: ignore[misc]

    def is_own(self, value: Value) -> bool:
        """Whether the value is a buffer or variable of this round, not one that a state's new value may overwrite."""
        return value.read(["0"] * len(value.shape)).startswith(("b", "v"))

    # Equations

    def count(self, jaxpr: Any) -> None:
        """How often every variable is read."""
        for equation in jaxpr.eqns:
            self.uses.update(var for var in equation.invars if not hasattr(var, "val"))
        self.uses.update(var for var in jaxpr.outvars if not hasattr(var, "val"))

    def equations(self, jaxpr: Any, known: dict[Any, Value]) -> None:
        for equation in jaxpr.eqns:
            given = [self.value(var, known) for var in equation.invars]
            made = self.equation(equation, given)
            for var, value in zip(equation.outvars, made, strict=True):
                several = self.uses[var] > 1
                known[var] = self.settle(value) if several or value.single else value

    def equation(self, equation: Any, given: list[Value]) -> list[Value]:
        name, params, out = equation.primitive.name, equation.params, equation.outvars[0]
        shape, kind, fixed = tuple(out.aval.shape), kind_of(out), all(value.fixed for value in given)
        if name in _NESTED:
            return self.inline(params, given)
        if name in _SAME:
            return list(given)
        if (code := self.formula(name, params, given, kind)) is not None:
            made = self.elementwise(code, given, shape, kind, fixed)
            weight = 1 + sum(value.weight for value in given)
            again = name in _LIGHT and weight <= self.light and all(value.cheap for value in given)
            return [made if made.single else made._replace(weight=weight, cheap=again)]
        if name in _FOLD:
            return [self.fold(_FOLD[name], given[0], params["axes"], shape, kind) if params["axes"] else given[0]]
        method = getattr(self, f"do_{name.replace('-', '_')}", None)
        if method is None:
            raise self.refused(repr(name))
        return list(method(equation, given, shape, kind, fixed))

    def inline(self, params: dict[str, Any], given: list[Value]) -> list[Value]:
        closed = next(params[key] for key in ("jaxpr", "call_jaxpr", "fun_jaxpr") if key in params)
        inner = getattr(closed, "jaxpr", closed)
        constants = [self.fixed_array(np.asarray(each)) for each in getattr(closed, "consts", ())]
        self.count(inner)
        known = dict(zip([*inner.constvars, *inner.invars], [*constants, *given], strict=True))
        # What goes in was computed outside: what is read more than once in here must be cheap already.
        known = {var: self.settle(value) if self.uses[var] > 1 else value for var, value in known.items()}
        self.equations(inner, known)
        return [self.value(var, known) for var in inner.outvars]

    def formula(self, name: str, params: dict[str, Any], given: list[Value], kind: str) -> Callable[[list[str]], str] | None:
        """How one element of an elementwise operation is written; None where the operation is none."""
        if name in _INFIX:
            return lambda parts: f"({parts[0]} {_INFIX[name]} {parts[1]})"
        if name in self.called:
            return lambda parts: f"{self.called[name]}({', '.join(parts)})"
        if name == "neg":
            return lambda parts: f"(-{parts[0]})"
        if name == "select_n":
            return lambda parts: f"_pick({parts[0]}, {parts[2]}, {parts[1]})"
        if name == "clamp":
            return lambda parts: f"_min(_max({parts[1]}, {parts[0]}), {parts[2]})"
        if name == "convert_element_type":
            return lambda parts: self.converted(parts[0], given[0].kind, kind)
        return self.special(name, params, given, kind)

    def elementwise(self, code: Callable[[list[str]], str], given: list[Value], shape: Any, kind: str, fixed: bool) -> Value:
        # Operands have the shape of the result, or none at all, or a single element along some axis.
        given = [value if math.prod(value.shape) == math.prod(shape) else self.settle(value) for value in given]

        def read(at: Sequence[str]) -> str:
            return code([value.read([i if n > 1 else "0" for i, n in zip(at, value.shape, strict=False)]) for value in given])

        if math.prod(shape) == 1:
            return self.scalar(read(["0"] * len(shape)), shape, kind, fixed)
        return Value(shape, kind, read, False, fixed)

    # Operations that only say where an element is found

    def do_broadcast_in_dim(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        places = equation.params["broadcast_dimensions"]
        value = given[0] if math.prod(shape) == math.prod(given[0].shape) else self.settle(given[0])

        def read(at: Sequence[str]) -> str:
            return value.read([at[place] if value.shape[axis] > 1 else "0" for axis, place in enumerate(places)])

        return [Value(shape, kind, read, value.cheap, fixed)]

    def do_reshape(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        value = given[0]
        if LANES in shape or LANES in value.shape:
            return [self.reshaped_runs(value, shape, kind, fixed)]
        return [self.reshaped(value, shape, kind, fixed)]

    def reshaped_runs(self, value: Value, shape: Any, kind: str, fixed: bool) -> Value:
        """An array of several runs in another shape, where the axis of the runs stays apart from the others."""
        if shape.count(LANES) != 1 or value.shape.count(LANES) != 1:
            raise self.refused("'reshape' across runs")
        new, old = shape.index(LANES), value.shape.index(LANES)
        if math.prod(shape[:new]) != math.prod(value.shape[:old]):
            raise self.refused("'reshape' across runs")

        def of_run(run: str) -> Value:
            alone = value._replace(shape=_without(value.shape, old), read=lambda at: value.read([*at[:old], run, *at[old:]]))
            return self.reshaped(alone, _without(shape, new), kind, fixed)

        return Value(shape, kind, lambda at: of_run(at[new]).read(_without(at, new)), value.cheap, fixed)

    def reshaped(self, value: Value, shape: Any, kind: str, fixed: bool) -> Value:
        wide, old = [i for i, n in enumerate(shape) if n > 1], [i for i, n in enumerate(value.shape) if n > 1]

        def read(at: Sequence[str]) -> str:
            found = ["0"] * len(value.shape)
            if [shape[i] for i in wide] == [value.shape[i] for i in old]:
                for a, b in zip(wide, old, strict=True):
                    found[b] = at[a]
                return value.read(found)
            line = " + ".join(f"{at[i]} * {math.prod(shape[i + 1 :])}" for i in wide) or "0"
            for i in old:
                beyond = math.prod(value.shape[i + 1 :])
                found[i] = f"({line})" if len(old) == 1 else f"(({line}) {self.quotient} {beyond} % {value.shape[i]})"
            return value.read(found)

        return Value(shape, kind, read, value.cheap, fixed)

    def do_squeeze(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        return self.do_reshape(equation, given, shape, kind, fixed)

    do_expand_dims = do_squeeze

    def do_transpose(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        order, value = equation.params["permutation"], given[0]
        return [Value(shape, kind, lambda at: value.read([at[order.index(i)] for i in range(len(order))]), value.cheap, fixed)]

    def do_rev(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        flipped, value = equation.params["dimensions"], given[0]

        def read(at: Sequence[str]) -> str:
            return value.read([f"({shape[i] - 1} - {each})" if i in flipped else each for i, each in enumerate(at)])

        return [Value(shape, kind, read, value.cheap, fixed)]

    def do_slice(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        value, starts = given[0], equation.params["start_indices"]
        strides = equation.params["strides"] or (1,) * len(shape)

        def read(at: Sequence[str]) -> str:
            steps = (each if stride == 1 else f"{each} * {stride}" for each, stride in zip(at, strides, strict=True))
            return value.read([f"({start} + {each})" if start else each for start, each in zip(starts, steps, strict=True)])

        return [Value(shape, kind, read, value.cheap, fixed)]

    def do_dynamic_slice(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        value = given[0]
        starts = self.starts(given[1:], value.shape, shape)
        return [Value(shape, kind, lambda at: value.read([f"({s} + {i})" for s, i in zip(starts, at, strict=True)]), value.cheap, fixed)]

    def starts(self, given: list[Value], whole: Sequence[int], part: Sequence[int]) -> list[str]:
        """Where a part of an array begins, moved so that it lies inside."""
        made = ((f"_within({value.read(())}, {n - m})", value.fixed) for value, n, m in zip(given, whole, part, strict=True))
        return [self.scalar(code, (), "i", fixed).read(()) for code, fixed in made]

    def do_dynamic_update_slice(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        part = self.settle(given[1])
        made = self.stored(given[0]._replace(fixed=False))
        starts = self.starts(given[2:], shape, part.shape)

        def put(at: list[str]) -> str:
            return self.store(made, [f"({s} + {i})" for s, i in zip(starts, at, strict=True)], part.read(at))

        if made.single:
            return [part]
        self.loop(part.shape, put)
        return [made]

    def do_gather(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        value, places = self.settle(given[0]), self.settle(given[1])
        dims, sizes = equation.params["dimension_numbers"], equation.params["slice_sizes"]
        batch = [axis for axis in range(len(shape)) if axis not in dims.offset_dims]
        inside = [axis for axis in range(len(value.shape)) if axis not in (*dims.collapsed_slice_dims, *dims.operand_batching_dims)]

        def read(at: Sequence[str]) -> str:
            row = [at[axis] for axis in batch]
            found = ["0"] * len(value.shape)
            for axis, place in zip(inside, dims.offset_dims, strict=True):
                found[axis] = at[place]
            for axis, place in zip(dims.operand_batching_dims, dims.start_indices_batching_dims, strict=True):
                found[axis] = row[place]
            for n, axis in enumerate(dims.start_index_map):
                start = f"_within({places.read([*row, str(n)])}, {value.shape[axis] - sizes[axis]})"
                found[axis] = start if found[axis] == "0" else f"({start} + {found[axis]})"
            return value.read(found)

        return [Value(shape, kind, read, False, fixed)]

    def do_scatter(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        return self.spread(equation, given, "{}")

    def do_scatter_add(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        return self.spread(equation, given, "{1} + {0}")

    def spread(self, equation: Any, given: list[Value], step: str) -> list[Value]:
        """The first operand with windows of the third put where the second says; one that would reach outside is moved in or dropped."""
        made, places, part = self.stored(given[0]._replace(fixed=False)), self.settle(given[1]), self.settle(given[2])
        dims = equation.params["dimension_numbers"]
        if made.single:
            raise self.refused("'scatter' into a single element")
        batch = [axis for axis in range(len(part.shape)) if axis not in dims.update_window_dims]
        inside = [axis for axis in range(len(made.shape)) if axis not in (*dims.inserted_window_dims, *dims.operand_batching_dims)]

        wide = {axis: part.shape[place] for axis, place in zip(inside, dims.update_window_dims, strict=True)}
        moved = equation.params["mode"].name == "CLIP"

        def put(at: list[str]) -> str:
            row, found, tests = [at[axis] for axis in batch], ["0"] * len(made.shape), [self.number(True, "b")]
            for axis, place in zip(inside, dims.update_window_dims, strict=True):
                found[axis] = at[place]
            for axis, place in zip(dims.operand_batching_dims, dims.scatter_indices_batching_dims, strict=True):
                found[axis] = row[place]
            for n, axis in enumerate(dims.scatter_dims_to_operand_dims):
                start, last = places.read([*row, str(n)]), made.shape[axis] - wide.get(axis, 1)
                if moved:
                    start = f"_within({start}, {last})"
                else:
                    tests.append(f"(0 <= {start}) & ({start} <= {last})")
                found[axis] = f"({start} + {found[axis]})"
            new = step.format(part.read(at), made.read(found))
            return self.only_if(" & ".join(tests), self.store(made, found, new))

        self.in_order(part.shape, put)
        return [made]

    def do_iota(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        axis = equation.params["dimension"]
        return [Value(shape, kind, lambda at: self.converted(at[axis], "i", kind), True, True)]

    # Operations with loops of their own

    def do_concatenate(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        made, axis, start = self.named(self.buffer(shape, kind), shape, kind, fixed), equation.params["dimension"], 0
        for value in given:
            with self.early(fixed):
                self.loop(
                    value.shape,
                    lambda at, start=start, value=value: self.store(  # type: ignore[misc]
                        made, [f"({start} + {each})" if i == axis else each for i, each in enumerate(at)], value.read(at)
                    ),
                )
            start += value.shape[axis]
        return [made]

    def do_stack(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        made, axis = self.named(self.buffer(shape, kind), shape, kind, fixed), equation.params["axis"]
        for n, value in enumerate(given):
            with self.early(fixed):
                self.loop(
                    value.shape,
                    lambda at, n=n, value=value: self.store(made, [*at[:axis], str(n), *at[axis:]], value.read(at)),  # type: ignore[misc]
                )
        return [made]

    def do_pad(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        value, config = given[0], equation.params["padding_config"]
        if any(low < 0 or high < 0 or inner for low, high, inner in config):
            raise self.refused("'pad' with negative or inner padding")
        made = self.stored(Value(shape, kind, lambda at: given[1].read(()), False, False))
        self.loop(
            value.shape,
            lambda at: self.store(made, [f"({low} + {each})" for (low, _, _), each in zip(config, at, strict=True)], value.read(at)),
        )
        return [made]

    def do_dot_general(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        (left_sum, right_sum), (left_batch, right_batch) = equation.params["dimension_numbers"]
        left, right = (self.settle(value) for value in given)
        left_free = [i for i in range(len(left.shape)) if i not in (*left_sum, *left_batch)]
        right_free = [i for i in range(len(right.shape)) if i not in (*right_sum, *right_batch)]
        outer, b = len(shape), len(left_batch)

        def read(at: Sequence[str]) -> str:
            a, c = ["0"] * len(left.shape), ["0"] * len(right.shape)
            for n, (i, j) in enumerate(zip(left_batch, right_batch, strict=True)):
                a[i] = c[j] = at[n]
            for n, i in enumerate(left_free):
                a[i] = at[b + n]
            for n, j in enumerate(right_free):
                c[j] = at[b + len(left_free) + n]
            for n, (i, j) in enumerate(zip(left_sum, right_sum, strict=True)):
                a[i] = c[j] = at[outer + n]
            return f"{left.read(a)} * {right.read(c)}"

        sizes = tuple(left.shape[i] for i in left_sum)
        product = Value((*shape, *sizes), kind, read, False, fixed)
        return [self.fold("add", product, range(outer, outer + len(sizes)), shape, kind)]

    def do_argmax(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        return [self.extreme(self.settle(given[0]), equation.params["axes"][0], shape, ">")]

    def do_argmin(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        return [self.extreme(self.settle(given[0]), equation.params["axes"][0], shape, "<")]

    def do_cumsum(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        return [self.run_along(equation, given[0], "add")]

    def do_cummax(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        return [self.run_along(equation, given[0], "max")]

    def run_along(self, equation: Any, value: Value, step: str) -> Value:
        made = self.stored(value._replace(fixed=False))
        if not made.single:
            self.running(made, equation.params["axis"], equation.params["reverse"], step)
        return made

    # Control

    def do_while(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        params = equation.params
        m, n = params["cond_nconsts"], params["body_nconsts"]
        outer = [self.settle(value) for value in given[: m + n]]
        carried = [self.carrier(value) for value in given[m + n :]]
        self.begin("forever")
        going = self.inline({"jaxpr": params["cond_jaxpr"]}, [*outer[:m], *carried])[0]
        if going.single:
            self.leave_unless(going.read(["0"] * len(going.shape)))
            self.advance(carried, self.inline({"jaxpr": params["body_jaxpr"]}, [*outer[m:], *carried]))
        else:  # each of several runs goes on until it is done
            going = self.stored(going._replace(fixed=False))
            self.leave_unless(self.fold("or", going, range(len(going.shape)), (), "b").read(()))
            made = self.inline({"jaxpr": params["body_jaxpr"]}, [*outer[m:], *carried])
            self.advance(carried, [self.where(going, new, old) for new, old in zip(made, carried, strict=True)])
        self.end()
        return carried

    def where(self, flag: Value, new: Value, old: Value) -> Value:
        """The new value in the runs that are flagged, along the first axes, and the old one in the others."""

        def read(at: Sequence[str]) -> str:
            return f"_pick({flag.read(at[: len(flag.shape)])}, {new.read(at)}, {old.read(at)})"

        return Value(new.shape, new.kind, read, False, False)

    def do_cond(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        outer = [self.settle(value) for value in given]
        results = [self.carrier(self.literal(0, tuple(v.aval.shape), kind_of(v))) for v in equation.outvars]
        branches = equation.params["branches"]
        for n, branch in enumerate(branches):
            if n < len(branches) - 1:
                self.begin("elsewhen" if n else "when", f"{outer[0].read(())} == {n}")
            else:
                self.begin("otherwise")
            self.advance(results, self.inline({"jaxpr": branch}, outer[1:]))
            self.end()
        return results

    def do_scan(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        params = equation.params
        # What is carried has the same shape inside and outside, what is run along has one axis more outside. (The names of the counts in
        # the equation differ between versions of JAX.)
        inner, length = getattr(params["jaxpr"], "jaxpr", params["jaxpr"]), params["length"]
        n = sum(a.aval.shape == b.aval.shape for a, b in zip(equation.outvars, inner.outvars, strict=True))
        m = sum(a.aval.shape == b.aval.shape for a, b in zip(equation.invars, inner.invars, strict=True)) - n
        outer = [self.settle(value) for value in given[:m]]
        carried = [self.carrier(value) for value in given[m : m + n]]
        along = [self.settle(value) for value in given[m + n :]]
        stacked = [
            self.named(self.buffer(tuple(v.aval.shape), kind_of(v)), tuple(v.aval.shape), kind_of(v), False) for v in equation.outvars[n:]
        ]
        step = self.name("s")
        place = f"({length - 1} - {step})" if params["reverse"] else step
        self.begin("repeat", step, length)
        now = [Value(v.shape[1:], v.kind, lambda at, v=v: v.read([place, *at]), True, False) for v in along]  # type: ignore[misc]
        made = self.inline({"jaxpr": params["jaxpr"]}, [*outer, *carried, *now])
        for target, value in zip(stacked, made[n:], strict=True):
            self.loop(value.shape, lambda at, target=target, value=value: self.store(target, [place, *at], value.read(at)))  # type: ignore[misc]
        self.advance(carried, made[:n])
        self.end()
        return [*carried, *stacked]

    def carrier(self, value: Value) -> Value:
        """A place of its own for what a loop of the trace changes."""
        return self.stored(value._replace(fixed=False))

    def advance(self, carried: list[Value], made: list[Value]) -> None:
        """All new values are there before the first old one goes."""
        fresh = [self.stored(value._replace(fixed=False)) for value in made]
        for old, new in zip(carried, fresh, strict=True):
            self.loop(old.shape, lambda at, old=old, new=new: self.store(old, at, new.read(at)))  # type: ignore[misc]

    @abstractmethod
    def only_if(self, test: str, statement: str) -> str:
        """A statement that is done where the test holds."""


def _without(parts: Sequence[Any], i: int) -> tuple[Any, ...]:
    return (*parts[:i], *parts[i + 1 :])


def kind_of(var: Any) -> str:
    """ "f", "i" or "b" for a traced variable."""
    return {"f": "f", "i": "i", "u": "i", "b": "b"}[np.dtype(var.aval.dtype).kind]
