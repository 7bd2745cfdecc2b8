"""A traced round as CUDA C: one kernel in which a few lanes of a warp play a run, all of whose state stays on the chip.

Scalars are variables that every lane holds. `layouts` says which lane holds which elements of an array: they are in its registers, and in
the run's part of shared memory too as far as others read them, with the lanes synchronised between a write and such reads. Sums are of
each lane's own terms and then across lanes in a butterfly, so that every lane has the same bits. Draws come from global memory some rounds
ahead, into shared memory, once for all runs of a block (`staging`). With one lane to a run nothing is shared but the draws.

A round of few runs takes as long as its longest chain of operations. So arithmetic has no branches (`arithmetic`), multiples of an array
are kept as factors, what long functions make of the state alone is remembered, and nobody waits for what a draw of 0 multiplies.

>>> import jax
>>> from jax import numpy as jnp
>>> with jax.enable_x64(True):
...     traced = jax.make_jaxpr(lambda step, x, v: x - step * v)(0.5, jnp.ones(3), jnp.ones(3))
>>> program = write(traced, constants=[False], states=1, draws=[False], lanes=2, runs=16)
>>> "double a1[2];" in program.source  # x is nobody's but its owners': it stays in their registers
True
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bridle.engines.codegen.cuda_draws import Staging
from bridle.engines.codegen.cuda_layout import Grid, Piece, flat, grid_of, pieces, slots, spread, unravel
from bridle.engines.codegen.cuda_math import MACHINE, PREAMBLE
from bridle.engines.codegen.cuda_schedule import NAME, VARIABLE, Choice, Gate, Statement, Unit, behind, declared, hoisted, sunk
from bridle.engines.codegen.lower import Early, Value, Writer, kind_of

_OPERATION = {"add": "_Add", "mul": "_Mul", "max": "_Max", "min": "_Min", "and": "_And", "or": "_Or"}
_START = {"add": "0.0", "mul": "1.0", "max": "-INFINITY", "min": "INFINITY", "and": "true", "or": "false"}
_TYPE = {"f": "double", "i": "long long", "b": "bool"}
_UNROLL = 40
"""Loops of at most so many steps are written out by the compiler, so that arrays stay in registers."""

_LONG = re.compile(r"\b(_exp|_log1p|log|pow|expm1|tanh|_logistic)\(")
_LONG_STEPS = {"exp", "exp2", "log", "log1p", "expm1", "pow", "tanh", "logistic"}
_ACCESS = re.compile("\x01([rw])([a-z]+[0-9]+)[|]([^\x01\x02|]*)[|]([^\x01\x02|]*)\x02")


class Program(NamedTuple):
    """The source of a kernel, the threads of a block, the runs it plays, and the words of shared memory it needs in all."""

    source: str
    threads: int
    runs: int
    words: int


def write(
    traced: Any,
    constants: Sequence[bool],
    states: int,
    draws: Sequence[bool],
    lanes: int,
    runs: int,
    marked: bool = False,
    plain: Sequence[float | None] = (),
) -> Program:
    """The kernel ``play`` for the traced round of a single run, whose arguments are constants, so many states, and draws.

    `constants` and `draws` say of each whether every run has its own; states are always a run's own. `lanes`, a power of 2 up to 32, play
    one run, and a block plays `runs` of them. The kernel is called with the rounds, the number of runs, where `marked` the rounds to keep
    (counted from 0, then one that never comes), and then pointers: constants, states (which it changes), draws with a leading time axis,
    and what is kept of a round, with axes for time and runs in front. `plain` has the number that all elements of a constant are, where it
    is known.
    """
    return _Warps(lanes, runs, marked, grid_of(traced, lanes)).kernel(traced, constants, states, draws, plain)


class _Array(NamedTuple):
    """An array of the kernel: "buffer", "state" or "constant"."""

    role: str
    size: int
    kind: str


class _Multiple(NamedTuple):
    """An array times some numbers, and their product."""

    factors: list[str]
    factor: str
    base: Value


class _Warps(Writer):
    engine = "cuda"
    quotient = "/"
    called: ClassVar[dict[str, str]] = {
        "max": "_max", "min": "_min", "abs": "_abs", "sign": "_sign", "is_finite": "_finite", "logistic": "_logistic",
        "bitcast_convert_type": "__double_as_longlong", "pow": "pow", "square": "_square", "sqrt": "_root", "exp": "_exp",
        "log1p": "_log1p",
    } | {name: name for name in ("log", "expm1", "tanh", "floor", "ceil", "atan2", "sin", "cos")}  # fmt: skip

    def __init__(self, lanes: int, runs: int, marked: bool, grid: Grid | None) -> None:
        super().__init__()
        self.lanes, self.runs, self.marked, self.grid = lanes, runs, marked, grid
        self.plain: dict[Any, Value] = {}
        self.window = ""
        self.piece: Piece | None = None
        self.columns: set[int] = set()
        self.choices: dict[Any, tuple[str, Value, Value]] = {}
        self.scalars: dict[str, tuple[str, str]] = {}
        self.fixed_scalars: dict[str, str] = {}
        self.gates: list[Gate] = []
        self.successors: dict[str, str] = {}
        self.drawn: set[str] = set()
        self.deep: set[Any] = set()
        self.settings: set[str] = set()
        self.keeps: list[str] = []
        self.halts = False
        self.multiples: dict[Any, _Multiple] = {}
        self.arrays: dict[str, _Array] = {}
        self.tables: list[str] = []
        self.before: list[Statement] = []
        self.top: list[Statement] = []
        self.body: list[Statement] = []
        self.states: set[Any] = set()
        self.lines, self.depth = self.body, 0
        self.diverges = False

    # Statements

    def unit(self, *lines: str) -> None:
        self.lines.append(Unit("\n".join(lines)))

    def say(self, line: str) -> None:
        self.unit(f"{line};")

    def begin(self, what: str, *details: Any) -> None:
        if what == "repeat":
            head = f"for (int {details[0]} = 0; {details[0]} < {details[1]}; ++{details[0]}) {{"
        else:
            self.diverges = True
            head = {"when": "if ({}) {{", "elsewhen": "else if ({}) {{", "otherwise": "else {{", "forever": "while (true) {{"}[what]
            head = head.format(*details)
        self.lines.append(Unit(head, edge=True))
        self.depth += 1

    def end(self) -> None:
        self.lines.append(Unit("}", edge=True))
        self.depth -= 1

    def leave_unless(self, test: str) -> None:
        self.lines.append(Unit(f"if (!({test})) break;", edge=True))

    def only_if(self, test: str, statement: str) -> str:
        return f"if ({test}) {statement}"

    def loop(self, shape: Sequence[int], statement: Callable[[list[str]], str]) -> None:
        if math.prod(shape) == 1:
            self.say(statement(["0"] * len(shape)))
        else:
            self.unit(*self.each(shape, lambda at: [f"{statement(at)};"]))

    def each(
        self,
        shape: Sequence[int],
        statements: Callable[[list[str]], list[str]],
        alone: bool = False,
        after: Callable[[Piece], list[str]] = lambda piece: [],
    ) -> list[str]:
        """Every lane does the elements that it holds: number s of its own is element e of all. `alone` where no two may do the same."""
        made, outside = [], self.piece
        wide = [axis for axis, n in enumerate(shape) if n > 1]
        for piece in pieces([shape[axis] for axis in wide], self.lanes, None if alone else self.grid, alone):
            at = ["0"] * len(shape)
            for axis, name in zip(wide, piece.indices, strict=True):
                at[axis] = name
            self.piece = piece
            inside = [*piece.finds, *piece.guarded(statements(at))]
            head = (
                [self.pragma(piece.steps), f"for (int s = {piece.first}; s < {piece.first + piece.steps}; ++s) {{"]
                if piece.steps > 1
                else [f"{{ const int s = {piece.first};"]
            )
            made += [*head, *inside, "}", *after(piece)]
        self.piece = outside
        return made

    def pragma(self, steps: int) -> str:
        return "#pragma unroll" if steps <= _UNROLL else "#pragma unroll 4"

    def in_order(self, shape: Sequence[int], statement: Callable[[list[str]], str]) -> None:
        at = [f"i{axis}" if n > 1 else "0" for axis, n in enumerate(shape)]
        heads = [f"for (int i{axis} = 0; i{axis} < {n}; ++i{axis})" for axis, n in enumerate(shape) if n > 1]
        self.unit("if (lane == 0)", *heads, "{", f"{statement(at)};", "}")

    def store(self, target: Value, at: Sequence[str], code: str) -> str:
        place = target.read(at)
        return f"{place.replace(chr(1) + 'r', chr(1) + 'w', 1) if place.startswith(chr(1)) else place} = {code}"

    def buffer(self, shape: Sequence[int], kind: str) -> str:
        name = self.name("b")
        self.arrays[name] = _Array("buffer", math.prod(shape), kind)
        return name

    def variable(self, name: str, kind: str, code: str) -> None:
        if self.lines is self.before:
            self.fixed_scalars[name] = code
        if self.lines is self.body and self.depth == 0:
            self.scalars[name] = kind, code
            if kind == "f" and "\x01" not in code and (parts := NAME.findall(code)):
                self.drawn |= {name} if all(part in self.drawn for part in parts) else set()
        self.say(f"{_TYPE[kind]} {name} = {code}")

    def early(self, fixed: bool) -> Any:
        return Early(self, fixed and self.lines is self.body and self.depth == 0)

    # Values

    def number(self, value: Any, kind: str) -> str:
        if kind == "b":
            return "true" if value else "false"
        if kind == "i":
            return f"{int(value)}LL"
        return repr(float(value)) if math.isfinite(value) else "NAN" if value != value else "INFINITY" if value > 0 else "-INFINITY"

    def named(self, name: str, shape: tuple[int, ...], kind: str, fixed: bool) -> Value:
        if math.prod(shape) == 1 and name not in self.arrays:
            return Value(shape, kind, lambda at: name, True, fixed)
        made = Value(shape, kind, lambda at: f"\x01r{name}|{self.place(shape, at)}|{self.window}\x02", True, fixed)
        self.plain[made.read] = made
        return made

    def place(self, shape: Sequence[int], at: Sequence[str]) -> str:
        """Where an element is in an array, or a mark that it is the very one that the loop around is about, and the lane holds it."""
        wide = [(at[axis], n) for axis, n in enumerate(shape) if n > 1]
        return self.piece.mark if self.piece and self.piece.holds(wide, self.lanes, self.grid) else flat(shape, at)

    def do_slice(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        """Which part of an array is read is noted: others than its holders need no more of it."""
        made = super().do_slice(equation, given, shape, kind, fixed)[0]
        if len(shape) != 1 or given[0].read not in self.plain:
            return [made]
        start = equation.params["start_indices"][0]
        if self.grid and given[0].read in self.states and given[0].shape == (self.grid.whole,) and self.grid.size <= start:
            # What a round begins with is read before it writes anything, so that nobody waits for it.
            outside, self.lines = self.lines, self.top
            made = self.stored(made._replace(read=self.within(made.read, equation.params)))
            self.lines = outside
            return [made]
        return [made._replace(read=self.within(made.read, equation.params))]

    def within(self, inner: Any, params: dict[str, Any]) -> Any:
        """Reads that note which part of a vector they are of."""

        def read(at: Sequence[str]) -> str:
            outside, self.window = self.window, f"{params['start_indices'][0]}:{params['limit_indices'][0]}"
            code: str = inner(at)
            self.window = outside
            return code

        return read

    def do_reshape(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        """Between the rows and columns of the grid and the vector they lie in, the element stays the same."""
        made, value, grid = super().do_reshape(equation, given, shape, kind, fixed)[0], given[0], self.grid
        new, old = ([(axis, n) for axis, n in enumerate(axes) if n > 1] for axes in (shape, value.shape))
        if grid is None or {tuple(n for _, n in axes) for axes in (new, old)} != {(grid.rows, grid.columns), (grid.rows * grid.columns,)}:
            return [made]
        names = (["row", "col"], ["e"]) if len(new) == 2 else (["e"], ["row", "col"])

        def read(at: Sequence[str]) -> str:
            if [at[axis] for axis, _ in new] != names[0]:
                return made.read(at)
            found = ["0"] * len(value.shape)
            for (axis, _), name in zip(old, names[1], strict=True):
                found[axis] = name
            return value.read(found)

        return [made._replace(read=read)]

    def is_own(self, value: Value) -> bool:
        return value.read(["0"] * len(value.shape)).removeprefix("\x01r").startswith(("b", "v"))

    def fixed_array(self, array: np.ndarray) -> Value:
        kind = {"f": "f", "i": "i", "u": "i", "b": "b"}[array.dtype.kind]
        if array.ndim == 0:
            return self.literal(array.item(), (), kind)
        name, shape = self.name("c"), array.shape
        numbers = ", ".join(self.number(each, kind) for each in array.reshape(-1).tolist())
        self.tables.append(f"static __device__ const {_TYPE[kind]} {name}[] = {{{numbers}}};")
        return Value(shape, kind, lambda at: f"{name}[{flat(shape, at)}]", True, True)

    def formula(self, name: str, params: dict[str, Any], given: list[Value], kind: str) -> Callable[[list[str]], str] | None:
        if kind == "f" and name in ("add", "sub", "mul", "div"):
            neutral = 0.0 if name in ("add", "sub") else 1.0
            if _known(given[1]) == neutral:
                return lambda parts: parts[0]
            if name in ("add", "mul") and _known(given[0]) == neutral:
                return lambda parts: parts[1]
            if name == "div" and given[1].single and (divisor := _known(given[1])) and 1e-300 < abs(divisor) < 1e300:
                # A division takes some ten times as long as a product, and a round is a chain of them.
                inverse = self.number(1.0 / divisor, "f")
                return lambda parts: f"({parts[0]} * {inverse if divisor > 0.0 else f'({inverse})'})"
            if name == "div":
                return lambda parts: self.quotient_of(*parts)
        if name == "eq" and given[0].kind == "f" and given[0].single and given[1].single:
            return lambda parts: self.flag_of(*parts) or f"({parts[0]} == {parts[1]})"
        return super().formula(name, params, given, kind)

    def quotient_of(self, a: str, b: str) -> str:
        """a / b, where b may be a root, or 1 in place of a root that is none: a root and a division take twice as long as both at once."""
        code = self.scalars.get(b, ("", ""))[1]
        if match := re.fullmatch(r"_root\((v[0-9]+)\)", code):
            return f"_over_root({a}, {match[1]})"
        if match := re.fullmatch(r"_pick\((v[0-9]+), (v[0-9]+), (v[0-9]+)\)", code):
            flag, one, root = match.groups()
            inside = re.fullmatch(r"_root\((v[0-9]+)\)", self.scalars.get(root, ("", ""))[1])
            if inside and self.fixed_scalars.get(one) == "1.0":
                return f"_over_root({a}, _pick({flag}, 1.0, {inside[1]}))"
        return f"_over({a}, {b})"

    def flag_of(self, a: str, b: str) -> str | None:
        """Whether a root is 0, told from what it is the root of."""
        match = re.fullmatch(r"_root\((v[0-9]+)\)", self.scalars.get(a, ("", ""))[1])
        return f"_vanishes({match[1]})" if match and b == "0.0" else None

    # Multiples of an array by a number

    def equation(self, equation: Any, given: list[Value]) -> list[Value]:
        kind = kind_of(equation.outvars[0])
        made = (self.gated(equation, given) or self.multiplied(equation, given)) if kind == "f" else None
        if made is not None:
            return [made]
        many = super().equation(equation, given)
        if equation.primitive.name == "select_n" and given[0].single and not many[0].single and len(given) == 3 and kind == "f":
            self.choices[many[0].read] = (given[0].read(["0"] * len(given[0].shape)), given[2], given[1])
        return many

    def stored(self, value: Value) -> Value:
        """A choice between arrays by one flag is made once, not for every element: what only one of them needs is done for that one."""
        if value.read not in self.choices or value.fixed:
            return super().stored(value)
        test, *sides = self.choices[value.read]
        made = self.named(self.buffer(value.shape, value.kind), value.shape, value.kind, False)

        def put(side: Value) -> list[str]:
            return self.each(value.shape, lambda at: [f"{self.store(made, at, side.read(_fitted(side, at)))};"])

        self.lines.append(Choice(self.agreed(test), (put(sides[0]), put(sides[1]))))
        return made

    def agreed(self, test: str) -> str:
        """A test that comes out the same in all lanes, such that the machine knows it where a run has all lanes of a warp."""
        return f"_any({test})" if self.lanes == 32 else test

    def gated(self, equation: Any, given: list[Value]) -> Value | None:
        """A number of the round's draw times what comes of long functions, on its way into others: nothing where the draw is 0.

        Nobody waits then for what it is multiplied by, which may be worked out meanwhile if others need it.
        """
        if equation.primitive.name != "mul" or equation.outvars[0] not in self.deep or self.depth or self.lines is not self.body:
            return None
        names = [value.read(["0"] * len(value.shape)) if value.single else "" for value in given]
        for gate, other in (names, names[::-1]):
            long = self.long_parts(other) if gate in self.drawn else []
            if long and not any("\x01" in self.scalars[name][1] for name in long):
                made, outer, lines = self.name("v"), {gate, other}, []
                for name in long:
                    kind, code = self.scalars[name]
                    inputs = set(VARIABLE.findall(code)) - set(long)
                    outer |= inputs
                    for each in inputs:
                        if self.scalars.get(each, ("",))[0] == "f":
                            code = re.sub(rf"\b{each}\b", f"_apart({each})", code)
                    lines.append(f"{_TYPE[kind]} {name} = {code};")
                last = max((i for i, unit in enumerate(self.body) if declared(unit.text) in outer - set(long)), default=-1)
                lines = [f"if ({gate} != 0.0) {{", *lines, f"{made} = {gate} * {other};", "}"]
                self.gates.append(Gate(f"double {made} = 0.0;", gate, made, long, lines))
                self.body.insert(last + 1, self.gates[-1])
                return Value(tuple(equation.outvars[0].aval.shape), "f", lambda at, made=made: made, True, False)  # type: ignore[misc]
        return None

    def long_parts(self, name: str) -> list[str]:
        """The variables behind this one, and it, that come of exponentials or logarithms, in order; none where there are none."""
        if name not in self.scalars:
            return []
        found: list[str] = []
        for other in VARIABLE.findall(self.scalars[name][1]):
            found += [each for each in self.long_parts(other) if each not in found]
        return [*found, name] if found or _LONG.search(self.scalars[name][1]) else []

    def multiplied(self, equation: Any, given: list[Value]) -> Value | None:
        """What a round does to multiples of one array it does to their factors, as long as it can: sums of them, and sums of their squares
        over all elements, need but one pass over the array, and that before the factors are known."""
        name, shape = equation.primitive.name, tuple(equation.outvars[0].aval.shape)
        if all(value.fixed for value in given):
            return None
        known = [self.multiples.get(value.read) for value in given]
        if name in ("broadcast_in_dim", "reshape", "squeeze", "expand_dims") and (one := known[0]) is not None:
            same = [n for n in shape if n > 1] == [n for n in given[0].shape if n > 1]
            return self.multiple(one.factors, one.base, shape) if same else None
        if name == "mul" and math.prod(shape) > 1:
            for scalar, array, one in ((given[0], given[1], known[1]), (given[1], given[0], known[0])):
                if scalar.single and not array.single:
                    factor = scalar.read(["0"] * len(scalar.shape))
                    if one is not None:
                        return self.multiple([*one.factors, factor], one.base, shape)
                    return self.multiple([factor], self.settle(array), shape) if array.shape == shape else None
        if name in ("mul", "add", "sub") and (one := known[0]) and (two := known[1]) and one.base.read is two.base.read:
            if name == "mul":
                square = self.elementwise(lambda parts: f"({parts[0]} * {parts[1]})", [one.base, two.base], one.base.shape, "f", False)
                return self.multiple([*one.factors, *two.factors], square, shape)
            factor = self.scalar(f"({one.factor} {'+' if name == 'add' else '-'} {two.factor})", (), "f", False).read(())
            return self.multiple([factor], one.base, shape)
        if name == "reduce_sum" and (one := known[0]) is not None and math.prod(shape) == 1:
            axes = range(len(one.base.shape))
            total = self.fold_all("add", f"({_TYPE['f']}){_START['add']}", one.base, axes, (), "f", quick=False).read(())
            for factor in one.factors:  # one after the other: their product alone may be too large or too small
                total = f"({factor} * {total})"
            return self.scalar(total, shape, "f", False)
        return None

    def multiple(self, factors: list[str], base: Value, shape: tuple[int, ...]) -> Value:
        factor = factors[0] if len(factors) == 1 else self.scalar(f"({' * '.join(factors)})", (), "f", False).read(())
        wide = [axis for axis, n in enumerate(base.shape) if n > 1]

        def read(at: Sequence[str]) -> str:
            found = ["0"] * len(base.shape)
            for axis, index in zip(wide, [i for i, n in zip(at, shape, strict=True) if n > 1], strict=True):
                found[axis] = index
            return f"({factor} * {base.read(found)})"

        self.multiples[read] = _Multiple(factors, factor, base)
        return Value(shape, "f", read, True, False)

    def special(self, name: str, params: dict[str, Any], given: list[Value], kind: str) -> Callable[[list[str]], str] | None:
        if name == "rem":
            return lambda parts: f"fmod({parts[0]}, {parts[1]})" if kind == "f" else f"({parts[0]} % {parts[1]})"
        if name == "not":
            return lambda parts: f"(!{parts[0]})" if kind == "b" else f"(~{parts[0]})"
        if name == "rsqrt":
            return lambda parts: f"_over(1.0, _root({parts[0]}))"
        if name == "integer_pow":
            y = params["y"]
            return lambda parts: f"_power<{y}>({parts[0]})" if y > 0 else f"_over(1.0, _power<{-y}>({parts[0]}))"
        return None

    def converted(self, code: str, before: str, after: str) -> str:
        if after == "b":
            return code if before == "b" else f"({code} != 0)"
        if before == "b" and after == "f":
            return f"_real({code})"
        return code if before == after == "f" else f"(({_TYPE[after]}){code})"

    # Operations with loops of their own

    def fold(self, step: str, value: Value, axes: Sequence[int], shape: Any, kind: str) -> Value:
        kept = [axis for axis in range(len(value.shape)) if axis not in axes]
        start = f"({_TYPE[kind]}){_START[step]}" if kind != "i" or step in ("add", "mul") else value.read(["0"] * len(value.shape))
        if math.prod(shape) == 1:
            return self.fold_all(step, start, value, axes, shape, kind)
        made = self.named(self.buffer(shape, kind), shape, kind, value.fixed)
        inner = [value.shape[axis] for axis in axes]
        outer, terms, type_, operation = math.prod(shape), math.prod(inner), _TYPE[kind], _OPERATION[step]
        if self.grid is not None and value.shape == (self.grid.rows, self.grid.columns) and tuple(axes) == (1,) and kind == "f":
            return self.fold_rows(step, start, value, made)
        share = min((2**n for n in range(self.lanes.bit_length())), key=lambda p: _effort(outer, terms, self.lanes, p))
        rows = self.lanes // share
        passes, steps = -(-outer // rows), -(-terms // share)
        partial = min(4, steps) if steps <= _UNROLL else 1
        inside = unravel("k", inner)

        def summed(at: list[str]) -> list[str]:
            index = dict(zip(kept, at, strict=True)) | dict(zip(axes, inside, strict=True))
            term = value.read([index[axis] for axis in range(len(value.shape))])
            return [
                *([f"if (k < {terms})"] if terms % share else []),
                f"p[j % {partial}] = {operation}::of(p[j % {partial}], ({type_})({term}));",
            ]

        first = [f"{type_} p[{partial}];", "#pragma unroll", f"for (int j = 0; j < {partial}; ++j) p[j] = {start};"]
        along = [
            self.pragma(steps),
            f"for (int j = 0; j < {steps}; ++j) {{",
            f"const int k = {'' if share == 1 else f'lane % {share} + '}{share} * j;",
        ]
        with self.early(value.fixed):
            if share == 1:
                self.unit(
                    *self.each(
                        shape,
                        lambda at: [*first, *along, *summed(at), "}", *_gathered(partial, operation), f"{self.store(made, at, 'p[0]')};"],
                    )
                )
            else:
                at = unravel("m", shape)
                self.unit(
                    self.pragma(passes),
                    f"for (int s = 0; s < {passes}; ++s) {{",
                    f"const int m = lane / {share} + {rows} * s;",
                    *first,
                    f"if (m < {outer}) {{",
                    *along,
                    *summed(at),
                    "}",
                    "}",
                    *_gathered(partial, operation),
                    f"p[0] = _across<{operation}, {share}>(mask, p[0]);",
                    f"if (m < {outer} && lane % {share} == 0) {self.store(made, at, 'p[0]')};",
                    "}",
                )
        return made

    def fold_rows(self, step: str, start: str, value: Value, made: Value) -> Value:
        """Of the grid's rows, each of which some lanes hold: their own parts, then those of a row brought to the lane that it is for."""
        grid, operation, part = self.grid, _OPERATION[step], self.name("v")
        assert grid is not None
        partial = min(4, grid.steps)

        def add(at: list[str]) -> list[str]:
            term = value.read(at)
            here = f"({grid.inside} ? ({term}) : {start})" if grid.columns % grid.share else term
            return [f"p[s % {partial}] = s < {partial} ? {here} : {operation}::of(p[s % {partial}], {here});"]

        def gather(at: list[str]) -> list[str]:
            parts = [f"_from<{self.lanes}>(mask, {part}, {at[0]} * {grid.share} + {n})" for n in range(grid.share)]
            code = parts[0]
            for other in parts[1:]:
                code = f"{operation}::of({code}, {other})"
            return [f"{self.store(made, at, code)};"]

        with self.early(value.fixed):
            self.unit(
                f"double {part}; {{",
                f"double p[{partial}];",
                *self.each(value.shape, add),
                *_gathered(partial, operation),
                f"{part} = p[0]; }}",
            )
            self.unit(*self.each(made.shape, gather))
        return made

    def fold_all(self, step: str, start: str, value: Value, axes: Sequence[int], shape: Any, kind: str, quick: bool = True) -> Value:
        """A reduction to a single element, which every lane comes to hold; `quick` where others wait for it."""
        total, type_, operation = self.name("v"), _TYPE[kind], _OPERATION[step]
        inner = [value.shape[axis] for axis in axes]
        width = spread(math.prod(inner), self.lanes)
        steps = slots(math.prod(inner), self.lanes, self.grid) if width == self.lanes else 1
        partial = min(4, steps) if steps <= _UNROLL else 1

        def add(at: list[str]) -> list[str]:
            index = dict(zip(axes, at, strict=True))
            term = value.read([index.get(axis, "0") for axis in range(len(value.shape))])
            piece = self.piece
            assert piece is not None
            here = f"(({piece.counts}) ? ({type_})({term}) : {start})" if piece.counts else f"({type_})({term})"
            if piece.first:
                return [f"{rest} = s > {piece.first} ? {operation}::of({rest}, {here}) : {here};"]
            if partial > 1 or steps == 1:
                return [f"p[s % {partial}] = s < {partial} ? {here} : {operation}::of(p[s % {partial}], {here});"]
            return [f"p[0] = {operation}::of(p[0], {here});"]

        def end(piece: Piece) -> list[str]:
            """The parts of a piece as one; what lanes hold that others hold too is dropped."""
            if piece.first:
                return [f"p[0] = {operation}::of(p[0], {rest});"]
            dropped = [f"p[0] = {piece.first_held} ? p[0] : {start};"] if piece.first_held else []
            return [*_gathered(partial, operation), *dropped]

        rest = f"{total}r"

        with self.early(value.fixed):
            if math.prod(inner) == 1:
                self.say(f"{type_} {total} = {value.read(['0'] * len(value.shape))}")
            else:
                self.unit(
                    f"{type_} {total}; {{",
                    f"{type_} p[{partial}], {rest};" if partial > 1 or steps == 1 else f"{type_} p[1] = {{{start}}}, {rest};",
                    *self.each(inner, add, after=end),
                    f"{total} = _across<{operation}, {width}{', true' if quick and self.lanes == 32 else ''}>(mask, p[0]);"
                    if width > 1
                    else f"{total} = p[0];",
                    "}",
                )
        return Value(shape, kind, lambda at: total, True, value.fixed)

    def extreme(self, value: Value, axis: int, shape: Any, sign: str) -> Value:
        count, type_ = value.shape[axis], _TYPE[value.kind]

        def search(at: list[str], first: str, stride: int) -> list[str]:
            def element(j: str) -> str:
                return value.read([*at[:axis], j, *at[axis:]])

            return [
                f"{type_} best = {element(first)}; int found = {first};",
                f"for (int j = {first} + {stride}; j < {count}; j += {stride})",
                f"if ({element('j')} {sign} best) {{ best = {element('j')}; found = j; }}",
            ]

        if math.prod(shape) > 1:
            made = self.named(self.buffer(shape, "i"), shape, "i", False)
            self.unit(*self.each(shape, lambda at: [*search(at, "0", 1), f"{self.store(made, at, 'found')};"]))
            return made
        total, lanes = self.name("v"), self.lanes
        whole = self.lanes == 1 or count <= 4
        first = "0" if whole else "first"
        meeting = [
            f"for (int m = {lanes // 2}; m > 0; m /= 2) {{",
            f"const {type_} other = _swap(mask, best, m); const int place = (int)_swap(mask, (long long)found, m);",
            f"if (other {sign} best || (other == best && place < found)) {{ best = other; found = place; }}",
            "}",
        ]
        self.unit(
            f"long long {total}; {{",
            *([] if whole else [f"const int first = lane < {count} ? lane : {count - 1};"]),
            *search(["0"] * len(shape), first, 1 if whole else lanes),
            *([] if whole else meeting),
            f"{total} = found; }}",
        )
        return Value(shape, "i", lambda at: total, True, False)

    def running(self, made: Value, axis: int, reverse: bool, step: str) -> None:
        count = made.shape[axis]
        others = [n for i, n in enumerate(made.shape) if i != axis]

        def along(at: list[str]) -> list[str]:
            self.piece = None  # a row is one lane's, its elements are not
            here, last = (f"{count - 1} - j", f"{count} - j") if reverse else ("j", "j - 1")
            now, old = ([*at[:axis], f"({j})", *at[axis:]] for j in (here, last))
            code = self.store(made, now, f"{_OPERATION[step]}::of({made.read(old)}, {made.read(now)})")
            return [f"for (int j = 1; j < {count}; ++j) {code};"]

        self.unit(
            *(self.each(others, along, alone=True) if math.prod(others) > 1 else ["if (lane == 0) {", *along(["0"] * len(others)), "}"])
        )

    def do_sort(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        """By rank: every element counts those before it. Nothing is exchanged, and equal ones keep their order."""
        if equation.params["num_keys"] != 1 or equation.params["dimension"] != len(shape) - 1:
            raise self.refused("'sort' of several keys or other than the last axis")
        if math.prod(shape) == 1:
            return given
        parts = [self.settle(value) for value in given]
        made = [self.named(self.buffer(shape, part.kind), shape, part.kind, False) for part in parts]

        def put(at: list[str]) -> list[str]:
            mine, other = parts[0].read(at), parts[0].read([*at[:-1], "j"])
            rank = f"rank += _less({other}, key) || (j < {at[-1]} && !_less(key, {other}));"
            head = f"int rank = 0; const {_TYPE[parts[0].kind]} key = {mine};"
            places = [f"{self.store(new, [*at[:-1], 'rank'], old.read(at))};" for new, old in zip(made, parts, strict=True)]
            return [head, f"for (int j = 0; j < {shape[-1]}; ++j) {rank}", *places]

        self.unit(*self.each(shape, put))
        return made

    def do_concatenate(self, equation: Any, given: list[Value], shape: Any, kind: str, fixed: bool) -> list[Value]:
        """Read off the parts in place, so that an element is made by the lane that owns it."""
        axis, parts = equation.params["dimension"], [self.settle(value) for value in given]

        def read(at: Sequence[str]) -> str:
            code, end = "", shape[axis]
            low, high = (self.piece.low, self.piece.high) if self.piece and at[axis] == self.piece.indices[0] else (0, end)
            for part in reversed(parts):
                start = end - part.shape[axis]
                if start < high and low < end:
                    inside = f"({at[axis]} - {start})" if self.lanes == 1 else f"_kept({at[axis]} - {start}, {part.shape[axis] - 1})"
                    inside = inside if part.shape[axis] > 1 else "0"
                    here = part.read([inside if i == axis and start else each for i, each in enumerate(at)])
                    test = f"{at[axis]} < {end}"
                    # Where both are there to be read, reading both is faster than a branch.
                    both = kind == "f" and self.lanes > 1 and start > 0
                    code = (f"_either({test}, {here}, {code})" if both else f"({test} ? {here} : {code})") if code else here
                end = start
            return code

        return [Value(shape, kind, read, False, fixed)]

    # The kernel

    def kernel(self, traced: Any, constants: Sequence[bool], states: int, draws: Sequence[bool], plain: Sequence[float | None]) -> Program:
        jaxpr = traced.jaxpr
        self.count(jaxpr)
        self.deep = _deep(jaxpr)
        known = {var: self.fixed_array(np.asarray(array)) for var, array in zip(jaxpr.constvars, traced.consts, strict=True)}
        given, first, last = jaxpr.invars, len(constants), len(constants) + states
        held: list[Value] = []
        entry, parameters, leaving = [], ["const int rounds", "const int runs"], []
        staged = Staging(
            self, [(f"d{n}", math.prod(var.aval.shape), own) for n, (var, own) in enumerate(zip(given[last:], draws, strict=True))]
        )
        if self.marked:
            parameters.append("const int* __restrict__ rows")
        for n, var in enumerate(given[:last]):
            shape, name, size = tuple(var.aval.shape), f"a{n}", math.prod(var.aval.shape)
            own = constants[n] if n < first else True
            origin = f"g{n} + (long long)run * {size}" if own else f"g{n}"
            parameters.append(f"const double* __restrict__ g{n}" if n < first else f"double* __restrict__ g{n}")
            if n < len(plain) and (number := plain[n]) is not None:
                known[var] = self.literal(number, shape, "f")
                continue
            if size == 1:
                entry.append(f"{'const ' if n < first else ''}double {name} = *({origin});")
                leaving += [f"if (real && lane == 0) *({origin}) = {name};"] if n >= first else []
            else:
                self.arrays[name] = _Array("constant" if n < first else "state", size, "f")
                entry.append(f"{name}: {origin}")
                away = self.each([size], lambda at, name=name, origin=origin: [f"if (real) ({origin})[e] = {self.mine(name)};"])  # type: ignore[misc]
                leaving += away if n >= first else []
            known[var] = self.named(name, shape, "f", n < first)
            held += [known[var]] if n >= first else []
            self.states |= {known[var].read} if n >= first else set()
        for n, var in enumerate(given[last:]):
            parameters.append(f"const double* __restrict__ d{n}")
            known[var] = staged.value(n, tuple(var.aval.shape))
            self.drawn |= {f"u{n}"} if math.prod(var.aval.shape) == 1 else set()
        self.equations(jaxpr, known)
        unchanged = [a is b for a, b in zip(jaxpr.outvars, given[first:], strict=False)][:states]
        made = [self.value(var, known) for var in jaxpr.outvars]
        for n, (new, old) in enumerate(zip(made, held, strict=False), first):
            if old.single and VARIABLE.fullmatch(code := new.read(["0"] * len(new.shape))):
                self.successors[f"a{n}"] = code
        self.settings = {f"a{n}" for n in range(first)} | set(self.fixed_scalars)
        # Where all that is kept is part of the new state, it is read off that between two rounds: a round need not ask whether it is kept.
        after = [next((old for var, old in zip(jaxpr.outvars, held, strict=False) if var is out), None) for out in jaxpr.outvars[states:]]
        self.halts = self.marked and bool(after) and None not in after
        self.finish(made, held, unchanged, self.keep)
        for n, value in enumerate(after if self.halts else [], states):
            assert value is not None
            self.keep(n, value)
        parameters += [f"double* __restrict__ k{n}" for n in range(len(jaxpr.outvars) - states)]
        return self.assembled(parameters, entry, staged, [*leaving], states)

    def mine(self, name: str, how: str = "r") -> str:
        """The element of an array that the loop around is about."""
        assert self.piece is not None
        return f"\x01{how}{name}|{self.piece.mark}|\x02"

    def keep(self, n: int, value: Value) -> None:
        """What is kept of a round goes to its row, if it has one."""
        size, name = math.prod(value.shape), f"k@{n}"
        if size == 1:
            self.keeps.append(f"if (real && lane == 0) {name}[place] = {value.read(['0'] * len(value.shape))};")
        else:
            self.keeps += self.each(value.shape, lambda at: [f"if (real) {name}[place * {size} + e] = {value.read(at)};"])

    def finish(self, made: list[Value], held: list[Value], unchanged: list[bool], keep: Callable[[int, Value], None]) -> None:
        def kept(n: int, value: Value) -> None:
            if self.halts:
                return  # see `kernel`
            keep(n, value)
            if n == len(made) - 1:
                head = "if (t == due) { const long long place = (long long)kept * runs + run;"
                whole = "{ const long long place = (long long)t * runs + run;"
                self.unit(*([head, *self.keeps, "due = rows[++kept];", "}"] if self.marked else [whole, *self.keeps, "}"]))

        super().finish(made, held, unchanged, kept)

    def assembled(self, parameters: list[str], entry: list[str], staged: Staging, leaving: list[str], states: int) -> Program:
        lasting, units = self.remembered(self.body)
        body = sunk([*self.top, *units])
        text = "\n".join(unit.text for unit in [*self.before, *body])
        homes = self.settled(text)
        offset, opening = 0, []
        for name, array in self.arrays.items():
            home, type_ = homes[name], _TYPE[array.kind]
            if home.held:
                opening.append(f"{type_} {name}[{slots(array.size, self.lanes, self.grid)}];")
            if home.high > home.low:
                opening.append(f"{type_}* const {home.shared} = ({type_}*)(mine + {offset}){f' - {home.low}' if home.low else ''};")
                offset += home.high - home.low
        for line in entry:
            name, _, origin = line.partition(": ")
            if not origin:
                opening.append(line)
            elif not homes[name].held and self.arrays[name].role == "constant":
                opening.append(f"const double* __restrict__ const {name} = {origin};")
            else:
                size = self.arrays[name].size
                opening += self.each([size], lambda at, name=name, origin=origin: [f"{self.mine(name, 'w')} = ({origin})[e];"])  # type: ignore[misc]
        apart = any(home.high > home.low for home in homes.values())
        mask = (
            "0xffffffffu"
            if self.lanes == 32 or not self.diverges
            else f"{2**self.lanes - 1}u << (threadIdx.x % 32 / {self.lanes} * {self.lanes})"
        )
        lines = [
            *self.tables,
            f'extern "C" __global__ void __launch_bounds__({self.lanes * self.runs}) play({", ".join(parameters)}) {{',
            "extern __shared__ double memory[];",
            f"const int lane = threadIdx.x % {self.lanes}, slot = threadIdx.x / {self.lanes}, front = blockIdx.x * {self.runs};",
            "const bool real = front + slot < runs;",
            "const int run = real ? front + slot : runs - 1;",
            f"const unsigned mask = {mask};",
            *(self.grid.opening() if self.grid else []),
            f"double* const mine = memory + {staged.words} + slot * {offset};",
            *opening,
            *(["__syncwarp(mask);"] if apart else []),
            *self.synchronised(self.before, homes),
            *lasting,
            *(["int kept = 0, due = rows[0];"] if self.marked else []),
            *staged.opening(),
            *self.synchronised(staged.ahead(body), homes),
            *staged.closing(),
            *leaving,
            "}",
        ]
        source = _resolved("\n".join(lines), homes)
        source = re.sub("k@([0-9]+)", lambda found: f"k{int(found[1]) - states}", source)
        return Program(MACHINE + PREAMBLE + _indented(source), self.lanes * self.runs, self.runs, staged.words + self.runs * offset)

    def remembered(self, units: list[Statement]) -> tuple[list[str], list[Statement]]:
        """What long functions make of numbers of the state alone, the old or the new ones, is worked out again only when these change.

        What is declared before the rounds, and the statements of a round.
        """
        numbers = {*self.successors, *self.successors.values()}
        closed: dict[str, set[str]] = {}  # what depends on these alone, and on which
        for name, (_, code) in self.scalars.items():
            parts = NAME.findall(code)
            if name not in numbers and "\x01" not in code and all(part in numbers | self.settings or part in closed for part in parts):
                closed[name] = {part for part in parts if part in numbers}.union(*(closed[part] for part in parts if part in closed))
        lasting: list[str] = []
        groups: list[set[str]] = []  # of what shares a number
        for name in closed:
            if _LONG.search(self.scalars[name][1]) and (keys := closed[name]):
                apart = [group for group in groups if not group & keys]
                groups = [*apart, keys.union(*(group for group in groups if group & keys))]
        for keys in groups:
            memo: set[str] = set()
            for name in reversed(list(closed)):
                used = any(re.search(rf"\b{name}\b", self.scalars[other][1]) for other in memo)
                memo |= {name} if used or (closed[name] & keys and _LONG.search(self.scalars[name][1])) else set()
            before, units = self.remember(units, memo, sorted(keys))
            lasting += before
        return lasting, units

    def remember(self, units: list[Statement], memo: set[str], keys: list[str]) -> tuple[list[str], list[Statement]]:
        """The statements that declare `memo` in a branch that is taken where a key is not what it was."""
        whole, moved = units, [unit for unit in units if declared(unit.text) in memo]
        units = [unit for unit in units if unit not in moved]
        # The numbers that it depends on come as early as they can, so that the branch does not part what could overlap.
        for key in keys:
            units = hoisted(units, key)
        after = max((i for i, unit in enumerate(units) if declared(unit.text) in keys), default=-1) + 1
        rest = "\n".join(unit.text for unit in units)
        kept = {name for name in memo if re.search(rf"\b{name}\b", rest)}
        if any(name in kept for unit in units[:after] for name in VARIABLE.findall(unit.text)):
            return [], whole  # needed before the numbers are all known
        lines = [unit.text[unit.text.index(f"{name} =") :] if (name := declared(unit.text)) in kept else unit.text for unit in moved]
        stale = " || ".join(f"{key} != {key}k" for key in keys)
        lines += [f"{key}k = {key};" for key in keys]
        before = [f"{_TYPE[self.scalars[name][0]]} {name};" for name in sorted(kept)] + [f"double {key}k = NAN;" for key in keys]
        gates = [unit for unit in units if isinstance(unit, Gate) and any(unit.made in behind(units, key) for key in keys)]
        if len(gates) != 1:
            # Whole warps take the branch or do not: for a run that need not, it comes to the same.
            block = Unit("\n".join([f"if (_any({stale})) {{", *lines, "}"]))
            return before, [*units[:after], block, *units[after:]]
        # Whether the gate is closed, and the numbers then are what they were, is known when the round begins: one branch is for both.
        gate = gates[0]
        chain = [
            unit.text
            for unit in units[:after]
            if any(declared(unit.text) in behind(units, key) for key in keys)
            and gate.made in behind(units, declared(unit.text))
            and unit is not gate
        ]
        flag = f"{gate.made}k"
        test = f"_any({gate.gate} != 0.0 || {stale})"
        first = Unit("\n".join([f"bool {flag}; {{", f"const double {gate.made} = 0.0;", *chain, f"{flag} = {test};", "}"]))
        gate.lines = [f"if ({flag}) {{", *gate.lines, *chain, *lines, "}"]
        return before, [first, *units]

    def settled(self, text: str) -> dict[str, _Home]:
        """Where every array is: in its holders' registers, and as far as others read it in shared memory too; or in shared memory alone,
        where lanes write what others hold."""
        found = {name: _Home(name, True) for name in self.arrays}
        for how, name, place, window in _nested(text):
            if self.lanes == 1:
                found[name] = _Home(name, True, whole=True)
            elif not place.startswith("@"):
                old, array = found[name], self.arrays[name]
                # What comes after the grid is a piece of its own; all other arrays are in shared memory as a whole, if at all.
                after = self.grid.size if self.grid is not None and array.size == self.grid.whole else array.size
                low = after if window and int(window.partition(":")[0]) >= after and not 0 == old.low < old.high else 0
                loose = how == "w" or not old.held or array.role == "constant" or slots(array.size, self.lanes, self.grid) > _UNROLL
                found[name] = _Home(name, not loose, 0 if loose else low, array.size)
        for name, array in self.arrays.items():
            if self.lanes == 1:
                found[name] = _Home(name, array.role != "constant", whole=True)
            elif not found[name].held and array.role == "constant":
                found[name] = _Home(name, False)
        return found

    def synchronised(self, units: list[Statement], homes: dict[str, _Home]) -> list[str]:
        """The statements, with the lanes brought together between accesses of different lanes to one array."""
        made: list[str] = []
        open_: set[tuple[str, str, bool]] = set()
        for unit in [*units, Unit("", edge=True)]:
            uses = set()
            for how, name, place, _ in _nested(unit.text):
                home = homes[name]
                if home.spelled(how, place).startswith(home.shared) or (how == "w" and home.mirrors(place)):
                    uses.add((name, how, place == "@" and (home.held or self.arrays[name].size % self.lanes == 0)))
            clash = any(a == b and "w" in (p, q) and not (mine and yours) for a, p, mine in uses for b, q, yours in open_)
            if clash or (unit.edge and open_):
                made.append("__syncwarp(mask);")
                open_ = set()
            open_ |= uses
            made.append(unit.text)
            if unit.edge and open_:
                made.append("__syncwarp(mask);")
                open_ = set()
        return made


class _Home(NamedTuple):
    """Where an array is: in registers if `held`, and from element `low` to `high` in shared memory."""

    name: str
    held: bool
    low: int = 0
    high: int = 0
    whole: bool = False
    """Whether a lane has all of the array."""

    @property
    def shared(self) -> str:
        return f"m{self.name}" if self.held and not self.whole else self.name

    def mirrors(self, place: str) -> bool:
        return self.held and self.high > self.low and place.startswith("@") and not (place.startswith("@0:") and int(place[3:]) <= self.low)

    def spelled(self, how: str, place: str) -> str:
        if not place.startswith("@"):
            return f"{self.shared}[{place}]"
        if self.whole or not self.held:
            return f"{self.name}[e]"
        return f"{self.name}[s] = {self.shared}[e]" if how == "w" and self.mirrors(place) else f"{self.name}[s]"


def _effort(outer: int, terms: int, lanes: int, share: int) -> int:
    """About how many cycles it takes to sum `outer` rows with `share` lanes to a row."""
    return -(-outer // (lanes // share)) * (-(-terms // share) * 6 + share.bit_length() * 30)


def _gathered(partial: int, operation: str) -> list[str]:
    """Partial results as one, in few steps that wait for each other."""
    made, step = [], 1
    while step < partial:
        made += [f"p[{j}] = {operation}::of(p[{j}], p[{j + step}]);" for j in range(0, partial - step, 2 * step)]
        step *= 2
    return made


def _known(value: Value) -> float | None:
    """The number that a literal stands for."""
    try:
        return float(value.read(["0"] * len(value.shape)).strip("()"))
    except ValueError:
        return None


def _fitted(value: Value, at: Sequence[str]) -> list[str]:
    """The indices of an operand, which may have a single element along some axis."""
    return [i if n > 1 else "0" for i, n in zip(at, value.shape, strict=False)]


def _deep(jaxpr: Any) -> set[Any]:
    """The variables that go into an exponential or a logarithm, however many steps later."""
    found: set[Any] = set()
    for equation in reversed(jaxpr.eqns):
        if equation.primitive.name in _LONG_STEPS or any(var in found for var in equation.outvars):
            found.update(var for var in equation.invars if not hasattr(var, "val"))
    return found


def _nested(text: str) -> list[tuple[str, str, str, str]]:
    """All accesses to arrays in a text: how, the name, where, and within which part; those inside of others too."""
    found = []
    while (match := _ACCESS.search(text)) is not None:
        found.append((match[1], match[2], match[3], match[4]))
        text = f"{text[: match.start()]}0{text[match.end() :]}"
    return found


def _resolved(text: str, homes: dict[str, _Home]) -> str:
    while _ACCESS.search(text):
        text = _ACCESS.sub(lambda match: homes[match[2]].spelled(match[1], match[3]), text)
    return text


def _indented(source: str) -> str:
    lines, depth = [], 0
    for line in source.split("\n"):
        if line:
            depth -= line.startswith("}")
            lines.append("    " * depth + line)
            depth += line.count("{") - line.count("}") + line.startswith("}")
    return "\n".join(lines) + "\n"
