"""What a server is told: the file `bridle.toml`, and what the command line says on top of it.

db = "sqlite:///bridle.db"         # or postgresql://user@host/name; ${NAME} is the environment's variable of that
name host = "127.0.0.1" port = 8711 url = "https://one.example:8711"   # where other servers send clients that ask
them for a session which this one owns log = "info"

[tls]
cert = "server.pem"
key = "server.key"

[limits]                           # see `bridle.service.limits` body = 16_000_000 rate = 20_000

[sessions.shop-17]                 # made when the server starts, unless it is there policy = "anytime" domain = {
kind = "box", low = 0.0, high = 40.0, dim = 1 } names = ["latency"] gates.march = { budget = 500.0 }
"""

from __future__ import annotations

import ipaddress
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bridle import validate
from bridle.core import InputError
from bridle.service.limits import ServiceLimits
from bridle.service.recipes import session_name

DATABASE = "sqlite:///bridle.db"
LEVELS = ("debug", "info", "warning", "error")


@dataclass(frozen=True)
class ServiceConfig:
    """What a server is told."""

    db: str = DATABASE
    host: str = "127.0.0.1"
    port: int = 8711
    url: str | None = None
    """Where clients reach it; None: from host and port."""
    insecure: bool = False
    """No keys are asked for; only where nobody but this machine can ask."""
    log: str = "info"
    tls_cert: str | None = None
    tls_key: str | None = None
    limits: ServiceLimits = field(default_factory=ServiceLimits)
    sessions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    drain: float = 10.0
    """For how many seconds a server that stops goes on answering what was begun."""

    @property
    def address(self) -> str:
        """The address that clients use."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.url or f"{'https' if self.tls_cert else 'http'}://{host}:{self.port}"

    def checked(self) -> ServiceConfig:
        """This, if it makes sense."""
        if isinstance(self.port, bool) or not isinstance(self.port, int) or not 0 <= self.port < 65536:
            raise InputError(f"port must be a whole number from 0 to 65535, not {validate.show(self.port)}")
        validate.one_of("log", self.log, LEVELS)
        if (self.tls_cert is None) != (self.tls_key is None):
            raise InputError("a certificate and its key belong together: give both --tls-cert and --tls-key")
        for path in (self.tls_cert, self.tls_key):
            if path is not None and not os.path.isfile(path):
                raise InputError(f"cannot read {path}: there is no such file")
        if self.insecure and not is_loopback(self.host):
            raise InputError(f"--insecure is for this machine alone: host must be 127.0.0.1, ::1 or localhost, not {self.host}")
        for name in self.sessions:
            session_name(name)
        return self


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the host.

    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "10.0.0.5", "example.org")]
    [True, True, True, False, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_config(path: str | None, **given: object) -> ServiceConfig:
    """The configuration in a file, if one is named, with what was given on the command line (None: nothing) in its place."""
    table = {} if path is None else _read(path)
    known = set(ServiceConfig.__dataclass_fields__) - {"tls_cert", "tls_key", "insecure"} | {"tls"}
    for name in table:
        validate.one_of("setting", name, known)
    tls = _part(table, "tls", ("cert", "key"))
    facts: dict[str, Any] = {name: value for name, value in table.items() if name not in ("tls", "limits", "sessions")}
    for name in ("db", "host", "url", "log"):
        if name in facts and not isinstance(facts[name], str):
            raise InputError(f"{name} must be a text, not {validate.show(facts[name])}")
    if "drain" in facts:
        facts["drain"] = validate.positive("drain", facts["drain"])
    facts |= {"tls_cert": tls.get("cert"), "tls_key": tls.get("key")}
    sessions = table.get("sessions", {})
    if not isinstance(sessions, dict) or not all(isinstance(each, dict) for each in sessions.values()):
        raise InputError("sessions must be tables, [sessions.NAME] with policy and domain")
    facts |= {"sessions": sessions, "limits": ServiceLimits.checked(**_part(table, "limits", tuple(ServiceLimits.__dataclass_fields__)))}
    config = ServiceConfig(**facts)
    config = replace(config, **{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]
    return replace(config, db=_filled(config.db)).checked()


def _read(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from None


def _part(table: Mapping[str, Any], name: str, known: tuple[str, ...]) -> dict[str, Any]:
    part = table.get(name, {})
    if not isinstance(part, dict):
        raise InputError(f"{name} must be a table, not {validate.show(part)}")
    for key in part:
        validate.one_of(f"setting of {name}", key, known)
    return part


def _filled(text: str) -> str:
    """With the environment's variables in their places, so that no password need stand in a file."""

    def value(found: re.Match[str]) -> str:
        name = found.group(1)
        if name not in os.environ:
            raise InputError(f"db names the variable {name}, which is not set")
        return os.environ[name]

    return re.sub(r"\$\{(\w+)\}", value, text)
