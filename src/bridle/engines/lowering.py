"""One traced round as plain loops: what the numba engine compiles.

JAX traces the game's `turn` into a list of some fifty kinds of array operations, all of fixed shapes. `lower` writes that list as the
source of one Python function that plays many rounds: scalars are local variables, arrays that are read more than once are buffers, all
others are written into the loop that reads them, and what does not depend on the round is done before the first one. No algorithm is
known here, only arithmetic.

>>> import jax
>>> from jax import numpy as jnp
>>> with jax.enable_x64(True):
...     traced = jax.make_jaxpr(lambda step, x, v: x - step * v)(0.5, jnp.ones(3), jnp.ones(3))
>>> source = lower(traced, constants=1, states=1, draws=1)
>>> "for i0 in range(3):" in source
True
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from bridle.core import InputError

PREAMBLE = '''"""Written by bridle from the trace of a policy and its adversary; the name of this file is its own hash."""

import math

import numpy as np
from numba import njit


@njit(error_model="numpy")
def _max(a, b):
    return a if (a >= b or a != a) else b


@njit(error_model="numpy")
def _min(a, b):
    return a if (a <= b or a != a) else b


@njit(error_model="numpy")
def _pick(flag, a, b):
    return a if flag else b


@njit(error_model="numpy")
def _real(flag):
    return 1.0 if flag else 0.0


@njit(error_model="numpy")
def _whole(flag):
    return 1 if flag else 0


@njit(error_model="numpy")
def _bits(x):
    return np.float64(x).view(np.int64)


@njit(error_model="numpy")
def _logistic(x):
    return 1.0 / (1.0 + math.exp(-x)) if x >= 0.0 else math.exp(x) / (1.0 + math.exp(x))


@njit(error_model="numpy")
def _within(i, most):
    return 0 if i < 0 else (most if i > most else i)


'''
"""What the loops call; part of every source, so that its hash covers it."""

_DECORATOR = "@njit(nogil=True, error_model='numpy', fastmath={'reassoc', 'contract'})"

Read = Callable[[Sequence[str]], str]


class Value(NamedTuple):
    """An array or a scalar: how an element is written, given the names of its indices.

    `cheap` where that is no more than a look-up; `fixed` where it is the same in every round.
    """

    shape: tuple[int, ...]
    kind: str  # "f", "i" or "b"
    read: Read
    cheap: bool
    fixed: bool

    @property
    def single(self) -> bool:
        return math.prod(self.shape) == 1


_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "rem": "%",
    "shift_right_arithmetic": ">>", "pow": "**",
}  # fmt: skip
_CALLED = {
    "max": "_max", "min": "_min", "sqrt": "math.sqrt", "exp": "math.exp", "log": "math.log", "log1p": "math.log1p", "expm1": "math.expm1",
    "tanh": "math.tanh", "abs": "abs", "floor": "np.floor", "ceil": "np.ceil", "sign": "np.sign", "is_finite": "math.isfinite",
    "logistic": "_logistic", "bitcast_convert_type": "_bits", "atan2": "math.atan2", "sin": "math.sin", "cos": "math.cos",
}  # fmt: skip
_LOGIC = {"and": "&", "or": "|", "xor": "^"}
_SAME = {"copy", "copy_p", "stop_gradient", "optimization_barrier", "reduce_precision", "sharding_constraint"}
_NESTED = {"jit", "pjit", "closed_call", "custom_jvp_call", "custom_vjp_call", "remat", "core_call"}
_FOLD = {"reduce_sum": ("0.0", "{} + {}"), "reduce_prod": ("1.0", "{} * {}"), "reduce_max": ("-np.inf", "_max({}, {})"),
         "reduce_min": ("np.inf", "_min({}, {})"), "reduce_and": ("True", "{} & {}"), "reduce_or": ("False", "{} | {}")}  # fmt: skip


def lower(traced: Any, constants: int, states: int, draws: int) -> str:
    """The source of ``run(rounds, inputs, outputs)`` for a traced round whose arguments are so many constants, states and draws.

    The outputs of the trace are the new states and what is to be kept of every round. `inputs` are arrays: the constants, the states (which
    are left as they are) and the draws, which have a leading time axis; `outputs` are arrays to fill: the states, then what is kept, with
    a leading time axis. Scalars are arrays of no axes.
    """
    return _Writer().function(traced, constants, states, draws)


def lower_step(traced: Any, constants: int, states: int, largest: float) -> str:
    """The source of ``run(memory)``: one round on one flat array, so that calling it costs next to nothing.

    `memory` holds the trace's arguments one after the other (constants, states, and what is given of this round), then room for the new
    states, which are all that the trace gives. The answer is 0 where they have taken the old ones' place, 1 where a number given is larger
    than `largest` or none at all, 2 where a new number is not finite and the one before it was: then nothing has changed.
    """
    return _Writer().step(traced, constants, states, largest)


class _Writer:
    """The source as it grows: statements before the rounds and in them, and the buffers to make."""

    def __init__(self) -> None:
        self.before: list[str] = []
        self.body: list[str] = []
        self.lines, self.depth = self.body, 2
        self.names = 0
        self.uses: Counter[Any] = Counter()

    def function(self, traced: Any, constants: int, states: int, draws: int) -> str:
        jaxpr = traced.jaxpr
        self.count(jaxpr)
        known: dict[Any, Value] = {}
        entry: list[str] = []
        known |= {var: self.fixed_array(np.asarray(array)) for var, array in zip(jaxpr.constvars, traced.consts, strict=True)}
        given, own = jaxpr.invars, constants
        held: list[tuple[str, Any]] = []
        for n, var in enumerate(given):
            shape, name = tuple(var.aval.shape), f"a{n}"
            if n < own:
                entry.append(f"    {name} = inputs[{n}]" + ("" if shape else "[()]"))
                known[var] = self.named(name, shape, _kind(var), True)
            elif n < own + states:
                entry.append(f"    {name} = inputs[{n}]" + (".copy()" if shape else "[()]"))
                known[var] = self.named(name, shape, _kind(var), False)
                held.append((name, shape))
            else:
                entry.append(f"    {name} = inputs[{n}]")
                known[var] = self.dealt(name, shape, _kind(var))
        self.equations(jaxpr, known)
        unchanged = [a is b for a, b in zip(jaxpr.outvars, given[own:], strict=False)][:states]
        self.finish([self.value(var, known) for var in jaxpr.outvars], held, unchanged)
        leaving = [f"    outputs[{n}][{'...' if shape else '()'}] = {name}" for n, (name, shape) in enumerate(held)]
        parts = [_DECORATOR, "def run(rounds, inputs, outputs):"]
        return PREAMBLE + "\n".join([*parts, *entry, *self.before, "    for t in range(rounds):", *self.body, *leaving]) + "\n"

    def step(self, traced: Any, constants: int, states: int, largest: float) -> str:
        jaxpr, given = traced.jaxpr, traced.jaxpr.invars
        self.count(jaxpr)
        known = {var: self.fixed_array(np.asarray(array)) for var, array in zip(jaxpr.constvars, traced.consts, strict=True)}
        begins = np.cumsum([0, *(math.prod(var.aval.shape) for var in given)]).tolist()
        entry, away = [], begins[-1] - begins[constants]  # from a state to the room for its new value
        for n, var in enumerate(given):
            shape, name = tuple(var.aval.shape), f"a{n}"
            entry.append(f"    {name} = {_part(begins[n], shape)}")
            known[var] = self.named(name, shape, _kind(var), n < constants)
        self.equations(jaxpr, known)
        changed = []
        for n, var in enumerate(jaxpr.outvars, constants):
            if var is given[n]:
                continue
            value, shape = self.value(var, known), tuple(given[n].aval.shape)
            if shape:
                room = self.name("n")
                entry.append(f"    {room} = {_part(begins[n] + away, shape)}")
                self.loop(shape, lambda at, room=room, value=value: f"{room}[{', '.join(at)}] = {value.read(at)}")  # type: ignore[misc]
            else:
                self.say(f"{_part(begins[n] + away, shape)} = {value.read(())}")
            changed.append((begins[n], begins[n + 1]))
        parts = [_DECORATOR, "def run(memory):"]
        parts += [f"    for i in range({begins[constants + states]}, {begins[-1]}):"]
        parts += [f"        if not abs(memory[i]) <= {largest!r}:", "            return 1"]
        ending = []
        for begin, end in _joined(changed):
            ending += [f"    for i in range({begin}, {end}):", f"        new = memory[i + {away}]"]
            ending += ["        if not math.isfinite(new) and (new != new or math.isfinite(memory[i])):", "            return 2"]
        for begin, end in _joined(changed):
            ending += [f"    for i in range({begin}, {end}):", f"        memory[i] = memory[i + {away}]"]
        return PREAMBLE + "\n".join([*parts, *entry, *self.before, "    for t in range(1):", *self.body, *ending, "    return 0"]) + "\n"

    def finish(self, made: list[Value], held: list[tuple[str, Any]], unchanged: list[bool]) -> None:
        """The end of a round: what is kept is written down, then every state takes its new value, none before all are known."""
        fresh = [
            value if same or (value.cheap and self.is_own(value)) else self.stored(value)
            for value, same in zip(made, unchanged, strict=False)
        ]
        for n, value in enumerate(made[len(held) :], len(held)):
            self.loop(value.shape, lambda at, n=n, value=value: f"outputs[{n}][{', '.join(['t', *at])}] = {value.read(at)}")  # type: ignore[misc]
        for value, (name, shape), same in zip(fresh, held, unchanged, strict=True):
            if same:
                continue
            if not shape:
                self.say(f"{name} = {value.read(())}")
            else:
                self.loop(shape, lambda at, name=name, value=value: f"{name}[{', '.join(at)}] = {value.read(at)}")  # type: ignore[misc]

    def is_own(self, value: Value) -> bool:
        """Whether the value is a buffer or variable of this round, not one that a state's new value may overwrite."""
        return value.read(["0"] * len(value.shape)).startswith(("b", "v"))

    # Statements

    def name(self, kind: str) -> str:
        self.names += 1
        return f"{kind}{self.names}"

    def say(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def loop(self, shape: Sequence[int], statement: Callable[[list[str]], str]) -> None:
        """One statement for every index; axes of one element need no loop."""
        at, depth = [], self.depth
        for axis, size in enumerate(shape):
            if size == 1:
                at.append("0")
                continue
            at.append(f"i{axis}")
            self.say(f"for i{axis} in range({size}):")
            self.depth += 1
        self.say(statement(at))
        self.depth = depth

    def buffer(self, shape: Sequence[int], kind: str) -> str:
        name, type_ = self.name("b"), {"f": "np.float64", "i": "np.int64", "b": "np.bool_"}[kind]
        self.before.append(f"    {name} = np.empty(({', '.join(map(str, shape))},), {type_})")
        return name

    def early(self, fixed: bool) -> Any:
        """Where statements go: before the rounds where they are the same in each, and no loop of the trace is being written."""
        return _Early(self, fixed and self.lines is self.body and self.depth == 2)

    # Values

    def named(self, name: str, shape: tuple[int, ...], kind: str, fixed: bool) -> Value:
        return Value(shape, kind, lambda at: f"{name}[{', '.join(at)}]" if shape else name, True, fixed)

    def dealt(self, name: str, shape: tuple[int, ...], kind: str) -> Value:
        return Value(shape, kind, lambda at: f"{name}[{', '.join(['t', *at])}]", True, False)

    def scalar(self, code: str, shape: tuple[int, ...], kind: str, fixed: bool) -> Value:
        """A single element, in a variable of its own."""
        name = self.name("v")
        with self.early(fixed):
            self.say(f"{name} = {code}")
        return Value(shape, kind, lambda at: name, True, fixed)

    def stored(self, value: Value) -> Value:
        """The value in a buffer or variable of its own."""
        if value.single:
            return self.scalar(value.read(["0"] * len(value.shape)), value.shape, value.kind, value.fixed)
        name = self.buffer(value.shape, value.kind)
        with self.early(value.fixed):
            self.loop(value.shape, lambda at: f"{name}[{', '.join(at)}] = {value.read(at)}")
        return self.named(name, value.shape, value.kind, value.fixed)

    def settle(self, value: Value) -> Value:
        """The value such that reading an element twice does not compute it twice."""
        return value if value.cheap else self.stored(value)

    def value(self, var: Any, known: dict[Any, Value]) -> Value:
        if hasattr(var, "val"):
            array = np.asarray(var.val)
            return self.literal(array.item(), tuple(array.shape), _kind(var))
        return known[var]

    def literal(self, number: Any, shape: tuple[int, ...], kind: str) -> Value:
        code = repr(number) if math.isfinite(number) else "np.nan" if number != number else "np.inf" if number > 0 else "-np.inf"
        return Value(shape, kind, lambda at: f"({code})" if code.startswith("-") else code, True, True)

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
        shape, kind, fixed = tuple(out.aval.shape), _kind(out), all(value.fixed for value in given)
        if name in _NESTED:
            return self.inline(params, given)
        if name in _SAME:
            return list(given)
        if (code := _formula(name, params, given, kind)) is not None:
            return [self.elementwise(code, given, shape, kind, fixed)]
        if name in _FOLD:
            return [self.fold(*_FOLD[name], given[0], params["axes"], shape, kind, name)]
        method = getattr(self, f"do_{name.replace('-', '_')}", None)
        if method is None:
            raise InputError(
                f"the numba engine does not know the operation {name!r} that this policy or problem traces to; use engine 'jax'"
            )
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

    def fixed_array(self, array: np.ndarray) -> Value:
        kind = {"f": "f", "i": "i", "u": "i", "b": "b"}[array.dtype.kind]
        if array.ndim == 0:
            return self.literal(array.item(), (), kind)
        name = self.name("b")
        self.before.append(f"    {name} = np.array({array.tolist()!r})")
        return self.named(name, array.shape, kind, True)

    def elementwise(self, code: Callable[[list[str]], str], given: list[Value], shape: Any, kind: str, fixed: bool) -> Value:
        # Operands have the shape of the result, or none at all, or a single element along some axis.
        given = [value if math.prod(value.shape) == math.prod(shape) else self.settle(value) for value in given]

        def read(at: Sequence[str]) -> str:
            return code([value.read([i if n > 1 else "0" for i, n in zip(at, value.shape, strict=False)]) for value in given])

        if math.prod(shape) == 1:
            return self.scalar(read(["0"] * len(shape)), shape, kind, fixed)
        return Value(shape, kind, read, False, fixed)

    def fold(self, start: str, step: str, value: Value, axes: Sequence[int], shape: Any, kind: str, name: str) -> Value:
        """A reduction over some axes."""
        if kind == "i" and name == "reduce_sum":
            start = "0"
        if not axes:
            return value
        inner = [value.shape[axis] for axis in axes]
        target = "" if math.prod(shape) == 1 else self.buffer(shape, kind)
        total = self.name("v")
        with self.early(value.fixed):
            depth, kept = self.depth, [axis for axis in range(len(value.shape)) if axis not in axes]
            at = dict.fromkeys(range(len(value.shape)), "0")
            for place, axis in enumerate(kept):
                if shape[place] > 1:
                    at[axis] = f"k{place}"
                    self.say(f"for k{place} in range({shape[place]}):")
                    self.depth += 1
            self.say(f"{total} = {start}")

            def add(index: list[str]) -> str:
                here = at | dict(zip(axes, index, strict=True))
                return f"{total} = {step.format(total, value.read([here[axis] for axis in range(len(value.shape))]))}"

            self.loop(inner, add)
            if target:
                self.say(f"{target}[{', '.join(at[axis] for axis in kept)}] = {total}")
            self.depth = depth
        if target:
            return self.named(target, shape, kind, value.fixed)
        return Value(shape, kind, lambda at: total, True, value.fixed)

    # Operations that only say where an element is found

    def do_broadcast_in_dim(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        places = equation.params["broadcast_dimensions"]
        value = given[0] if math.prod(shape) == math.prod(given[0].shape) else self.settle(given[0])

        def read(at: Sequence[str]) -> str:
            return value.read([at[place] if value.shape[axis] > 1 else "0" for axis, place in enumerate(places)])

        return [Value(shape, kind, read, value.cheap, fixed)]

    def do_reshape(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        value = given[0]
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
                found[i] = f"({line})" if len(old) == 1 else f"(({line}) // {beyond} % {value.shape[i]})"
            return value.read(found)

        return [Value(shape, kind, read, value.cheap, fixed)]

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
        made = (f"_within({value.read(())}, {n - m})" for value, n, m in zip(given, whole, part, strict=True))
        return [self.scalar(code, (), "i", False).read(()) for code in made]

    def do_dynamic_update_slice(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        part = self.settle(given[1])
        made = self.stored(given[0]._replace(fixed=False))
        starts = self.starts(given[2:], shape, part.shape)

        def put(at: list[str]) -> str:
            place = made.read([f"{s} + {i}" for s, i in zip(starts, at, strict=True)])
            return f"{place} = {part.read(at)}"

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
        """The first operand with the elements of the third put where the second says; what would lie outside is dropped."""
        made, places, part = self.stored(given[0]._replace(fixed=False)), self.settle(given[1]), self.settle(given[2])
        dims = equation.params["dimension_numbers"]
        if made.single:
            raise InputError("the numba engine does not know the operation 'scatter' into a single element; use engine 'jax'")
        batch = [axis for axis in range(len(part.shape)) if axis not in dims.update_window_dims]
        inside = [axis for axis in range(len(made.shape)) if axis not in (*dims.inserted_window_dims, *dims.operand_batching_dims)]

        def put(at: list[str]) -> str:
            row, found, tests = [at[axis] for axis in batch], ["0"] * len(made.shape), ["True"]
            for axis, place in zip(inside, dims.update_window_dims, strict=True):
                found[axis] = at[place]
            for axis, place in zip(dims.operand_batching_dims, dims.scatter_indices_batching_dims, strict=True):
                found[axis] = row[place]
            for n, axis in enumerate(dims.scatter_dims_to_operand_dims):
                found[axis] = f"({places.read([*row, str(n)])} + {found[axis]})"
                tests.append(f"0 <= {found[axis]} < {made.shape[axis]}")
            target = made.read(found)
            return f"if {' and '.join(tests)}: {target} = {step.format(part.read(at), target)}"

        self.loop(part.shape, put)
        return [made]

    def do_iota(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        axis = equation.params["dimension"]
        return [Value(shape, kind, lambda at: f"float({at[axis]})" if kind == "f" else at[axis], True, True)]

    # Operations with loops of their own

    def do_concatenate(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        name, axis, start = self.buffer(shape, kind), equation.params["dimension"], 0
        for value in given:
            with self.early(fixed):
                self.loop(
                    value.shape,
                    lambda at, start=start, value=value: (  # type: ignore[misc]
                        f"{name}[{', '.join(f'{start} + {each}' if i == axis else each for i, each in enumerate(at))}] = {value.read(at)}"
                    ),
                )
            start += value.shape[axis]
        return [self.named(name, shape, kind, fixed)]

    def do_stack(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        name, axis = self.buffer(shape, kind), equation.params["axis"]
        for n, value in enumerate(given):
            with self.early(fixed):
                self.loop(
                    value.shape,
                    lambda at, n=n, value=value: f"{name}[{', '.join([*at[:axis], str(n), *at[axis:]])}] = {value.read(at)}",  # type: ignore[misc]
                )
        return [self.named(name, shape, kind, fixed)]

    def do_pad(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        value, config = given[0], equation.params["padding_config"]
        if any(low < 0 or high < 0 or inner for low, high, inner in config):
            raise InputError("the numba engine does not know the operation 'pad' with negative or inner padding; use engine 'jax'")
        made = self.stored(Value(shape, kind, lambda at: given[1].read(()), False, False))
        self.loop(
            value.shape,
            lambda at: f"{made.read([f'{low} + {each}' for (low, _, _), each in zip(config, at, strict=True)])} = {value.read(at)}",
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
        return [self.fold("0.0", "{} + {}", product, range(outer, outer + len(sizes)), shape, kind, "dot")]

    def extreme(self, given: list[Value], axes: Sequence[int], shape: Any, sign: str) -> list[Value]:
        value, axis = self.settle(given[0]), axes[0]
        if math.prod(shape) > 1:
            name = self.buffer(shape, "i")
        best, found, depth = self.name("v"), self.name("v"), self.depth
        at: list[str] = []
        for place, size in enumerate(shape):
            at.append(f"k{place}" if size > 1 else "0")
            if size > 1:
                self.say(f"for k{place} in range({size}):")
                self.depth += 1
        self.say(f"{best} = {value.read([*at[:axis], '0', *at[axis:]])}")
        self.say(f"{found} = 0")
        self.say(f"for j in range(1, {value.shape[axis]}):")
        element = value.read([*at[:axis], "j", *at[axis:]])
        self.say(f"    if {element} {sign} {best}:")
        self.say(f"        {best} = {element}")
        self.say(f"        {found} = j")
        if math.prod(shape) > 1:
            self.say(f"{name}[{', '.join(at)}] = {found}")
            self.depth = depth
            return [self.named(name, shape, "i", False)]
        self.depth = depth
        return [Value(shape, "i", lambda at: found, True, False)]

    def do_argmax(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        return self.extreme(given, equation.params["axes"], shape, ">")

    def do_argmin(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        return self.extreme(given, equation.params["axes"], shape, "<")

    def running(self, equation: Any, value: Value, shape: Any, kind: str, step: str) -> list[Value]:
        axis, reverse = equation.params["axis"], equation.params["reverse"]
        made = self.stored(value._replace(fixed=False))
        if made.single:
            return [made]

        def add(at: list[str]) -> str:
            here = [
                f"({shape[axis] - 2} - {each})" if i == axis and reverse else f"({each} + 1)" if i == axis else each
                for i, each in enumerate(at)
            ]
            last = [f"({shape[axis] - 1} - {each})" if i == axis and reverse else each for i, each in enumerate(at)]
            return f"{made.read(here)} = {step.format(made.read(last), made.read(here))}"

        short = [n - 1 if i == axis else n for i, n in enumerate(shape)]
        # The loop over the axis must not be left out, even where it has a single step.
        depth = self.depth
        at = []
        for i, n in enumerate(short):
            self.say(f"for i{i} in range({n}):")
            self.depth += 1
            at.append(f"i{i}")
        self.say(add(at))
        self.depth = depth
        return [made]

    def do_cumsum(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        return self.running(equation, given[0], shape, kind, "{} + {}")

    def do_cummax(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        return self.running(equation, given[0], shape, kind, "_max({}, {})")

    def do_sort(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        axis = equation.params["dimension"]
        if equation.params["num_keys"] != 1 or axis != len(shape) - 1:
            raise InputError(
                "the numba engine does not know the operation 'sort' of several keys or other than the last axis; use engine 'jax'"
            )
        if shape[-1] == 1:
            return list(given)
        parts, order = [self.stored(value._replace(fixed=False)) for value in given], self.name("b")
        depth, at = self.depth, []
        for i, n in enumerate(shape[:-1]):
            self.say(f"for i{i} in range({n}):")
            self.depth += 1
            at.append(f"i{i}")
        rows = [f"{part.read([*at, ':'])}" for part in parts]
        if len(rows) == 1:
            self.say(f"{rows[0]} = np.sort({rows[0]})")
        else:
            self.say(f"{order} = np.argsort({rows[0]}, kind='mergesort')")
            for row in rows:
                self.say(f"{row} = {row}[{order}]")
        self.depth = depth
        return parts

    def do_eigh(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        matrix = self.stored(given[0]._replace(fixed=False))
        if matrix.shape[-1] == 1:
            ones = self.stored(Value(matrix.shape, "f", lambda at: "1.0", False, False))
            return [ones, Value(matrix.shape[:-1], "f", lambda at: matrix.read([*at, "0"]), True, False)]
        vectors, values, depth = self.buffer(matrix.shape, "f"), self.buffer(matrix.shape[:-1], "f"), self.depth
        at: list[str] = []
        for i, n in enumerate(matrix.shape[:-2]):
            self.say(f"for i{i} in range({n}):")
            self.depth += 1
            at.append(f"i{i}")
        here, found = matrix.read([*at, ":", ":"]), self.name("v")
        # XLA symmetrises first; only one triangle is read otherwise.
        self.say(f"{found} = np.linalg.eigh(0.5 * ({here} + {here}.T))")
        self.say(f"{values}[{', '.join([*at, ':'])}] = {found}[0]")
        self.say(f"{vectors}[{', '.join([*at, ':', ':'])}] = {found}[1]")
        self.depth = depth
        return [self.named(vectors, matrix.shape, "f", False), self.named(values, matrix.shape[:-1], "f", False)]

    def do_while(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        params = equation.params
        m, n = params["cond_nconsts"], params["body_nconsts"]
        outer = [self.settle(value) for value in given[: m + n]]
        carried = [self.carrier(value) for value in given[m + n :]]
        self.say("while True:")
        self.depth += 1
        going = self.inline({"jaxpr": params["cond_jaxpr"]}, [*outer[:m], *carried])[0]
        self.say(f"if not {going.read(['0'] * len(going.shape))}:")
        self.say("    break")
        self.advance(carried, self.inline({"jaxpr": params["body_jaxpr"]}, [*outer[m:], *carried]))
        self.depth -= 1
        return carried

    def do_cond(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        outer = [self.settle(value) for value in given]
        results = [self.carrier(Value(tuple(v.aval.shape), _kind(v), lambda at, v=v: _zero(v), True, False)) for v in equation.outvars]  # type: ignore[misc]
        branches = equation.params["branches"]
        for n, branch in enumerate(branches):
            test = f"{'el' if n else ''}if {outer[0].read(())} == {n}:" if n < len(branches) - 1 else "else:"
            self.say(test)
            self.depth += 1
            self.say("pass")
            self.advance(results, self.inline({"jaxpr": branch}, outer[1:]))
            self.depth -= 1
        return results

    def do_scan(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        params = equation.params
        m, n, length = params["num_consts"], params["num_carry"], params["length"]
        outer = [self.settle(value) for value in given[:m]]
        carried = [self.carrier(value) for value in given[m : m + n]]
        along = [self.settle(value) for value in given[m + n :]]
        stacked = [self.buffer(tuple(v.aval.shape), _kind(v)) for v in equation.outvars[n:]]
        step = self.name("s")
        place = f"({length - 1} - {step})" if params["reverse"] else step
        self.say(f"for {step} in range({length}):")
        self.depth += 1
        now = [Value(v.shape[1:], v.kind, lambda at, v=v: v.read([place, *at]), True, False) for v in along]  # type: ignore[misc]
        made = self.inline({"jaxpr": params["jaxpr"]}, [*outer, *carried, *now])
        for name, value in zip(stacked, made[n:], strict=True):
            self.loop(value.shape, lambda at, name=name, value=value: f"{name}[{', '.join([place, *at])}] = {value.read(at)}")  # type: ignore[misc]
        self.advance(carried, made[:n])
        self.depth -= 1
        return [
            *carried,
            *(self.named(name, tuple(v.aval.shape), _kind(v), False) for name, v in zip(stacked, equation.outvars[n:], strict=True)),
        ]

    def carrier(self, value: Value) -> Value:
        """A place of its own for what a loop of the trace changes."""
        return self.stored(value._replace(fixed=False))

    def advance(self, carried: list[Value], made: list[Value]) -> None:
        """All new values are there before the first old one goes."""
        fresh = [self.stored(value._replace(fixed=False)) for value in made]
        for old, new in zip(carried, fresh, strict=True):
            self.loop(old.shape, lambda at, old=old, new=new: f"{old.read(at)} = {new.read(at)}")  # type: ignore[misc]


class _Early:
    """Statements said inside go before the rounds, if they may."""

    def __init__(self, writer: _Writer, early: bool) -> None:
        self.writer, self.early = writer, early

    def __enter__(self) -> None:
        if self.early:
            self.writer.lines, self.writer.depth = self.writer.before, 1

    def __exit__(self, *_: Any) -> None:
        if self.early:
            self.writer.lines, self.writer.depth = self.writer.body, 2


def _formula(name: str, params: dict[str, Any], given: list[Value], kind: str) -> Callable[[list[str]], str] | None:
    """How one element of an elementwise operation is written; None where the operation is none."""
    if name in _INFIX:
        return lambda parts: f"({parts[0]} {_INFIX[name]} {parts[1]})"
    if name in _CALLED:
        return lambda parts: f"{_CALLED[name]}({', '.join(parts)})"
    if name in _LOGIC:
        return lambda parts: f"({parts[0]} {_LOGIC[name]} {parts[1]})"
    if name == "not":
        return lambda parts: f"(not {parts[0]})" if kind == "b" else f"(~{parts[0]})"
    if name == "neg":
        return lambda parts: f"(-{parts[0]})"
    if name == "square":
        return lambda parts: f"({parts[0]}) ** 2"
    if name == "rsqrt":
        return lambda parts: f"(1.0 / math.sqrt({parts[0]}))"
    if name == "integer_pow":
        return lambda parts: f"(({parts[0]}) ** {params['y']})" if params["y"] > 0 else f"(1.0 / ({parts[0]}) ** {-params['y']})"
    if name == "select_n":
        return lambda parts: f"_pick({parts[0]}, {parts[2]}, {parts[1]})"
    if name == "clamp":
        return lambda parts: f"_min(_max({parts[1]}, {parts[0]}), {parts[2]})"
    if name == "convert_element_type":
        return _conversion(given[0].kind, kind)
    return None


def _conversion(before: str, after: str) -> Callable[[list[str]], str]:
    if before == after:
        return lambda parts: parts[0]
    if after == "b":
        return lambda parts: f"({parts[0]} != 0)"
    if before == "b":
        return lambda parts: f"{'_real' if after == 'f' else '_whole'}({parts[0]})"
    return lambda parts: f"{'float' if after == 'f' else 'int'}({parts[0]})"


def _part(begin: int, shape: tuple[int, ...]) -> str:
    """A part of the memory as an array of this shape."""
    if not shape:
        return f"memory[{begin}]"
    flat = f"memory[{begin}:{begin + math.prod(shape)}]"
    return flat if len(shape) == 1 else f"{flat}.reshape(({', '.join(map(str, shape))}))"


def _joined(parts: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Parts that follow each other as one."""
    whole: list[tuple[int, int]] = []
    for begin, end in parts:
        if whole and whole[-1][1] == begin:
            whole[-1] = (whole[-1][0], end)
        else:
            whole.append((begin, end))
    return whole


def _kind(var: Any) -> str:
    return {"f": "f", "i": "i", "u": "i", "b": "b"}[np.dtype(var.aval.dtype).kind]


def _zero(var: Any) -> str:
    return {"f": "0.0", "i": "0", "b": "False"}[_kind(var)]
