"""Loops and branches of the trace: `while`, `cond` and `scan`."""

from __future__ import annotations

from collections.abc import Sequence

from bridle.engines.codegen.equations import kind_of
from bridle.engines.codegen.folds import Folds
from bridle.engines.codegen.statements import CodeLine, Expression, access, spell
from bridle.engines.codegen.writer import Operation, Value, literal, span


class ControlFlow(Folds):
    """The methods ``do_*`` of these operations."""

    def do_while(self, op: Operation) -> list[Value]:
        params = op.params
        m, n = params["cond_nconsts"], params["body_nconsts"]
        outer = [self.buffered(value) for value in op.operands[: m + n]]
        carried = [self.carrier(value) for value in op.operands[m + n :]]
        with self.block("while True:"):
            going = self.inline({"jaxpr": params["cond_jaxpr"]}, [*outer[:m], *carried])[0]
            if going.single:
                self.leave_unless(going.first)
                self.advance(carried, self.inline({"jaxpr": params["body_jaxpr"]}, [*outer[m:], *carried]))
            else:  # each of several runs goes on until it is done
                going = self.stored(going._replace(fixed=False))
                self.leave_unless(self.fold("or", going, range(len(going.shape)), (), "b").first)
                turned = self.inline({"jaxpr": params["body_jaxpr"]}, [*outer[m:], *carried])
                self.advance(carried, [_where(going, new, old) for new, old in zip(turned, carried, strict=True)])
        return carried

    def leave_unless(self, test: Expression) -> None:
        """Leave the loop if the test does not hold."""
        with self.block("if not {}:", test):
            self.lines.append(CodeLine(spell("break")))

    def do_cond(self, op: Operation) -> list[Value]:
        outer = [self.buffered(value) for value in op.operands]
        results = [self.carrier(literal(0, tuple(v.aval.shape), kind_of(v))) for v in op.equation.outvars]
        *branches, last = op.params["branches"]
        for n, branch in enumerate(branches):
            with self.branch("elif {} == {}:" if n else "if {} == {}:", outer[0].first, n):
                self.advance(results, self.inline({"jaxpr": branch}, outer[1:]))
        with self.branch("else:"):
            self.advance(results, self.inline({"jaxpr": last}, outer[1:]))
        return results

    def do_scan(self, op: Operation) -> list[Value]:
        params = op.params
        # What is carried has the same shape inside and outside, what is run along has one axis more outside. (The names of the counts in
        # the equation differ between versions of JAX.)
        inner, length = getattr(params["jaxpr"], "jaxpr", params["jaxpr"]), params["length"]
        n = sum(a.aval.shape == b.aval.shape for a, b in zip(op.equation.outvars, inner.outvars, strict=True))
        m = sum(a.aval.shape == b.aval.shape for a, b in zip(op.equation.invars, inner.invars, strict=True)) - n
        outer = [self.buffered(value) for value in op.operands[:m]]
        carried = [self.carrier(value) for value in op.operands[m : m + n]]
        along = [self.buffered(value) for value in op.operands[m + n :]]
        stacked = [self.new_array(tuple(v.aval.shape), kind_of(v), False) for v in op.equation.outvars[n:]]
        step = self.name("s")
        place = access(step)
        if params["reverse"]:
            place = spell("({} - {})", length - 1, place)
        with self.block("for {} in range({}):", step, span(length)):
            turned = self.inline({"jaxpr": params["jaxpr"]}, [*outer, *carried, *(_row(value, place) for value in along)])
            for target, value in zip(stacked, turned[n:], strict=True):
                self.assign(_row(target, place), value)
            self.advance(carried, turned[:n])
        return [*carried, *stacked]

    def carrier(self, value: Value) -> Value:
        """A place of its own for what a loop of the trace changes."""
        return self.stored(value._replace(fixed=False))

    def advance(self, carried: list[Value], results: list[Value]) -> None:
        """All new values are there before the first old one goes."""
        fresh = [self.stored(value._replace(fixed=False)) for value in results]
        for old, new in zip(carried, fresh, strict=True):
            self.assign(old, new)


def _row(array: Value, place: Expression) -> Value:
    """The elements of an array at one place along its first axis."""
    return Value(array.shape[1:], array.kind, lambda at: array.read([place, *at]), True, False)


def _where(flag: Value, new: Value, old: Value) -> Value:
    """The new value in the runs that are flagged, along the first axes, and the old one in the others."""

    def read(at: Sequence[Expression]) -> Expression:
        return spell("_pick({}, {}, {})", flag.read(at[: len(flag.shape)]), new.read(at), old.read(at))

    return Value(new.shape, new.kind, read, False, False)
