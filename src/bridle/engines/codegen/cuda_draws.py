"""How the draws of a round reach the lanes of a kernel, and the loop over rounds that they come in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from bridle.engines.codegen.backend import Value
from bridle.engines.codegen.cuda_code import Code, Var, code, flat
from bridle.engines.codegen.cuda_layout import MatrixGrid
from bridle.engines.codegen.cuda_schedule import Guarded, KernelStatement, Unit

STAGE = 12_288
"""How many bytes of draws a block holds at a time, twice; a round that needs more is read from global memory as it goes."""

_COLUMN = code("col")


class Draw(NamedTuple):
    """One array of the draws: the kernel's parameter, its numbers a round, and whether every run has its own."""

    name: str
    size: int
    own: bool


class Staging:
    """How draws reach a block: some rounds at a time through shared memory, or straight from global memory where they are too many."""

    def __init__(self, draws: list[Draw], lanes: int, runs: int, grid: MatrixGrid | None) -> None:
        self.draws, self.runs, self.threads, self.grid = draws, runs, runs * lanes, grid
        self.widths = [draw.size * (runs if draw.own else 1) for draw in draws]
        self.row = sum(self.widths)
        self.rounds = min(64, STAGE // (8 * self.row)) if self.row else 0
        self.words = 2 * self.rounds * self.row
        self.columns: set[int] = set()
        """The draws of which a lane keeps the elements for its own columns of the grid."""

    def value(self, n: int, shape: tuple[int, ...]) -> Value[Code]:
        """The elements of a draw: a number is u, a row in memory r, and what a lane keeps of it h."""

        def read(at: Sequence[Code]) -> Code:
            if math.prod(shape) == 1:
                return code(Var(f"u{n}"))
            place = flat(shape, at)
            if place == _COLUMN:
                self.columns.add(n)
                return code(Var(f"h{n}"), "[s]")
            return code(Var(f"r{n}"), "[", place, "]")

        return Value(shape, "f", read, True, False)

    def in_registers(self) -> list[int]:
        """The draws that lanes keep in registers: numbers, and elements for their own columns."""
        return [n for n, draw in enumerate(self.draws) if draw.size == 1 or n in self.columns]

    def ahead(self, statements: list[KernelStatement]) -> list[KernelStatement]:
        """The statements of a round, with what the next one draws read as soon as this one is done with it."""
        if not self.rounds:
            return statements
        after: dict[int, list[str]] = {}
        gates = [i for i, each in enumerate(statements) if isinstance(each, Guarded)]  # what comes before them is in more of a hurry
        for n in self.in_registers():
            used = [i for i, each in enumerate(statements) if not {f"u{n}", f"h{n}"}.isdisjoint(each.names())]
            depth, last = 0, -1
            for i, each in enumerate(statements):
                depth += each.opens
                if depth == 0 and last < 0 and i >= max([*used[-1:], *gates], default=0):
                    last = i
            after.setdefault(last, []).extend(self.read(n, "ahead"))
        with_reads: list[KernelStatement] = []
        for i, each in enumerate(statements):
            with_reads += [each, *([Unit(*after[i])] if i in after else [])]
        return with_reads

    def read(self, n: int, t: str) -> list[str]:
        """A draw of round `begin + t` into registers: a number, or its elements for the columns that a lane holds."""
        origin = self.staged(n, f"({t})")
        if self.draws[n].size == 1:
            return [f"u{n} = *({origin});"]
        assert self.grid is not None
        return ["#pragma unroll", f"for (int s = 0; s < {self.grid.steps}; ++s) h{n}[s] = ({origin})[{self.grid.column}];"]

    def staged(self, n: int, t: str) -> str:
        """Where a draw of round `begin + t` is in shared memory."""
        _, size, own = self.draws[n]
        return f"stage + {sum(self.widths[:n]) * self.rounds} + {t} * {self.widths[n]}{f' + slot * {size}' if own else ''}"

    def opening(self, halts: bool) -> list[str]:
        """What comes before the statements of a round; `halts` where the loop over rounds stops at those that are kept."""
        if not self.rounds:
            return ["const int end = rounds;", *_loop("0", halts), *self.rows(False)]
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
            *(f"double {self.register(n)};" for n in self.in_registers()),
            *(line for n in self.in_registers() for line in self.read(n, "0")),
            *_loop("begin", halts),
            "const int ahead = min(t + 1, end - 1) - begin;",
            *self.rows(True),
        ]

    def register(self, n: int) -> str:
        """The declarator of the registers for a draw."""
        return f"u{n}" if self.draws[n].size == 1 else f"h{n}[{self.grid.steps if self.grid else 0}]"

    def rows(self, staged: bool) -> list[str]:
        """Where this round's draws are; those of a single number are read at once."""
        lines = []
        for n, (name, size, own) in enumerate(self.draws):
            if staged:
                origin = self.staged(n, "(t - begin)")
            else:
                origin = f"{name} + ((long long)t * runs + run) * {size}" if own else f"{name} + (long long)t * {size}"
            if size > 1:
                lines.append(f"const double* const r{n} = {origin};")
            elif not staged:
                lines.append(f"const double u{n} = *({origin});")
            if size > 1 and not staged and n in self.columns and (grid := self.grid):
                lines += [f"double h{n}[{grid.steps}];", f"for (int s = 0; s < {grid.steps}; ++s) h{n}[s] = r{n}[{grid.column}];"]
        return lines

    def copies(self) -> list[str]:
        """The loops that copy some rounds' draws to shared memory."""
        lines = []
        for n, (name, size, own) in enumerate(self.draws):
            width = self.widths[n]
            target = f"to + {sum(self.widths[:n]) * self.rounds} + i"
            if own:
                origin = f"{name} + (long long)(from + i / {width}) * runs * {size} + min(front * {size} + i % {width}, runs * {size} - 1)"
            else:
                origin = f"{name} + (long long)from * {size} + i"
            lines.append(f"for (int i = threadIdx.x; i < many * {width}; i += {self.threads}) _fetch({target}, {origin});")
        return lines

    def closing(self, halts: bool, keeps: Sequence[Code]) -> list[str | Code]:
        """What comes after the statements of a round; `keeps` are the lines that keep what is to be kept, where the loop halts for it."""
        if not halts:
            return ["}", "}"] if self.rounds else ["}"]
        place = "const long long place = (long long)kept * runs + run;"
        return ["}", f"if (t > due) {{ {place}", *keeps, "due = rows[++kept];", "}", "}", *(["}"] if self.rounds else [])]


def _loop(begin: str, halts: bool) -> list[str]:
    """The head of the loop over rounds."""
    if not halts:
        return [f"for (int t = {begin}; t < end; ++t) {{"]
    return [f"for (int t = {begin}; t < end;) {{", "const int stop = min(end, due + 1);", "for (; t < stop; ++t) {"]
