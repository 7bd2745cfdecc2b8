"""What a server is told: the file `bridle.toml`, and what the command line says on top of it.

db = "sqlite:///bridle.db"         # or postgresql://user@host/name; ${NAME} is the environment's variable of that name
host = "127.0.0.1"
port = 8711
url = "https://one.example:8711"   # where other servers send clients that ask them for a session which this one owns
log = "info"

[tls]
cert = "server.pem"
key = "server.key"

[limits]                           # see `ServiceLimits`
body = 16_000_000
rate = 20_000

[sessions.shop-17]                 # made when the server starts, unless it is there
policy = "anytime"
domain = { kind = "box", low = 0.0, high = 40.0, dim = 1 }
names = ["latency"]
gates.march = { budget = 500.0 }
"""

from __future__ import annotations

import ipaddress
import os
import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from bridle import validate
from bridle.core import InputError

LEVELS = ("debug", "info", "warning", "error")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""What a session or a gate may be called: it stands in addresses, logs and metrics."""


def checked_name(what: str, name: object) -> str:
    """A name that a session or a gate may have."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InputError(f"{what} must have 1 to 100 letters, digits, dots, dashes or underscores, not {validate.show(name)}")
    return name


@dataclass(frozen=True)
class ServiceLimits:
    """What one client may ask for; a table `limits` in the configuration has the same names."""

    body: int = 16_000_000
    """Bytes of a request."""
    header: int = 32_768
    """Bytes of the request line and the headers of a request."""
    connections: int = 2_000
    """Connections of all clients; fewer if the system allows the process fewer open files."""
    deadline: float = 10.0
    """Seconds for the header of a request, and for its body, which has one more for every 16 KB received."""
    batch: int = 10_000
    """Events of a batch."""
    rate: float = 20_000.0
    """Requests a second of one key, on average; twice as many at once."""
    sessions: int = 2_000
    """Sessions that one key may have open at the same time."""
    waiting: int = 10_000
    """Requests that may wait for one session."""
    dim: int = 100_000
    """Dimensions of a decision."""
    constraints: int = 1_000
    """Constraints of a round."""
    rules: int = 1_000
    """Rules, or features, of a session."""

    @classmethod
    def checked(cls, given: Mapping[str, object]) -> ServiceLimits:
        """With these in the place of the defaults."""
        clean: dict[str, Any] = {}
        for name, value in given.items():
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise InputError(f"limits.{name} must be a number, not {validate.show(value)}")
            clean[name] = (validate.positive if name in ("rate", "deadline") else validate.whole)(f"limits.{name}", value)
        return cls(**clean)


@dataclass(frozen=True)
class ServiceConfig:
    """What a server is told."""

    db: str = "sqlite:///bridle.db"
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
            checked_name("name", name)
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
    facts = {} if path is None else _read(path)
    known = {field.name for field in fields(ServiceConfig)} - {"tls_cert", "tls_key", "insecure"} | {"tls"}
    for name in facts:
        validate.one_of("setting", name, known)
    for name in ("db", "host", "url", "log"):
        if name in facts and not isinstance(facts[name], str):
            raise InputError(f"{name} must be a text, not {validate.show(facts[name])}")
    tls, limits = _part(facts, "tls", ("cert", "key")), _part(facts, "limits", [field.name for field in fields(ServiceLimits)])
    sessions = facts.get("sessions", {})
    if not isinstance(sessions, dict) or not all(isinstance(each, dict) for each in sessions.values()):
        raise InputError("sessions must be tables, [sessions.NAME] with policy and domain")
    if "drain" in facts:
        facts["drain"] = validate.positive("drain", facts["drain"])
    facts |= {"tls_cert": tls.get("cert"), "tls_key": tls.get("key"), "limits": ServiceLimits.checked(limits)}
    config = ServiceConfig(**facts | {name: value for name, value in given.items() if value is not None})
    return replace(config, db=_filled(config.db)).checked()


def _read(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from None


def _part(table: dict[str, Any], name: str, known: Collection[str]) -> dict[str, Any]:
    """A table in the table, which is taken out."""
    part = table.pop(name, {})
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
