"""Statements as data: what they read and write decides which loops they share and which arrays become variables."""

from __future__ import annotations

import numpy as np
import pytest

import bridle
from bridle.engines import compiled as engine
from bridle.engines.codegen.fuse import add_nest, contract
from bridle.engines.codegen.statements import CodeLine, Nest, Statement, access, flattened, only_access, printed, spell
from bridle.engines.round import StepOutcome
from helpers.written_sources import catch_sources


def nest(target, value, test=None, size="4"):
    return Nest([size], Statement(only_access(target), value, test))


def at(name, *index):
    return access(name, *(index or ("i0",)))


def gathered(*nests):
    items = []
    for each in nests:
        add_nest(items, each)
    return items


def test_what_reads_the_same_is_equal():
    assert spell("({} + {})", "a", 1) == spell("(a + 1)")
    assert spell("{}{}", at("a0"), "") == at("a0")
    assert spell("({})", at("a0")) != spell("(a0[i0])")  # one of them reads an array


def test_a_statement_knows_what_it_reads():
    looked_up = Statement(only_access(at("b1", at("b2", spell("(i0 + {})", access("v3"))))), spell("{} * 2.0", at("a0")))
    assert set(looked_up.reads) == {"a0", "b2", "v3"}
    assert set(looked_up.writes) == {"b1"}
    guarded = Statement(only_access(at("b1")), spell("0.0"), spell("{} > 0", access("v1")))
    assert set(guarded.reads) == {"b1", "v1"}  # what it may leave as it is counts as read
    assert guarded.text() == "if v1 > 0: b1[i0] = 0.0"


@pytest.mark.parametrize(
    ("second", "loops"),
    [
        (nest(at("b2"), at("b1")), 1),  # the same place
        (nest(at("b2"), at("b1", "(3 - i0)")), 2),  # another turn's element
        (nest(at("b2"), at("b1", at("a1"))), 2),  # who knows whose
        (nest(at("b2"), at("b1"), size="5"), 2),  # other ranges
        (nest(at("a0"), spell("1.0")), 1),  # written after it was read, at the same place
        (nest(at("a0", "(3 - i0)"), spell("1.0")), 2),  # another turn has not read it yet
        (nest(access("v1"), spell("{} + {}", access("v1"), at("a1"))), 1),  # a sum that nobody waits for
    ],
)
def test_loops_are_shared_where_no_turn_touches_what_is_anothers(second, loops):
    assert len(gathered(nest(at("b1"), at("a0")), second)) == loops


def test_a_statement_goes_to_the_earliest_loop_that_nothing_keeps_it_from():
    first, other, last = nest(at("b1"), at("a0")), nest(at("b2"), at("a1"), size="5"), nest(at("b3"), at("b1"))
    items = gathered(first, other, last)
    assert [len(each.statements) for each in items] == [2, 1]
    items = gathered(nest(at("b1"), at("a0")), nest(at("a1"), at("b1"), size="5"), nest(at("b3"), at("a1")))
    assert len(items) == 3  # it needs what the second one writes
    items = [nest(at("b1"), at("a0")), CodeLine(spell("pass"))]
    add_nest(items, nest(at("b2"), at("b1")))
    assert len(items) == 3  # no statement passes a line


def test_an_array_stays_one_where_its_elements_outlive_the_turn():
    items = gathered(nest(at("b1"), at("a0")), nest(at("a1"), at("b1")))
    assert contract(items) == {"b1"}
    assert list(printed(items, 0))[1:] == ["    b1 = a0[i0]", "    a1[i0] = b1"]
    assert contract(gathered(nest(at("b1"), at("b1")))) == set()  # read before it is written
    assert contract(gathered(nest(at("b1"), at("a0"), access("v1")))) == set()  # or not written at all
    assert contract(gathered(nest(at("b1"), at("a0")), nest(at("a1"), at("b1", "(3 - i0)")))) == set()  # read in another loop
    assert contract([nest(at("b1"), at("a0")), CodeLine(spell("{} = np.sort({})", at("b1", ":"), at("b1", ":")))]) == set()


def test_algorithm_1_takes_four_passes_and_two_buffers(monkeypatch):
    sources = catch_sources(monkeypatch)
    problem = bridle.problem("halfspaces", horizon=10, dim=5)
    bridle.play(bridle.policy_for("sinha2024", problem), problem, engine="compiled", keep="rounds")
    (source,) = sources
    nests = [each for each in flattened(source.body) if isinstance(each, Nest) and each.ranges]
    arrays = {name for each in nests for name in (*each.reads, *each.writes) if name.startswith("b") and f"{name}[" in source.text()}
    assert (len(nests), len(arrays)) == (4, 2)


def test_a_step_answers_how_it_went(monkeypatch):
    monkeypatch.setenv("BRIDLE_INTERPRET", "1")

    def one(constants, states, given):
        return states + constants * given

    constant, state, given, cursor = 0, slice(1, 3), slice(3, 5), 7  # the memory: these, room for the new state, the number of the row
    run, size = engine.compile_step(one, 1.0, np.zeros(2), np.zeros(2), 1e70, (2, ((3, 5),)))
    memory = np.zeros(size)
    memory[constant], memory[given] = 2.0, [1.0, -1.0]
    assert run(memory)() == StepOutcome.DONE
    assert memory[state].tolist() == [2.0, -2.0]
    assert memory[cursor] == 1.0
    memory[given] = [np.nan, 0.0]
    assert run(memory)() == StepOutcome.BAD_INPUT
    memory[given] = [1e71, 0.0]
    assert run(memory)() == StepOutcome.BAD_INPUT
    memory[constant], memory[given] = 1e300, [1e60, 0.0]
    with np.errstate(over="ignore"):
        assert run(memory)() == StepOutcome.BAD_RESULT
    assert memory[state].tolist() == [2.0, -2.0]
    memory[constant], memory[given] = 2.0, [1.0, 1.0]
    assert run(memory)() == StepOutcome.RING_FULL
    assert memory[cursor + 1 : cursor + 5].tolist() == [1.0, -1.0, 1.0, 1.0]
    assert run(memory)() == StepOutcome.BAD_RESULT  # there is no row left
