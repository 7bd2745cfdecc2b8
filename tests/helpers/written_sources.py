"""What the compiled engine writes, caught before it runs."""

from __future__ import annotations

import pytest

from bridle.engines.codegen.python_source import PythonSource


def catch_sources(monkeypatch: pytest.MonkeyPatch) -> list[PythonSource]:
    """A list that every source written from now on is added to; it runs without the compiler."""
    sources: list[PythonSource] = []
    interpreted = PythonSource.interpreted

    def caught(source: PythonSource):
        sources.append(source)
        return interpreted(source)

    monkeypatch.setattr(PythonSource, "interpreted", caught)
    monkeypatch.setattr("bridle.engines.compiled._COMPILED", {})
    monkeypatch.setenv("BRIDLE_INTERPRET", "1")
    return sources
