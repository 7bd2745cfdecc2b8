"""What is in the file of a gate or a pacer, and files that a forger could make."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from bridle import storage


def facts_in(path: Path) -> dict[str, Any]:
    """What a file holds, without its digest."""
    with closing(sqlite3.connect(path)) as file:
        ((line,),) = file.execute("SELECT line FROM facts").fetchall()
    facts: dict[str, Any] = json.loads(line)
    assert facts.pop("digest") == storage.digest(facts)
    return facts


def forge(path: Path, line: str) -> None:
    """Put a line into a file, in place of its own."""
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("UPDATE facts SET line = ?", (line,))
