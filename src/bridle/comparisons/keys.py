"""What results depend on, as hashes: values, files, and the sources that make the numbers. Stored results are found by them."""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path

import bridle
from bridle import policies, storage
from bridle.core import Unavailable
from bridle.policies.registry import source_of

SOURCES = (
    "core", "ops", "records", "validate", "backends", "domains", "functions", "networks", "solvers", "learners", "policies",
    "engines", "data", "problems", "adversaries", "game",
)  # fmt: skip
"""The rooms and modules that make numbers. No other can change a row."""


def canonical(value: object) -> str:
    """The one JSON text of a value.

    >>> canonical({"b": 1, "a": "x"})
    '{"a":"x","b":1}'
    """
    return storage.canonical(value, finite=True)


def digest(value: object) -> str:
    """The SHA-256 of a value's canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def hash_file(path: str | os.PathLike[str]) -> str:
    """The SHA-256 of a file."""
    try:
        return storage.sha256(path)
    except OSError as error:
        raise Unavailable(f"cannot read {os.fspath(path)}: {error.strerror}") from None


@cache
def fingerprint() -> str:
    """The hash of the sources that results depend on: rows of a changed algorithm are not mistaken for those of the old one."""
    home = Path(bridle.__file__).parent
    names = sorted(path.relative_to(home).as_posix() for path in home.rglob("*.py"))
    return digest({name: hash_file(home / name) for name in names if name.split("/")[0].removesuffix(".py") in SOURCES})


def own_source(policy: str) -> str:
    """The file that a policy of the user's own comes from; empty for the library's, which are in the fingerprint."""
    name = source_of(policies.entry(policy))
    return "" if name.startswith(os.path.dirname(bridle.__file__) + os.sep) else name


@cache
def hash_own_source(policy: str) -> str:
    """The hash of that file; its name where there is no such file, as in an interactive session."""
    name = own_source(policy)
    return hash_file(name) if name and os.path.isfile(name) else name
