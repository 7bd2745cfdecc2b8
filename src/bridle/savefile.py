"""Save files: one `.npz` with the leaves under their dotted names and a JSON header; written atomically, never pickled."""

from __future__ import annotations

import importlib
import json
import os
import tempfile
import zipfile
import zlib
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from bridle import policies, records, validate
from bridle.core import InputError
from bridle.game import record_of

SCHEMA = 1
HOMES = ("bridle.domains", "bridle.polyhedron", "bridle.learners", "bridle.potentials", "bridle.wrappers", "bridle.policies.sinha2024")
"""Where record types may come from when a file is read; nothing else is ever imported on a file's word."""


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
    def totals(self) -> dict[str, np.ndarray]:
        return {name.removeprefix("totals."): value for name, value in self.arrays.items() if name.startswith("totals.")}

    def make_policy(self) -> Any:
        """The registered policy that was saved."""
        if self.header["policy"] is None:
            raise InputError(f"{self.path} holds a policy that is not registered ({self.header['kind']}): load it with policy=...")
        domain = _decode(self.header["domain"], self.arrays)
        parameters = {name: _decode(code, self.arrays) for name, code in self.header["parameters"].items()}
        return policies.policy(self.header["policy"], domain, **parameters)

    def fill(self, template: Any) -> Any:
        """A state like `template` with the saved leaves; any difference in names or shapes is an error."""
        saved = {name.removeprefix("state."): value for name, value in self.arrays.items() if name.startswith("state.")}
        wanted = records.leaves(template)
        if saved.keys() != wanted.keys():
            odd = sorted(saved.keys() ^ wanted.keys())[0]
            raise InputError(
                f"{self.path} does not fit this policy: leaf {odd!r} is {'missing from' if odd in wanted else 'only in'} the file"
            )
        for name, leaf in wanted.items():
            if np.shape(leaf) != saved[name].shape:
                raise InputError(f"{self.path} does not fit this policy: leaf {name!r} has shape {saved[name].shape}, not {np.shape(leaf)}")
        values = iter([saved[name] for name in wanted])
        return records.transform(lambda leaf: float(next(values)) if np.ndim(leaf) == 0 else np.array(next(values)), template)


def write(path: str | PathLike[str], policy: Any, start: np.ndarray, state: Any, totals: dict[str, Any]) -> None:
    """Write a save file: the whole new one, or the old one stays."""
    arrays: dict[str, np.ndarray] = {"start": start}
    header: dict[str, Any] = {"library": "bridle", "schema": SCHEMA, "policy": None, "kind": type(record_of(policy)).__name__}
    if getattr(policy, "name", None) in policies.names():
        try:
            codes = {key: _encode(value, f"parameters.{key}", arrays) for key, value in policy.parameters.items()}
            header |= {"domain": _encode(policy.domain, "domain", arrays), "parameters": codes, "policy": policy.name}
        except Unportable:
            arrays = {"start": start}  # a learner, potential or domain of the user's own: loading needs policy=...
    arrays |= {f"state.{name}": np.asarray(leaf, dtype=float) for name, leaf in records.leaves(state).items()}
    arrays |= {f"totals.{name}": np.asarray(value, dtype=float) for name, value in totals.items()}
    target = os.path.abspath(os.fspath(path))
    try:
        handle, temporary = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".bridle-", suffix=".tmp")
    except OSError as problem:
        raise InputError(f"cannot write {os.fspath(path)}: {problem.strerror}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, allow_pickle=False, **{"header": np.array(json.dumps(header))}, **arrays)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except OSError as problem:
        raise InputError(f"cannot write {os.fspath(path)}: {problem.strerror}") from None
    finally:
        if os.path.exists(temporary):
            os.remove(temporary)


def read(path: str | PathLike[str]) -> Saved:
    """Read a save file back, or say in one line what is wrong with it."""
    name = os.fspath(path)
    try:
        with np.load(name, allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
    except OSError as problem:
        raise InputError(f"cannot read {name}: {problem.strerror or 'not a save file'}") from None
    except (ValueError, EOFError, KeyError, TypeError, AttributeError, zipfile.BadZipFile, zlib.error):
        raise InputError(f"cannot read {name}: it is truncated, damaged, or not a save file") from None
    try:
        header = json.loads(str(arrays.pop("header")))
        if header["library"] != "bridle":
            raise KeyError("library")
        schema = header["schema"]
    except (KeyError, ValueError, TypeError):
        raise InputError(f"cannot read {name}: it was not written by bridle") from None
    if schema != SCHEMA:
        raise InputError(f"cannot read {name}: it has schema {schema}, and this version reads schema {SCHEMA}")
    missing = {"start", "totals.rounds", "totals.cost", "totals.hard", "totals.k"} - arrays.keys()
    if missing:
        raise InputError(f"cannot read {name}: {sorted(missing)[0]!r} is missing")
    for key, value in arrays.items():
        validate.array(f"{key} in {name}", value)
    return Saved(name, header, arrays)


def _encode(value: Any, name: str, arrays: dict[str, np.ndarray]) -> Any:
    """A JSON form of a value whose arrays go into `arrays` under dotted names."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return {"value": value}
    if isinstance(value, np.ndarray):
        arrays[name] = value
        return {"array": name}
    if records.is_record(value):
        kind = type(value)
        if hasattr(value, "_fields") and kind.__module__ not in HOMES:
            raise Unportable(name)
        parts = {part: _encode(inner, f"{name}.{part}", arrays) for part, inner in records.children(value)}
        return (
            {"record": f"{kind.__module__}:{kind.__name__}", "parts": parts}
            if hasattr(value, "_fields")
            else {"tuple": list(parts.values())}
        )
    raise Unportable(name)


def _decode(code: Any, arrays: dict[str, np.ndarray]) -> Any:
    if "value" in code:
        return code["value"]
    if "array" in code:
        return arrays[code["array"]]
    if "tuple" in code:
        return tuple(_decode(part, arrays) for part in code["tuple"])
    module, _, kind = code["record"].partition(":")
    if module not in HOMES:
        raise InputError(f"the save file names a record of {module!r}, which is not part of bridle")
    made: Any = getattr(importlib.import_module(module), kind)
    return made(**{part: _decode(inner, arrays) for part, inner in code["parts"].items()})
