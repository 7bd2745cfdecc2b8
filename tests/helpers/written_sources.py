"""What the numba engine writes, caught on its way to the compiler."""

from __future__ import annotations

import pytest

from bridle.engines import numba as engine
from bridle.engines.codegen.python_source import PythonSource


def catch_sources(monkeypatch: pytest.MonkeyPatch) -> list[PythonSource]:
    """A list that every source written from now on is added to; it runs without the compiler."""
    sources: list[PythonSource] = []

    def load(source: PythonSource):
        sources.append(source)
        return source.interpreted()

    monkeypatch.setattr(engine, "_load", load)
    monkeypatch.setattr(engine, "_COMPILED", {})
    return sources
