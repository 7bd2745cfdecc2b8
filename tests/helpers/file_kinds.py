"""Every kind of file that bridle writes and reads back: how to make an older and a newer one, and what is in them."""

from __future__ import annotations

import operator
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

import bridle
from bridle.comparisons.store import Store
from bridle.core import InputError
from bridle.engines import kept_code
from helpers import fingerprints


class Kind(NamedTuple):
    """`make(n)` is what a file of this kind holds after n steps; `save` writes it, `load` reads it, `seen` is what can be told of it.

    `harmless(found, was)`: whether it does not matter that this was found where that was written.
    """

    make: Callable[[int], Any]
    save: Callable[[Any, Path], object]
    load: Callable[[Path], Any]
    seen: Callable[[Any], Any]
    harmless: Callable[[Any, Any], bool] = operator.eq


def session(rounds: int, **settings: Any) -> bridle.Session:
    """A session after so many rounds, with a few that wait."""
    made = bridle.Session(bridle.policy("anytime", bridle.Ball(2)), **settings)
    for t in range(rounds):
        rng, x = np.random.default_rng(t % 2), made.decide()
        df, a = rng.standard_normal(2), rng.standard_normal(2)
        made.observe(f=float(df @ x), df=df, g=float(a @ x) - 0.2, dg=a)
    first, *_ = made.ask(), made.ask(), made.ask()
    made.observe(f=0.25, df=[0.5, 0.0], ticket=first)
    return made


def plain_session(rounds: int) -> bridle.Session:
    """As small as a session's file gets."""
    made = bridle.Session(bridle.policy("anytime", bridle.Ball(2)), certify=False)
    for t in range(rounds):
        made.observe(f=0.5, df=[1.0, float(t)])
    return made


def gate(payments: int) -> bridle.Gate:
    made = bridle.Gate(**GATE)
    for _ in range(payments):
        made.pay(0.37)
    return made


def pacer(payments: int) -> bridle.Pacer:
    made = bridle.Pacer(**PACER)
    for _ in range(payments):
        made.pay(0.37)
    return made


def save_held(payments: int, path: Path, kind: Any, **opening: Any) -> None:
    """The file of a gate or a pacer that was killed after so many payments, while it held it."""
    with tempfile.TemporaryDirectory() as folder, kind.open(Path(folder) / "held", **opening) as held:
        for _ in range(payments):
            held.pay(0.37)
        path.write_bytes((Path(folder) / "held").read_bytes())


def save_store(rows: int, path: Path) -> None:
    """The only file of a store with so many entries."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder)
        store.claim(["a", "b"])
        store.add({"key": f"key {i}", "spent": 0.5 * i} for i in range(rows))
        store.close()
        [file] = Path(folder).iterdir()
        path.write_bytes(file.read_bytes())


def load_store(path: Path) -> Any:
    """The entries in a file of a store; a reader who finds it damaged waits for the file system, which is left out here."""
    with tempfile.TemporaryDirectory() as folder, mock.patch("bridle.comparisons.store.time.sleep"):
        (Path(folder) / "file.jsonl").write_bytes(path.read_bytes())
        return Store(folder).entries


def forgets(found: dict[str, Any], was: dict[str, Any]) -> bool:
    """A store may forget an entry, which is then computed again; it must not invent or change one."""
    return all(key in was and was[key] == entry for key, entry in found.items())


def save_code(lines: int, path: Path) -> None:
    """Compiled code, or what is to be compiled, as it is kept."""
    with tempfile.TemporaryDirectory() as folder:
        kept_code.write(Path(folder), "code", b"x = 1\n" * lines)
        path.write_bytes((Path(folder) / "code").read_bytes())


def load_code(path: Path) -> bytes:
    """Kept code, where it can be trusted."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "code").write_bytes(path.read_bytes())
        (Path(folder) / "code").chmod(0o600)
        found = kept_code.read(Path(folder), "code")
    if found is None:
        raise InputError("not to be trusted: it is compiled anew")
    return found


def steps(number: int) -> int:
    return number


GATE = {"budget": 10.0}
PACER = {"budget": 10.0, "rounds": 40, "value": 2.0, "plan": [1.0, 2.0]}

KINDS = {
    "session": Kind(session, bridle.Session.save, bridle.Session.load, fingerprints.of_session),
    "plain session": Kind(plain_session, bridle.Session.save, bridle.Session.load, lambda it: fingerprints.of_session(it, certified=False)),
    "gate": Kind(gate, bridle.Gate.save, bridle.Gate.load, fingerprints.of_gate),
    "pacer": Kind(pacer, bridle.Pacer.save, bridle.Pacer.load, fingerprints.of_pacer),
}
"""Files that are written whole."""

OTHERS = {
    "gate, held": Kind(steps, partial(save_held, kind=bridle.Gate, **GATE), bridle.Gate.load, fingerprints.of_gate),
    "pacer, held": Kind(steps, partial(save_held, kind=bridle.Pacer, **PACER), bridle.Pacer.load, fingerprints.of_pacer),
    "store of a comparison": Kind(steps, save_store, load_store, lambda entries: entries, forgets),
    "compiled code": Kind(steps, save_code, load_code, lambda code: code),
}
"""Files that grow, or that others write."""
