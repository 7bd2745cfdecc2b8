"""A traced round as plain Python loops: what the numba engine compiles.

>>> import jax
>>> from jax import numpy as jnp
>>> with jax.enable_x64(True):
...     traced = jax.make_jaxpr(lambda step, x, v: x - step * v)(0.5, jnp.ones(3), jnp.ones(3))
>>> source = lower(traced, constants=1, states=1)
>>> "for i0 in range(3):" in source
True
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from bridle.engines.codegen.fuse import Nest, contract, place
from bridle.engines.codegen.lower import LANES, Value, Writer, kind_of

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
def _exp(x):
    # To a unit in the last place, without a branch or a call, so that several runs share its instructions. x = k log 2 + r.
    y = min(max(-746.0, x), 710.0)  # what is no number becomes one, and comes back at the end
    k = np.floor(y * 1.4426950408889634 + 0.5)
    r = y - k * 0.6931471803691238 - k * 1.9082149292705877e-10
    p = 1.6059043836821613e-10 * r + 2.08767569878681e-09  # Taylor's series, from 1/13!
    p = p * r + 2.505210838544172e-08
    p = p * r + 2.755731922398589e-07
    p = p * r + 2.7557319223985893e-06
    p = p * r + 2.48015873015873e-05
    p = p * r + 0.0001984126984126984
    p = p * r + 0.001388888888888889
    p = p * r + 0.008333333333333333
    p = p * r + 0.041666666666666664
    p = p * r + 0.16666666666666666
    p = p * r + 0.5
    i = np.int64(k)
    half = i >> 1  # in two steps, for what is near the largest or the smallest float
    low, high = np.int64((half + 1023) << 52).view(np.float64), np.int64((i - half + 1023) << 52).view(np.float64)
    return (1.0 + (r + r * r * p)) * low * high if x == x else x


@njit(error_model="numpy")
def _within(i, most):
    return 0 if i < 0 else (most if i > most else i)


'''
"""What the loops call; part of every source, so that its hash covers it."""


_DECORATOR = "@njit(nogil=True, error_model='numpy', fastmath={'reassoc', 'contract'})"
_START = {"add": "0.0", "mul": "1.0", "max": "-np.inf", "min": "np.inf", "and": "True", "or": "False"}
_STEP = {"add": "{} + {}", "mul": "{} * {}", "max": "_max({}, {})", "min": "_min({}, {})", "and": "{} & {}", "or": "{} | {}"}
_TYPE = {"f": "np.float64", "i": "np.int64", "b": "np.bool_"}


def lower(traced: Any, constants: int, states: int, marked: bool = False, wide: int = 64) -> str:
    """The source of ``run(rounds, lanes, marks, inputs, outputs)`` for a traced round with so many constants and states, then draws.

    The outputs of the trace are the new states and what is to be kept of a round. `inputs` are arrays: the constants, the states (which
    are left as they are) and the draws, which have a leading time axis; `outputs` are arrays to fill: the states, then what is kept, with
    a leading axis for the rounds it is kept of. Those are all, or where `marked` those whose number in `marks`, the row to fill, is not
    below 0; then what is kept must be among the new states. Scalars are arrays of no axes.

    An axis of length `LANES` in the trace is that of several runs, of which `lanes` are played, at most `wide`. It is the last one in
    memory, and the innermost loop goes along it, so that one instruction serves several runs.
    """
    return _Loops(wide).function(traced, constants, states, marked)


def lower_step(traced: Any, constants: int, states: int, largest: float, ring: tuple[int, Any] | None = None) -> tuple[str, int]:
    """The source of ``run(memory)``, one round on one flat array, so that calling it costs next to nothing; and the length of the array.

    `memory` holds the trace's arguments one after the other (constants, states, and what is given of this round), then room for the new
    states, which are all that the trace gives. The answer is 0 where they have taken the old ones' place, 1 where a number given is larger
    than `largest` (if that is finite) or none at all, 2 where a new number is not finite and the one before it was: then nothing has
    changed.

    With a `ring`, so many rows and the parts (begin, end) of the memory that make one up, the memory goes on with a number and the rows:
    a round writes those parts, as they are before it, in the row of that number, which it raises by 1. The answer is -1 where that was
    the last row. What the array has beyond that is for what comes up in between.
    """
    return _Loops().step(traced, constants, states, largest, ring)


class _Loops(Writer):
    """Statements before the rounds and in them."""

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
        self.before: list[str | Nest] = []
        self.body: list[str | Nest] = []
        self.entry: list[str] = []
        self.buffers: dict[str, str] = {}
        self.views: dict[str, str] = {}
        self.height = 0
        self.spare: int | None = None  # where the memory is free, if there is one
        self.lines, self.depth = self.body, 2

    def function(self, traced: Any, constants: int, states: int, marked: bool) -> str:
        jaxpr = traced.jaxpr
        if any(LANES in var.aval.shape for var in jaxpr.invars):
            self.called = {**self.called, "exp": "_exp"}  # type: ignore[misc]
        self.count(jaxpr)
        entry = self.entry
        known = {var: self.fixed_array(np.asarray(array)) for var, array in zip(jaxpr.constvars, traced.consts, strict=True)}
        given, own = jaxpr.invars, constants
        held: list[Value] = []
        for n, var in enumerate(given):
            shape, name = tuple(var.aval.shape), f"a{n}"
            if n < own + states:
                if LANES in shape:
                    self.rows(name, shape)
                    entry.append(f"    {name}[{_runs(shape)}] = inputs[{n}]")
                elif math.prod(shape) == 1:  # a variable, whatever its axes
                    entry.append(f"    {name} = inputs[{n}][{', '.join('0' * len(shape)) or '()'}]")
                else:
                    entry.append(f"    {name} = inputs[{n}]" + ("" if n < own else ".copy()"))
                known[var] = self.named(name, shape if math.prod(shape) > 1 else (), kind_of(var), n < own)._replace(shape=shape)
                if n >= own:
                    held.append(known[var])
            else:
                entry.append(f"    {name} = inputs[{n}]")
                known[var] = self.dealt(name, shape, kind_of(var))
        self.equations(jaxpr, known)
        unchanged = [a is b for a, b in zip(jaxpr.outvars, given[own:], strict=False)][:states]
        made = [self.value(var, known) for var in jaxpr.outvars]
        if not marked:
            self.finish(made, held, unchanged, self.keep)
        else:  # what is kept now and then is part of the states, and read from them when they are new
            self.finish(made[:states], held, unchanged, self.keep)
            self.begin("when", "marks[t] >= 0")
            for n, var in enumerate(jaxpr.outvars[states:], states):
                self.keep(n, held[jaxpr.outvars.index(var)], "marks[t]")
            self.end()
        leaving = [
            f"    outputs[{n}][{'...' if state.shape else '()'}] = a{own + n}" + (f"[{_runs(state.shape)}]" if LANES in state.shape else "")
            for n, state in enumerate(held)
        ]
        parts = [_DECORATOR, "def run(rounds, lanes, marks, inputs, outputs):"]
        return self.text(parts, "    for t in range(rounds):", leaving)

    def text(self, head: list[str], rounds: str, ending: list[str]) -> str:
        """The whole source."""
        lines = [*self.before, rounds, *self.body, *ending]
        within = contract(lines)
        room = [f"    table = np.empty(({self.height}, {self.wide}))"] if self.views else []
        room += [line for name, line in (self.views | self.buffers).items() if name not in within]
        written = (line if isinstance(line, str) else line.text for line in [*head, *room, *self.entry, *lines])
        return PREAMBLE + "\n".join(written) + "\n"

    def step(self, traced: Any, constants: int, states: int, largest: float, ring: tuple[int, Any] | None) -> tuple[str, int]:
        jaxpr, given = traced.jaxpr, traced.jaxpr.invars
        self.count(jaxpr)
        known = {var: self.fixed_array(np.asarray(array)) for var, array in zip(jaxpr.constvars, traced.consts, strict=True)}
        begins = np.cumsum([0, *(math.prod(var.aval.shape) for var in given)]).tolist()
        entry, away = self.entry, begins[-1] - begins[constants]  # from a state to the room for its new value
        cursor = begins[-1] + begins[constants + states] - begins[constants]
        rows, kept = ring or (0, ())
        wide = sum(end - begin for begin, end in kept)
        self.spare = cursor + (1 + rows * wide if ring else 0)
        for n, var in enumerate(given):
            shape, name = tuple(var.aval.shape), f"a{n}"
            entry.append(f"    {name} = {_part(begins[n], shape)}")
            known[var] = self.named(name, shape, kind_of(var), n < constants)
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
                place(self.lines, Nest(self.depth, (), f"{_part(begins[n] + away, shape)} = {value.read(())}"))
            changed.append((begins[n], begins[n + 1]))
        parts = [_DECORATOR, "def run(memory):"]
        if largest < math.inf:
            parts += ["    wrong = 0", f"    for i in range({begins[constants + states]}, {begins[-1]}):"]
            parts += [f"        wrong += not abs(memory[i]) <= {largest!r}", "    if wrong:", "        return 1"]
        # Where all new numbers are finite, as they nearly always are, a loop without branches says so.
        ending = ["    wrong = 0"]
        for begin, end in _joined(changed):
            ending += [
                f"    for i in range({begin + away}, {end + away}):",
                f"        wrong += not abs(memory[i]) <= {sys.float_info.max!r}",
            ]
        ending += ["    if wrong:"]
        for begin, end in _joined(changed):
            ending += [f"        for i in range({begin}, {end}):", f"            new = memory[i + {away}]"]
            ending += ["            if not math.isfinite(new) and (new != new or math.isfinite(memory[i])):", "                return 2"]
        answer = "0"
        if ring is not None:
            ending += [f"    row = int(memory[{cursor}])", f"    if row < 0 or row >= {rows}:", "        return 2"]
            at = cursor + 1
            for begin, end in kept:
                ending += [f"    for i in range({end - begin}):"]
                ending += [f"        memory[{at} + row * {wide} + i] = memory[{begin} + i]"]
                at += end - begin
            ending += [f"    memory[{cursor}] = row + 1.0"]
            answer = f"-1 if row == {rows - 1} else 0"
        for begin, end in _joined(changed):
            ending += [f"    for i in range({begin}, {end}):", f"        memory[i] = memory[i + {away}]"]
        return self.text(parts, "    for t in range(1):", [*ending, f"    return {answer}"]), self.spare

    def keep(self, n: int, value: Value, row: str = "t") -> None:
        self.loop(value.shape, lambda at: f"outputs[{n}][{', '.join([row, *_laid_out(value.shape, at)])}] = {value.read(at)}")

    # Statements

    def say(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def begin(self, what: str, *details: Any) -> None:
        heads = {"when": "if {}:", "elsewhen": "elif {}:", "otherwise": "else:", "forever": "while True:", "repeat": "for {} in range({}):"}
        if what == "repeat":
            details = (details[0], _span(details[1]))
        self.say(heads[what].format(*details))
        self.depth += 1
        if "when" in what or what == "otherwise":
            self.say("pass")

    def end(self) -> None:
        self.depth -= 1

    def leave_unless(self, test: str) -> None:
        self.say(f"if not {test}:")
        self.say("    break")

    def only_if(self, test: str, statement: str) -> str:
        return f"if {test}: {statement}"

    def loop(self, shape: Sequence[int], statement: Callable[[list[str]], str]) -> None:
        """Axes of one element need no loop; those of none have one that does nothing."""
        order = _laid_out(shape, [axis for axis in range(len(shape))])
        loops = [axis for axis in order if shape[axis] != 1]
        at = [f"i{loops.index(axis)}" if axis in loops else "0" for axis in range(len(shape))]
        place(self.lines, Nest(self.depth, [_span(shape[axis]) for axis in loops], statement(at)))

    in_order = loop

    @contextmanager
    def nested(self, shape: Sequence[int], index: str = "i", least: int = 2) -> Iterator[list[str]]:
        """Inside loops over these axes, the one over runs innermost; one element has no loop, and the index 0, unless `least` is 1."""
        depth = self.depth
        at = [f"{index}{axis}" if size >= least or size == 0 else "0" for axis, size in enumerate(shape)]
        for axis in _laid_out(shape, range(len(shape))):
            if at[axis] != "0":
                self.begin("repeat", at[axis], shape[axis])
        yield at
        self.depth = depth

    def store(self, target: Value, at: Sequence[str], code: str) -> str:
        return f"{target.read(at)} = {code}"

    def buffer(self, shape: Sequence[int], kind: str) -> str:
        name = self.name("b")
        if LANES in shape and kind == "f":
            self.rows(name, shape)
        elif self.spare is not None and kind == "f":
            self.buffers[name] = f"    {name} = {_part(self.spare, tuple(shape))}"
            self.spare += math.prod(shape)
        else:
            self.buffers[name] = f"    {name} = np.empty(({', '.join(map(_span, _laid_out(shape, shape)))},), {_TYPE[kind]})"
        return name

    def rows(self, name: str, shape: Sequence[int]) -> None:
        """Room for an array of several runs: rows of one table, so that the compiler can see that no two of them overlap."""
        inner = [size for size in shape if size != LANES]
        begin, self.height = self.height, self.height + math.prod(inner)
        if not inner:
            view = f"[{begin}]"
        else:
            view = f"[{begin}:{self.height}]" + (f".reshape(({', '.join(map(str, inner))}, {self.wide}))" if len(inner) > 1 else "")
        self.views[name] = f"    {name} = table{view}"

    def variable(self, name: str, kind: str, code: str) -> None:
        place(self.lines, Nest(self.depth, (), f"{name} = {code}"))

    def early(self, fixed: bool) -> Any:
        return _Early(self, fixed and self.lines is self.body and self.depth == 2)

    # Values

    def number(self, value: Any, kind: str) -> str:
        value = {"f": float, "i": int, "b": bool}[kind](value)
        return repr(value) if math.isfinite(value) else "np.nan" if value != value else "np.inf" if value > 0 else "-np.inf"

    def named(self, name: str, shape: tuple[int, ...], kind: str, fixed: bool) -> Value:
        return Value(shape, kind, lambda at: f"{name}[{', '.join(_laid_out(shape, at))}]" if shape else name, True, fixed)

    def dealt(self, name: str, shape: tuple[int, ...], kind: str) -> Value:
        return Value(shape, kind, lambda at: f"{name}[{', '.join(['t', *_laid_out(shape, at)])}]", True, False)

    def fixed_array(self, array: np.ndarray) -> Value:
        kind = {"f": "f", "i": "i", "u": "i", "b": "b"}[array.dtype.kind]
        if array.ndim == 0:
            return self.literal(array.item(), (), kind)
        if LANES in array.shape:
            raise self.refused("a table of one number for every run")
        name = self.name("b")
        self.entry.append(f"    {name} = np.array({array.tolist()!r})")
        return self.named(name, array.shape, kind, True)

    def special(self, name: str, params: dict[str, Any], given: list[Value], kind: str) -> Callable[[list[str]], str] | None:
        if name in ("pow", "rem"):
            return lambda parts: f"({parts[0]} {'**' if name == 'pow' else '%'} {parts[1]})"
        if name == "not":
            return lambda parts: f"(not {parts[0]})" if kind == "b" else f"(~{parts[0]})"
        if name == "square":
            return lambda parts: f"({parts[0]}) ** 2"
        if name == "rsqrt":
            return lambda parts: f"(1.0 / math.sqrt({parts[0]}))"
        if name == "integer_pow":
            return lambda parts: f"(({parts[0]}) ** {params['y']})" if params["y"] > 0 else f"(1.0 / ({parts[0]}) ** {-params['y']})"
        return None

    def converted(self, code: str, before: str, after: str) -> str:
        if before == after:
            return code
        if after == "b":
            return f"({code} != 0)"
        if before == "b":
            return f"{'_real' if after == 'f' else '_whole'}({code})"
        return f"{'float' if after == 'f' else 'int'}({code})"

    # Operations with loops of their own

    def fold(self, step: str, value: Value, axes: Sequence[int], shape: Any, kind: str) -> Value:
        start = "0" if kind == "i" and step == "add" else _START[step]
        inner = [value.shape[axis] for axis in axes]
        kept = [axis for axis in range(len(value.shape)) if axis not in axes]

        def element(outer: Sequence[str], index: Sequence[str]) -> str:
            here = dict(zip(kept, outer, strict=True)) | dict(zip(axes, index, strict=True))
            return value.read([here[axis] for axis in range(len(value.shape))])

        if math.prod(inner) == 1:  # there is nothing to add up
            return Value(shape, kind, lambda at: element(at, ["0"] * len(inner)), value.cheap, value.fixed)
        target = "" if math.prod(shape) == 1 else self.buffer(shape, kind)
        made = self.named(target, shape, kind, value.fixed)
        total = self.name("v")
        with self.early(value.fixed):
            if LANES in shape:
                # Runs are added up side by side: each element of the sum is all runs' before the next is begun.
                lane = shape.index(LANES)
                with self.nested([1 if axis == lane else size for axis, size in enumerate(shape)], "k") as at:

                    def place(run: str) -> list[str]:
                        return [*at[:lane], run, *at[lane + 1 :]]

                    self.loop([LANES], lambda run: f"{made.read(place(run[0]))} = {start}")
                    self.loop(
                        [*inner, LANES],
                        lambda i: (
                            f"{made.read(place(i[-1]))} = {_STEP[step].format(made.read(place(i[-1])), element(place(i[-1]), i[:-1]))}"
                        ),
                    )
                return made
            with self.nested(shape, "k") as at:
                self.variable(total, kind, start)
                self.loop(inner, lambda i: f"{total} = {_STEP[step].format(total, element(at, i))}")
                if target:
                    self.loop((), lambda _: f"{made.read(at)} = {total}")
        return made if target else Value(shape, kind, lambda at: total, True, value.fixed)

    def extreme(self, value: Value, axis: int, shape: Any, sign: str) -> Value:
        several = math.prod(shape) > 1
        name = self.buffer(shape, "i") if several else ""
        best, found = self.name("v"), self.name("v")
        with self.nested(shape, "k") as at:
            self.say(f"{best} = {value.read([*at[:axis], '0', *at[axis:]])}")
            self.say(f"{found} = 0")
            self.say(f"for j in range(1, {value.shape[axis]}):")
            element = value.read([*at[:axis], "j", *at[axis:]])
            self.say(f"    if {element} {sign} {best}:")
            self.say(f"        {best} = {element}")
            self.say(f"        {found} = j")
            made = self.named(name, shape, "i", False)
            if several:
                self.say(f"{made.read(at)} = {found}")
        return made if several else Value(shape, "i", lambda at: found, True, False)

    def running(self, made: Value, axis: int, reverse: bool, step: str) -> None:
        shape = made.shape

        def add(at: list[str]) -> str:
            here = [
                f"({shape[axis] - 2} - {each})" if i == axis and reverse else f"({each} + 1)" if i == axis else each
                for i, each in enumerate(at)
            ]
            last = [f"({shape[axis] - 1} - {each})" if i == axis and reverse else each for i, each in enumerate(at)]
            return f"{made.read(here)} = {_STEP[step].format(made.read(last), made.read(here))}"

        # The loop over the axis must not be left out, even where it has a single step.
        with self.nested([n - 1 if i == axis else n for i, n in enumerate(shape)], least=1) as at:
            self.say(add(at))

    def do_sort(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        axis = equation.params["dimension"]
        if equation.params["num_keys"] != 1 or axis != len(shape) - 1:
            raise self.refused("'sort' of several keys or other than the last axis")
        if shape[-1] == 1:
            return list(given)
        parts, order = [self.stored(value._replace(fixed=False)) for value in given], self.name("b")
        with self.nested(shape[:-1], least=1) as at:
            rows = [f"{part.read([*at, ':'])}" for part in parts]
            if len(rows) == 1:
                self.say(f"{rows[0]} = np.sort({rows[0]})")
            else:
                self.say(f"{order} = np.argsort({rows[0]}, kind='mergesort')")
                for row in rows:
                    self.say(f"{row} = {row}[{order}]")
        return parts

    def do_eigh(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        matrix = self.stored(given[0]._replace(fixed=False))
        if matrix.shape[-1] == 1:
            ones = self.stored(Value(matrix.shape, "f", lambda at: "1.0", False, False))
            return [ones, Value(matrix.shape[:-1], "f", lambda at: matrix.read([*at, "0"]), True, False)]
        vectors, values = (self.named(self.buffer(shape, "f"), shape, "f", False) for shape in (matrix.shape, matrix.shape[:-1]))
        with self.nested(matrix.shape[:-2], least=1) as at:
            here, found = matrix.read([*at, ":", ":"]), self.name("v")
            # XLA symmetrises first; only one triangle is read otherwise.
            self.say(f"{found} = np.linalg.eigh(0.5 * ({here} + {here}.T))")
            self.say(f"{values.read([*at, ':'])} = {found}[0]")
            self.say(f"{vectors.read([*at, ':', ':'])} = {found}[1]")
        return [vectors, values]


class _Early:
    """Statements said inside go before the rounds, if they may."""

    def __init__(self, writer: _Loops, early: bool) -> None:
        self.writer, self.early = writer, early

    def __enter__(self) -> None:
        if self.early:
            self.writer.lines, self.writer.depth = self.writer.before, 1

    def __exit__(self, *_: Any) -> None:
        if self.early:
            self.writer.lines, self.writer.depth = self.writer.body, 2


def _span(size: int) -> str:
    return "lanes" if size == LANES else str(size)


def _runs(shape: Sequence[int]) -> str:
    """The elements of the runs there are, of an array that has room for more."""
    return ", ".join([*":" * (len(shape) - 1), ":lanes"])


def _laid_out(shape: Sequence[int], axes: Sequence[Any]) -> list[Any]:
    """What belongs to the axes of an array in the order they have in memory: the one over runs comes last."""
    return [each for size, each in zip(shape, axes, strict=True) if size != LANES] + [
        each for size, each in zip(shape, axes, strict=True) if size == LANES
    ]


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
