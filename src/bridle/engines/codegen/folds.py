"""Operations with loops of their own: sums, products, running sums, sorting and eigenvalues."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from bridle.engines.codegen.equations import LANES, Equation
from bridle.engines.codegen.fuse import add_nest
from bridle.engines.codegen.statements import PARTS, Access, CodeLine, Expression, Nest, Statement, access, spell
from bridle.engines.codegen.writer import Operation, Shape, Value, Writer, zeros

_FOLD = {"reduce_sum": "add", "reduce_prod": "mul", "reduce_max": "max", "reduce_min": "min", "reduce_and": "and", "reduce_or": "or"}
_START = {"add": "0.0", "mul": "1.0", "max": "-np.inf", "min": "np.inf", "and": "True", "or": "False"}
_STEP = {"add": "{} + {}", "mul": "{} * {}", "max": "_max({}, {})", "min": "_min({}, {})", "and": "{} & {}", "or": "{} | {}"}


class Folds(Writer):
    """The methods ``do_*`` of these operations."""

    def reduced(self, op: Operation) -> Value:
        """A reduction over some axes."""
        axes, step = op.params["axes"], _FOLD[op.equation.primitive.name]
        return self.fold(step, op.operands[0], axes, op.shape, op.kind) if axes else op.operands[0]

    do_reduce_sum = do_reduce_prod = do_reduce_max = do_reduce_min = do_reduce_and = do_reduce_or = reduced

    def do_dot_general(self, op: Operation) -> Value:
        (left_sum, right_sum), (left_batch, right_batch) = op.params["dimension_numbers"]
        left, right = (self.buffered(value) for value in op.operands)
        left_free = [i for i in range(len(left.shape)) if i not in (*left_sum, *left_batch)]
        right_free = [i for i in range(len(right.shape)) if i not in (*right_sum, *right_batch)]
        outer, b = len(op.shape), len(left_batch)

        def read(at: Sequence[Expression]) -> Expression:
            a, c = zeros(left.shape), zeros(right.shape)
            for n, (i, j) in enumerate(zip(left_batch, right_batch, strict=True)):
                a[i] = c[j] = at[n]
            for n, i in enumerate(left_free):
                a[i] = at[b + n]
            for n, j in enumerate(right_free):
                c[j] = at[b + len(left_free) + n]
            for n, (i, j) in enumerate(zip(left_sum, right_sum, strict=True)):
                a[i] = c[j] = at[outer + n]
            return spell("{} * {}", left.read(a), right.read(c))

        sizes = tuple(left.shape[i] for i in left_sum)
        product = Value((*op.shape, *sizes), op.kind, read, False, op.fixed)
        return self.fold("add", product, range(outer, outer + len(sizes)), op.shape, op.kind)

    def do_argmax(self, op: Operation) -> Value:
        return self.extreme(self.buffered(op.operands[0]), op.params["axes"][0], op.shape, ">")

    def do_argmin(self, op: Operation) -> Value:
        return self.extreme(self.buffered(op.operands[0]), op.params["axes"][0], op.shape, "<")

    def do_cumsum(self, op: Operation) -> Value:
        return self.run_along(op.equation, op.operands[0], "add")

    def do_cummax(self, op: Operation) -> Value:
        return self.run_along(op.equation, op.operands[0], "max")

    def run_along(self, equation: Equation, value: Value, step: str) -> Value:
        """Running sums or maxima along an axis."""
        array, axis, reverse = self.stored(value._replace(fixed=False)), equation.params["axis"], equation.params["reverse"]
        if array.single:
            return array
        shape = array.shape
        # The loop over the axis must not be left out, even where it has a single step.
        with self.nested([n - 1 if i == axis else n for i, n in enumerate(shape)], least=1) as at:
            here, last = list(at), list(at)
            here[axis] = spell("({} - {})", shape[axis] - 2, at[axis]) if reverse else spell("({} + 1)", at[axis])
            last[axis] = spell("({} - {})", shape[axis] - 1, at[axis]) if reverse else at[axis]
            self.say("{} = {}", array.read(here), spell(_STEP[step], array.read(last), array.read(here)))
        return array

    def fold(self, step: str, value: Value, axes: Sequence[int], shape: Shape, kind: str) -> Value:
        """A reduction over some axes by "add", "mul", "max", "min", "and" or "or"."""
        start = spell("0" if kind == "i" and step == "add" else _START[step])
        inner = [value.shape[axis] for axis in axes]
        kept = [axis for axis in range(len(value.shape)) if axis not in axes]

        def element(outer: Sequence[Expression], index: Sequence[Expression]) -> Expression:
            here = dict(zip(kept, outer, strict=True)) | dict(zip(axes, index, strict=True))
            return value.read([here[axis] for axis in range(len(value.shape))])

        if math.prod(inner) == 1:  # there is nothing to add up
            return Value(shape, kind, lambda at: element(at, zeros(inner)), value.cheap, value.fixed)
        array = None if math.prod(shape) == 1 else self.new_array(shape, kind, value.fixed)
        total = access(self.name("v"))
        with self.early(value.fixed):
            if array is not None and LANES in shape:
                self.fold_runs(step, start, array, inner, element)
                return array
            with self.nested(shape, "k") as at:
                add_nest(self.lines, Nest((), self.statement(total, start)))
                sums = self.sums(step, kind, inner)
                self.loop(inner, lambda i: self.statement(total, spell(_STEP[step], total, element(at, i)), sums=sums))
                if array is not None:
                    self.loop((), lambda _: self.statement(array.read(at), total))
        return array if array is not None else Value(shape, kind, lambda at: total, True, value.fixed)

    def sums(self, step: str, kind: str, inner: list[int], *runs: int) -> Access | None:
        """Where a long sum is gathered in parts."""
        if step != "add" or kind != "f" or len(inner) != 1 or inner[0] < 2 * PARTS:
            return None
        name = self.name("s")
        if runs:
            self.rows(name, (PARTS, *runs))
        else:
            self.buffers[name] = CodeLine(spell(f"{name} = np.empty(({PARTS},))"))
        return Access(name)

    def fold_runs(
        self,
        step: str,
        start: Expression,
        array: Value,
        inner: list[int],
        element: Callable[[Sequence[Expression], Sequence[Expression]], Expression],
    ) -> None:
        """Runs are added up side by side: each element of the sum is all runs' before the next is begun."""
        lane = array.shape.index(LANES)
        with self.nested([1 if axis == lane else size for axis, size in enumerate(array.shape)], "k") as at:

            def place(run: Expression) -> list[Expression]:
                return [*at[:lane], run, *at[lane + 1 :]]

            sums = self.sums(step, "f", inner, LANES)

            def add(i: list[Expression]) -> Statement:
                here = place(i[-1])
                mine = None if sums is None else Access(sums.name, (i[-1],))
                return self.statement(array.read(here), spell(_STEP[step], array.read(here), element(here, i[:-1])), sums=mine)

            self.loop([LANES], lambda run: self.statement(array.read(place(run[0])), start))
            self.loop([*inner, LANES], add)

    def extreme(self, value: Value, axis: int, shape: Shape, sign: str) -> Value:
        """Where along the axis the largest (">") or smallest ("<") element is; the first of equals."""
        array = self.new_array(shape, "i", False) if math.prod(shape) > 1 else None
        best, where = access(self.name("v")), access(self.name("v"))
        with self.nested(shape, "k") as at:
            first, element = (value.read([*at[:axis], spell(j), *at[axis:]]) for j in ("0", "j"))
            self.say("{} = {}", best, first)
            self.say("{} = 0", where)
            with self.block("for j in range(1, {}):", value.shape[axis]), self.block("if {} {} {}:", element, sign, best):
                self.say("{} = {}", best, element)
                self.say("{} = j", where)
            if array is not None:
                self.say("{} = {}", array.read(at), where)
        return array if array is not None else Value(shape, "i", lambda at: where, True, False)

    def do_sort(self, op: Operation) -> list[Value]:
        if op.params["num_keys"] != 1 or op.params["dimension"] != len(op.shape) - 1:
            raise self.refused("'sort' of several keys or other than the last axis")
        if op.shape[-1] <= 1:
            return list(op.operands)
        parts = [self.stored(value._replace(fixed=False)) for value in op.operands]
        results = [self.new_array(part.shape, part.kind, False) for part in parts]
        order, spare = (access(self.buffer(op.shape[-1:], "i")) for _ in range(2))
        i = access(self.name("s"))
        with self.nested(op.shape[:-1], least=1) as at:
            self.say("_order({}, {}, {})", parts[0].read([*at, spell(":")]), order, spare)
            with self.block("for {} in range({}):", i, op.shape[-1]):
                for result, part in zip(results, parts, strict=True):
                    self.say("{} = {}", result.read([*at, i]), part.read([*at, spell("{}[{}]", order, i)]))
        return results

    def do_eigh(self, op: Operation) -> list[Value]:
        matrix = self.new_array(op.operands[0].shape, "f", False)
        vectors, values = (self.new_array(shape, "f", False) for shape in (matrix.shape, matrix.shape[:-1]))
        self.assign(matrix, op.operands[0])
        whole = spell(":")
        with self.nested(matrix.shape[:-2], least=1) as at:
            rows = (matrix.read([*at, whole, whole]), vectors.read([*at, whole, whole]), values.read([*at, whole]))
            self.say("_eigh({}, {}, {})", *rows)
        return [vectors, values]
