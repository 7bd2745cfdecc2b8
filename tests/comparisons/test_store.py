"""The store: nothing is lost, whatever happens to a process, a disk or a file; and what is damaged is named."""

from __future__ import annotations

import os
import time

import pytest

from bridle.comparisons import run as compare
from bridle.comparisons.store import Store
from bridle.core import InputError


def test_the_store_gives_back_what_processes_wrote(tmp_path):
    one, two = Store(tmp_path), Store(tmp_path)
    one.add([{"key": "a", "row": {"x": 1.5}}, {"key": "b", "row": {}}])
    two.add([{"key": "b", "row": {"late": True}}, {"key": "c", "row": {}}])
    one.claim(["d"])
    assert two.refresh() == ["a"]
    assert one.refresh() == ["c"]
    assert one.refresh() == two.refresh() == []
    assert (two["a"], two.claimed, one.claimed) == ({"key": "a", "row": {"x": 1.5}}, {"d"}, set())
    third = Store(tmp_path, wanted={"a", "c"})
    assert set(third.entries) == {"a", "c"}
    assert len(list(tmp_path.glob("*.jsonl"))) == 2


def test_an_unfinished_last_line_is_left_for_later(tmp_path):
    Store(tmp_path).add([{"key": "a", "row": {}}, {"key": "b", "row": {"long": "x" * 100}}])
    (path,) = tmp_path.glob("*.jsonl")
    text = path.read_bytes()
    for size in range(len(text)):
        path.write_bytes(text[:size])
        assert set(Store(tmp_path).entries) == ({"a"} if text[:size].count(b"\n") >= 2 else set())
    path.write_bytes(text[:-40])
    reader = Store(tmp_path)
    path.write_bytes(text)
    assert reader.refresh() == ["b"]


@pytest.mark.parametrize("damage", [b"not json", b'{"key": "b"}', b'["00000000",{"key":"b","row":{}}]', b"", b"\x00" * 30])
def test_a_damaged_line_is_named_and_nothing_is_touched(tmp_path, monkeypatch, damage):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    Store(tmp_path).add([{"key": "a", "row": {}}, {"key": "b", "row": {}}])
    (path,) = tmp_path.glob("*.jsonl")
    lines = path.read_bytes().split(b"\n")
    lines[1] = damage
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(InputError, match=rf"the store is damaged: line 2 of .*{path.name} is not an entry"):
        Store(tmp_path)
    assert path.read_bytes() == b"\n".join(lines)


@pytest.mark.parametrize("data", [b"\x93\x01 no line ends here", b'["00000000",{"store":"bridle","schema":2}]\n'])
def test_a_file_that_is_not_a_store_s_own_is_named(tmp_path, monkeypatch, data):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    (tmp_path / "foreign.jsonl").write_bytes(data)
    with pytest.raises(InputError, match=r"the store is damaged: line 1 of .*foreign.jsonl is not an entry"):
        Store(tmp_path)
    (tmp_path / "foreign.jsonl").write_bytes(b"")  # one that another process has just made
    assert Store(tmp_path).entries == {}


def test_every_flipped_bit_is_detected_or_harmless(tmp_path, monkeypatch):
    """Harmless: what is there is what was written; an entry whose line does not end is as good as unfinished, and done again."""
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    Store(tmp_path).add([{"key": "a", "row": {"cost": 1.25}}, {"key": "b", "row": {"cost": -3.5}}])
    (path,) = tmp_path.glob("*.jsonl")
    whole, good, refused = path.read_bytes(), Store(tmp_path).entries, 0
    for bit in range(8 * len(whole)):
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        try:
            found = Store(tmp_path).entries
        except InputError:
            refused += 1
        else:
            assert found.items() <= good.items(), f"bit {bit % 8} of byte {bit // 8}"
            assert "a" in found
    assert refused > 0.9 * 8 * len(whole)


def test_a_digit_that_changed_on_the_disk_is_noticed(tmp_path):
    Store(tmp_path).add([{"key": "a", "row": {"cost": 1.25}}])
    (path,) = tmp_path.glob("*.jsonl")
    path.write_text(path.read_text().replace("1.25", "7.25"))
    with pytest.raises(InputError, match="damaged"):
        Store(tmp_path)


def test_a_full_disk_loses_nothing_and_the_next_line_goes_elsewhere(tmp_path, monkeypatch):
    store = Store(tmp_path)
    store.add([{"key": "a", "row": {}}])
    real = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda handle, data: real(handle, data[:5]))
        with pytest.raises(InputError, match="there is no room left"):
            store.add([{"key": "b", "row": {}}])

        def fails(handle: int, data: bytes) -> int:
            raise OSError(28, "No space left on device")

        patch.setattr(os, "write", fails)
        with pytest.raises(InputError, match=r"cannot write to .*: No space left on device"):
            store.add([{"key": "b", "row": {}}])
    assert "b" not in store
    store.add([{"key": "c", "row": {}}])
    assert set(Store(tmp_path).entries) == {"a", "c"}


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match=r"cannot write .*file.store: Not a directory"):
        compare.compare(["fixed"], ["ogd"], [10], 1, tmp_path / "file", jobs=1)
    folder = tmp_path / "closed"
    folder.mkdir()
    store = Store(folder)
    folder.chmod(0o500)
    rank = os.geteuid()
    if rank == 0:  # nothing is closed to root
        tmp_path.chmod(0o755)
        for parent in tmp_path.parents[:3]:
            parent.chmod(parent.stat().st_mode | 0o055)
        folder.chmod(0o555)
        os.seteuid(65534)
    try:
        with pytest.raises(InputError, match=r"cannot write to .*closed: Permission denied"):
            store.add([{"key": "a", "row": {}}])
        with pytest.raises(InputError, match=r"cannot write .*closed.more: Permission denied"):
            Store(folder / "more")
    finally:
        os.seteuid(rank)
        folder.chmod(0o700)
