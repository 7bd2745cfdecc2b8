"""One bit of a file is flipped, a byte is cut off or added: that is noticed, or makes no difference."""

from __future__ import annotations

import warnings

import pytest

from bridle.core import InputError
from helpers.file_kinds import KINDS

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_bit_is_noticed_or_makes_no_difference(kind, tmp_path):
    """At every byte; which of its bits depends on where it is. `make soak` flips them all."""
    make, save, load, seen = KINDS[kind]
    path = tmp_path / "file"
    save(made := make(3), path)
    was, data = seen(made), bytearray(path.read_bytes())
    assert seen(load(path)) == was
    unnoticed = []
    for at in range(len(data)):
        data[at] ^= 1 << at % 8
        path.write_bytes(data)
        data[at] ^= 1 << at % 8
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                found = seen(load(path))
            except (InputError, Warning):
                continue
        if found != was:
            unnoticed.append(at)
    assert unnoticed == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_cut_short_or_too_long_is_refused(kind, tmp_path):
    make, save, load, seen = KINDS[kind]
    path = tmp_path / "file"
    save(made := make(3), path)
    was, data = seen(made), path.read_bytes()
    for changed in (*(data[:length] for length in range(0, len(data), 7)), data[:-1], data + b"\n", data + b"\0" * 100, data + data):
        path.write_bytes(changed)
        try:
            found = seen(load(path))
        except InputError:
            continue
        assert found == was, f"{len(changed)} bytes of {len(data)}"
