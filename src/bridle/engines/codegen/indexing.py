"""Operations that say where an element is found, or put: broadcasts, reshapes, slices, gathers and scatters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

from bridle.engines.codegen.elementwise import converted, joined
from bridle.engines.codegen.equations import LANES
from bridle.engines.codegen.statements import Expression, Statement, spell
from bridle.engines.codegen.writer import Operation, Shape, Value, Writer, zeros

T = TypeVar("T")


class Indexing(Writer):
    """The methods ``do_*`` of these operations."""

    def do_broadcast_in_dim(self, op: Operation) -> Value:
        places = op.params["broadcast_dimensions"]
        value = op.operands[0] if math.prod(op.shape) == math.prod(op.operands[0].shape) else self.buffered(op.operands[0])

        def read(at: Sequence[Expression]) -> Expression:
            return value.read([at[place] if value.shape[axis] > 1 else spell("0") for axis, place in enumerate(places)])

        return op.value(read, value.cheap)

    def do_reshape(self, op: Operation) -> Value:
        value = op.operands[0]
        if LANES in op.shape or LANES in value.shape:
            return self.reshaped_runs(value, op.shape, op.kind, op.fixed)
        return self.reshaped(value, op.shape, op.kind, op.fixed)

    do_squeeze = do_expand_dims = do_reshape

    def reshaped_runs(self, value: Value, shape: Shape, kind: str, fixed: bool) -> Value:
        """An array of several runs in another shape, where the axis of the runs stays apart from the others."""
        if shape.count(LANES) != 1 or value.shape.count(LANES) != 1:
            raise self.refused("'reshape' across runs")
        new, old = shape.index(LANES), value.shape.index(LANES)
        if math.prod(shape[:new]) != math.prod(value.shape[:old]):
            raise self.refused("'reshape' across runs")

        def of_run(run: Expression) -> Value:
            alone = value._replace(shape=_without(value.shape, old), read=lambda at: value.read([*at[:old], run, *at[old:]]))
            return self.reshaped(alone, _without(shape, new), kind, fixed)

        return Value(shape, kind, lambda at: of_run(at[new]).read(_without(at, new)), value.cheap, fixed)

    def reshaped(self, value: Value, shape: Shape, kind: str, fixed: bool) -> Value:
        wide, old = [i for i, n in enumerate(shape) if n > 1], [i for i, n in enumerate(value.shape) if n > 1]

        def read(at: Sequence[Expression]) -> Expression:
            place = zeros(value.shape)
            if [shape[i] for i in wide] == [value.shape[i] for i in old]:
                for a, b in zip(wide, old, strict=True):
                    place[b] = at[a]
                return value.read(place)
            terms = [spell("{} * {}", at[i], math.prod(shape[i + 1 :])) for i in wide]
            flat = joined(" + ", terms) if terms else spell("0")
            for i in old:
                beyond = math.prod(value.shape[i + 1 :])
                parts = spell("(({}) // {} % {})", flat, beyond, value.shape[i])
                place[i] = spell("({})", flat) if len(old) == 1 else parts
            return value.read(place)

        return Value(shape, kind, read, value.cheap, fixed)

    def do_transpose(self, op: Operation) -> Value:
        order, value = op.params["permutation"], op.operands[0]
        return op.value(lambda at: value.read([at[order.index(i)] for i in range(len(order))]), value.cheap)

    def do_rev(self, op: Operation) -> Value:
        flipped, value = op.params["dimensions"], op.operands[0]

        def read(at: Sequence[Expression]) -> Expression:
            return value.read([spell("({} - {})", op.shape[i] - 1, each) if i in flipped else each for i, each in enumerate(at)])

        return op.value(read, value.cheap)

    def do_iota(self, op: Operation) -> Value:
        axis = op.params["dimension"]
        return Value(op.shape, op.kind, lambda at: converted(at[axis], "i", op.kind), True, True)

    def do_slice(self, op: Operation) -> Value:
        value, starts = op.operands[0], op.params["start_indices"]
        strides = op.params["strides"] or (1,) * len(op.shape)

        def read(at: Sequence[Expression]) -> Expression:
            steps = (each if stride == 1 else spell("{} * {}", each, stride) for each, stride in zip(at, strides, strict=True))
            return value.read([spell("({} + {})", start, each) if start else each for start, each in zip(starts, steps, strict=True)])

        return op.value(read, value.cheap)

    def do_dynamic_slice(self, op: Operation) -> Value:
        value = op.operands[0]
        starts = self.starts(op.operands[1:], value.shape, op.shape)
        return op.value(lambda at: value.read(self.shifted(starts, at)), value.cheap)

    def starts(self, operands: list[Value], whole: Sequence[int], part: Sequence[int]) -> list[Expression]:
        """Where a part of an array begins, moved so that it lies inside."""
        inside = [spell("_within({}, {})", value.read(()), n - m) for value, n, m in zip(operands, whole, part, strict=True)]
        return [self.scalar(code, (), "i", value.fixed).read(()) for code, value in zip(inside, operands, strict=True)]

    def shifted(self, starts: Sequence[Expression | str], at: Sequence[Expression]) -> list[Expression]:
        """An index of a part as one of the whole."""
        return [spell("({} + {})", start, each) for start, each in zip(starts, at, strict=True)]

    def do_dynamic_update_slice(self, op: Operation) -> Value:
        part = self.buffered(op.operands[1])
        whole = self.stored(op.operands[0]._replace(fixed=False))
        starts = self.starts(op.operands[2:], op.shape, part.shape)
        if whole.single:
            return part
        self.loop(part.shape, lambda at: self.statement(whole.read(self.shifted(starts, at)), part.read(at)))
        return whole

    def do_gather(self, op: Operation) -> Value:
        value, places = self.buffered(op.operands[0]), self.buffered(op.operands[1])
        dims, sizes = op.params["dimension_numbers"], op.params["slice_sizes"]
        batch = [axis for axis in range(len(op.shape)) if axis not in dims.offset_dims]
        inside = [axis for axis in range(len(value.shape)) if axis not in (*dims.collapsed_slice_dims, *dims.operand_batching_dims)]
        zero = spell("0")

        def read(at: Sequence[Expression]) -> Expression:
            row = [at[axis] for axis in batch]
            index = zeros(value.shape)
            for axis, place in zip(inside, dims.offset_dims, strict=True):
                index[axis] = at[place]
            for axis, place in zip(dims.operand_batching_dims, dims.start_indices_batching_dims, strict=True):
                index[axis] = row[place]
            for n, axis in enumerate(dims.start_index_map):
                start = spell("_within({}, {})", places.read([*row, spell(str(n))]), value.shape[axis] - sizes[axis])
                index[axis] = start if index[axis] == zero else spell("({} + {})", start, index[axis])
            return value.read(index)

        return op.value(read, False)

    def do_scatter(self, op: Operation) -> Value:
        return self.scattered(op, adds=False)

    def do_scatter_add(self, op: Operation) -> Value:
        return self.scattered(op, adds=True)

    def scattered(self, op: Operation, adds: bool) -> Value:
        """The first operand with windows of the third put where the second says; one that would reach outside is moved in or dropped."""
        whole, (places, part) = self.stored(op.operands[0]._replace(fixed=False)), map(self.buffered, op.operands[1:])
        dims = op.params["dimension_numbers"]
        if whole.single:
            raise self.refused("'scatter' into a single element")
        batch = [axis for axis in range(len(part.shape)) if axis not in dims.update_window_dims]
        inside = [axis for axis in range(len(whole.shape)) if axis not in (*dims.inserted_window_dims, *dims.operand_batching_dims)]

        wide = {axis: part.shape[place] for axis, place in zip(inside, dims.update_window_dims, strict=True)}
        moved = op.params["mode"].name == "CLIP"

        def put(at: list[Expression]) -> Statement:
            row, index, tests = [at[axis] for axis in batch], zeros(whole.shape), [spell("True")]
            for axis, place in zip(inside, dims.update_window_dims, strict=True):
                index[axis] = at[place]
            for axis, place in zip(dims.operand_batching_dims, dims.scatter_indices_batching_dims, strict=True):
                index[axis] = row[place]
            for n, axis in enumerate(dims.scatter_dims_to_operand_dims):
                start, last = places.read([*row, spell(str(n))]), whole.shape[axis] - wide.get(axis, 1)
                if moved:
                    start = spell("_within({}, {})", start, last)
                else:
                    tests.append(spell("(0 <= {}) & ({} <= {})", start, start, last))
                index[axis] = spell("({} + {})", start, index[axis])
            new = spell("{} + {}", whole.read(index), part.read(at)) if adds else part.read(at)
            return self.statement(whole.read(index), new, joined(" & ", tests))

        self.loop(part.shape, put)
        return whole

    def do_pad(self, op: Operation) -> Value:
        value, config = op.operands[0], op.params["padding_config"]
        if any(low < 0 or high < 0 or inner for low, high, inner in config):
            raise self.refused("'pad' with negative or inner padding")
        padded = self.stored(Value(op.shape, op.kind, lambda at: op.operands[1].read(()), False, False))
        self.loop(value.shape, lambda at: self.statement(padded.read(self.shifted([str(low) for low, _, _ in config], at)), value.read(at)))
        return padded

    def do_concatenate(self, op: Operation) -> Value:
        whole, axis, start = self.new_array(op.shape, op.kind, op.fixed), op.params["dimension"], 0
        for value in op.operands:

            def put(at: list[Expression], value: Value = value, start: int = start) -> Statement:
                index = [spell("({} + {})", start, each) if i == axis else each for i, each in enumerate(at)]
                return self.statement(whole.read(index), value.read(at))

            with self.early(op.fixed):
                self.loop(value.shape, put)
            start += value.shape[axis]
        return whole

    def do_stack(self, op: Operation) -> Value:
        whole, axis = self.new_array(op.shape, op.kind, op.fixed), op.params["axis"]
        for n, value in enumerate(op.operands):

            def put(at: list[Expression], value: Value = value, n: int = n) -> Statement:
                return self.statement(whole.read([*at[:axis], spell(str(n)), *at[axis:]]), value.read(at))

            with self.early(op.fixed):
                self.loop(value.shape, put)
        return whole


def _without(parts: Sequence[T], i: int) -> tuple[T, ...]:
    return (*parts[:i], *parts[i + 1 :])
