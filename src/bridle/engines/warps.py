"""A traced round as CUDA C: one kernel in which a few lanes of a warp play a run, all of whose state stays on the chip.

Scalars are variables that every lane holds. Element e of an array belongs to lane e % lanes; an array that only its owners read and write
is in their registers, any other in the run's part of shared memory, with the lanes synchronised between a write and the reads of others.
Sums are of each lane's own terms and then across lanes in a butterfly, so that every lane has the same bits. Draws come from global memory
some rounds ahead, into shared memory, once for all runs of a block. With one lane to a run nothing is shared but the draws.

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
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bridle.engines.lowering import Value, Writer

MACHINE = """// What the machine offers: an exchange between lanes, and copies that go on in the background.
#ifndef INFINITY
#define INFINITY __longlong_as_double(0x7ff0000000000000LL)
#endif
#ifndef NAN
#define NAN __longlong_as_double(0x7ff8000000000000LL)
#endif
__device__ __forceinline__ double _swap(unsigned mask, double v, int m) { return __shfl_xor_sync(mask, v, m); }
__device__ __forceinline__ long long _swap(unsigned mask, long long v, int m) { return __shfl_xor_sync(mask, v, m); }
__device__ __forceinline__ bool _swap(unsigned mask, bool v, int m) { return __shfl_xor_sync(mask, (int)v, m) != 0; }
__device__ __forceinline__ void _fetch(double* to, const double* from) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from) : "memory");
#else
    *to = *from;
