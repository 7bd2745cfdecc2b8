"""A traced round as plain Python loops: what the compiled engine makes machine code of.

>>> import jax
>>> from jax import numpy as jnp
>>> with jax.enable_x64(True):
...     traced = jax.make_jaxpr(lambda step, x, v: x - step * v)(0.5, jnp.ones(3), jnp.ones(3))
>>> print(lower(traced, constants=1, states=1).function())
def run(rounds, lanes, marks, inputs, outputs):
    a0 = inputs[0][()]
    a1 = inputs[1].copy()
    a2 = inputs[2]
    v1 = a0
    for t in range(rounds):
        for i0 in range(3):
            b2 = (a1[i0] - (v1 * a2[t, i0]))
            a1[i0] = b2
    outputs[0][...] = a1
<BLANKLINE>
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from bridle.engines.codegen.control_flow import ControlFlow
from bridle.engines.codegen.equations import LANES, Equations, Traced, Variable, kind_of
from bridle.engines.codegen.fuse import contract
from bridle.engines.codegen.indexing import Indexing
from bridle.engines.codegen.python_source import PythonSource
from bridle.engines.codegen.statements import CodeBlock, CodeLine, Expression, Item, access, spell, with_parts
from bridle.engines.codegen.writer import Shape, Value, is_own, laid_out, named, part_of_memory
from bridle.engines.round import StepOutcome

Span: TypeAlias = tuple[int, int]
"""A part of the memory: where it begins and ends."""

Ring: TypeAlias = tuple[int, tuple[Span, ...]]
"""So many rows, and the parts of the memory that make one up."""


def lower(traced: Traced, constants: int, states: int, marked: bool = False, wide: int = 64) -> PythonSource:
    """The source of ``run(rounds, lanes, marks, inputs, outputs)`` for a traced round with so many constants and states, then draws.

    The outputs of the trace are the new states and what is to be kept of a round. `inputs` are arrays: the constants, the states (which
    are left as they are) and the draws, which have a leading time axis; `outputs` are arrays to fill: the states, then what is kept, with
    a leading axis for the rounds it is kept of. Those are all, or where `marked` those whose number in `marks`, the row to fill, is not
    below 0; then what is kept must be among the new states. Scalars are arrays of no axes.

    An axis of length `LANES` in the trace is that of several runs, of which `lanes` are played, at most `wide`. It is the last one in
    memory, and the innermost loop goes along it, so that one instruction serves several runs.
    """
    return _Rounds(wide).source(traced, constants, states, marked)


def lower_step(traced: Traced, constants: int, states: int, largest: float, ring: Ring | None = None) -> tuple[PythonSource, int]:
    """The source of ``run(memory)``, one round on one flat array, so that calling it costs next to nothing; and the length of the array.

    `memory` holds the trace's arguments one after the other (constants, states, and what is given of this round), then room for the new
    states, which are all that the trace gives. The answer is a `StepOutcome`; `largest` is how large a number given may be, if that is
    finite.

    With a `ring` the memory goes on with a number and the rows: a round writes those parts, as they are before it, in the row of that
    number, which it raises by 1. What the array has beyond that is for what comes up in between.
    """
    return _Step().source(traced, constants, states, largest, ring)


class Loops(Indexing, ControlFlow):
    """A writer that knows every operation."""


class _Rounds(Loops):
    """The function that plays some rounds."""

    def source(self, traced: Traced, constants: int, states: int, marked: bool) -> PythonSource:
        jaxpr = traced.jaxpr
        self.count(jaxpr)
        known = _fixed_arrays(self, traced)
        for n, var in enumerate(jaxpr.invars):
            known[var] = self.argument(n, var, constants, states)
        held = [known[var] for var in jaxpr.invars[constants : constants + states]]
        self.equations(jaxpr, known)
        unchanged = [a is b for a, b in zip(jaxpr.outvars, jaxpr.invars[constants:], strict=False)][:states]
        results = [self.value(var, known) for var in jaxpr.outvars]
        if not marked:
            self.finish(results, held, unchanged)
        else:  # what is kept now and then is part of the states, and read from them when they are new
            self.finish(results[:states], held, unchanged)
            with self.branch("if marks[t] >= 0:"):
                for n, var in enumerate(jaxpr.outvars[states:], states):
                    self.keep(n, held[jaxpr.outvars.index(var)], "marks[t]")
        rounds = CodeBlock(spell("for t in range(rounds):"), self.body)
        leaving = [self.leaving(n, state, constants) for n, state in enumerate(held)]
        # Draws have time in front, and what is kept has rows.
        inputs = [shape_of(var) if n < constants + states else (0, *shape_of(var)) for n, var in enumerate(jaxpr.invars)]
        outputs = [shape_of(var) for var in jaxpr.invars[constants : constants + states]]
        outputs += [(0, *shape_of(var)) for var in jaxpr.outvars[states:]]
        arrays = {f"{name}[{n}]": shape for name, each in (("inputs", inputs), ("outputs", outputs)) for n, shape in enumerate(each)}
        return _assembled(self, ("rounds", "lanes", "marks", "inputs", "outputs"), [*self.before, rounds, *leaving], arrays)

    def argument(self, n: int, var: Variable, constants: int, states: int) -> Value:
        """An argument under its name, brought in before the rounds."""
        shape, name = tuple(var.aval.shape), f"a{n}"
        if n >= constants + states:
            self.entry.append(CodeLine(spell(f"{name} = inputs[{n}]"), n))
            return Value(shape, kind_of(var), lambda at: access(name, "t", *laid_out(shape, at)), True, False)
        if LANES in shape:
            self.rows(name, shape)
            self.entry.append(CodeLine(spell(f"{name}[{_runs(shape)}] = inputs[{n}]"), n))
        elif math.prod(shape) == 1:  # a variable, whatever its axes
            self.entry.append(CodeLine(spell(f"{name} = inputs[{n}][{', '.join('0' * len(shape)) or '()'}]"), n))
        else:
            self.entry.append(CodeLine(spell(f"{name} = inputs[{n}]" + ("" if n < constants else ".copy()")), n))
        return named(name, shape if math.prod(shape) > 1 else (), kind_of(var), n < constants)._replace(shape=shape)

    def finish(self, results: list[Value], held: list[Value], unchanged: list[bool]) -> None:
        """The end of a round: what is kept is written down, then every state takes its new value, none before all are known."""
        fresh = [
            value if same or (value.cheap and is_own(value)) else self.stored(value._replace(fixed=False))
            for value, same in zip(results, unchanged, strict=False)
        ]
        for n, value in enumerate(results[len(held) :], len(held)):
            self.keep(n, value)
        for value, old, same in zip(fresh, held, unchanged, strict=True):
            if not same:
                self.assign(old, value)

    def keep(self, n: int, value: Value, row: str = "t") -> None:
        """What is kept of a round goes to its row."""
        output = f"outputs[{n}]"
        self.assign(value._replace(read=lambda at: access(output, row, *laid_out(value.shape, at))), value)

    def leaving(self, n: int, state: Value, constants: int) -> CodeLine:
        """A state as it is after the rounds."""
        runs = f"[{_runs(state.shape)}]" if LANES in state.shape else ""
        return CodeLine(spell(f"outputs[{n}][{'...' if state.shape else '()'}] = a{constants + n}{runs}"))


class _Layout(NamedTuple):
    """Where things are in the memory of a step."""

    begins: list[int]
    """Where each argument begins, and where all of them end."""
    away: int
    """How far it is from a state to the room for its new value."""
    given: Span
    """What is given of a round."""
    cursor: int
    """Where the number of the next row is."""
    rows: int
    kept: Sequence[Span]
    """What a row consists of."""

    @property
    def width(self) -> int:
        return sum(end - begin for begin, end in self.kept)


class _Step(Loops):
    """The function that plays one round in one flat array."""

    other_engine = "python"

    def source(self, traced: Traced, constants: int, states: int, largest: float, ring: Ring | None) -> tuple[PythonSource, int]:
        jaxpr = traced.jaxpr
        layout = _layout(jaxpr, constants, states, ring)
        self.count(jaxpr)
        known = _fixed_arrays(self, traced)
        self.spare = layout.cursor + (0 if ring is None else 1 + layout.rows * layout.width)
        for n, var in enumerate(jaxpr.invars):
            shape, name = tuple(var.aval.shape), f"a{n}"
            self.entry.append(CodeLine(spell(f"{name} = {part_of_memory(layout.begins[n], shape)}"), n))
            known[var] = named(name, shape, kind_of(var), n < constants)
        self.equations(jaxpr, known)
        changed = []
        for n, var in enumerate(jaxpr.outvars, constants):
            if var is not jaxpr.invars[n]:
                self.new_state(layout.begins[n] + layout.away, tuple(jaxpr.invars[n].aval.shape), self.value(var, known))
                changed.append((layout.begins[n], layout.begins[n + 1]))
        rounds = CodeBlock(spell("for t in range(1):"), self.body)
        items = [*self.before, rounds, *_checked(_joined(changed), layout.away)]
        if ring is None:
            answer = f"{StepOutcome.DONE:d}"
        else:
            items += _written_down(layout)
            answer = f"{StepOutcome.RING_FULL:d} if row == {layout.rows - 1} else {StepOutcome.DONE:d}"
        items += [_for(begin, end, f"memory[i] = memory[i + {layout.away}]") for begin, end in _joined(changed)]
        items.append(CodeLine(spell(f"return {answer}")))
        opening = _refusal(layout.given, largest) if largest < math.inf else []
        return _assembled(self, ("memory",), items, {"memory": (0,)}, opening), self.spare

    def new_state(self, begin: int, shape: Shape, value: Value) -> None:
        """The new value of a state, in the room for it."""
        room = part_of_memory(begin, shape)
        if shape:
            room, view = self.name("n"), room
            self.entry.append(CodeLine(spell(f"{room} = {view}")))
        self.assign(named(room, shape, "f", False), value)


def _fixed_arrays(writer: Loops, traced: Traced) -> dict[Variable, Value]:
    """The arrays that the trace holds."""
    return {var: writer.fixed_array(np.asarray(array)) for var, array in zip(traced.jaxpr.constvars, traced.consts, strict=True)}


def shape_of(var: Variable) -> tuple[int | str, ...]:
    """The shape of an array in memory."""
    shape = tuple(var.aval.shape)
    return tuple("lanes" if size == LANES else size for size in laid_out(shape, shape))


def _assembled(
    writer: Loops, parameters: Sequence[str], items: list[Item], arrays: dict[str, tuple[int | str, ...]], opening: Sequence[Item] = ()
) -> PythonSource:
    """The whole function: the room for arrays, the arguments, and what is done with them."""
    contracted = contract(items)
    table: list[Item] = [CodeLine(spell(f"table = np.empty(({writer.height}, {writer.wide}))"))] if writer.views else []
    room = [line for name, line in (writer.views | writer.buffers).items() if name not in contracted]
    return PythonSource(parameters, [*opening, *table, *room, *writer.entry, *with_parts(items)], arrays, writer.wide)


def _layout(jaxpr: Equations, constants: int, states: int, ring: Ring | None) -> _Layout:
    begins = np.cumsum([0, *(math.prod(var.aval.shape) for var in jaxpr.invars)]).tolist()
    away = begins[-1] - begins[constants]
    cursor = begins[-1] + begins[constants + states] - begins[constants]
    return _Layout(begins, away, (begins[constants + states], begins[-1]), cursor, *(ring or (0, ())))


def _refusal(given: Span, largest: float) -> list[Item]:
    """Leave where a number given is too large or none."""
    leave = CodeBlock(spell("if wrong:"), [_return(StepOutcome.BAD_INPUT)])
    return [CodeLine(spell("wrong = 0")), _for(*given, f"wrong += not abs(memory[i]) <= {largest!r}"), leave]


def _checked(changed: list[Span], away: int) -> list[Item]:
    """Leave where a new number is not finite and the one before it was."""
    # Where all new numbers are finite, as they nearly always are, a loop without branches says so.
    items: list[Item] = [CodeLine(spell("wrong = 0"))]
    items += [_for(begin + away, end + away, f"wrong += not abs(memory[i]) <= {sys.float_info.max!r}") for begin, end in changed]
    search: list[Item] = []
    for begin, end in changed:
        test = CodeBlock(
            spell("if not math.isfinite(new) and (new != new or math.isfinite(memory[i])):"), [_return(StepOutcome.BAD_RESULT)]
        )
        search.append(CodeBlock(_head(begin, end), [CodeLine(spell(f"new = memory[i + {away}]")), test]))
    return [*items, CodeBlock(spell("if wrong:"), search)]


def _written_down(layout: _Layout) -> list[Item]:
    """The row of this round, and the number of the next."""
    no_row = CodeBlock(spell(f"if row < 0 or row >= {layout.rows}:"), [_return(StepOutcome.BAD_RESULT)])
    items: list[Item] = [CodeLine(spell(f"row = int(memory[{layout.cursor}])")), no_row]
    at = layout.cursor + 1
    for begin, end in layout.kept:
        copy = f"memory[{at} + row * {layout.width} + i] = memory[{begin} + i]"
        items.append(CodeBlock(spell(f"for i in range({end - begin}):"), [CodeLine(spell(copy))]))
        at += end - begin
    return [*items, CodeLine(spell(f"memory[{layout.cursor}] = row + 1.0"))]


def _return(outcome: StepOutcome) -> CodeLine:
    return CodeLine(spell(f"return {outcome:d}"))


def _head(begin: int, end: int) -> Expression:
    return spell(f"for i in range({begin}, {end}):")


def _for(begin: int, end: int, line: str) -> CodeBlock:
    """One line for every number of a part of the memory."""
    return CodeBlock(_head(begin, end), [CodeLine(spell(line))])


def _runs(shape: Sequence[int]) -> str:
    """The elements of the runs there are, of an array that has room for more."""
    return ", ".join([*":" * (len(shape) - 1), ":lanes"])


def _joined(parts: list[Span]) -> list[Span]:
    """Parts that follow each other as one."""
    whole: list[Span] = []
    for begin, end in parts:
        if whole and whole[-1][1] == begin:
            whole[-1] = (whole[-1][0], end)
        else:
            whole.append((begin, end))
    return whole
