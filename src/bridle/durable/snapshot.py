"""A session in one piece of bytes, as a journal keeps it: what it was made from, and where it stood after an event.

A snapshot is a save file with a few facts before it that a save file does not have: the budgets, and who made it on which machine. Its
digest is of the facts and of every number; where a session was made from and how it was played does not matter to it, only where it
stands. So two sessions with one digest go on alike.
"""

from __future__ import annotations

import io
import platform
import sys
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib import metadata
from struct import Struct
from typing import Any, NamedTuple, cast
from zlib import crc32

import numpy as np

from bridle import records, storage, validate
from bridle.core import InputError
from bridle.durable.budgets import Budgets, SessionBudgets
from bridle.policies.registry import Configured
from bridle.session import savefile
from bridle.session.state import Plan, SessionState
from bridle.storage import Facts

MAGIC, LENGTH = b"bridle-session-1\n", Struct("<I")


class Snapshot(NamedTuple):
    """The facts of a snapshot, and its save file."""

    facts: Facts
    saved: savefile.Saved
    digest: bytes


def sealed(facts: Facts, plan: Plan, state: SessionState) -> tuple[bytes, bytes]:
    """A snapshot in bytes, and its digest."""
    members, file = savefile.packed(plan, state), io.BytesIO()
    savefile.write(file, members)
    head = storage.canonical(facts).encode()
    seal = cast(Facts, storage.parse(str(members["header"])))["digest"]
    return b"".join((MAGIC, LENGTH.pack(len(head)), head, file.getvalue())), _digest(head, seal)


def opened(data: bytes, name: str) -> Snapshot:
    """A snapshot's bytes read back; `name` is what is to blame where they are damaged."""
    start = len(MAGIC) + LENGTH.size
    if not data.startswith(MAGIC) or len(data) < start:
        raise InputError(f"cannot read {name}: it was not written by this version of bridle, or is damaged")
    end = start + LENGTH.unpack_from(data, len(MAGIC))[0]
    try:
        facts = cast(Facts, storage.parse(data[start:end]))
    except ValueError:
        raise InputError(f"cannot read {name}: it is damaged") from None
    saved = savefile.parsed(data[end:], name)
    return Snapshot(facts, saved, _digest(data[start:end], saved.seal))


def _digest(head: bytes, seal: str) -> bytes:
    return sha256(head + b"\n" + seal.encode()).digest()


# --- who made it --------------------------------------------------------------------------------------------------------------------------


@cache
def library(engine: str) -> str:
    """The versions on which the bits of a round depend."""
    names = ["numpy", "scipy", *(["llvmlite"] if engine != "python" else [])]
    own = getattr(sys.modules["bridle"], "__version__", "?")  # the whole package imports this file, not the other way round
    return ", ".join([f"engine {engine}", f"bridle {own}", *(f"{name} {_version(name)}" for name in names)])


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "?"


@cache
def machine() -> str:
    """The machine on which the bits of a round depend: also a checksum of some sums and products, which kernels of BLAS differ in."""
    rng = np.random.default_rng(0)
    found = 0
    for n in (3, 17, 64):
        a, A = rng.standard_normal(n), rng.standard_normal((n, n))
        for each in (a.dot(a), A @ a, a @ A, A @ A, np.exp(a), np.sin(a), np.log1p(abs(a)), np.linalg.eigh(A + A.T)[0]):
            found = crc32(np.asarray(each).tobytes(), found)
    return f"{platform.system()} {platform.machine()}, Python {platform.python_version()}, arithmetic {found:08x}"


# --- the policy ---------------------------------------------------------------------------------------------------------------------------


def refuse_another_policy(policy: object, saved: savefile.Saved, name: str) -> None:
    """One error that says how a policy differs from the one that a session was made with; none where they are the same."""
    mine = policy if isinstance(policy, Configured) else None
    kind = type(policy.record if mine is not None else policy).__name__  # type: ignore[attr-defined]
    its = saved.header.get("policy")
    if its is None:  # nobody but its author can tell what it is
        if kind != saved.header["kind"]:
            raise _differs(name, "policy", saved.header["kind"], kind)
        return
    if mine is None or mine.name != its:
        raise _differs(name, "policy", its, kind if mine is None else mine.name)
    arrays: dict[str, Any] = {}
    domain, parameters = mine.recipe
    try:
        codes = {key: savefile.encode_value(value, f"parameters.{key}", arrays) for key, value in parameters.items()}
        given = {"domain": savefile.encode_value(domain, "domain", arrays), **{f"parameters.{key}": code for key, code in codes.items()}}
    except savefile.Unportable as odd:
        raise InputError(f"policy must be made of what bridle has to resume {name!r}; its {odd} is not") from None
    stored = {"domain": saved.header["domain"], **{f"parameters.{key}": code for key, code in saved.header["parameters"].items()}}
    for part in sorted(given.keys() | stored.keys()):
        one, other = (
            None
            if part not in codes
            else storage.digest({"code": codes[part]}, {key: value for key, value in found.items() if f"{key}.".startswith(f"{part}.")})
            for codes, found in ((given, {key: np.asarray(value, dtype=float) for key, value in arrays.items()}), (stored, saved.arrays))
        )
        if one != other:
            what = part.removeprefix("parameters.")
            raise _differs(name, what, _shown(stored.get(part), saved.arrays), _shown(given.get(part), arrays))


def refuse_other_options(given: Mapping[str, object], saved: savefile.Saved, name: str) -> None:
    """One error that names an option which differs from the one that a session was made with."""
    options: dict[str, Any] = dict(saved.options)
    for key, value in given.items():
        stored = list(saved.start) if key == "x1" else options.get(key)
        same = np.array_equal(np.asarray(value, dtype=float), saved.start) if key == "x1" else _plain(value) == _plain(stored)
        if not same:
            raise _differs(name, key, _plain(stored), _plain(value))


def refuse_other_budgets(gates: Budgets, made: Snapshot, name: str) -> None:
    """One error that names a budget which is not as the session was made with."""
    if gates is None:
        return
    given, stored = SessionBudgets.checked(gates).facts(), made.facts["budgets"]
    for budget in sorted(given.keys() | stored.keys()):
        if given.get(budget) != stored.get(budget):
            raise _differs(name, f"gates[{budget!r}]", stored.get(budget), given.get(budget))


def _plain(value: object) -> object:
    return list(value) if isinstance(value, (tuple, list, np.ndarray)) else value


def _shown(code: Any, arrays: Mapping[str, Any]) -> object:
    if code is None:
        return None
    value = savefile.decode_value(code, dict(arrays))
    if not records.is_record(value):
        return value.tolist() if isinstance(value, np.ndarray) else value
    leaves = ", ".join(f"{key} {np.asarray(leaf).tolist()}" for key, leaf in records.leaves(value).items())
    return f"{type(value).__name__} ({leaves})"


def _differs(name: str, what: str, stored: object, given: object) -> InputError:
    shown, mine = (str(each) if isinstance(each, str) else validate.show(each) for each in (stored, given))
    short, long = (text if len(text) <= 120 else f"{text[:117]}..." for text in (shown, mine))
    return InputError(f"{what} must be {short}, as session {name!r} was made with, not {long}; leave it out to go on with it")
