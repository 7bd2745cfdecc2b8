"""A traced round as CUDA C: one kernel in which a few lanes of a warp play a run, all of whose state stays on the chip.

The writer (`cuda_rewrites` on top of `cuda_folds` and `cuda_writer`) turns the equations into statements, `cuda_schedule` puts them in
order, `cuda_memory` finds a home for every array and the places where lanes wait for each other, `cuda_draws` brings the draws, and here
it is all put together and becomes text.

>>> import jax
>>> from jax import numpy as jnp
>>> with jax.enable_x64(True):
...     traced = jax.make_jaxpr(lambda step, x, v: x - step * v)(0.5, jnp.ones(3), jnp.ones(3))
>>> kernel = write(traced, constants=[False], states=1, draws=[False], lanes=2, runs=16)
>>> "double a1[2];" in kernel.source  # x is nobody's but its owners': it stays in their registers
True
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from bridle.engines.codegen.backend import Value
from bridle.engines.codegen.cuda_code import TYPE, Code, code
from bridle.engines.codegen.cuda_draws import Draw, Staging
from bridle.engines.codegen.cuda_layout import grid_of, slots
from bridle.engines.codegen.cuda_math import MACHINE, PREAMBLE
from bridle.engines.codegen.cuda_memory import BARRIER, Homes, KernelArray, Note, homes_of, spelled, synchronised
from bridle.engines.codegen.cuda_rewrites import Rewriting, before_long
from bridle.engines.codegen.cuda_schedule import remembered, sunk
from bridle.engines.codegen.cuda_writer import Lines
from bridle.engines.codegen.equations import Traced, Variable


class Kernel(NamedTuple):
    """The source of a kernel, the threads of a block, the runs it plays, and the words of shared memory it needs in all."""

    source: str
    threads: int
    runs: int
    words: int


def write(
    traced: Traced,
    constants: Sequence[bool],
    states: int,
    draws: Sequence[bool],
    lanes: int,
    runs: int,
    marked: bool = False,
    plain: Sequence[float | None] = (),
    note: Note | None = None,
) -> Kernel:
    """The kernel ``play`` for the traced round of a single run, whose arguments are constants, so many states, and draws.

    `constants` and `draws` say of each whether every run has its own; states are always a run's own. `lanes`, a power of 2 up to 32, play
    one run, and a block plays `runs` of them. The kernel is called with the rounds, the number of runs, where `marked` the rounds to keep
    (counted from 0, then one that never comes), and then pointers: constants, states (which it changes), draws with a leading time axis,
    and what is kept of a round, with axes for time and runs in front. `plain` has the number that all elements of a constant are, where it
    is known. `note` is what a comment says about the statements of an equation, for a kernel that is to be read.
    """
    return _KernelWriter(traced, lanes, runs, marked, states).kernel(constants, draws, plain, note)


class _Argument(NamedTuple):
    """A constant or a state: the kernel's variable or array, and where a run's is in global memory."""

    name: str
    size: int
    origin: str
    changes: bool


class _KernelWriter(Rewriting):
    def __init__(self, traced: Traced, lanes: int, runs: int, marked: bool, states: int) -> None:
        super().__init__(lanes, runs, grid_of(traced, lanes))
        self.traced, self.marked, self.states = traced, marked, states
        self.keeps: list[Code] = []
        self.halts = False

    def kernel(self, constants: Sequence[bool], draws: Sequence[bool], plain: Sequence[float | None], note: Note | None = None) -> Kernel:
        """The equations as statements, these in order, and then as text."""
        jaxpr = self.traced.jaxpr
        self.count(jaxpr)
        self.before_long = before_long(jaxpr)
        values = {var: self.fixed_array(np.asarray(array)) for var, array in zip(jaxpr.constvars, self.traced.consts, strict=True)}
        first, last = len(constants), len(constants) + self.states
        arguments = self.arguments(jaxpr.invars[:last], constants, plain, values)
        held = [values[var] for var in jaxpr.invars[first:last]]
        self.state_reads = {value.read for value in held}
        drawn = [Draw(f"d{n}", math.prod(var.aval.shape), own) for n, (var, own) in enumerate(zip(jaxpr.invars[last:], draws, strict=True))]
        staging = Staging(drawn, self.lanes, self.runs, self.grid)
        for n, var in enumerate(jaxpr.invars[last:]):
            values[var] = staging.value(n, tuple(var.aval.shape))
            self.drawn |= {f"u{n}"} if math.prod(var.aval.shape) == 1 else set()
        self.equations(jaxpr, values)
        unchanged = [a is b for a, b in zip(jaxpr.outvars, jaxpr.invars[first:], strict=False)][: self.states]
        results = [self.value(var, values) for var in jaxpr.outvars]
        successors = {
            f"a{n}": self.only(new).variable
            for n, (new, old) in enumerate(zip(results, held, strict=False), first)
            if old.single and self.only(new).variable.startswith("v")
        }
        settings = {f"a{n}" for n in range(first)} | set(self.fixed_scalars)
        self.write_end(results, held, unchanged)
        lasting, statements = remembered(self.body, self.scalars, successors, settings)
        statements = sunk([*self.top, *statements])
        homes = homes_of(self.arrays, [*self.before, *statements], self.lanes, self.grid)
        room, words = self.room(homes)
        lines: Lines = [
            *self.head(last, first, len(draws), len(jaxpr.outvars) - self.states),
            *(self.grid.opening() if self.grid else []),
            f"double* const mine = memory + {staging.words} + slot * {words};",
            *room,
            *self.entry(arguments, homes),
            *([BARRIER] if any(home.high > home.low for home in homes.values()) else []),
            *synchronised(self.before, self.arrays, homes, self.lanes, note),
            *lasting,
            *(["int kept = 0, due = rows[0];"] if self.marked else []),
            *staging.opening(self.halts),
            *synchronised(staging.ahead(statements), self.arrays, homes, self.lanes, note),
            *staging.closing(self.halts, self.keeps),
            *self.leaving(arguments),
            "}",
        ]
        source = _indented([*self.tables, *spelled(map(code, lines), homes)])
        return Kernel(MACHINE + PREAMBLE + source, self.lanes * self.runs, self.runs, staging.words + self.runs * words)

    # Constants and states

    def arguments(
        self, variables: Sequence[Variable], constants: Sequence[bool], plain: Sequence[float | None], values: dict[Variable, Value[Code]]
    ) -> list[_Argument]:
        """What comes from global memory before the first round; `values` gets the values, those that are a plain number too."""
        arguments = []
        for n, var in enumerate(variables):
            shape, name, size, changes = tuple(var.aval.shape), f"a{n}", math.prod(var.aval.shape), n >= len(constants)
            if n < len(plain) and (number := plain[n]) is not None:
                values[var] = self.literal(number, shape, "f")
                continue
            own = changes or constants[n]
            arguments.append(_Argument(name, size, f"g{n} + (long long)run * {size}" if own else f"g{n}", changes))
            if size > 1:
                self.arrays[name] = KernelArray("state" if changes else "constant", size, "f")
            values[var] = self.named(name, shape, "f", not changes)
        return arguments

    def entry(self, arguments: Iterable[_Argument], homes: Homes) -> Lines:
        """Constants and states are brought to the chip."""
        lines: Lines = []
        for name, size, origin, changes in arguments:
            if size == 1:
                lines.append(f"{'' if changes else 'const '}double {name} = *({origin});")
            elif not homes[name].held and not changes:
                lines.append(f"const double* __restrict__ const {name} = {origin};")
            else:

                def bring(at: list[Code], name: str = name, origin: str = origin) -> Lines:
                    return [code(self.own(name, is_written=True), f" = ({origin})[e];")]

                lines += self.each([size], bring)
        return lines

    def leaving(self, arguments: Iterable[_Argument]) -> Lines:
        """States go back to global memory."""
        lines: Lines = []
        for name, size, origin, changes in arguments:
            if changes and size == 1:
                lines.append(f"if (real && lane == 0) *({origin}) = {name};")
            elif changes:

                def take(at: list[Code], name: str = name, origin: str = origin) -> Lines:
                    return [code(f"if (real) ({origin})[e] = ", self.own(name), ";")]

                lines += self.each([size], take)
        return lines

    # The end of a round

    def write_end(self, results: list[Value[Code]], held: list[Value[Code]], unchanged: list[bool]) -> None:
        """What is kept of a round, and the states' new values.

        Where all that is kept is part of the new state, it is read off that between two rounds: a round need not ask whether it is kept.
        """
        outvars = self.traced.jaxpr.outvars
        after = [next((old for var, old in zip(outvars, held, strict=False) if var is out), None) for out in outvars[self.states :]]
        self.halts = self.marked and bool(after) and None not in after
        self.finish(results, held, unchanged, self.keep_all(len(results) - 1))
        if self.halts:
            for n, value in enumerate(after, self.states):
                assert value is not None
                self.keep(n, value)

    def keep_all(self, last: int) -> Callable[[int, Value[Code]], None]:
        """Keeps one result of a round after the other, and says so with the last one."""

        def keep(n: int, value: Value[Code]) -> None:
            if self.halts:
                return
            self.keep(n, value)
            if n == last and self.marked:
                head = "if (t == due) { const long long place = (long long)kept * runs + run;"
                self.unit(head, *self.keeps, "due = rows[++kept];", "}")
            elif n == last:
                self.unit("{ const long long place = (long long)t * runs + run;", *self.keeps, "}")

        return keep

    def keep(self, n: int, value: Value[Code]) -> None:
        """What is kept of a round goes to its row, if it has one."""
        size, name = math.prod(value.shape), f"k{n - self.states}"
        if size == 1:
            self.keeps.append(code(f"if (real && lane == 0) {name}[place] = ", self.only(value), ";"))
        else:
            lines = self.each(value.shape, lambda at: [code(f"if (real) {name}[place * {size} + e] = ", value.read(at), ";")])
            self.keeps += map(code, lines)

    # The frame

    def head(self, arguments: int, constants: int, draws: int, kept: int) -> list[str]:
        """The kernel's parameters, and which lane of which run a thread is."""
        parameters = ["const int rounds", "const int runs", *(["const int* __restrict__ rows"] if self.marked else [])]
        parameters += [f"{'const ' if n < constants else ''}double* __restrict__ g{n}" for n in range(arguments)]
        parameters += [f"const double* __restrict__ d{n}" for n in range(draws)] + [f"double* __restrict__ k{n}" for n in range(kept)]
        mask = "0xffffffffu"
        if self.lanes < 32 and self.diverges:
            mask = f"{2**self.lanes - 1}u << (threadIdx.x % 32 / {self.lanes} * {self.lanes})"
        return [
            f'extern "C" __global__ void __launch_bounds__({self.lanes * self.runs}) play({", ".join(parameters)}) {{',
            "extern __shared__ double memory[];",
            f"const int lane = threadIdx.x % {self.lanes}, slot = threadIdx.x / {self.lanes}, front = blockIdx.x * {self.runs};",
            "const bool real = front + slot < runs;",
            "const int run = real ? front + slot : runs - 1;",
            f"const unsigned mask = {mask};",
        ]

    def room(self, homes: Homes) -> tuple[list[str], int]:
        """The declarations of all arrays, and the words of shared memory that a run needs for them."""
        lines, words = [], 0
        for name, array in self.arrays.items():
            home, type_ = homes[name], TYPE[array.kind]
            if home.held:
                lines.append(f"{type_} {name}[{slots(array.size, self.lanes, self.grid)}];")
            if home.high > home.low:
                lines.append(f"{type_}* const {home.shared} = ({type_}*)(mine + {words}){f' - {home.low}' if home.low else ''};")
                words += home.high - home.low
        return lines, words


def _indented(lines: Iterable[str]) -> str:
    """The lines, indented by the braces around them."""
    indented, depth = [], 0
    for line in lines:
        if line:
            depth -= line.startswith("}")
            indented.append("    " * depth + line)
            depth += line.count("{") - line.count("}") + line.startswith("}")
    return "\n".join(indented) + "\n"
