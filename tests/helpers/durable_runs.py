"""Durable sessions under test: everything that one holds, one that is rebuilt from its journal after every event, and one that dies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import bridle
from bridle.durable.session import DurableSession
from bridle.session import savefile


def everything(session: bridle.Session) -> dict[str, Any]:
    """Every number and every fact that a save file of a session would hold, but for the name of the run."""
    members = session.read(savefile.packed)
    header = json.loads(str(members.pop("header")))
    del header["digest"]
    header["session"].pop("run", None)
    return {"header": header, **members}


def assert_same(one: bridle.Session, other: bridle.Session, *, but: str = "") -> None:
    """Bit for bit, also the sign of zero, but for one fact."""
    a, b = everything(one), everything(other)
    for each in (a, b):
        each["header"]["session"].pop(but, None)
    assert a.pop("header") == b.pop("header")
    assert a.keys() == b.keys()
    for name, value in a.items():
        assert np.asarray(value).tobytes() == np.asarray(b[name]).tobytes(), name


def url_of(folder: Path) -> str:
    return f"sqlite:///{folder}/run.db"


def rebuilt(session: DurableSession) -> DurableSession:
    """The session, which forgets everything after every event and reads its journal again."""
    apply = session.apply

    def forgetful(*given: Any, **named: Any) -> Any:
        seq = session.journal.seq
        value = apply(*given, **named)
        if session.journal.seq != seq:
            session.journal.rebuild()
        return value

    session.apply = forgetful  # type: ignore[method-assign]
    return session


def crash(session: DurableSession) -> None:
    """Let the session go as a killed process would: without a snapshot, with nothing said."""
    session.ended = "has crashed"
    session.journal.store.close()


def journal(session: DurableSession) -> list[Any]:
    """The events of a session."""
    return list(session.journal.store.tail(session.journal.found.id))