#endif
}
__device__ __forceinline__ void _fetched() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}
"""

PREAMBLE = """
template <class T, class U> __device__ __forceinline__ T _max(T a, U b) { return (a >= b || a != a) ? a : (T)b; }
template <class T, class U> __device__ __forceinline__ T _min(T a, U b) { return (a <= b || a != a) ? a : (T)b; }
template <class T> __device__ __forceinline__ T _pick(bool flag, T a, T b) { return flag ? a : b; }
template <class T> __device__ __forceinline__ T _sign(T x) { return x > 0 ? (T)1 : x < 0 ? (T)-1 : x; }
template <class T> __device__ __forceinline__ T _abs(T x) { return x < 0 ? -x : x; }
template <> __device__ __forceinline__ double _abs(double x) { return fabs(x); }
template <class T> __device__ __forceinline__ bool _less(T a, T b) { return a < b || (b != b && a == a); }
__device__ __forceinline__ bool _finite(double x) { return x - x == 0.0; }
template <class T> __device__ __forceinline__ T _square(T x) { return x * x; }
template <int N, class T> __device__ __forceinline__ T _power(T x) {
    T made = x;
    #pragma unroll
    for (int i = 1; i < N; ++i) made = made * x;
    return made;
}
__device__ __forceinline__ double _real(bool flag) { return flag ? 1.0 : 0.0; }
__device__ __forceinline__ double _logistic(double x) {
    const double e = exp(-fabs(x));
    return (x >= 0.0 ? 1.0 : e) / (1.0 + e);
}
__device__ __forceinline__ long long _within(long long i, long long most) { return i < 0 ? 0 : i > most ? most : i; }
struct _Add { template <class T> static __device__ __forceinline__ T of(T a, T b) { return a + b; } };
struct _Mul { template <class T> static __device__ __forceinline__ T of(T a, T b) { return a * b; } };
struct _Max { template <class T> static __device__ __forceinline__ T of(T a, T b) { return _max(a, b); } };
struct _Min { template <class T> static __device__ __forceinline__ T of(T a, T b) { return _min(a, b); } };
struct _And { template <class T> static __device__ __forceinline__ T of(T a, T b) { return a & b; } };
struct _Or { template <class T> static __device__ __forceinline__ T of(T a, T b) { return a | b; } };
template <class Op, int LANES, class T> __device__ __forceinline__ T _across(unsigned mask, T v) {
    #pragma unroll
    for (int m = LANES / 2; m > 0; m /= 2) v = Op::of(v, _swap(mask, v, m));
    return v;
}
"""

_OPERATION = {"add": "_Add", "mul": "_Mul", "max": "_Max", "min": "_Min", "and": "_And", "or": "_Or"}
_START = {"add": "0.0", "mul": "1.0", "max": "-INFINITY", "min": "INFINITY", "and": "true", "or": "false"}
_TYPE = {"f": "double", "i": "long long", "b": "bool"}
_UNROLL = 40
"""Loops of at most so many steps are written out by the compiler, so that arrays stay in registers."""

_STAGE = 12_288
"""How many bytes of draws a block holds at a time, twice; a round that needs more is read from global memory as it goes."""

_ACCESS = re.compile("\x01([rw])([a-z]+[0-9]+)[|]([^\x01\x02]*)\x02")


class Program(NamedTuple):
    """The source of a kernel, the threads of a block, the runs it plays, and the words of shared memory it needs in all."""

    source: str
    threads: int
    runs: int
    words: int


def write(
    traced: Any, constants: Sequence[bool], states: int, draws: Sequence[bool], lanes: int, runs: int, marked: bool = False
) -> Program:
    """The kernel ``play`` for the traced round of a single run, whose arguments are constants, so many states, and draws.

    `constants` and `draws` say of each whether every run has its own; states are always a run's own. `lanes`, a power of 2 up to 32, play
    one run, and a block plays `runs` of them. The kernel is called with the rounds, the number of runs, where `marked` a row for every
    round (where to keep it, or -1), and then pointers: constants, states (which it changes), draws with a leading time axis, and what is
    kept of a round, with axes for time and runs in front.
    """
    return _Warps(lanes, runs, marked).kernel(traced, constants, states, draws)


@dataclass
class _Unit:
    """Statements that belong together; `edge` where control flows in or out."""

    text: str
    edge: bool = False


class _Array(NamedTuple):
    """An array of the kernel: "buffer", "state" or "constant"."""

    role: str
    size: int
    kind: str


class _Warps(Writer):
    engine = "cuda"
    quotient = "/"
    called: ClassVar[dict[str, str]] = {
        "max": "_max", "min": "_min", "abs": "_abs", "sign": "_sign", "is_finite": "_finite", "logistic": "_logistic",
        "bitcast_convert_type": "__double_as_longlong", "pow": "pow", "square": "_square",
    } | {name: name for name in ("sqrt", "exp", "log", "log1p", "expm1", "tanh", "floor", "ceil", "atan2", "sin", "cos")}  # fmt: skip

    def __init__(self, lanes: int, runs: int, marked: bool) -> None:
        super().__init__()
        self.lanes, self.runs, self.marked = lanes, runs, marked
        self.arrays: dict[str, _Array] = {}
        self.tables: list[str] = []
        self.before: list[_Unit] = []
        self.body: list[_Unit] = []
        self.lines, self.depth = self.body, 0
        self.space: list[tuple[str, int]] | None = None
        self.diverges = False

    # Statements

    def unit(self, *lines: str) -> None:
        self.lines.append(_Unit("\n".join(lines)))

    def say(self, line: str) -> None:
        self.unit(f"{line};")

    def begin(self, what: str, *details: Any) -> None:
        if what == "repeat":
            head = f"for (int {details[0]} = 0; {details[0]} < {details[1]}; ++{details[0]}) {{"
        else:
            self.diverges = True
            head = {"when": "if ({}) {{", "elsewhen": "else if ({}) {{", "otherwise": "else {{", "forever": "while (true) {{"}[what]
            head = head.format(*details)
        self.lines.append(_Unit(head, edge=True))
        self.depth += 1

    def end(self) -> None:
        self.lines.append(_Unit("}", edge=True))
        self.depth -= 1

    def leave_unless(self, test: str) -> None:
        self.lines.append(_Unit(f"if (!({test})) break;", edge=True))

    def only_if(self, test: str, statement: str) -> str:
        return f"if ({test}) {statement}"

    def loop(self, shape: Sequence[int], statement: Callable[[list[str]], str]) -> None:
        if math.prod(shape) == 1:
            self.say(statement(["0"] * len(shape)))
        else:
            self.unit(*self.each(shape, lambda at: [f"{statement(at)};"]))

    def each(self, shape: Sequence[int], statements: Callable[[list[str]], list[str]]) -> list[str]:
        """Every lane does the elements that it owns: number s of its own is element e of all."""
        size = math.prod(shape)
        steps = -(-size // self.lanes)
        at, wide = ["0"] * len(shape), [axis for axis, n in enumerate(shape) if n > 1]
        found = []
        for axis in wide:
            at[axis] = f"i{axis}"
            beyond = math.prod(shape[axis + 1 :])
            place = f"e / {beyond}" if beyond > 1 else "e"
            found.append(f"const int i{axis} = {place}{f' % {shape[axis]}' if axis != wide[0] else ''};")
        self.space, outside = [(at[axis], shape[axis]) for axis in wide], self.space
        inside = [*found, *statements(at)]
        self.space = outside
        guard = [f"if (e < {size}) {{", *inside, "}"] if size % self.lanes else inside
        head = [self.pragma(steps), f"for (int s = 0; s < {steps}; ++s) {{"] if steps > 1 else ["{ const int s = 0;"]
        return [*head, "const int e = s;" if self.lanes == 1 else f"const int e = lane + {self.lanes} * s;", *guard, "}"]

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
        self.say(f"{_TYPE[kind]} {name} = {code}")

    def early(self, fixed: bool) -> Any:
        return _Early(self, fixed and self.lines is self.body and self.depth == 0)

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
        return Value(shape, kind, lambda at: f"\x01r{name}|{self.place(shape, at)}\x02", True, fixed)

    def place(self, shape: Sequence[int], at: Sequence[str]) -> str:
        """Where an element is in an array, or "@" where it is the very one that the loop around is about."""
        wide = [(at[axis], n) for axis, n in enumerate(shape) if n > 1]
        if self.space and [i for i, _ in wide] == [i for i, _ in self.space] and [n for _, n in wide[1:]] == [n for _, n in self.space[1:]]:
            return "@"
        return flat(shape, at)

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
        if name == "div" and kind == "f" and given[1].single and (divisor := _known(given[1])):
            # A division takes some ten times as long as a product, and a round is a chain of them.
            inverse = self.number(1.0 / divisor, "f")
            return lambda parts: f"({parts[0]} * {inverse if divisor > 0.0 else f'({inverse})'})"
        return super().formula(name, params, given, kind)

    def special(self, name: str, params: dict[str, Any], given: list[Value], kind: str) -> Callable[[list[str]], str] | None:
        if name == "rem":
            return lambda parts: f"fmod({parts[0]}, {parts[1]})" if kind == "f" else f"({parts[0]} % {parts[1]})"
        if name == "not":
            return lambda parts: f"(!{parts[0]})" if kind == "b" else f"(~{parts[0]})"
        if name == "rsqrt":
            return lambda parts: f"(1.0 / sqrt({parts[0]}))"
        if name == "integer_pow":
            y = params["y"]
            return lambda parts: f"_power<{y}>({parts[0]})" if y > 0 else f"(1.0 / _power<{-y}>({parts[0]}))"
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
        share = min((2**n for n in range(self.lanes.bit_length())), key=lambda p: _effort(outer, terms, self.lanes, p))
        rows = self.lanes // share
        passes, steps = -(-outer // rows), -(-terms // share)
        partial = min(4, steps) if steps <= _UNROLL else 1
        at = unravel("e", shape) if share == 1 else unravel("m", shape)
        inside = unravel("k", inner)
        with self.early(value.fixed):
            index = dict(zip(kept, at, strict=True)) | dict(zip(axes, inside, strict=True))
            term = value.read([index[axis] for axis in range(len(value.shape))])
            self.space = [(i, n) for i, n in zip(at, shape, strict=True) if n > 1] if share == 1 else None
            goal = self.store(made, at, "p[0]")
            self.space = None
            self.unit(
                self.pragma(passes),
                f"for (int s = 0; s < {passes}; ++s) {{",
                f"const int m = {'lane' if share == 1 else f'lane / {share}'} + {rows} * s, e = m;",
                f"{type_} p[{partial}];",
                "#pragma unroll",
                f"for (int j = 0; j < {partial}; ++j) p[j] = {start};",
                f"if (m < {outer}) {{",
                self.pragma(steps),
                f"for (int j = 0; j < {steps}; ++j) {{",
                f"const int k = {'' if share == 1 else f'lane % {share} + '}{share} * j;",
                *([f"if (k < {terms})"] if terms % share else []),
                f"p[j % {partial}] = {operation}::of(p[j % {partial}], ({type_})({term}));",
                "}",
                "}",
                *_gathered(partial, operation),
                *([f"p[0] = _across<{operation}, {share}>(mask, p[0]);"] if share > 1 else []),
                f"if (m < {outer}{f' && lane % {share} == 0' if share > 1 else ''}) {goal};",
                "}",
            )
        return made

    def fold_all(self, step: str, start: str, value: Value, axes: Sequence[int], shape: Any, kind: str) -> Value:
        """A reduction to a single element, which every lane comes to hold."""
        total, type_, operation = self.name("v"), _TYPE[kind], _OPERATION[step]
        inner = [value.shape[axis] for axis in axes]
        steps = -(-math.prod(inner) // self.lanes)
        partial = min(4, steps) if steps <= _UNROLL else 1

        def add(at: list[str]) -> list[str]:
            index = dict(zip(axes, at, strict=True))
            term = value.read([index.get(axis, "0") for axis in range(len(value.shape))])
            return [f"p[s % {partial}] = {operation}::of(p[s % {partial}], ({type_})({term}));"]

        with self.early(value.fixed):
            if math.prod(inner) == 1:
                self.say(f"{type_} {total} = {value.read(['0'] * len(value.shape))}")
            else:
                self.unit(
                    f"{type_} {total}; {{",
                    f"{type_} p[{partial}];",
                    "#pragma unroll",
                    f"for (int j = 0; j < {partial}; ++j) p[j] = {start};",
                    *self.each(inner, add),
                    *_gathered(partial, operation),
                    f"{total} = _across<{operation}, {self.lanes}>(mask, p[0]);" if self.lanes > 1 else f"{total} = p[0];",
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
            self.space = None  # a row is one lane's, its elements are not
            here, last = (f"{count - 1} - j", f"{count} - j") if reverse else ("j", "j - 1")
            now, old = ([*at[:axis], f"({j})", *at[axis:]] for j in (here, last))
            code = self.store(made, now, f"{_OPERATION[step]}::of({made.read(old)}, {made.read(now)})")
            return [f"for (int j = 1; j < {count}; ++j) {code};"]

        self.unit(*(self.each(others, along) if math.prod(others) > 1 else ["if (lane == 0) {", *along(["0"] * len(others)), "}"]))

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
            for part in reversed(parts):
                start = end - part.shape[axis]
                inside = f"({at[axis]} - {start})" if part.shape[axis] > 1 else "0"
                here = part.read([inside if i == axis and start else each for i, each in enumerate(at)])
                code, end = (f"({at[axis]} < {end} ? {here} : {code})" if code else here), start
            return code

        return [Value(shape, kind, read, False, fixed)]

    # The kernel

    def kernel(self, traced: Any, constants: Sequence[bool], states: int, draws: Sequence[bool]) -> Program:
        jaxpr = traced.jaxpr
        self.count(jaxpr)
        known = {var: self.fixed_array(np.asarray(array)) for var, array in zip(jaxpr.constvars, traced.consts, strict=True)}
        given, first, last = jaxpr.invars, len(constants), len(constants) + states
        held: list[Value] = []
        entry, parameters, leaving = [], ["const int rounds", "const int runs"], []
        staged = _Staging(
            self, [(f"d{n}", math.prod(var.aval.shape), own) for n, (var, own) in enumerate(zip(given[last:], draws, strict=True))]
        )
        if self.marked:
            parameters.append("const int* __restrict__ rows")
        for n, var in enumerate(given[:last]):
            shape, name, size = tuple(var.aval.shape), f"a{n}", math.prod(var.aval.shape)
            own = constants[n] if n < first else True
            origin = f"g{n} + (long long)run * {size}" if own else f"g{n}"
            parameters.append(f"const double* __restrict__ g{n}" if n < first else f"double* __restrict__ g{n}")
            if size == 1:
                entry.append(f"{'const ' if n < first else ''}double {name} = *({origin});")
                leaving += [f"if (real && lane == 0) *({origin}) = {name};"] if n >= first else []
            else:
                self.arrays[name] = _Array("constant" if n < first else "state", size, "f")
                entry.append(f"{name}: {origin}")
                away = f"if (real) ({origin})[e] = \x01r{name}|@\x02;"
                leaving += self.each([size], lambda at, away=away: [away]) if n >= first else []  # type: ignore[misc]
            known[var] = self.named(name, shape, "f", n < first)
            held += [known[var]] if n >= first else []
        for n, var in enumerate(given[last:]):
            parameters.append(f"const double* __restrict__ d{n}")
            known[var] = staged.value(n, tuple(var.aval.shape))
        self.equations(jaxpr, known)
        unchanged = [a is b for a, b in zip(jaxpr.outvars, given[first:], strict=False)][:states]
        self.finish([self.value(var, known) for var in jaxpr.outvars], held, unchanged, self.keep)
        parameters += [f"double* __restrict__ k{n}" for n in range(len(jaxpr.outvars) - states)]
        return self.assembled(parameters, entry, staged, [*leaving], states)

    def keep(self, n: int, value: Value) -> None:
        """What is kept of a round goes to its row, if it has one."""
        size, name = math.prod(value.shape), f"k@{n}"
        if size == 1:
            self.unit(f"if (keeping && lane == 0) {name}[place] = {value.read(['0'] * len(value.shape))};")
        else:
            self.unit(*self.each(value.shape, lambda at: [f"if (keeping) {name}[place * {size} + e] = {value.read(at)};"]))

    def assembled(self, parameters: list[str], entry: list[str], staged: _Staging, leaving: list[str], states: int) -> Program:
        text = "\n".join(unit.text for unit in [*self.before, *self.body])
        apart = {name for _, name, place in _nested(text) if place != "@"} if self.lanes > 1 else set()
        offset, opening = 0, []
        for name, array in self.arrays.items():
            steps, type_ = -(-array.size // self.lanes), _TYPE[array.kind]
            if array.role == "constant" and (name in apart or self.lanes == 1):
                continue
            if name in apart:
                opening.append(f"{type_}* const {name} = ({type_}*)(mine + {offset});")
                offset += array.size
            else:
                opening.append(f"{type_} {name}[{steps}];")
        for line in entry:
            name, _, origin = line.partition(": ")
            if not origin:
                opening.append(line)
            elif self.arrays[name].role == "constant" and (name in apart or self.lanes == 1):
                opening.append(f"const double* __restrict__ const {name} = {origin};")
            else:
                opening += self.each([self.arrays[name].size], lambda at, name=name, origin=origin: [f"\x01w{name}|@\x02 = ({origin})[e];"])  # type: ignore[misc]
        mask = (
            "0xffffffffu"
            if self.lanes == 32 or not self.diverges
            else f"{2**self.lanes - 1}u << (threadIdx.x % 32 / {self.lanes} * {self.lanes})"
        )
        row = "rows[t]" if self.marked else "t"
        lines = [
            *self.tables,
            f'extern "C" __global__ void __launch_bounds__({self.lanes * self.runs}) play({", ".join(parameters)}) {{',
            "extern __shared__ double memory[];",
            f"const int lane = threadIdx.x % {self.lanes}, slot = threadIdx.x / {self.lanes}, front = blockIdx.x * {self.runs};",
            "const bool real = front + slot < runs;",
            "const int run = real ? front + slot : runs - 1;",
            f"const unsigned mask = {mask};",
            f"double* const mine = memory + {staged.words} + slot * {offset};",
            *opening,
            *(["__syncwarp(mask);"] if apart else []),
            *self.synchronised(self.before, apart),
            *staged.opening(),
            f"const int row = {row}; const bool keeping = real && row >= 0; const long long place = (long long)row * runs + run;",
            *self.synchronised(self.body, apart),
            *staged.closing(),
            *leaving,
            "}",
        ]
        source = _resolved("\n".join(lines), apart, self.lanes)
        source = re.sub("k@([0-9]+)", lambda found: f"k{int(found[1]) - states}", source)
        return Program(MACHINE + PREAMBLE + _indented(source), self.lanes * self.runs, self.runs, staged.words + self.runs * offset)

    def synchronised(self, units: list[_Unit], apart: set[str]) -> list[str]:
        """The statements, with the lanes brought together between accesses of different lanes to one array."""
        made: list[str] = []
        open_: set[tuple[str, str, bool]] = set()
        for unit in [*units, _Unit("", edge=True)]:
            uses = {(name, how, place == "@") for how, name, place in _nested(unit.text) if name in apart}
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


class _Staging:
    """How draws reach a block: some rounds at a time through shared memory, or straight from global memory where they are too many."""

    def __init__(self, writer: _Warps, leaves: list[tuple[str, int, bool]]) -> None:
        self.leaves, self.runs, self.threads = leaves, writer.runs, writer.runs * writer.lanes
        self.row = sum(size * (writer.runs if own else 1) for _, size, own in leaves)
        self.rounds = min(64, _STAGE // (8 * self.row)) if self.row else 0
        self.words = 2 * self.rounds * self.row

    def value(self, n: int, shape: tuple[int, ...]) -> Value:
        name = f"r{n}"
        return Value(shape, "f", lambda at: f"{name}[{flat(shape, at)}]" if math.prod(shape) > 1 else f"u{n}", True, False)

    def opening(self) -> list[str]:
        if not self.rounds:
            return ["for (int t = 0; t < rounds; ++t) {", *self.rows(False)]
        here = self.rounds * self.row
        return [
            "auto fetch = [&](int from, double* to) {",
            f"const int many = min({self.rounds}, rounds - from);",
            *self.copies(),
            "};",
            "fetch(0, memory);",
            f"for (int chunk = 0; chunk * {self.rounds} < rounds; ++chunk) {{",
            "_fetched();",
            "__syncthreads();",
            f"if ((chunk + 1) * {self.rounds} < rounds) fetch((chunk + 1) * {self.rounds}, memory + (chunk % 2 ? 0 : {here}));",
            f"const double* const stage = memory + chunk % 2 * {here};",
            f"const int begin = chunk * {self.rounds}, end = min(begin + {self.rounds}, rounds);",
            "for (int t = begin; t < end; ++t) {",
            *self.rows(True),
        ]

    def rows(self, staged: bool) -> list[str]:
        """Where this round's draws are; those of a single number are read at once."""
        made, start = [], 0
        for n, (name, size, own) in enumerate(self.leaves):
            width = size * (self.runs if own else 1)
            if staged:
                origin = f"stage + {start * self.rounds} + (t - begin) * {width}{f' + slot * {size}' if own else ''}"
            else:
                origin = f"{name} + ((long long)t * runs + run) * {size}" if own else f"{name} + (long long)t * {size}"
            made.append(f"const double* const r{n} = {origin};" if size > 1 else f"const double u{n} = *({origin});")
            start += width
        return made

    def copies(self) -> list[str]:
        made, start = [], 0
        for name, size, own in self.leaves:
            width = size * (self.runs if own else 1)
            target = f"to + {start * self.rounds} + i"
            if own:
                origin = f"{name} + (long long)(from + i / {width}) * runs * {size} + min(front * {size} + i % {width}, runs * {size} - 1)"
            else:
                origin = f"{name} + (long long)from * {size} + i"
            made.append(f"for (int i = threadIdx.x; i < many * {width}; i += {self.threads}) _fetch({target}, {origin});")
            start += width
        return made

    def closing(self) -> list[str]:
        return ["}", "}"] if self.rounds else ["}"]


