"""Writing and reading files while the disk, the memory or the user does not play along."""

from __future__ import annotations

import pytest

from bridle.core import InputError
from helpers.faults import MOST_POINTS, Point, broken_disk, full_disk, sweep
from helpers.file_kinds import KINDS

FAULTS = {
    "full disk": (Point.BEFORE_FILES, full_disk),
    "broken disk": (Point.AFTER_FILES, broken_disk),
    "no memory for a line": (Point.LINES, MemoryError),
    "no memory for a call": (Point.BEFORE_CALLS, MemoryError),
    "interrupt": (Point.AFTER_CALLS, KeyboardInterrupt),
}
pytestmark = [
    pytest.mark.slow,
    # An open file that nobody got to see is closed when it is forgotten.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_save_that_fails_leaves_the_old_file_or_the_new_one(kind, fault, tmp_path):
    make, save, load, seen, _ = KINDS[kind]
    (point, strike), path = FAULTS[fault], tmp_path / "file"
    save(old := make(3), path)
    was, becomes, data = seen(old), seen(make(4)), path.read_bytes()

    def prepare():
        path.write_bytes(data)
        return make(4)

    for at, new, raised in sweep(point, strike, prepare, lambda new: save(new, path), MOST_POINTS):
        found = seen(load(path))
        assert found in (was, becomes), f"point {at}: neither the old file nor the new one"
        if raised is None:
            assert found == becomes, f"point {at}: nothing was said, and nothing was done"
        elif point in (Point.BEFORE_FILES, Point.AFTER_FILES):
            assert isinstance(raised, InputError), f"point {at}: {raised!r}"
            assert found == was or "in its place" in str(raised), f"point {at}: the file is new, and it says: {raised}"
        else:
            assert type(raised) is strike, f"point {at}: {raised!r}"
        assert seen(new) == becomes, f"point {at}: what is in memory has changed"
        if fault == "full disk":
            assert [item.name for item in tmp_path.iterdir()] == ["file"], f"point {at}: something is left behind"
        save(new, path)
        assert seen(load(path)) == becomes


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_load_that_fails_says_what_failed_and_harms_nothing(kind, fault, tmp_path):
    make, save, load, seen, _ = KINDS[kind]
    (point, strike), path = FAULTS[fault], tmp_path / "file"
    save(made := make(3), path)
    was, data = seen(made), path.read_bytes()
    for at, _, raised in sweep(point, strike, lambda: path, load, MOST_POINTS):
        if raised is not None:
            if point in (Point.BEFORE_FILES, Point.AFTER_FILES):
                assert isinstance(raised, InputError), f"point {at}: {raised!r}"
                assert "damaged" not in str(raised), f"point {at}: the disk failed, and the file is blamed: {raised}"
            else:
                assert type(raised) is strike, f"point {at}: {raised!r}"
        assert path.read_bytes() == data
        assert seen(load(path)) == was
        assert [item.name for item in tmp_path.iterdir()] == ["file"]
