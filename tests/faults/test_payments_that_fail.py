"""Gates and pacers on a file while the disk, the memory or the user does not play along: what was paid stays paid."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import bridle
from bridle.core import InputError
from helpers import fingerprints
from helpers.faults import MOST_POINTS, Point, broken_disk, full_disk, sweep

FAULTS = {
    "full disk": (Point.BEFORE_FILES, full_disk),
    "broken disk": (Point.AFTER_FILES, broken_disk),
    "no memory for a line": (Point.LINES, MemoryError),
    "no memory for a call": (Point.BEFORE_CALLS, MemoryError),
    "interrupt": (Point.AFTER_CALLS, KeyboardInterrupt),
}
ON_FILES = ("full disk", "broken disk")

pytestmark = [
    pytest.mark.slow,
    # An open file that nobody got to see is closed when it is forgotten.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]


class Kind(NamedTuple):
    make: Any
    opening: dict[str, Any]
    seen: Any


KINDS = {
    "gate": Kind(bridle.Gate, {"budget": 10.0}, fingerprints.of_gate),
    "pacer": Kind(bridle.Pacer, {"budget": 10.0, "rounds": 40, "value": 2.0, "spend": 1.0, "plan": [1.0, 2.0]}, fingerprints.of_pacer),
}


@pytest.mark.parametrize("slot", [2, 63], ids=["an entry", "the file is written anew"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != "no memory for a line"])  # a line without a call needs none
def test_a_payment_that_fails_is_counted_or_not_and_says_so(kind, fault, slot, tmp_path):
    make, opening, seen = KINDS[kind]
    (point, strike), number = FAULTS[fault], iter(range(10**6))
    reference = make(**opening)
    for _ in range(slot):
        reference.pay(0.01)
    was = seen(reference)
    reference.pay(0.37)
    becomes = seen(reference)
    reference.pay(0.37)
    twice = seen(reference)

    def prepare() -> tuple[Any, Path]:
        path = tmp_path / str(next(number))
        held = make.open(path, **opening)
        for _ in range(slot):
            held.pay(0.01)
        return held, path

    silent = 0
    for at, (held, path), raised in sweep(point, strike, prepare, lambda world: world[0].pay(0.37), MOST_POINTS):
        found, notes = seen(held), " ".join(getattr(raised, "__notes__", ()))
        if raised is None:
            counted = True
        elif fault in ON_FILES:
            assert isinstance(raised, InputError), f"point {at}: {raised!r}"
            counted = "is counted" in notes
        else:
            assert type(raised) is strike, f"point {at}: {raised!r}"
            counted = "is counted" in notes
            if not notes and found == becomes:
                counted, silent = True, silent + 1
        assert found == (becomes if counted else was), f"point {at}: it says {notes!r}, and that is not so"
        try:
            held.pay(0.37)  # once more; where it was not counted, this is the retry
        except InputError as refused:
            assert "open" in str(refused), f"point {at}: a retry is refused, and nothing says what to do: {refused}"  # noqa: PT017
        expected = seen(held)
        held.close()
        with make.open(path) as again:
            assert seen(again) == expected, f"point {at}: the file is not as it was in memory"
            assert expected in (becomes, twice)
        os.remove(path)
    assert silent <= 2, "only while the lock is let go, after everything, may an interrupt come without a word"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", FAULTS)
def test_an_opening_that_fails_holds_nothing_and_loses_nothing(kind, fault, tmp_path):
    make, opening, seen = KINDS[kind]
    (point, strike), path = FAULTS[fault], tmp_path / "file"
    with make.open(path, **opening) as held:
        held.pay(0.37)
        was = seen(held)
    opened: list[Any] = []

    def close() -> None:
        while opened:
            opened.pop().close()

    for at, _, raised in sweep(point, strike, close, lambda _: opened.append(make.open(path)), MOST_POINTS):
        if raised is not None:
            expected = InputError if fault in ON_FILES else strike
            assert isinstance(raised, expected), f"point {at}: {raised!r}"
            assert "damaged" not in str(raised), f"point {at}: the file is blamed: {raised}"
        del raised  # and with it whatever was half open
        close()
        gc.collect(1)
        with make.open(path) as again:
            assert seen(again) == was, f"point {at}"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", [*ON_FILES, "interrupt"])
def test_a_closing_that_fails_lets_go_or_can_be_done_again(kind, fault, tmp_path):
    make, opening, seen = KINDS[kind]
    (point, strike), path = FAULTS[fault], tmp_path / "file"
    with make.open(path, **opening) as held:
        held.pay(0.37)
        was = seen(held)
    for at, held, raised in sweep(point, strike, lambda: make.open(path), lambda held: held.close(), MOST_POINTS):
        assert raised is None if fault in ON_FILES else isinstance(raised, strike), f"point {at}: {raised!r}"
        held.close()
        with make.open(path) as again:
            assert seen(again) == was, f"point {at}"
