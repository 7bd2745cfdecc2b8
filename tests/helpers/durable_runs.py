"""Durable sessions under test: everything that one holds, one that is rebuilt from its journal after every event, and one that dies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import bridle
from bridle.session import savefile
from bridle.session.session import DurableSession


def everything(session: bridle.Session) -> dict[str, Any]:
    """Every number and every fact that a save file of a session would hold, but for the name of the run."""
    plain = session._core.session if isinstance(session, DurableSession) else session
    members = savefile.packed(plain._image(False))
    header = json.loads(str(members.pop("header")))
    del header["digest"]
    header["session"].pop("run", None)
    return {"header": header, **members}


def assert_same(one: bridle.Session, other: bridle.Session) -> None:
    """Bit for bit: also the sign of zero."""
    a, b = everything(one), everything(other)
    assert a.pop("header") == b.pop("header")
    assert a.keys() == b.keys()
    for name, value in a.items():
        assert np.asarray(value).tobytes() == np.asarray(b[name]).tobytes(), name


def url_of(folder: Path) -> str:
    return f"sqlite:///{folder}/run.db"


def rebuilt(session: DurableSession) -> DurableSession:
    """The session, which forgets everything after every event and reads its journal again."""
    embedded = session._embedded
    do = embedded.do

    def forgetful(*given: Any, **named: Any) -> Any:
        seq = embedded.core.seq
        value = do(*given, **named)
        if embedded.core.seq != seq:
            embedded.core.rebuild()
        return value

    embedded.do = forgetful  # type: ignore[method-assign]
    return session


def crash(session: DurableSession) -> None:
    """Let the session go as a killed process would: without a snapshot, with nothing said."""
    session._embedded.ended = "has crashed"
    session._core.store.close()


def journal(session: DurableSession) -> list[Any]:
    """The events of a session."""
    return list(session._core.store.tail(session._core.found.id))
