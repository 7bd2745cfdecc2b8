"""One bit of a file is flipped, a byte is cut off or added: that is noticed, or makes no difference."""

from __future__ import annotations

import pytest

from bridle.core import InputError
from helpers import flips
from helpers.file_kinds import KINDS, OTHERS

pytestmark = pytest.mark.slow

ALL = KINDS | OTHERS
SPARSE = ("gate", "pacer", "gate, held", "pacer, held")
"""SQLite files, whose pages are partly empty."""
TESTED = [name for name in ALL if "session" not in name]
"""Every bit of a session's file is flipped in tests/session/test_damaged_files.py."""


@pytest.mark.parametrize("kind", TESTED)
def test_a_flipped_bit_is_noticed_or_makes_no_difference(kind, tmp_path):
    """At every third byte, one bit of eight; `make soak` flips them all."""
    found = flips.flip(ALL[kind], tmp_path / "file", flips.one_bit_of_some_bytes)
    assert found.unnoticed == []
    assert found.noticed > (0.2 if kind in SPARSE else 0.5) * found.flips


@pytest.mark.parametrize("kind", ALL)
def test_a_file_that_is_cut_short_or_too_long_is_noticed(kind, tmp_path):
    make, save, load, seen, harmless = ALL[kind]
    path = tmp_path / "file"
    save(make(3), path)
    was, data = seen(load(path)), path.read_bytes()
    lengths = {len(data) * i // 40 for i in range(40)} | {len(data) - 1}
    for changed in (*(data[:length] for length in sorted(lengths)), data + b"\n", data + b"\0" * 100, data + data):
        path.write_bytes(changed)
        try:
            found = seen(load(path))
        except InputError:
            continue
        assert harmless(found, was), f"{len(changed)} bytes of {len(data)}"
