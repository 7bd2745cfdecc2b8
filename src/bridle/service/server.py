"""A server that runs until it is told to stop, and answers what was begun before it ends."""

from __future__ import annotations

import logging
import socket
import sqlite3
import sys
import warnings
from contextlib import suppress
from dataclasses import replace
from time import monotonic

import uvicorn

from bridle.core import BridleWarning, InputError
from bridle.service import logs
from bridle.service.app import ServiceApp
from bridle.service.config import ServiceConfig
from bridle.service.connections import LimitedProtocol, limited_protocol, most_connections
from bridle.service.logs import log
from bridle.service.service import Service

REPAIRED = (3, 51, 3)
"""SQLite's versions before this one may damage a database when two connections write or checkpoint at the same instant."""

BACKLOG = 128
"""Connections that may wait to be accepted, and are accepted at once."""

SWEEP_EVERY = 10
"""Tenths of a second between two looks at the connections."""

REPORT_EVERY = 10.0
"""Seconds between two lines in the log about dropped connections."""


class ServiceServer(uvicorn.Server):
    """uvicorn's server with limits on connections. When it stops, it ends streams first: uvicorn would wait for them."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self.service = service
        service.requests = self.server_state.tasks
        self.protocol = limited_protocol(service.config.limits)
        config.http = self.protocol
        self._dropped, self._reported = 0, -REPORT_EVERY

    async def on_tick(self, counter: int) -> bool:
        if counter % SWEEP_EVERY == 0:
            self._sweep(monotonic())
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.service.stopping.set()
        await super().shutdown(sockets)

    def _sweep(self, now: float) -> None:
        """Drop connections whose clients take too long, and find out how many there may be."""
        connections = list(self.server_state.connections)
        for each in connections:
            if isinstance(each, LimitedProtocol) and each.is_late(now):
                each.drop()
                self._dropped += 1
        self.protocol.most = most_connections(self.service.config.limits.connections, len(connections))  # those dropped are open still
        if self._dropped and now - self._reported >= REPORT_EVERY:
            log("dropped connections", logging.WARNING, count=self._dropped)
            self._dropped, self._reported = 0, now


def run(config: ServiceConfig) -> None:
    """Serve until SIGTERM or SIGINT."""
    logs.set_up(level=config.log)
    warnings.simplefilter("ignore", BridleWarning)  # alarms are part of what a session answers
    if config.db.startswith("sqlite"):
        warn_of_sqlite()
    listening = listen(config.host, config.port)
    service = Service(with_port(config, listening))
    server = ServiceServer(uvicorn_config(service), service)
    service.connect()
    sys.stderr.write(f"bridle: serving at {service.config.address}\n")
    with suppress(KeyboardInterrupt):  # it has stopped in good order
        server.run(sockets=[listening])
    if not server.started:
        raise InputError("the service did not start: see its log")


def uvicorn_config(service: Service) -> uvicorn.Config:
    """How uvicorn is to serve this service."""
    config = service.config
    return uvicorn.Config(
        ServiceApp(service),
        log_config=None,
        access_log=False,
        lifespan="on",
        backlog=BACKLOG,
        server_header=False,
        ssl_certfile=config.tls_cert,
        ssl_keyfile=config.tls_key,
        timeout_graceful_shutdown=max(1, int(config.drain)),
        proxy_headers=False,
        ws="none",
    )


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
        return listening
    except OSError as error:
        raise InputError(f"cannot listen on {host}, port {port}: {error.strerror or error}") from None


def with_port(config: ServiceConfig, listening: socket.socket) -> ServiceConfig:
    """The configuration with the port that was found, where any would do."""
    return replace(config, port=listening.getsockname()[1])


def warn_of_sqlite(version: tuple[int, ...] = sqlite3.sqlite_version_info) -> bool:
    """Warn of a version of SQLite with a known fault; whether it has it."""
    if version >= REPAIRED:
        return False
    text = (
        f"SQLite {'.'.join(map(str, version))} can damage a database in WAL mode when two processes write to it at the same instant "
        f"(repaired in {'.'.join(map(str, REPAIRED))}): let no other program write to the database while it is served"
    )
    logs.log(text, logging.WARNING)
    return True
