"""A server that is killed again and again while clients go on: each drives a session of its own beside a twin that nobody interrupts."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import bridle
from bridle.service import remote
from helpers.postgres import free_port
from helpers.serving import ServerProcess

HASTY = """
import time
from bridle.service import writer
own = writer.GroupWriter._commit
def hasty(self, group):
    self.loop.call_soon_threadsafe(group.known.set)
    time.sleep(0.05)
    return own(self, group)
writer.GroupWriter._commit = hasty
writer.GroupWriter._at_once = lambda self, group, line, events: False
"""
"""A mistake, planted: answers leave before their commit."""


def feedback(rng: np.random.Generator) -> dict[str, object]:
    """A record whose limits a ball around the middle keeps."""
    slope = rng.normal(size=(1, 2))
    return {"f": float(rng.normal()), "df": rng.normal(size=2), "g": [float(-0.2 * np.linalg.norm(slope))], "dg": slope}


class KilledService:
    """Clients that play until all kills are done, and what they found wrong."""

    def __init__(
        self, urls: list[str], interrupt: Callable[[np.random.Generator], None], kills: int, clients: int = 3, seed: int = 0
    ) -> None:
        self.urls, self.interrupt, self.kills, self.clients, self.seed = urls, interrupt, kills, clients, seed
        self.over, self.wrong, self.rounds, self.acknowledged = threading.Event(), [], 0, 0

    def _drive(self, number: int) -> None:
        try:
            rng, domain = np.random.default_rng([self.seed, number]), bridle.Box(-1.0, 1.0, dim=2)
            twin = bridle.Session(bridle.policy("anytime", domain), most_constraints=1000)
            with bridle.Client(self.urls[number % len(self.urls)], timeout=5.0, retries=3000) as client:
                remote = client.create(f"killed-{number}", "anytime", domain)
                played = 0
                while not self.over.is_set() and not self.wrong:
                    record = feedback(rng)
                    remote.observe(**record)
                    twin.observe(**record)
                    played += 1
                    self.acknowledged += 1
                    if not np.array_equal(remote.decide(), twin.decide()):
                        self.wrong.append(f"client {number}, round {played}: another decision than the twin's")
                if remote.rounds != played:
                    self.wrong.append(f"client {number}: {remote.rounds} rounds, where {played} were acknowledged")
                elif json.loads(remote.certificate().json()) != json.loads(twin.certificate().json()):
                    self.wrong.append(f"client {number}: another certificate than the twin's")
                self.rounds += played
        except BaseException as problem:
            self.wrong.append(f"client {number}: {type(problem).__name__}: {problem}")

    def _under_load(self) -> None:
        """Wait until the clients are at work again: a kill while they pause would find nothing to lose."""
        before, until = self.acknowledged, time.monotonic() + 120.0
        while self.acknowledged < before + 3 * self.clients and not self.wrong:
            if time.monotonic() > until:
                self.wrong.append("nothing is answered any more")
            time.sleep(0.005)

    def run(self) -> None:
        """All of it."""
        threads = [threading.Thread(target=self._drive, args=(number,), daemon=True) for number in range(self.clients)]
        for thread in threads:
            thread.start()
        moments = np.random.default_rng([self.seed, 999])
        try:
            for _ in range(self.kills):
                self._under_load()
                self.over.wait(float(moments.exponential(0.05)))
                if self.wrong:
                    break
                self.interrupt(moments)
            self._under_load()
        finally:
            self.over.set()
            for thread in threads:
                thread.join(120.0)


def kill_server(folder: Path, kills: int, seed: int = 0, program: Path | None = None) -> KilledService:
    """A server on an SQLite file in this folder that is killed so often; what came of it."""
    server = ServerProcess(f"sqlite:///{folder}/run.db", folder, free_port(), program=program)

    def interrupt(moments: np.random.Generator) -> None:
        server.kill()
        server.start()

    pause, remote.LONGEST_PAUSE = remote.LONGEST_PAUSE, 0.1  # so that there is load again soon
    try:
        server.start()
        run = KilledService([server.url], interrupt, kills, seed=seed)
        run.run()
        return run
    finally:
        remote.LONGEST_PAUSE = pause
        server.close()


def hasty_program(folder: Path) -> Path:
    """A file that serves with the planted mistake."""
    path = folder / "hasty.py"
    path.write_text(HASTY + "\nfrom bridle.cli import main\nmain()\n")
    return path
