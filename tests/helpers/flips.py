"""Flip bits of a file one at a time, and see what a reader makes of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from bridle.core import BridleWarning, InputError
from helpers.extent import WHOLE
from helpers.file_kinds import Kind


class Flips(NamedTuple):
    """How many bits were flipped; how often that was noticed, made no difference, or did and nobody noticed, and where."""

    bytes: int
    flips: int
    noticed: int
    harmless: int
    unnoticed: list[str]


def one_bit_of_some_bytes(size: int) -> Iterable[int]:
    """One bit of every third byte of so many, of every byte where everything is tried."""
    return (8 * at + at % 8 for at in range(0, size, 1 if WHOLE else 3))


def flip(kind: Kind, path: Path, which: Callable[[int], Iterable[int]]) -> Flips:
    """Flip these bits of a file of this kind. An `InputError` counts as noticed."""
    make, save, load, seen, fine = kind
    save(make(3), path)
    was, data = seen(load(path)), bytearray(path.read_bytes())
    noticed, harmless, unnoticed = 0, 0, []
    for bit in which(len(data)):
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        data[bit // 8] ^= 1 << bit % 8
        with warnings.catch_warnings():
            warnings.simplefilter("error", BridleWarning)
            try:
                found = seen(load(path))
            except (InputError, BridleWarning):
                noticed += 1
                continue
        if fine(found, was):
            harmless += 1
        else:
            unnoticed.append(f"bit {bit % 8} of byte {bit // 8}")
    return Flips(len(data), noticed + harmless + len(unnoticed), noticed, harmless, unnoticed)
