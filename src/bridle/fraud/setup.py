"""What both protocols of the experiment begin and end with: packages, the engine, the folder, and files for programs."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from bridle import engines, storage, validate
from bridle.core import InputError


def check_packages() -> None:
    """Complain about what is not installed before anything runs."""
    for package in ("matplotlib", "rich"):
        validate.require_package(package, "report")


def choose_engine(name: str | None) -> str:
    """The engine of this name, else the fastest that is installed; one that is not is refused before the data are read."""
    engine = name or next((name for name in ("numba", "jax") if importlib.util.find_spec(name)), "python")
    engines.load(engine)
    return engine


def results_folder(name: str) -> Path:
    """The folder for the results, made where it is missing."""
    if not name.strip():
        raise InputError("--out must name a folder, not an empty text")
    path = Path(name)
    try:
        (path / "seeds").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write to folder {path}: {error.strerror or error}") from None
    return path


def write_json(path: Path, facts: Mapping[str, object], indent: int | None = None) -> None:
    """Facts as a file of JSON, whole or not at all."""
    with storage.replacing(path) as file:
        file.write((json.dumps(facts, indent=indent, allow_nan=False) + "\n").encode())


def keep(path: Path, facts: Mapping[str, object]) -> None:
    """A result for later runs, with a digest."""
    with storage.replacing(path) as file:
        file.write(storage.sealed(facts).encode() + b"\n")


def kept(path: Path) -> dict[str, object] | None:
    """What an earlier run has kept; None where there is nothing, or not what was written: then it is done anew."""
    try:
        facts = dict(cast("dict[str, object]", storage.parse(storage.read_whole(path))))
        storage.check(facts)
    except (ValueError, TypeError):
        return None
    return facts


def sentence(note: str) -> str:
    """A note as a sentence."""
    return f"{note[0].upper()}{note[1:]}."
