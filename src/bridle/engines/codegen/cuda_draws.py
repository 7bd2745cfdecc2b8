"""How the draws of a round reach the lanes of a kernel, and the loop over rounds that they come in."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from bridle.engines.codegen.cuda_layout import flat
from bridle.engines.codegen.cuda_schedule import Gate, Statement, Unit
from bridle.engines.codegen.lower import Value

STAGE = 12_288
"""How many bytes of draws a block holds at a time, twice; a round that needs more is read from global memory as it goes."""


class Staging:
    """How draws reach a block: some rounds at a time through shared memory, or straight from global memory where they are too many."""

    def __init__(self, writer: Any, leaves: list[tuple[str, int, bool]]) -> None:
        self.leaves, self.runs, self.threads, self.writer = leaves, writer.runs, writer.runs * writer.lanes, writer
        self.row = sum(size * (writer.runs if own else 1) for _, size, own in leaves)
        self.rounds = min(64, STAGE // (8 * self.row)) if self.row else 0
        self.words = 2 * self.rounds * self.row

    def value(self, n: int, shape: tuple[int, ...]) -> Value:
        def read(at: Sequence[str]) -> str:
            if math.prod(shape) == 1:
                return f"u{n}"
            place = flat(shape, at)
            if place == "col":
                self.writer.columns.add(n)
                return f"h{n}[s]"
            return f"r{n}[{place}]"

        return Value(shape, "f", read, True, False)

    def ahead(self, units: list[Statement]) -> list[Statement]:
        """The statements of a round, with what the next one draws read as soon as this one is done with it."""
        if not self.rounds:
            return units
        after: dict[int, list[str]] = {}
        gates = [i for i, unit in enumerate(units) if isinstance(unit, Gate)]  # what comes before them is in more of a hurry
        for n, (_, size, _) in enumerate(self.leaves):
            if size == 1 or n in self.writer.columns:
                used = [i for i, unit in enumerate(units) if re.search(rf"\b[uh]{n}\b", unit.text)]
                depth, last = 0, -1
                for i, unit in enumerate(units):
                    depth += (unit.text.endswith("{") - unit.text.startswith("}")) if unit.edge else 0
                    if depth == 0 and last < 0 and i >= max([*used[-1:], *gates], default=0):
                        last = i
                after.setdefault(last, []).extend(self.read(n, "ahead"))
        made = []
        for i, unit in enumerate(units):
            made += [unit, *([Unit("\n".join(after[i]))] if i in after else [])]
        return made

    def read(self, n: int, t: str) -> list[str]:
        """A draw of round `begin + t` into registers: a number, or its elements for the columns that a lane holds."""
        start = sum(size * (self.runs if own else 1) for _, size, own in self.leaves[:n])
        _, size, own = self.leaves[n]
        origin = f"stage + {start * self.rounds} + ({t}) * {size * (self.runs if own else 1)}{f' + slot * {size}' if own else ''}"
        if size == 1:
            return [f"u{n} = *({origin});"]
        grid = self.writer.grid
        assert grid is not None
        return ["#pragma unroll", f"for (int s = 0; s < {grid.steps}; ++s) h{n}[s] = ({origin})[{grid.column}];"]

    def opening(self) -> list[str]:
        if not self.rounds:
            return ["const int end = rounds;", *self.loop("0"), *self.rows(False)]
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
            *(f"double {name};" for name in self.registers()),
            *(line for n, (_, size, _) in enumerate(self.leaves) if size == 1 or n in self.writer.columns for line in self.read(n, "0")),
            *self.loop("begin"),
            "const int ahead = min(t + 1, end - 1) - begin;",
            *self.rows(True),
        ]

    def registers(self) -> list[str]:
        grid = self.writer.grid
        return [
            f"u{n}" if size == 1 else f"h{n}[{grid.steps if grid else 0}]"
            for n, (_, size, _) in enumerate(self.leaves)
            if size == 1 or n in self.writer.columns
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
            if size > 1:
                made.append(f"const double* const r{n} = {origin};")
            elif not staged:
                made.append(f"const double u{n} = *({origin});")
            if size > 1 and not staged and n in self.writer.columns and (grid := self.writer.grid):
                made += [f"double h{n}[{grid.steps}];", f"for (int s = 0; s < {grid.steps}; ++s) h{n}[s] = r{n}[{grid.column}];"]
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

    def loop(self, begin: str) -> list[str]:
        if not self.writer.halts:
            return [f"for (int t = {begin}; t < end; ++t) {{"]
        return [f"for (int t = {begin}; t < end;) {{", "const int stop = min(end, due + 1);", "for (; t < stop; ++t) {"]

    def closing(self) -> list[str]:
        if not self.writer.halts:
            return ["}", "}"] if self.rounds else ["}"]
        place = "const long long place = (long long)kept * runs + run;"
        return ["}", f"if (t > due) {{ {place}", *self.writer.keeps, "due = rows[++kept];", "}", "}", *(["}"] if self.rounds else [])]
