"""Processes that are killed while they save, pay or observe, and whether anything that they had acknowledged is lost.

    python tests/helpers/kills.py --kills 300 --seed 0

This is a script of its own because a process is forked for every kill, which must not be done from one with threads. The child does one
thing after the other, and acknowledges each through a pipe once it is done. It is killed after a random time, or at a file operation
chosen at random. Another one then starts from the file, as a service would. Prints counts as JSON; exit status 1 if anything was lost.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import pickle
import random
import re
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

import bridle
from bridle.core import InputError
from bridle.database import Event, Lease
from bridle.database.sqlite import SqliteStore
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
    """Something that is done again and again with a file, by so many processes at once."""

    workers: int
    under_way: int
    """How many things may have been done and not acknowledged."""

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

    workers = under_way = 1

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


class Gates:
    """A gate on a file, which one process holds, or which several take from each other after every payment."""

    kind: Any = bridle.Gate
    opening: ClassVar[dict[str, Any]] = {"budget": 1e6}

    def __init__(self, workers: int = 1) -> None:
        self.workers = self.under_way = workers
        self._reference, self._paid, self._seen = self.kind(**self.opening), 0, {}

    def start(self, path: Path) -> None:
        self.kind.open(path, **self.opening).close()

    def go_on(self, path: Path) -> Iterator[int]:
        if self.workers == 1:
            with self.kind.open(path) as held:
                yield self.count(held)
                while True:
                    held.pay(0.01)
                    yield self.count(held)
        yield 0
        while True:
            try:
                held = self.kind.open(path)
            except InputError:
                time.sleep(1e-4)  # another holds it
                continue
            with held:
                held.pay(0.01)
                yield self.count(held)

    def look(self, path: Path) -> tuple[int, Fingerprint]:
        with self.kind.open(path) as held:
            return self.count(held), self.seen(held)

    def alike(self, payments: int) -> Fingerprint:
        while self._paid <= payments:
            self._seen[self._paid] = self.seen(self._reference)
            self._reference.pay(0.01)
            self._paid += 1
        return self._seen[payments]

    def count(self, held: Any) -> int:
        return round(held.spent * 100)

    def seen(self, held: Any) -> Fingerprint:
        return fingerprints.of_gate(held)


class Pacers(Gates):
    """A pacer on a file."""

    kind = bridle.Pacer
    opening: ClassVar[dict[str, Any]] = {"budget": 1e6, "rounds": 10**6, "value": 1.0, "spend": 1.0, "plan": [1.0, 2.0]}

    def seen(self, held: Any) -> Fingerprint:
        return fingerprints.of_pacer(held)


class Durables(Sessions):
    """A session in a database, which has a snapshot every few events; each event has a key, and the last one is sent again after a kill."""

    def __init__(self, engine: str) -> None:
        super().__init__(engine)
        with tempfile.TemporaryDirectory(prefix="bridle-kills-") as folder:  # what is loaded and worked out once is so now, too
            path = Path(folder) / "file"
            self.start(path)
            for _ in range(2):
                with self.open(path) as session:
                    for number in range(session.rounds, session.rounds + 9):
                        self.observe(session, number)
                    fingerprints.of_session(session)

    def start(self, path: Path) -> None:
        made = {"policy": bridle.policy("anytime", bridle.Ball(DIM)), "engine": self.engine, "snapshot_every": 7}
        with bridle.Session.open(f"sqlite:///{path}", "shop", gates={"march": bridle.Gate(1e6)}, **made):
            pass

    def open(self, path: Path) -> Any:
        return bridle.Session.open(f"sqlite:///{path}", "shop", wait=5.0)

    def go_on(self, path: Path) -> Iterator[int]:
        session = self.open(path)
        if session.rounds:
            self.observe(session, session.rounds - 1)  # it has had that one, whether or not it was acknowledged
        yield session.rounds
        while True:
            self.observe(session, session.rounds)
            yield session.rounds

    def look(self, path: Path) -> tuple[int, Fingerprint]:
        session = self.open(path)
        found = session.rounds, fingerprints.of_session(session)
        if session.rounds % 3 == 0:
            session.close()  # which puts a snapshot; otherwise this process ends as if killed
        return found

    def alike(self, rounds: int) -> Fingerprint:
        while self._reference.rounds < rounds:
            self.observe(self._reference, self._reference.rounds)
            self._seen[self._reference.rounds] = fingerprints.of_session(self._reference)
        return self._seen[rounds]

    @staticmethod
    def observe(session: Any, number: int) -> None:
        """A round whose numbers follow from its own alone, so that it can be sent again."""
        rng = np.random.default_rng([7, number])
        df, a = rng.standard_normal(DIM), 0.2 * rng.standard_normal(DIM)
        key = {} if type(session) is bridle.Session else {"key": f"round {number}"}
        session.observe(f=float(df[0]), df=df, g=float(a[0]) - 1.0, dg=a, **key)


class Hasty(Durables):
    """A session whose events are acknowledged before they are committed: what must be noticed."""

    def go_on(self, path: Path) -> Iterator[int]:
        def late(store: SqliteStore, lease: Lease, events: Sequence[Event]) -> None:
            waiting.append((lease, events))
            if len(waiting) > 2:
                append(store, *waiting.pop(0))

        waiting: list[tuple[Lease, Sequence[Event]]] = []
        append, SqliteStore.append = SqliteStore.append, late  # type: ignore[method-assign]
        yield from super().go_on(path)


DURABLE: dict[str, Callable[[], Any]] = {
    "durable session": lambda: Durables("python"),
    "compiled durable session": lambda: Durables("compiled"),
}
"""Sessions in a database."""

PLANTED: dict[str, Callable[[], Any]] = {"hasty session": lambda: Hasty("python")}
"""What is wrong on purpose."""

TRADES: dict[str, Callable[[], Any]] = {
    "gate": Gates,
    "gate, two processes": lambda: Gates(2),
    "pacer": Pacers,
    "session": lambda: Sessions("python"),
    "compiled session": lambda: Sessions("compiled"),
}
"""What can be killed, by name."""

COMPANIONS = re.compile(r"file(\.lock|-journal|-wal|-shm|-mark|\.writing|\.[A-Za-z0-9.-]+_process\d+_[0-9a-f]{10}\.lock)")
"""Names that may stand beside the file `file`: what belongs to a database, and who has it open."""

NUMBER = struct.Struct("<q")


def in_child(work: Callable[[int], object], pipe: tuple[int, int]) -> int:
    """Start a child that does some work with the writing end of a pipe; its number."""
    reader, writer = pipe
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
    return pid


def drain(reader: int, children: list[int]) -> tuple[bytes, list[int]]:
    """What children have said by their end, and their exit statuses: minus the signal that ended each."""
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read()
    return said, [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]


def ask_child(work: Callable[[], Any]) -> Any:
    """The answer of a new process, which has done nothing with the folder before."""

    def answer(writer: int) -> None:
        try:
            found = work()
        except InputError as problem:
            found = problem
        with os.fdopen(writer, "wb") as pipe:
            pickle.dump(found, pipe)

    reader, writer = os.pipe()
    child = in_child(answer, (reader, writer))
    os.close(writer)
    said, status = drain(reader, [child])
    assert status == [0], f"a child that was not killed ended with {status}"
    found = pickle.loads(said)
    if isinstance(found, InputError):
        raise found
    return found


def die() -> BaseException:
    """Be killed, here and now."""
    os.kill(os.getpid(), signal.SIGKILL)
    return SystemExit()  # never reached


class Pace(NamedTuple):
    """How long one thing takes, and how many file operations it is."""

    seconds: float
    operations: int


def pace(trade: Trade, path: Path) -> Pace:
    """Measured over a few things."""
    steps = trade.go_on(path)
    for _ in range(2):
        next(steps)
    begun = time.perf_counter()
    for _ in range(4):
        next(steps)
    seconds = (time.perf_counter() - begun) / 4.0
    with Fault(Point.BEFORE_FILES, 0, die) as fault:
        for _ in range(4):
            next(steps)
    steps.close()
    return Pace(seconds, fault.seen // 4)


def trial(trade: Trade, path: Path, before: int, one: Pace, rng: random.Random, counts: Counter[str]) -> tuple[int, str]:
    """Let children work and kill them; how many things are done by then, and what was wrong afterwards, if anything."""
    point = rng.choice((None, Point.BEFORE_FILES, Point.AFTER_FILES))
    at, delay = (
        rng.randint(1, 3 * trade.workers**4 * one.operations),
        rng.uniform(0.0, 4.0 * trade.workers**3 * one.seconds),
    )  # they also wait for each other

    def work(pipe: int) -> None:
        steps = trade.go_on(path)
        os.write(pipe, NUMBER.pack(next(steps)))
        with nullcontext() if point is None else Fault(point, at, die):
            for done in steps:
                os.write(pipe, NUMBER.pack(done))

    reader, writer = os.pipe()
    children = [in_child(work, (reader, writer)) for _ in range(trade.workers)]
    os.close(writer)
    os.read(reader, NUMBER.size)  # one has begun
    doomed = children if point is None else children[1:]
    if doomed:
        time.sleep(delay)
    for pid in doomed:
        os.kill(pid, signal.SIGKILL)
    said, statuses = drain(reader, children)
    if statuses != [-signal.SIGKILL] * trade.workers:
        return before, f"the children ended by themselves, with {statuses}"
    acknowledged = max((number for (number,) in NUMBER.iter_unpack(said)), default=0)
    acknowledged = max(acknowledged, before)
    counts["kills"] += trade.workers
    counts["acknowledged"] += acknowledged - before
    counts["left behind"] += len(temporaries(path))
    try:
        done, found = ask_child(lambda: trade.look(path))
    except InputError as problem:
        return before, f"the file cannot be read: {problem}"
    counts["done, not acknowledged"] += done - acknowledged
    if not acknowledged <= done <= acknowledged + trade.under_way:
        return done, f"{acknowledged} were acknowledged, and the file has {done}"
    if found != trade.alike(done):
        return done, f"the file is not as it was after {done}: {fingerprints.differences(found, trade.alike(done))}"
    if temporaries(path):
        return done, f"temporaries are left: {temporaries(path)}"
    return done, ""


def temporaries(path: Path) -> list[str]:
    """Files beside a file that are not told of in the documentation."""
    names = sorted(item.name for item in path.parent.iterdir() if item.name != path.name)
    owners = [name for name in names if name.endswith(".lock")]
    return [name for name in names if not COMPANIONS.fullmatch(name)] + owners[1:]  # the last owner's alone: each sweeps what it finds


def run(name: str, kills: int, seed: int, progress: Callable[[int], object] = lambda _: None) -> dict[str, Any]:
    """So many kills of one kind: counts, and the first few things that were wrong."""
    rng, counts, wrong, trade = random.Random(f"{name} {seed}"), Counter[str](), list[str](), (TRADES | DURABLE | PLANTED)[name]()
    gc.collect()
    gc.freeze()  # children share the memory of what is there by now, as long as nobody looks it through
    with tempfile.TemporaryDirectory(prefix="bridle-kills-") as folder:
        path, one, before = Path(folder) / "file", Pace(0.0, 0), 0
        for number in range(0, kills, trade.workers):
            if number % 50 < trade.workers or wrong:  # also so that a file does not get long
                for item in path.parent.iterdir():
                    item.unlink()
                ask_child(lambda: trade.start(path))
                one, before = ask_child(lambda: pace(trade, path)), ask_child(lambda: trade.look(path))[0]
            before, problem = trial(trade, path, before, one, rng, counts)
            if problem:
                counts["wrong"] += 1
                wrong.append(problem)
            progress(number + trade.workers)
            if len(wrong) == 10:
                break
    return {**counts, "what": wrong}


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=300, help="of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=[*TRADES, *DURABLE, *PLANTED], action="append")
    given = parser.parse_args()
    found = {name: run(name, given.kills, given.seed) for name in given.kind or TRADES | DURABLE}
    print(json.dumps(found))
    return int(any(result.get("wrong") for result in found.values()))


if __name__ == "__main__":
    sys.exit(main())
