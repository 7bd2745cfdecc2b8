"""The clocks of a session: what is due after which round, and that nothing else tests a number of rounds."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from bridle.session.certificates import clocks
from bridle.session.certificates.clocks import (
    ASSUMPTIONS_EVERY,
    CONTRADICTION_EVERY,
    RANKING_EVERY,
    SETTLED,
    SETTLED_EVERY,
    WITNESS_EVERY,
    due,
)

ROOM = Path(clocks.__file__).parent


def test_the_clocks_nest():
    assert CONTRADICTION_EVERY % WITNESS_EVERY == ASSUMPTIONS_EVERY % CONTRADICTION_EVERY == 0
    assert SETTLED_EVERY % ASSUMPTIONS_EVERY == SETTLED % SETTLED_EVERY == RANKING_EVERY % SETTLED_EVERY == 0
    for t in range(1, 3 * RANKING_EVERY):
        now = due(t)
        assert now.witness or not now.contradiction
        assert now.contradiction or not now.assumptions


def test_what_is_due():
    assert [t for t in range(1, 100) if due(t).witness] == list(range(8, 100, 8))
    assert [t for t in range(1, 100) if due(t).contradiction] == [32, 64, 96]
    assert [t for t in range(1, 200) if due(t).assumptions] == [64, 128, 192]
    assert [t for t in range(900, 1900) if due(t).assumptions] == [960, 1024, 1280, 1536, 1792]
    assert [t for t in range(1, 20_000) if due(t).ranking] == [1, 4, 16, 64, 256, 1024, 4096, 8192, 16384]


@pytest.mark.parametrize("t", [1, 7, 8, 9, 31, 63, 64, 100, 1000, 1023, 1024, 1030, 5000])
def test_the_next_check_is_ahead_and_due(t):
    for stirred in (False, True):
        for unread, batch in ((0, 0), (3, 32), (t % 32, 32), (0, 1)):
            ahead = clocks.next_check(t, unread=unread, batch=batch, stirred=stirred, certified=True)
            assert ahead > t
            assert due(ahead).witness if stirred else due(ahead).contradiction
    assert clocks.next_check(t, unread=0, batch=0, stirred=False, certified=False) == next(
        s for s in range(t + 1, t + 1000) if due(s).assumptions
    )


def test_a_batch_that_ends_by_itself_can_wait_for_the_assumptions():
    assert clocks.next_check(3, unread=3, batch=32, stirred=False, certified=True) == 64
    assert clocks.next_check(3, unread=2, batch=32, stirred=False, certified=True) == 32


def test_nobody_else_tests_a_number_of_rounds():
    """No remainder by one of the clocks outside of their module."""
    names = {name for name in vars(clocks) if name.isupper()}
    for path in ROOM.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if path.name != "clocks.py" and isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
                used = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
                used |= {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
                assert not used & names, f"{path.name}, line {node.lineno}"
