"""A server of the decision service in a thread of the test, or in a process that can be killed, and clients that talk to it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx

from bridle.database import open_store
from bridle.service.auth import make_key
from bridle.service.config import ServiceConfig
from bridle.service.server import ServiceServer, listen, uvicorn_config, with_port
from bridle.service.service import Service

BOX = {"kind": "box", "low": -1.0, "high": 1.0, "dim": 2}
ANYTIME = {"policy": "anytime", "domain": BOX}
ROUND = {"f": 0.3, "df": [1.0, 0.5], "g": [0.1], "dg": [[-1.0, 0.25]]}


def new_key(db: str, *scopes: str, name: str = "test") -> str:
    """A key in a database, as text."""
    text, key = make_key(name, scopes, time.time())
    with open_store(db) as store:
        store.keys.add(key)
    return text


class Server:
    """A server in a thread."""

    def __init__(self, config: ServiceConfig) -> None:
        listening = listen("127.0.0.1", 0)
        self.service = Service(with_port(replace(config, host="127.0.0.1"), listening))
        self.url = self.service.config.address
        self.server = ServiceServer(uvicorn_config(self.service), self.service)
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [listening]}, daemon=True)
        self.thread.start()

    def wait(self) -> None:
        """Until it is ready."""
        wait_for(self.url)

    def client(self, key: str | None = None) -> httpx.Client:
        """A client with this key."""
        return httpx.Client(base_url=self.url, headers={} if key is None else {"Authorization": f"Bearer {key}"}, timeout=30.0)

    def stop(self) -> None:
        """As SIGTERM does it."""
        self.server.should_exit = True
        self.thread.join(30.0)
        assert not self.thread.is_alive()


def wait_for(url: str, seconds: float = 120.0) -> None:
    """Until the server at this address is ready."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            if httpx.get(f"{url}/readyz", timeout=5.0).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.02)
    raise AssertionError(f"{url} is not ready")


@contextmanager
def serving(db: str, insecure: bool = True, **settings: object) -> Iterator[Server]:
    """A server that is ready."""
    server = Server(ServiceConfig(db=db, insecure=insecure, log="error", **settings))  # type: ignore[arg-type]
    try:
        server.wait()
        yield server
    finally:
        server.stop()


class ServerProcess:
    """`bridle serve` in a process of its own, which can be killed and started again at the same address."""

    def __init__(
        self, db: str, folder: Path, port: int, *more: str, program: Path | None = None, insecure: bool = True, files: int | None = None
    ) -> None:
        self.program = ["-m", "bridle"] if program is None else [str(program)]
        self.shell = () if files is None else ("sh", "-c", f'ulimit -n {files} && exec "$@"', "sh")  # the system's limit on open files
        self.db, self.folder, self.port, self.more = db, folder, port, (*more, *(("--insecure",) if insecure else ()))
        self.url = f"http://127.0.0.1:{port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it is ready."""
        options = ["--db", self.db, "--port", str(self.port), "--log", "warning", *self.more]
        command = [*self.shell, sys.executable, *self.program, "serve", *options]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
        with open(self.folder / f"server-{self.port}.log", "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, env=environment)
        wait_for(self.url)

    def kill(self) -> None:
        """SIGKILL."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(30.0)

    def stop(self) -> int:
        """SIGTERM; its exit status."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30.0)

    def close(self) -> None:
        """Whatever state it is in, it ends."""
        if self.process is not None and self.process.poll() is None:
            self.kill()


def create(client: httpx.Client, name: str = "shop", **body: object) -> dict[str, object]:
    """A session."""
    answer = client.post("/v1/sessions", json={"name": name, **(ANYTIME | body)})
    assert answer.status_code in (200, 201), answer.text
    return answer.json()


def state_of(client: httpx.Client, name: str = "shop") -> dict[str, object]:
    """All that can be seen of a session and must not change by itself."""
    facts = client.get(f"/v1/sessions/{name}").json()
    facts.pop("quarantined", None)
    facts["alarms"] = [(each["kind"], each["round"]) for each in facts["alarms"]]
    return {"facts": facts, "certificate": json.loads(client.get(f"/v1/sessions/{name}/certificate").text)}
