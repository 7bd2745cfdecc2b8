"""Sums, extremes, running sums and sorts over arrays that the lanes of a run share.

A lane folds the elements that it holds, in up to four parts side by side; then the lanes' results meet in a butterfly, so that every lane
has the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from bridle.engines.codegen.backend import Shape, Value
from bridle.engines.codegen.cuda_code import TYPE, ZERO, Code, Var, code
from bridle.engines.codegen.cuda_layout import Piece, slots, spread, unravel
from bridle.engines.codegen.cuda_memory import UNROLL
from bridle.engines.codegen.cuda_schedule import Declaration
from bridle.engines.codegen.cuda_writer import CudaWriter, Lines
from bridle.engines.codegen.equations import Equation

_OPERATION = {"add": "_Add", "mul": "_Mul", "max": "_Max", "min": "_Min", "and": "_And", "or": "_Or"}
_START = {"add": "0.0", "mul": "1.0", "max": "-INFINITY", "min": "INFINITY", "and": "true", "or": "false"}


class Folding(CudaWriter):
    """The operations with loops of their own."""

    def fold(self, step: str, value: Value[Code], axes: Sequence[int], shape: Shape, kind: str) -> Value[Code]:
        start = _start(step, kind) if kind != "i" or step in ("add", "mul") else self.only(value)
        if math.prod(shape) == 1:
            return self.fold_all(step, start, value, axes, shape, kind)
        result = self.new_array(shape, kind, value.fixed)
        grid = self.grid
        if grid is not None and value.shape == (grid.rows, grid.columns) and tuple(axes) == (1,) and kind == "f":
            return self.fold_rows(step, start, value, result)
        outer_axes = [axis for axis in range(len(value.shape)) if axis not in axes]
        inner = [value.shape[axis] for axis in axes]
        outer, terms, type_, operation = math.prod(shape), math.prod(inner), TYPE[kind], _OPERATION[step]
        share = min((2**n for n in range(self.lanes.bit_length())), key=lambda p: _effort(outer, terms, self.lanes, p))
        rows = self.lanes // share
        passes, steps = -(-outer // rows), -(-terms // share)
        partial = min(4, steps) if steps <= UNROLL else 1
        inside = unravel("k", inner)

        def added(at: Sequence[Code]) -> Lines:
            index = dict(zip(outer_axes, at, strict=True)) | dict(zip(axes, inside, strict=True))
            term = value.read([index[axis] for axis in range(len(value.shape))])
            return [
                *([f"if (k < {terms})"] if terms % share else []),
                code(f"p[j % {partial}] = {operation}::of(p[j % {partial}], ({type_})(", term, "));"),
            ]

        first: Lines = [f"{type_} p[{partial}];", "#pragma unroll", code(f"for (int j = 0; j < {partial}; ++j) p[j] = ", start, ";")]
        along: Lines = [
            self.pragma(steps),
            f"for (int j = 0; j < {steps}; ++j) {{",
            f"const int k = {'' if share == 1 else f'lane % {share} + '}{share} * j;",
        ]

        def put(at: Sequence[Code]) -> Code:
            return code(self.store(result, at, code("p[0]")), ";")

        with self.early(value.fixed):
            if share == 1:
                self.unit(*self.each(shape, lambda at: [*first, *along, *added(at), "}", *_gathered(partial, operation), put(at)]))
            else:
                at = unravel("m", shape)
                self.unit(
                    self.pragma(passes),
                    f"for (int s = 0; s < {passes}; ++s) {{",
                    f"const int m = lane / {share} + {rows} * s;",
                    *first,
                    f"if (m < {outer}) {{",
                    *along,
                    *added(at),
                    "}",
                    "}",
                    *_gathered(partial, operation),
                    f"p[0] = _across<{operation}, {share}>(mask, p[0]);",
                    code(f"if (m < {outer} && lane % {share} == 0) ", put(at)),
                    "}",
                )
        return result

    def fold_rows(self, step: str, start: Code, value: Value[Code], result: Value[Code]) -> Value[Code]:
        """Of the grid's rows, each of which some lanes hold: their own parts, then those of a row brought to the lane that it is for."""
        grid, operation, part = self.grid, _OPERATION[step], Var(self.name("v"))
        assert grid is not None
        partial = min(4, grid.steps)

        def add(at: list[Code]) -> Lines:
            term = value.read(at)
            here = code(f"({grid.inside} ? (", term, ") : ", start, ")") if grid.columns % grid.share else term
            return [code(f"p[s % {partial}] = s < {partial} ? ", here, f" : {operation}::of(p[s % {partial}], ", here, ");")]

        def gather(at: list[Code]) -> Lines:
            parts = [code(f"_from<{self.lanes}>(mask, ", part, ", ", at[0], f" * {grid.share} + {n})") for n in range(grid.share)]
            total = parts[0]
            for other in parts[1:]:
                total = code(f"{operation}::of(", total, ", ", other, ")")
            return [code(self.store(result, at, total), ";")]

        with self.early(value.fixed):
            self.unit(
                code("double ", part, "; {"),
                f"double p[{partial}];",
                *self.each(value.shape, add),
                *_gathered(partial, operation),
                code(part, " = p[0]; }"),
                declares=part.name,
            )
            self.unit(*self.each(result.shape, gather))
        return result

    def total(self, value: Value[Code]) -> Code:
        """The sum of all elements, which nobody waits for."""
        return self.fold_all("add", _start("add", "f"), value, range(len(value.shape)), (), "f", quick=False).read(())

    def fold_all(
        self, step: str, start: Code, value: Value[Code], axes: Sequence[int], shape: Shape, kind: str, quick: bool = True
    ) -> Value[Code]:
        """A reduction to a single element, which every lane comes to hold; `quick` where others wait for it."""
        total, type_, operation = Var(self.name("v")), TYPE[kind], _OPERATION[step]
        element, rest = code(total), f"{total.name}r"
        inner = [value.shape[axis] for axis in axes]
        width = spread(math.prod(inner), self.lanes)
        steps = slots(math.prod(inner), self.lanes, self.grid) if width == self.lanes else 1
        partial = min(4, steps) if steps <= UNROLL else 1

        def add(at: list[Code]) -> Lines:
            index = dict(zip(axes, at, strict=True))
            term = value.read([index.get(axis, ZERO) for axis in range(len(value.shape))])
            piece = self.piece
            assert piece is not None
            here = code(f"({type_})(", term, ")")
            if piece.counts:
                here = code(f"(({piece.counts}) ? ", here, " : ", start, ")")
            if piece.first:
                return [code(f"{rest} = s > {piece.first} ? {operation}::of({rest}, ", here, ") : ", here, ";")]
            if partial > 1 or steps == 1:
                return [code(f"p[s % {partial}] = s < {partial} ? ", here, f" : {operation}::of(p[s % {partial}], ", here, ");")]
            return [code(f"p[0] = {operation}::of(p[0], ", here, ");")]

        def end(piece: Piece) -> Lines:
            """The parts of a piece as one; what lanes hold that others hold too is dropped."""
            if piece.first:
                return [f"p[0] = {operation}::of(p[0], {rest});"]
            dropped = [code(f"p[0] = {piece.first_held} ? p[0] : ", start, ";")] if piece.first_held else []
            return [*_gathered(partial, operation), *dropped]

        with self.early(value.fixed):
            if math.prod(inner) == 1:
                self.add(Declaration(total.name, kind, self.only(value)))
            else:
                room = code(f"p[{partial}]") if partial > 1 or steps == 1 else code("p[1] = {", start, "}")
                across = f"_across<{operation}, {width}{', true' if quick and self.lanes == 32 else ''}>(mask, p[0])"
                self.unit(
                    code(f"{type_} ", total, "; {"),
                    code(f"{type_} ", room, f", {rest};"),
                    *self.each(inner, add, after=end),
                    code(total, f" = {across if width > 1 else 'p[0]'};"),
                    "}",
                    declares=total.name,
                )
        return Value(shape, kind, lambda at: element, True, value.fixed)

    def extreme(self, value: Value[Code], axis: int, shape: Shape, sign: str) -> Value[Code]:
        count, type_ = value.shape[axis], TYPE[value.kind]

        def search(at: list[Code], first: str, stride: int) -> Lines:
            start, other = (value.read([*at[:axis], code(j), *at[axis:]]) for j in (first, "j"))
            return [
                code(f"{type_} best = ", start, f"; int found = {first};"),
                f"for (int j = {first} + {stride}; j < {count}; j += {stride})",
                code("if (", other, f" {sign} best) {{ best = ", other, "; found = j; }"),
            ]

        if math.prod(shape) > 1:
            result = self.new_array(shape, "i", False)
            self.unit(*self.each(shape, lambda at: [*search(at, "0", 1), code(self.store(result, at, code("found")), ";")]))
            return result
        total, lanes = Var(self.name("v")), self.lanes
        whole = self.lanes == 1 or count <= 4
        meeting = [
            f"for (int m = {lanes // 2}; m > 0; m /= 2) {{",
            f"const {type_} other = _swap(mask, best, m); const int place = (int)_swap(mask, (long long)found, m);",
            f"if (other {sign} best || (other == best && place < found)) {{ best = other; found = place; }}",
            "}",
        ]
        self.unit(
            code("long long ", total, "; {"),
            *([] if whole else [f"const int first = lane < {count} ? lane : {count - 1};"]),
            *search(self.zeros(shape), "0" if whole else "first", 1 if whole else lanes),
            *([] if whole else meeting),
            code(total, " = found; }"),
            declares=total.name,
        )
        element = code(total)
        return Value(shape, "i", lambda at: element, True, False)

    def running(self, array: Value[Code], axis: int, reverse: bool, step: str) -> None:
        count = array.shape[axis]
        others = [n for i, n in enumerate(array.shape) if i != axis]

        def along(at: list[Code]) -> Lines:
            self.piece = None  # a row is one lane's, its elements are not
            here, last = (f"({count - 1} - j)", f"({count} - j)") if reverse else ("(j)", "(j - 1)")
            now, old = ([*at[:axis], code(j), *at[axis:]] for j in (here, last))
            sum_ = code(f"{_OPERATION[step]}::of(", array.read(old), ", ", array.read(now), ")")
            return [code(f"for (int j = 1; j < {count}; ++j) ", self.store(array, now, sum_), ";")]

        if math.prod(others) > 1:
            self.unit(*self.each(others, along, alone=True))
        else:
            self.unit("if (lane == 0) {", *along(self.zeros(others)), "}")

    def do_sort(self, equation: Equation, operands: list[Value[Code]], shape: Shape, kind: str, fixed: bool) -> list[Value[Code]]:
        """By rank: every element counts those before it. Nothing is exchanged, and equal ones keep their order."""
        if equation.params["num_keys"] != 1 or equation.params["dimension"] != len(shape) - 1:
            raise self.refused("'sort' of several keys or other than the last axis")
        if math.prod(shape) == 1:
            return operands
        parts = [self.buffered(value) for value in operands]
        results = [self.new_array(shape, part.kind, False) for part in parts]

        def put(at: list[Code]) -> Lines:
            mine, other = parts[0].read(at), parts[0].read([*at[:-1], code("j")])
            rank = code("rank += _less(", other, ", key) || (j < ", at[-1], " && !_less(key, ", other, "));")
            places = [self.store(new, [*at[:-1], code("rank")], old.read(at)) for new, old in zip(results, parts, strict=True)]
            return [
                code(f"int rank = 0; const {TYPE[parts[0].kind]} key = ", mine, ";"),
                code(f"for (int j = 0; j < {shape[-1]}; ++j) ", rank),
                *(code(place, ";") for place in places),
            ]

        self.unit(*self.each(shape, put))
        return results


def _start(step: str, kind: str) -> Code:
    """What a fold of floats, flags or counts begins with."""
    return code(f"({TYPE[kind]}){_START[step]}")


def _effort(outer: int, terms: int, lanes: int, share: int) -> int:
    """About how many cycles it takes to sum `outer` rows with `share` lanes to a row."""
    return -(-outer // (lanes // share)) * (-(-terms // share) * 6 + share.bit_length() * 30)


def _gathered(partial: int, operation: str) -> list[str]:
    """Partial results as one, in few steps that wait for each other."""
    lines, step = [], 1
    while step < partial:
        lines += [f"p[{j}] = {operation}::of(p[{j}], p[{j + step}]);" for j in range(0, partial - step, 2 * step)]
        step *= 2
    return lines
