"""What shortens the longest chain of operations of a round: equations are written in another way than they are traced.

A round of few runs takes as long as that chain. These rules look at one equation and at what its operands are known to be (a number, the
root of a variable, a multiple of an array, a choice), never at text, and know no policy:

- arithmetic with 0 and 1 is left out, and a division by a number is a product;
- a / sqrt(x) is one operation, and whether a root is 0 is told from its argument;
- multiples of one array are kept as factors, and so are their sums and the sums of their squares;
- a choice between arrays by one flag is a branch;
- a number of the draw times what took an exponential, on its way into another one, is 0 where the draw is 0, and nobody waits for the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from bridle.engines.codegen.backend import Shape, Value
from bridle.engines.codegen.cuda_code import TYPE, Code, Var, code, filled, summed
from bridle.engines.codegen.cuda_folds import Folding
from bridle.engines.codegen.cuda_layout import MatrixGrid
from bridle.engines.codegen.cuda_schedule import Choice, Definition, Guarded, long_parts, round_variables
from bridle.engines.codegen.equations import Equation, Equations, Variable, kind_of

LONG = {"exp", "exp2", "log", "log1p", "expm1", "pow", "tanh", "logistic"}
"""The operations that take long."""

Reader = Callable[[Sequence[Code]], Code]
Formula = Callable[[list[Code]], Code]


class Multiple(NamedTuple):
    """An array times some numbers, and their product."""

    factors: list[Code]
    factor: Code
    base: Value[Code]


class ArrayChoice(NamedTuple):
    """One array where the test holds, and another where it does not."""

    test: Code
    sides: tuple[Value[Code], Value[Code]]


class Rewriting(Folding):
    """The equations, each in the shortest way that is known for it."""

    def __init__(self, lanes: int, runs: int, grid: MatrixGrid | None) -> None:
        super().__init__(lanes, runs, grid)
        self.choices: dict[Reader, ArrayChoice] = {}
        self.multiples: dict[Reader, Multiple] = {}
        self.before_long: set[Variable] = set()  # the variables that go into long operations

    def equation(self, equation: Equation, operands: list[Value[Code]]) -> list[Value[Code]]:
        kind = kind_of(equation.outvars[0])
        short = (self.gated(equation, operands) or self.multiplied(equation, operands)) if kind == "f" else None
        if short is not None:
            return [short]
        results = super().equation(equation, operands)
        if equation.primitive.name == "select_n" and operands[0].single and not results[0].single and len(operands) == 3 and kind == "f":
            self.choices[results[0].read] = ArrayChoice(self.only(operands[0]), (operands[2], operands[1]))
        return results

    # Elements

    def formula(self, name: str, params: dict[str, Any], operands: list[Value[Code]], kind: str) -> Formula | None:
        """The code of an element says which operation it is the result of, so that later equations can tell."""
        spell = self.short_formula(name, operands, kind) or super().formula(name, params, operands, kind)
        if spell is None:
            return None

        def element(parts: list[Code]) -> Code:
            result = spell(parts)
            if any(result is part for part in parts):
                return result
            return replace(result, operation=name, operands=tuple(parts), slow=result.slow or name in LONG)

        return element

    def short_formula(self, name: str, operands: list[Value[Code]], kind: str) -> Formula | None:
        """The element of an operation that can be spelled in a shorter way than others of its name."""
        if kind == "f" and name in ("add", "sub", "mul", "div"):
            neutral = 0.0 if name in ("add", "sub") else 1.0
            first, second = (self.only(value).number for value in operands)
            if second == neutral:
                return lambda parts: parts[0]
            if name in ("add", "mul") and first == neutral:
                return lambda parts: parts[1]
            if name == "div" and operands[1].single and second and 1e-300 < abs(second) < 1e300:
                # A division takes some ten times as long as a product, and a round is a chain of them.
                inverse = self.only(self.literal(1.0 / second, (), "f"))
                return lambda parts: filled("({} * {})", parts[0], inverse)
            if name == "div":
                return lambda parts: self.quotient_of(*parts)
        if name == "eq" and operands[0].kind == "f" and operands[0].single and operands[1].single:
            return lambda parts: self.is_zero_root(*parts) or filled("({} == {})", *parts)
        return None

    def argument_of_root(self, value: Code) -> Code | None:
        """The variable that a variable is the root of."""
        definition = self.scalars.get(value.variable)
        if definition is None or definition.value.operation != "sqrt":
            return None
        (argument,) = definition.value.operands
        return argument if argument.variable.startswith("v") else None

    def quotient_of(self, a: Code, b: Code) -> Code:
        """a / b, where b may be a root, or 1 in place of a root that is none: a root and a division take twice as long as both at once."""
        if (argument := self.argument_of_root(b)) is not None:
            return filled("_over_root({}, {})", a, argument)
        definition = self.scalars.get(b.variable)
        if definition is not None and definition.value.operation == "select_n":
            flag, root, one = definition.value.operands
            argument, fixed = self.argument_of_root(root), self.fixed_scalars.get(one.variable)
            if argument is not None and flag.variable.startswith("v") and fixed is not None and fixed.number == 1.0:
                return filled("_over_root({}, _pick({}, 1.0, {}))", a, flag, argument)
        return filled("_over({}, {})", a, b)

    def is_zero_root(self, a: Code, b: Code) -> Code | None:
        """Whether a root is 0, told from what it is the root of."""
        argument = self.argument_of_root(a)
        positive_zero = b.number == 0.0 and math.copysign(1.0, b.number) > 0.0
        return filled("_vanishes({})", argument) if argument is not None and positive_zero else None

    # Choices between arrays

    def stored(self, value: Value[Code]) -> Value[Code]:
        """A choice between arrays by one flag is made once, not for every element: what only one of them needs is done for that one."""
        if value.read not in self.choices or value.fixed:
            return super().stored(value)
        test, sides = self.choices[value.read]
        result = self.new_array(value.shape, value.kind, False)

        def put(side: Value[Code]) -> list[Code]:
            lines = self.each(value.shape, lambda at: [code(self.store(result, at, side.read(self.fitted(side, at))), ";")])
            return [code(line) for line in lines]

        # The test comes out the same in all lanes of a run. Where a run has all lanes of a warp, the machine is told so.
        agreed = filled("_any({})", test) if self.lanes == 32 else test
        self.add(Choice(agreed, (put(sides[0]), put(sides[1]))), value.origin)
        return result

    # Products with a draw

    def gated(self, equation: Equation, operands: list[Value[Code]]) -> Value[Code] | None:
        """A number of the round's draw times what comes of long functions, on its way into others: nothing where the draw is 0.

        Nobody waits then for what it is multiplied by, which may be worked out meanwhile if others need it.
        """
        if equation.primitive.name != "mul" or equation.outvars[0] not in self.before_long or not self.in_round:
            return None
        one, two = (self.only(value).variable if value.single else "" for value in operands)
        for gate, other in ((one, two), (two, one)):
            long = long_parts(self.scalars, other) if gate in self.drawn else []
            if long and all(next(self.scalars[name].value.elements(), None) is None for name in long):
                return self.guard(gate, other, long, tuple(equation.outvars[0].aval.shape))
        return None

    def guard(self, gate: str, other: str, long: list[str], shape: Shape) -> Value[Code]:
        """The product of two variables; the declarations `long` behind the second one are repeated in a branch for a gate that is not 0."""
        name, outer = self.name("v"), {gate, other}
        branch = [code("if (", Var(gate), " != 0.0) {")]
        for each in long:
            kind, value = self.scalars[each]
            inputs = set(round_variables(value)) - set(long)
            outer |= inputs
            apart = value.wrapped({part for part in inputs if self.scalars.get(part, _UNKNOWN).kind == "f"}, "_apart")
            branch.append(code(TYPE[kind], " ", Var(each), " = ", apart, ";"))
        branch += [code(Var(name), " = ", Var(gate), " * ", Var(other), ";"), code("}")]
        last = max((i for i, each in enumerate(self.body) if each.declares in outer - set(long)), default=-1)
        self.body.insert(last + 1, Guarded(name, gate, branch))
        element = code(Var(name))
        return Value(shape, "f", lambda at: element, True, False)

    # Multiples of an array by a number

    def multiplied(self, equation: Equation, operands: list[Value[Code]]) -> Value[Code] | None:
        """What a round does to multiples of one array it does to their factors, as long as it can: sums of them, and sums of their squares
        over all elements, need but one pass over the array, and that before the factors are known."""
        name, shape = equation.primitive.name, tuple(equation.outvars[0].aval.shape)
        if all(value.fixed for value in operands):
            return None
        multiples = [self.multiples.get(value.read) for value in operands]
        if name in ("broadcast_in_dim", "reshape", "squeeze", "expand_dims") and (one := multiples[0]) is not None:
            same = [n for n in shape if n > 1] == [n for n in operands[0].shape if n > 1]
            return self.multiple(one.factors, one.base, shape) if same else None
        if name == "mul" and math.prod(shape) > 1 and operands[0].single != operands[1].single:
            left = operands[0].single
            scalar, array = operands if left else reversed(operands)
            one, factor = multiples[left], self.only(scalar)
            if one is not None:
                return self.multiple([*one.factors, factor], one.base, shape)
            return self.multiple([factor], self.buffered(array), shape) if array.shape == shape else None
        if name in ("mul", "add", "sub") and (one := multiples[0]) and (two := multiples[1]) and one.base.read is two.base.read:
            if name == "mul":
                square = self.elementwise(lambda parts: filled("({} * {})", *parts), [one.base, two.base], one.base.shape, "f", False)
                return self.multiple([*one.factors, *two.factors], square, shape)
            both = filled("({} {} {})", one.factor, "+" if name == "add" else "-", two.factor)
            return self.multiple([self.scalar(both, (), "f", False).read(())], one.base, shape)
        if name == "reduce_sum" and (one := multiples[0]) is not None and math.prod(shape) == 1:
            total = self.total(one.base)
            for factor in one.factors:  # one after the other: their product alone may be too large or too small
                total = filled("({} * {})", factor, total)
            return self.scalar(total, shape, "f", False)
        return None

    def multiple(self, factors: list[Code], base: Value[Code], shape: Shape) -> Value[Code]:
        """The product of an array and some numbers, which is remembered as such."""
        product = factors[0] if len(factors) == 1 else self.scalar(filled("({})", summed(factors, "*")), (), "f", False).read(())
        wide = [axis for axis, n in enumerate(base.shape) if n > 1]

        def read(at: Sequence[Code]) -> Code:
            place = self.zeros(base.shape)
            for axis, index in zip(wide, [i for i, n in zip(at, shape, strict=True) if n > 1], strict=True):
                place[axis] = index
            return filled("({} * {})", product, base.read(place))

        self.multiples[read] = Multiple(factors, product, base)
        return Value(shape, "f", read, True, False)


_UNKNOWN = Definition("", code(""))


def before_long(jaxpr: Equations) -> set[Variable]:
    """The variables that go into an exponential or a logarithm, however many steps later."""
    variables: set[Variable] = set()
    for equation in reversed(jaxpr.eqns):
        if equation.primitive.name in LONG or any(var in variables for var in equation.outvars):
            variables.update(var for var in equation.invars if not hasattr(var, "val"))
    return variables