class _Early:
    """Statements said inside go before the rounds, if they may."""

    def __init__(self, writer: _Warps, early: bool) -> None:
        self.writer, self.early = writer, early

    def __enter__(self) -> None:
        if self.early:
            self.writer.lines = self.writer.before

    def __exit__(self, *_: Any) -> None:
        if self.early:
            self.writer.lines = self.writer.body


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
    """The number that a literal stands for, where it is one that can be divided by."""
    try:
        number = float(value.read(["0"] * len(value.shape)).strip("()"))
    except ValueError:
        return None
    return number if math.isfinite(number) and 1e-300 < abs(number) < 1e300 else None


def _nested(text: str) -> list[tuple[str, str, str]]:
    """All accesses to arrays in a text: how, the name, and where; those inside of others too."""
    found = []
    while (match := _ACCESS.search(text)) is not None:
        found.append((match[1], match[2], match[3]))
        text = f"{text[: match.start()]}0{text[match.end() :]}"
    return found


def _resolved(text: str, apart: set[str], lanes: int) -> str:
    def spelled(match: re.Match[str]) -> str:
        _, name, place = match.groups()
        return f"{name}[{('e' if name in apart or lanes == 1 else 's') if place == '@' else place}]"

    while _ACCESS.search(text):
        text = _ACCESS.sub(spelled, text)
    return text


def _indented(source: str) -> str:
    lines, depth = [], 0
    for line in source.split("\n"):
        if line:
            depth -= line.startswith("}")
            lines.append("    " * depth + line)
            depth += line.count("{") - line.count("}") + line.startswith("}")
    return "\n".join(lines) + "\n"
