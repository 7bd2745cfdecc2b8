"""A PostgreSQL server of a test's own: a new cluster in a folder, on a free port of this machine, that can be stopped, killed and
restarted."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

SETTINGS = (
    "listen_addresses='127.0.0.1'", "max_connections=60", "shared_buffers=32MB", "fsync=on", "synchronous_commit=on",
    "unix_socket_directories=''", "recovery_init_sync_method=syncfs",
)  # fmt: skip


def programs() -> Path | None:
    """Where PostgreSQL's programs are: Debian has them in a folder for each version; None where there are none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    somewhere = shutil.which("initdb")
    return None if somewhere is None else Path(somewhere).parent


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


class Cluster:
    """A PostgreSQL server; root may not run one, so that it is then run by the user that Debian's package has made for it."""

    def __init__(self) -> None:
        found = programs()
        if found is None:
            raise RuntimeError("PostgreSQL is not installed: apt-get install postgresql")
        self.bin, self.folder, self.port = found, Path(tempfile.mkdtemp(prefix="bridle-postgres-")), free_port()
        self.user = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
        if self.user:
            shutil.chown(self.folder, "postgres", "postgres")
        self.data = self.folder / "data"
        self._run(self.bin / "initdb", "-D", self.data, "-U", "bridle", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        self.start()

    def _run(self, *command: object) -> None:
        done = subprocess.run([*self.user, *map(str, command)], capture_output=True, text=True, timeout=60, cwd=self.folder, check=False)
        if done.returncode:
            raise RuntimeError(f"{command[0]} failed: {done.stderr or done.stdout}")

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = " ".join(f"-c {setting}" for setting in (*SETTINGS, f"port={self.port}"))
        until = time.monotonic() + 20.0
        while True:
            try:
                self._run(self.bin / "pg_ctl", "-D", self.data, "-l", self.folder / "log", "-o", options, "-w", "-t", "60", "start")
                return
            except RuntimeError:  # after a kill its children take a while to notice
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)

    def stop(self, mode: str = "fast") -> None:
        """Stop it: "fast" ends every connection, "immediate" is a crash."""
        self._run(self.bin / "pg_ctl", "-D", self.data, "-m", mode, "-w", "-t", "60", "stop")

    def restart(self, mode: str = "fast") -> None:
        """Stop it and start it again."""
        self.stop(mode)
        self.start()

    def kill(self) -> None:
        """SIGKILL to the server; its children notice and end."""
        os.kill(int((self.data / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)

    def database(self, name: str) -> str:
        """A new database, and its URL."""
        self._run(self.bin / "createdb", "-h", "127.0.0.1", "-p", self.port, "-U", "bridle", name)
        return f"postgresql://bridle@127.0.0.1:{self.port}/{name}"

    def close(self) -> None:
        """Stop it and remove all of it."""
        with suppress(RuntimeError):
            self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)
