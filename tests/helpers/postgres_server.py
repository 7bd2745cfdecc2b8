"""A PostgreSQL of one's own: made in a temporary folder, on a free port of the loopback, and stopped at the end.

PostgreSQL refuses to run as root; there it runs as the user `postgres` that Debian's package makes.
"""

from __future__ import annotations

import glob
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg


def programs() -> Path:
    """The folder of PostgreSQL's programs."""
    found = shutil.which("initdb")
    places = [found and os.path.dirname(found), *sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)]
    for place in places:
        if place and os.path.exists(os.path.join(place, "initdb")):
            return Path(place)
    raise FileNotFoundError("these tests need PostgreSQL's server: apt-get install postgresql")


def free_port() -> int:
    """A port of the loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class PostgresServer:
    """A server that can be stopped, killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port, self.process = folder, free_port(), None
        self._other: dict[str, Any] = {"user": "postgres", "group": "postgres"} if os.getuid() == 0 else {}
        if self._other:
            shutil.chown(folder, **self._other)
        self._run("initdb", "-D", str(folder / "data"), "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-sync")

    @property
    def url(self) -> str:
        """The address of its database."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run([programs() / program, *arguments], check=True, capture_output=True, cwd=self.folder, **self._other)

    def start(self) -> None:
        """Start, and wait until it answers."""
        settings = {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": self.folder,
            "fsync": "on",
            "max_connections": 60,
        }
        command = [programs() / "postgres", "-D", self.folder / "data", *(f"--{name}={value}" for name, value in settings.items())]
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, **self._other)
        until = time.monotonic() + 30.0
        while True:
            try:
                psycopg.connect(self.url, connect_timeout=2).close()
                return
            except psycopg.OperationalError:
                if self.process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError((self.folder / "log").read_text()) from None
                time.sleep(0.05)

    def stop(self, kill: bool = False) -> None:
        """Stop it: as an administrator does, or as a machine that goes down."""
        if self.process is not None:
            if kill:
                children = subprocess.run(["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True).stdout.split()
                for pid in (self.process.pid, *map(int, children)):
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        continue
            else:
                self.process.send_signal(signal.SIGINT)  # "fast": connections are ended
            self.process.wait(timeout=30)
            self.process = None


@contextmanager
def serving() -> Iterator[PostgresServer]:
    """A server for as long as the block lasts."""
    with tempfile.TemporaryDirectory(prefix="bridle-postgres-") as name:
        os.chmod(name, 0o755)
        server = PostgresServer(Path(name))
        server.start()
        try:
            yield server
        finally:
            server.stop(kill=True)
