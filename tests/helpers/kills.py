"""Processes that are killed while they save, pay or observe, and whether anything that they had acknowledged is lost.

    python tests/helpers/kills.py --kills 300 --seed 0

This is a script of its own because a process is forked for every kill, which must not be done from one with threads. The child does one
thing after the other, and acknowledges each through a pipe once it is done. It is killed after a random time, or at a file operation
chosen at random. Another one then starts from the file, as a service would. Prints counts as JSON; exit status 1 if anything was lost.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import random
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Protocol, TypeAlias

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

import bridle
from bridle.core import InputError
from helpers import fingerprints
from helpers.faults import Fault, Point

DIM = 3
Fingerprint: TypeAlias = dict[str, Any]


def observe(session: bridle.Session) -> None:
    """A round whose numbers follow from the number of rounds alone."""
    rng = np.random.default_rng([7, session.rounds])
    x, df, a = session.decide(), rng.standard_normal(DIM), rng.standard_normal(DIM)
    session.observe(f=float(df @ x), df=df, g=float(a @ x) - 0.3, dg=a)


class Trade(Protocol):
    """Something that is done again and again with a file."""

    def start(self, path: Path) -> None:
        """Make the file."""

    def go_on(self, path: Path) -> Iterator[int]:
        """What a process does with it: a generator that yields once it has begun, and after each thing done, how many there are by now."""

    def look(self, path: Path) -> tuple[int, Fingerprint]:
        """Load the file as a new process does: that number, and a fingerprint."""

    def alike(self, number: int) -> Fingerprint:
        """The fingerprint that belongs to a number."""


class Sessions:
    """A session that is saved after every round."""

    def __init__(self, engine: str) -> None:
        self.engine = engine
        self._reference = self._new()
        self._seen = {0: fingerprints.of_session(self._reference)}
        self.alike(70)  # whatever is compiled is compiled now, and children have it

    def _new(self) -> bridle.Session:
        return bridle.Session(bridle.policy("anytime", bridle.Ball(DIM)), engine=self.engine)

    def start(self, path: Path) -> None:
        self._new().save(path)

    def go_on(self, path: Path) -> Iterator[int]:
        session = bridle.Session.load(path)
        yield session.rounds
        while True:
            observe(session)
            session.save(path)
            yield session.rounds

    def look(self, path: Path) -> tuple[int, Fingerprint]:
        session = bridle.Session.load(path)
        found = session.rounds, fingerprints.of_session(session)
        session.save(path)  # what a service does next
        return found

    def alike(self, rounds: int) -> Fingerprint:
        while self._reference.rounds < rounds:
            observe(self._reference)
            self._seen[self._reference.rounds] = fingerprints.of_session(self._reference)
        return self._seen[rounds]


TRADES: dict[str, Callable[[], Any]] = {
    "session": lambda: Sessions("python"),
    "compiled session": lambda: Sessions("numba"),
}
"""What can be killed, by name."""

COMPANIONS: set[str] = set()
"""Names that may stand beside the file `file`."""

NUMBER = struct.Struct("<q")


def in_child(work: Callable[[int], object]) -> tuple[int, int]:
    """Start a child that does some work with the writing end of a pipe; its number, and the reading end."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(reader)
            work(writer)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(writer)
    return pid, reader


def drain(pid: int, reader: int) -> tuple[bytes, int]:
    """What a child has said by its end, and its exit status: minus the signal that ended it."""
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read()
    return said, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def ask_child(work: Callable[[], Any]) -> Any:
    """The answer of a new process, which has done nothing with the folder before."""

    def answer(writer: int) -> None:
        try:
            found = work()
        except InputError as problem:
            found = problem
        with os.fdopen(writer, "wb") as pipe:
            pickle.dump(found, pipe)

    said, status = drain(*in_child(answer))
    assert status == 0, f"a child that was not killed ended with {status}"
    found = pickle.loads(said)
    if isinstance(found, InputError):
        raise found
    return found


def die() -> BaseException:
    """Be killed, here and now."""
    os.kill(os.getpid(), signal.SIGKILL)
    return SystemExit()  # never reached


def trial(trade: Trade, path: Path, rng: random.Random, counts: Counter[str]) -> str | None:
    """Let a child work and kill it; what was wrong afterwards, if anything."""
    point = rng.choice((None, Point.BEFORE_FILES, Point.AFTER_FILES))
    at, delay = int(1.0 + rng.expovariate(1.0 / 150.0)), rng.expovariate(1.0 / 0.01)

    def work(pipe: int) -> None:
        steps = trade.go_on(path)
        os.write(pipe, NUMBER.pack(next(steps)))
        with nullcontext() if point is None else Fault(point, at, die):
            for done in steps:
                os.write(pipe, NUMBER.pack(done))

    pid, reader = in_child(work)
    before = NUMBER.unpack(os.read(reader, NUMBER.size))[0]
    if point is None:
        time.sleep(delay)
        os.kill(pid, signal.SIGKILL)
    said, status = drain(pid, reader)  # of what comes at once, the last is the latest
    if status != -signal.SIGKILL:
        return f"the child ended by itself, with status {status}"
    acknowledged = NUMBER.unpack(said[-NUMBER.size :])[0] if said else before
    counts["kills"] += 1
    counts["acknowledged"] += acknowledged - before
    counts["left behind"] += len(temporaries(path))
    try:
        done, found = ask_child(lambda: trade.look(path))
    except InputError as problem:
        return f"the file cannot be read: {problem}"
    counts["done, not acknowledged"] += done - acknowledged
    if not acknowledged <= done <= acknowledged + 1:
        return f"{acknowledged} were acknowledged, and the file has {done}"
    if found != trade.alike(done):
        return f"the file is not as it was after {done}: {fingerprints.differences(found, trade.alike(done))}"
    if temporaries(path):
        return f"temporaries are left: {temporaries(path)}"
    return None


def temporaries(path: Path) -> list[str]:
    """Files beside a file that are not told of in the documentation."""
    return sorted(item.name for item in path.parent.iterdir() if item.name not in {path.name, *COMPANIONS})


def run(name: str, kills: int, seed: int, progress: Callable[[int], object] = lambda _: None) -> dict[str, Any]:
    """So many kills of one kind: counts, and the first few things that were wrong."""
    rng, counts, wrong, trade = random.Random(f"{name} {seed}"), Counter[str](), list[str](), TRADES[name]()
    with tempfile.TemporaryDirectory(prefix="bridle-kills-") as folder:
        path = Path(folder) / "file"
        for number in range(kills):
            if number % 50 == 0 or wrong:  # also so that a file does not get long
                for item in path.parent.iterdir():
                    item.unlink()
                ask_child(lambda: trade.start(path))
            problem = trial(trade, path, rng, counts)
            if problem is not None:
                counts["wrong"] += 1
                wrong.append(problem)
            progress(number + 1)
            if len(wrong) == 10:
                break
    return {**counts, "what": wrong}


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=300, help="of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=list(TRADES), action="append")
    given = parser.parse_args()
    found = {name: run(name, given.kills, given.seed) for name in given.kind or TRADES}
    print(json.dumps(found))
    return int(any(result.get("wrong") for result in found.values()))


if __name__ == "__main__":
    sys.exit(main())
