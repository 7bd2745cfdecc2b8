"""One traced round, read as plain arithmetic: what the engines that write their own loops share.

JAX traces the game's round into a list of array operations, all of fixed shapes. A `Writer` goes through that list and writes it down in
some language: scalars are variables, arrays that are read more than once are buffers, all others are written into the loop that reads
them, and what does not depend on the round is done before the first one. No algorithm is known here, only arithmetic.
`loops` writes Python for numba, `cuda_kernel` CUDA C; what they differ in is how a statement, a loop and a sum are spelled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bridle.engines.codegen.backend import C, S, Shape, Value
from bridle.engines.codegen.control_flow import ControlFlow
from bridle.engines.codegen.equations import Equation, Equations, Variable, kind_of
from bridle.engines.codegen.indexing import Indexing

_SAME = {"copy", "copy_p", "stop_gradient", "optimization_barrier", "reduce_precision", "sharding_constraint"}
NESTED = {"jit", "pjit", "closed_call", "custom_jvp_call", "custom_vjp_call", "remat", "core_call"}
_FOLD = {"reduce_sum": "add", "reduce_prod": "mul", "reduce_max": "max", "reduce_min": "min", "reduce_and": "and", "reduce_or": "or"}
_LIGHT = {"add", "sub", "mul", "neg"}
_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "shift_right_arithmetic": ">>", "and": "&", "or": "|", "xor": "^",
}  # fmt: skip


class Writer(Indexing[C, S], ControlFlow[C, S]):
    """The source as it grows, equation by equation."""

    def equations(self, jaxpr: Equations, known: dict[Variable, Value[C]], origin: Equation | None = None) -> None:
        """Write down every equation; `known` gets the values of its variables. `origin` is the one that holds them all, if there is one."""
        outside = self.origin
        for equation in jaxpr.eqns:
            self.origin = origin or equation
            results = self.equation(equation, [self.value(var, known) for var in equation.invars])
            for var, value in zip(equation.outvars, results, strict=True):
                result = value if value.origin is not None else value._replace(origin=self.origin)
                known[var] = self.buffered(result) if self.uses[var] > 1 or result.single else result
        self.origin = outside

    def equation(self, equation: Equation, operands: list[Value[C]]) -> list[Value[C]]:
        """The results of one equation."""
        name, params, out = equation.primitive.name, equation.params, equation.outvars[0]
        shape, kind, fixed = tuple(out.aval.shape), kind_of(out), all(value.fixed for value in operands)
        if name in NESTED:
            return self.inline(params, operands, self.origin)  # JAX keeps such functions: their own lines are those of the first caller
        if name in _SAME:
            return list(operands)
        if (code := self.formula(name, params, operands, kind)) is not None:
            result = self.elementwise(code, operands, shape, kind, fixed)
            weight = 1 + sum(value.weight for value in operands)
            again = name in _LIGHT and weight <= self.light and all(value.cheap for value in operands)
            return [result if result.single else result._replace(weight=weight, cheap=again)]
        if name in _FOLD:
            return [self.fold(_FOLD[name], operands[0], params["axes"], shape, kind) if params["axes"] else operands[0]]
        method = getattr(self, f"do_{name.replace('-', '_')}", None)
        if method is None:
            raise self.refused(repr(name))
        return list(method(equation, operands, shape, kind, fixed))

    def inline(self, params: dict[str, Any], operands: list[Value[C]], origin: Equation | None = None) -> list[Value[C]]:
        closed = next(params[key] for key in ("jaxpr", "call_jaxpr", "fun_jaxpr") if key in params)
        inner: Equations = getattr(closed, "jaxpr", closed)
        constants = [self.fixed_array(np.asarray(each)) for each in getattr(closed, "consts", ())]
        self.count(inner)
        known = dict(zip([*inner.constvars, *inner.invars], [*constants, *operands], strict=True))
        # What goes in was computed outside: what is read more than once in here must be cheap already.
        known = {var: self.buffered(value) if self.uses[var] > 1 else value for var, value in known.items()}
        self.equations(inner, known, origin)
        return [self.value(var, known) for var in inner.outvars]

    def finish(self, results: list[Value[C]], held: list[Value[C]], unchanged: list[bool], keep: Callable[[int, Value[C]], None]) -> None:
        """The end of a round: what is kept is written down, then every state takes its new value, none before all are known."""
        fresh = [
            value if same or (value.cheap and self.is_own(value)) else self.stored(value._replace(fixed=False))
            for value, same in zip(results, unchanged, strict=False)
        ]
        for n, value in enumerate(results[len(held) :], len(held)):
            keep(n, value)
        for value, old, same in zip(fresh, held, unchanged, strict=True):
            if not same:
                self.assign(old, value)

    # One element at a time

    def formula(self, name: str, params: dict[str, Any], operands: list[Value[C]], kind: str) -> Callable[[list[C]], C] | None:
        """How one element of an elementwise operation is written; None where the operation is none."""
        if name in _INFIX:
            return lambda parts: self.code("({} {} {})", parts[0], _INFIX[name], parts[1])
        if name in self.called:
            return lambda parts: self.code("{}({})", self.called[name], self.joined(", ", parts))
        if name == "neg":
            return lambda parts: self.code("(-{})", parts[0])
        if name == "select_n":
            return lambda parts: self.code("_pick({}, {}, {})", parts[0], parts[2], parts[1])
        if name == "clamp":
            return lambda parts: self.code("_min(_max({}, {}), {})", parts[1], parts[0], parts[2])
        if name == "convert_element_type":
            return lambda parts: self.converted(parts[0], operands[0].kind, kind)
        return self.special(name, params, operands, kind)

    def elementwise(self, code: Callable[[list[C]], C], operands: list[Value[C]], shape: Shape, kind: str, fixed: bool) -> Value[C]:
        # Operands have the shape of the result, or none at all, or a single element along some axis.
        operands = [value if math.prod(value.shape) == math.prod(shape) else self.buffered(value) for value in operands]

        def read(at: Sequence[C]) -> C:
            return code([value.read(self.fitted(value, at)) for value in operands])

        if math.prod(shape) == 1:
            return self.scalar(read(self.zeros(shape)), shape, kind, fixed)
        return Value(shape, kind, read, False, fixed)

    def fitted(self, value: Value[C], at: Sequence[C]) -> list[C]:
        """The indices of an operand, which may have a single element along some axis."""
        return [i if n > 1 else self.code("0") for i, n in zip(at, value.shape, strict=False)]

    # Operations with loops of their own

    def do_dot_general(self, equation: Equation, operands: list[Value[C]], shape: Shape, kind: str, fixed: bool) -> list[Value[C]]:
        (left_sum, right_sum), (left_batch, right_batch) = equation.params["dimension_numbers"]
        left, right = (self.buffered(value) for value in operands)
        left_free = [i for i in range(len(left.shape)) if i not in (*left_sum, *left_batch)]
        right_free = [i for i in range(len(right.shape)) if i not in (*right_sum, *right_batch)]
        outer, b = len(shape), len(left_batch)

        def read(at: Sequence[C]) -> C:
            a, c = self.zeros(left.shape), self.zeros(right.shape)
            for n, (i, j) in enumerate(zip(left_batch, right_batch, strict=True)):
                a[i] = c[j] = at[n]
            for n, i in enumerate(left_free):
                a[i] = at[b + n]
            for n, j in enumerate(right_free):
                c[j] = at[b + len(left_free) + n]
            for n, (i, j) in enumerate(zip(left_sum, right_sum, strict=True)):
                a[i] = c[j] = at[outer + n]
            return self.code("{} * {}", left.read(a), right.read(c))

        sizes = tuple(left.shape[i] for i in left_sum)
        product = Value((*shape, *sizes), kind, read, False, fixed)
        return [self.fold("add", product, range(outer, outer + len(sizes)), shape, kind)]

    def do_argmax(self, equation: Equation, operands: list[Value[C]], shape: Shape, kind: str, fixed: bool) -> list[Value[C]]:
        return [self.extreme(self.buffered(operands[0]), equation.params["axes"][0], shape, ">")]

    def do_argmin(self, equation: Equation, operands: list[Value[C]], shape: Shape, kind: str, fixed: bool) -> list[Value[C]]:
        return [self.extreme(self.buffered(operands[0]), equation.params["axes"][0], shape, "<")]

    def do_cumsum(self, equation: Equation, operands: list[Value[C]], shape: Shape, kind: str, fixed: bool) -> list[Value[C]]:
        return [self.run_along(equation, operands[0], "add")]

    def do_cummax(self, equation: Equation, operands: list[Value[C]], shape: Shape, kind: str, fixed: bool) -> list[Value[C]]:
        return [self.run_along(equation, operands[0], "max")]

    def run_along(self, equation: Equation, value: Value[C], step: str) -> Value[C]:
        array = self.stored(value._replace(fixed=False))
        if not array.single:
            self.running(array, equation.params["axis"], equation.params["reverse"], step)
        return array
