"""Save files: one `.npz` with the leaves under their dotted names and a JSON header; written atomically, never pickled."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from os import PathLike
from typing import Any

import numpy as np

from bridle import policies, records, storage, validate
from bridle.core import InputError
from bridle.policies.registry import record_of

SCHEMA = 2
READS = (1, 2)
"""Schema 1 knew neither certificates nor rounds that wait."""

HOMES = (
    "bridle.domains.closed_form", "bridle.domains.half_space_cut", "bridle.domains.polyhedron",
    "bridle.learners.adagrad", "bridle.learners.follow_the_leader", "bridle.learners.gradient_descent", "bridle.learners.late",
    "bridle.learners.potentials", "bridle.learners.wrappers", "bridle.policies.sinha2024", "bridle.policies.sinha2024_ocs",
)  # fmt: skip
"""Where the record types that a file may name are defined. Files name the type alone, so a type can move between these."""


class Unportable(Exception):
    """A value that only its author can rebuild."""


@dataclass(frozen=True)
class Saved:
    """What a save file holds, checked."""

    path: str
    header: dict[str, Any]
    arrays: dict[str, np.ndarray]

    @property
    def start(self) -> np.ndarray:
        return self.arrays["start"]

    @property
    def old(self) -> bool:
        """Whether it was written before sessions kept certificates and let rounds wait."""
        return bool(self.header["schema"] == 1)

    @property
    def facts(self) -> dict[str, Any]:
        """What the session noted beside its numbers."""
        facts = self.header.get("session", {} if self.old else None)
        if not isinstance(facts, dict):
            raise InputError(f"cannot load {self.path}: its header is damaged")
        return facts

    def part(self, prefix: str) -> dict[str, np.ndarray]:
        """The arrays whose names begin like this, without it."""
        return {name.removeprefix(prefix): value for name, value in self.arrays.items() if name.startswith(prefix)}

    @contextmanager
    def checking(self) -> Iterator[None]:
        """Whatever goes wrong while the arrays are put back was done to the file."""
        try:
            yield
        except InputError:
            raise
        except Exception as wrong:
            raise InputError(f"cannot load {self.path}: it is damaged ({type(wrong).__name__}: {validate.show(str(wrong))})") from None

    @property
    def totals(self) -> tuple[int, float, np.ndarray]:
        """Rounds, cost, violation of every constraint, and how many constraints there are where that is known."""
        rounds = validate.whole(f"totals.rounds in {self.path}", self.arrays["totals.rounds"], 0)
        cost = validate.number(f"totals.cost in {self.path}", self.arrays["totals.cost"])
        return rounds, cost, validate.vector(f"totals.hard in {self.path}", self.arrays["totals.hard"])

    def make_policy(self) -> Any:
        """The registered policy that was saved."""
        if self.header.get("policy") is None:
            kind = self.header.get("kind")
            raise InputError(f"cannot load {self.path}: it holds a policy that is not registered ({kind}); give it as policy=...")
        try:
            domain = _decode(self.header["domain"], self.arrays)
            parameters = {name: _decode(code, self.arrays) for name, code in self.header["parameters"].items()}
            return policies.policy(self.header["policy"], domain, **parameters)
        except InputError as wrong:
            raise InputError(f"cannot load {self.path}: {wrong}") from None
        except Exception:  # only this library writes headers, so whatever else goes wrong was done to the file
            raise InputError(f"cannot load {self.path}: its header is damaged") from None

    def fill(self, template: Any, prefix: str = "state.", place: int | None = None) -> Any:
        """A state like `template` with the saved leaves, or with one of several saved; any difference in names or shapes is an error."""
        saved = self.part(prefix) if place is None else {name: value[place] for name, value in self.part(prefix).items()}
        wanted = records.leaves(template)
        if saved.keys() != wanted.keys():
            odd = sorted(saved.keys() ^ wanted.keys())[0]
            where = "missing from" if odd in wanted else "only in"
            raise InputError(f"cannot load {self.path}: it does not fit this policy, leaf {odd!r} is {where} the file")
        for name, leaf in wanted.items():
            if np.shape(leaf) != saved[name].shape:
                found = f"leaf {name!r} has shape {saved[name].shape}, not {np.shape(leaf)}"
                raise InputError(f"cannot load {self.path}: it does not fit this policy, {found}")
        values = iter([saved[name] for name in wanted])
        return records.transform(lambda leaf: float(next(values)) if np.ndim(leaf) == 0 else next(values), template)


def write(
    path: str | PathLike[str],
    policy: Any,
    start: np.ndarray,
    state: Any,
    totals: dict[str, Any],
    more: dict[str, Any],
    facts: dict[str, Any],
) -> None:
    """Write a save file: the whole new one, or the old one stays. `more` are other arrays, `facts` goes into the header."""
    name = storage.named(path)
    arrays = {"start": start}
    header: dict[str, Any] = {"library": "bridle", "schema": SCHEMA, "policy": None, "kind": type(record_of(policy)).__name__}
    header["session"] = facts
    if isinstance(policy, policies.Configured):
        try:
            codes = {key: _encode(value, f"parameters.{key}", arrays) for key, value in policy.parameters.items()}
            header |= {"domain": _encode(policy.domain, "domain", arrays), "parameters": codes, "policy": policy.name}
        except Unportable:
            arrays = {"start": start}  # a learner, potential or domain of the user's own: loading needs policy=...
    arrays |= {f"state.{key}": np.asarray(leaf, dtype=float) for key, leaf in records.leaves(state).items()}
    arrays |= {f"totals.{key}": np.asarray(value, dtype=float) for key, value in totals.items()}
    arrays |= {key: np.asarray(value, dtype=float) for key, value in more.items()}
    with storage.replacing(name) as file:
        np.savez(file, **{"header": np.array(json.dumps(header)), **arrays})  # type: ignore[arg-type]


def read(path: str | PathLike[str]) -> Saved:
    """Read a save file back, or say in one line what is wrong with it."""
    name = storage.named(path)
    try:
        with open(name, "rb") as opened, np.load(opened, allow_pickle=False) as file:  # closed also where np.load forgets to
            arrays = {key: file[key] for key in file.files}
    except Exception as problem:  # bytes that are not a save file can make the reader fail in any way
        reason = getattr(problem, "strerror", None) or "it is truncated, damaged, or not a save file"
        raise InputError(f"cannot read {name}: {reason}") from None
    try:
        header = json.loads(str(arrays.pop("header")))
        if header["library"] != "bridle":
            raise KeyError("library")
        schema = header["schema"]
    except (KeyError, ValueError, TypeError):
        raise InputError(f"cannot read {name}: it was not written by bridle") from None
    if schema not in READS:
        raise InputError(f"cannot read {name}: it has schema {schema}, and this version reads schemas {' and '.join(map(str, READS))}")
    missing = {"start", "totals.rounds", "totals.cost", "totals.hard"} - arrays.keys()
    if missing:
        raise InputError(f"cannot read {name}: {sorted(missing)[0]!r} is missing")
    for key, value in arrays.items():
        if value.dtype.kind != "f" or np.isnan(value).any():
            raise InputError(f"cannot read {name}: {key!r} must hold numbers, not {validate.show(value)}")
    return Saved(name, header, {key: np.array(value, dtype=float) for key, value in arrays.items()})


def _encode(value: Any, name: str, arrays: dict[str, np.ndarray]) -> Any:
    """A JSON form of a value whose arrays go into `arrays` under dotted names."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return {"value": value}
    if isinstance(value, np.ndarray):
        arrays[name] = value
        return {"array": name}
    if records.is_record(value):
        kind = type(value)
        if hasattr(value, "_fields") and _kinds().get(kind.__name__) is not kind:
            raise Unportable(name)
        parts = {part: _encode(inner, f"{name}.{part}", arrays) for part, inner in records.children(value)}
        return {"record": kind.__name__, "parts": parts} if hasattr(value, "_fields") else {"tuple": list(parts.values())}
    raise Unportable(name)


def _decode(code: Any, arrays: dict[str, np.ndarray]) -> Any:
    if "value" in code:
        return code["value"]
    if "array" in code:
        return arrays[code["array"]]
    if "tuple" in code:
        return tuple(_decode(part, arrays) for part in code["tuple"])
    kind = _kinds().get(code["record"])
    if kind is None:
        raise InputError(f"it names a record {validate.show(code['record'])}, which is not part of bridle")
    return kind(**{part: _decode(inner, arrays) for part, inner in code["parts"].items()})


@cache
def _kinds() -> dict[str, Any]:
    """The record types of this library by name."""
    homes = [importlib.import_module(home) for home in HOMES]
    return {
        name: kind for home in homes for name, kind in vars(home).items() if hasattr(kind, "_fields") and kind.__module__ == home.__name__
    }
