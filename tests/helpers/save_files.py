"""Save files of sessions, taken apart and put together again: by a forger who knows about digests, or as an earlier version would have."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bridle import storage


def contents(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The header, without its digest, and the arrays."""
    with np.load(path, allow_pickle=False) as file:
        arrays = {key: file[key] for key in file.files}
    header = json.loads(str(arrays.pop("header")))
    header.pop("digest", None)
    return header, arrays


def put_together(path: Path, header: Any, arrays: dict[str, Any], *, seal: bool = True) -> None:
    """Write a save file with a digest that fits, or, not sealed, without one."""
    if seal and isinstance(header, dict):
        header = {**header, "digest": storage.digest(header, arrays)}
    np.savez(path, header=np.array(json.dumps(header)), **arrays)


def edit(path: Path, change: Callable[[Any, dict[str, Any]], Any]) -> None:
    """Rewrite a save file after `change(header, arrays)`; the zip is in order, and the digest fits."""
    header, arrays = contents(path)
    put_together(path, change(header, arrays) or header, arrays)
