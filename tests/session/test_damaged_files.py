"""Save files that were damaged or forged: a flipped bit is detected or harmless, a bomb is refused before it takes memory."""

from __future__ import annotations

import io
import json
import os
import struct
import tracemalloc
import warnings
import zipfile

import numpy as np
import pytest

import bridle
from bridle import storage
from bridle.session import savefile
from helpers.save_files import contents, edit, put_together
from helpers.sessions import make_policy, play_random_stream


def small_file(path, **options):
    session = bridle.Session(make_policy("sinha2024-ocs", bridle.Box([-1.0, -1.0], [1.0, 1.0])), **options)
    play_random_stream(session, 3)
    session.save(path)
    return path.read_bytes()


def same(one, other) -> bool:
    """Whether two files hold the same, bit for bit, of all that loading looks at."""
    known = savefile.Header.__annotations__.keys() - {"digest"}
    headers = [json.dumps({key: value for key, value in saved.header.items() if key in known}, sort_keys=True) for saved in (one, other)]
    arrays = [{key: (value.shape, value.tobytes()) for key, value in saved.arrays.items()} for saved in (one, other)]
    return headers[0] == headers[1] and arrays[0] == arrays[1]


def count_flips(path, whole, bits) -> tuple[int, int]:
    """Flip each of these bits by itself: how many flips were refused, and how many made no difference. Any other is a failure."""
    good, refused, harmless = savefile.read(path), 0, 0
    data = bytearray(whole)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage, "read_whole", lambda path: bytes(data))  # the disk would only be slow
        for bit in bits:
            data[bit // 8] ^= 1 << bit % 8
            try:
                found = savefile.read(path)
            except bridle.InputError:
                refused += 1
            else:
                assert same(good, found), f"bit {bit % 8} of byte {bit // 8}"
                harmless += 1
            data[bit // 8] ^= 1 << bit % 8
    return refused, harmless


@pytest.mark.parametrize("certify", [True, False])
def test_a_flipped_bit_is_detected_or_harmless(certify, tmp_path):
    """One bit of every 64th byte, and some of the archive's directory, where a flip can hide a member; tests/faults has all of them."""
    path = tmp_path / "a.npz"
    whole = small_file(path, certify=certify)
    directory = whole.index(b"PK\x01\x02")
    rng = np.random.default_rng(0)
    spread = (8 * np.arange(0, directory, 64) + rng.integers(8, size=-(-directory // 64))).tolist()
    bits = [*spread, *rng.choice(range(8 * directory, 8 * len(whole)), 300, replace=False).tolist()]
    refused, harmless = count_flips(path, whole, bits)
    assert refused > len(bits) // 2
    assert harmless > 0  # dates, and what the archive says twice


def test_a_member_that_is_hidden_is_missed(tmp_path):
    """Whichever it is: also those without which a session could be made."""
    path = tmp_path / "a.npz"
    small_file(path)
    with np.load(path) as file:
        arrays = {key: file[key] for key in file.files}
    for name in arrays.keys() - {"header"}:
        np.savez(path, **{key: value for key, value in arrays.items() if key != name})
        with pytest.raises(bridle.InputError, match="cannot read"):
            bridle.Session.load(path)


def zeros(size) -> bytes:
    member = io.BytesIO()
    np.save(member, np.zeros(size))
    return member.getvalue()


def compressed(path, header) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("start", "state.x", "ledger.0.c"):
            archive.writestr(f"{name}.npy", zeros(2_000_000))


def overlapping(path, header) -> None:
    """One member, which the directory names a thousand times."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a0000.npy", zeros(20_000))
        for number in range(1, 1000):
            twin = zipfile.ZipInfo(f"a{number:04}.npy")
            first = archive.infolist()[0]
            twin.file_size = twin.compress_size = first.file_size
            twin.CRC, twin.header_offset = first.CRC, 0
            archive.filelist.append(twin)
        archive._didModify = True


def boastful(path, header) -> None:
    """An array that declares 8 TB."""
    member = zeros(1).replace(b"'shape': (1,), }" + b" " * 13, b"'shape': (1000000000000,), }" + b" ")
    assert len(member) == len(zeros(1))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("start.npy", member)


def lying(path, header) -> None:
    """Compressed, but the directory says that it is not, and that it is short."""
    compressed(path, header)
    data = bytearray(path.read_bytes())
    at = data.index(b"PK\x01\x02")
    while at >= 0:
        data[at + 10 : at + 12] = struct.pack("<H", 0)
        data[at + 24 : at + 28] = data[at + 20 : at + 24]
        at = data.find(b"PK\x01\x02", at + 4)
    path.write_bytes(data)


@pytest.mark.parametrize("bomb", [compressed, overlapping, boastful, lying])
def test_a_file_that_would_unpack_to_more_than_it_is_is_refused(bomb, tmp_path):
    path = tmp_path / "a.npz"
    bomb(path, None)
    tracemalloc.start()
    try:
        with pytest.raises(bridle.InputError, match="truncated, damaged, or not a save file"):
            bridle.Session.load(path)
        assert tracemalloc.get_traced_memory()[1] < 4 * path.stat().st_size + 1_000_000
    finally:
        tracemalloc.stop()


def test_a_file_larger_than_files_are_is_refused_unread(tmp_path):
    path = tmp_path / "a.npz"
    with open(path, "wb") as file:
        file.truncate(storage.LARGEST + 1)  # a hole: no disk is taken
    with pytest.raises(bridle.InputError, match=r"it has 1,073,741,825 bytes, and at most 1,073,741,824 are read"):
        bridle.Session.load(path)


def test_what_is_not_a_file_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name, kind in {tmp_path / "pipe": "a pipe", tmp_path: "a folder", os.devnull: "a device"}.items():
        with pytest.raises(bridle.InputError, match=f"it is {kind}, not a file"):
            bridle.Session.load(name)


@pytest.mark.parametrize("x", [[np.inf, 0.0], [0.0, -np.inf], [7.0, 0.0], [0.0, 1.1]])
def test_a_forged_decision_outside_the_domain_is_refused(x, tmp_path):
    path = tmp_path / "a.npz"
    session = bridle.Session(bridle.policy("anytime", bridle.Ball(2)))
    session.ask()
    session.save(path)
    header, arrays = contents(path)
    places = [name for name in arrays if name.startswith("state.") and arrays[name].tobytes() == session.decide().tobytes()]
    assert places
    forged = [(name, np.array(x)) for name in places] + [("late.waiting", np.array([[1.0, 0.0, *x]]))]
    for name, value in forged:
        put_together(path, header, {**arrays, name: value})
        with pytest.raises(bridle.InputError, match=r"a decision must lie in the domain|must hold numbers"):
            bridle.Session.load(path)


def test_foreign_members_and_deep_headers_are_one_error(tmp_path):
    path = tmp_path / "a.npz"
    whole = small_file(path)
    edit(path, lambda header, arrays: arrays.update({"../../etc/passwd": np.zeros(2)}))
    with pytest.raises(bridle.InputError, match="which is not part of a save file"):
        bridle.Session.load(path)
    path.write_bytes(whole)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(bridle.InputError, match="truncated, damaged, or not a save file"):
        bridle.Session.load(path)
    for depth in (500, 5_000, 100_000):
        for inside in ("[" * depth + "]" * depth, '{"record": "BoxSet", "parts": {"low": ' * depth + "1" + "}}" * depth):
            text = f'{{"library": "bridle", "schema": 5, "digest": "", "policy": "anytime", "domain": {inside}, "parameters": {{}}}}'
            np.savez(
                path, header=np.array(text), start=np.zeros(2), **{f"totals.{key}": np.zeros(()) for key in ("rounds", "cost", "hard")}
            )
            with pytest.raises(bridle.InputError, match=r"cannot (read|load)"):
                bridle.Session.load(path)


def forged(name: str, value: object):
    def change(header, arrays) -> None:
        if name in arrays:
            arrays[name] = np.array(value, dtype=float)
        elif name == "radius":
            header["domain"]["parts"]["radius"]["value"] = value
        else:
            header["session"]["ledger"]["conflict"][name] = value

    return change


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("totals.hard", [0.1, 0.2, 0.3]),
        ("totals.signed", []),
        ("said.hard", []),
        ("said.above", [1.0]),
        ("ledger.witness", [0.0]),
        ("late.numbers", [1e201, 0.0, 0.0]),
        ("radius", [1.0, 2.0]),
        ("radius", 10**400),
        ("margin", None),
        ("rounds", 3),
    ],
)
def test_a_forged_file_is_refused_before_it_is_used(name, value, tmp_path):
    path = tmp_path / "a.npz"
    session, axis = bridle.Session(bridle.policy("anytime", bridle.Ball(2))), np.array([1.0, 0.0])
    apart = 0.5 if name in ("margin", "rounds") else -0.1  # two limits that contradict each other, or have room between them
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(40):
            session.observe(0.0, axis, np.full(2, apart), [axis, -axis], played=[0.1, 0.0])
    session.save(path)
    edit(path, forged(name, value))
    with pytest.raises(bridle.InputError):
        bridle.Session.load(path)
