"""What it costs that a session survives `kill -9`, as ratios to the same work done by hand in the same run.

The first table has one event, one commit: what a store does, against a bare insert of the same bytes into a table with the same indexes,
on a kept connection with the same settings. The second has a round of a session (d = 30, three limits, `anytime`): the durable one against
a bare insert of its event plus a round of the session without a journal; and how fast a journal is replayed, against the session that
plays the same rounds. A round that follows a commit finds the processor's caches cold, whoever does the two: the durable round is also
shown against a bare round and a bare insert in turn. Where PostgreSQL is installed, the third has the same there, on a server of its own:
an insert that asks for the lease against one that does not, and 100 events in one statement against one.

Both sides of a ratio take turns, a block of each at a time; shown are the median and the quartiles of the blocks' ratios. Waiting for the
disk is most of what is measured: on a busy machine the times mean little, and the ratios less than they seem.

Results are in benchmarks/durable.json and in docs/operations.md.

    python benchmarks/durable.py [rounds]
"""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count, cycle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import bridle
from bridle.database import Event, open_store, sqlite
from parts.toy import TOY, size, target

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

D, K, BODY = 30, 3, 1000
BLOCK, GROUP, BLOCKS, REPLAYED = size((200, 100, 15, 20_000), (5, 10, 2, 50))

DOCS = Path(__file__).parents[1] / "docs"
BEGIN, END = "<!-- measured by benchmarks/durable.py -->", "<!-- end -->"
AT_LEAST = "at least "

BARE = """
CREATE TABLE event (id INTEGER PRIMARY KEY, session BIGINT NOT NULL, seq BIGINT NOT NULL, epoch BIGINT NOT NULL, kind SMALLINT NOT NULL,
  key BLOB, request BLOB, answer BLOB, body BLOB NOT NULL, checksum BIGINT NOT NULL, UNIQUE (session, seq));
CREATE UNIQUE INDEX event_key ON event (session, key) WHERE key IS NOT NULL;
"""
INSERT = "INSERT INTO event (session, epoch, seq, kind, key, request, answer, body, checksum) VALUES (1, 1, ?, ?, ?, ?, ?, ?, 0)"


class Ratio(NamedTuple):
    """One line of a table: seconds of each side for one of what it does, and the ratios of the blocks."""

    what: str
    goal: str
    ours: float
    theirs: float
    ratios: list[float]


def blocks(what: str, goal: str, ours: Callable[[int], object], *theirs: Callable[[int], object], each: int = 0, per: int = 1) -> Ratio:
    """Both sides in turn, a block at a time; theirs may be several things, whose times add up. `per` is how many ours does in one step."""
    each, ratios, seconds = each or BLOCK, [], ([], [])
    for side in (ours, *theirs):
        side(each)
    for _ in range(BLOCKS):
        mine, others = timed(ours, each) / per, sum(timed(side, each) for side in theirs)
        ratios.append(mine / others)
        seconds[0].append(mine)
        seconds[1].append(others)
    return Ratio(what, goal, statistics.median(seconds[0]) / each, statistics.median(seconds[1]) / each, ratios)


def timed(work: Callable[[int], object], steps: int) -> float:
    begun = time.perf_counter()
    work(steps)
    return time.perf_counter() - begun


def some_bodies(length: int) -> Iterator[bytes]:
    """Bodies of events, one after the other; like the numbers of a round, nothing can make them shorter."""
    rng = np.random.default_rng(0)
    return cycle([rng.bytes(length) for _ in range(251)])


# --- SQLite -----------------------------------------------------------------------------------------------------------------------------


@contextmanager
def bare_inserts(folder: Path) -> Iterator[Callable[[bytes], None]]:
    """Insert a row and commit it, on a kept connection that waits for the disk as a store's does."""
    connection = sqlite3.connect(folder / f"bare-{next(NUMBER)}.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    for pragma in sqlite.PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")
    connection.executescript(BARE)
    numbers = count(1)
    yield lambda body: connection.execute(INSERT, (next(numbers), 1, None, None, None, body)) and None
    connection.close()


NUMBER = count()


def appended(folder: Path) -> list[Ratio]:
    """A store against bare inserts."""
    bodies = some_bodies(BODY)
    with open_store(f"sqlite:///{folder}/store.db") as store, bare_inserts(folder) as insert:
        lease, numbers = store.take(store.create("shop", b"")), count(1)
        groups = [store.take(store.create(f"shop-{i}", b"")) for i in range(GROUP)]
        seqs = count(1)

        def one(steps: int) -> None:
            for _ in range(steps):
                store.append(lease, [Event(next(numbers), 1, None, None, None, next(bodies))])

        def many(steps: int) -> None:
            for _ in range(steps):
                first = next(numbers)
                store.append(lease, [Event(seq, 1, None, None, None, next(bodies)) for seq in range(first, first + GROUP)])
                for _ in range(GROUP - 1):
                    next(numbers)

        def sessions(steps: int) -> None:
            for _ in range(steps):
                event = Event(next(seqs), 1, None, None, None, next(bodies))
                store.append_many([(each, (event,)) for each in groups])

        def bare(steps: int) -> None:
            for _ in range(steps):
                insert(next(bodies))

        return [
            blocks("one event, one commit", "", one, bare),
            blocks(f"{GROUP} events of one session, one commit: each", "", many, bare, each=max(2, BLOCK // 5), per=GROUP),
            blocks(f"{GROUP} sessions, one event each, one commit: each", "", sessions, bare, each=max(2, BLOCK // 5), per=GROUP),
        ]


# --- sessions ---------------------------------------------------------------------------------------------------------------------------


def rounds_of(session) -> Callable[[int], None]:
    """Play so many rounds of a fixed stream."""
    rng = np.random.default_rng(0)
    slopes, rows = rng.standard_normal((256, D)), rng.standard_normal((256, K, D)) / D**0.5
    turn = count()

    def play(steps: int) -> None:
        for _ in range(steps):
            i = next(turn) % 256
            x = session.decide()
            session.observe(f=float(slopes[i] @ x), df=slopes[i], g=rows[i] @ x - 0.5, dg=rows[i])

    return play


def policy():
    return bridle.policy("anytime", bridle.Ball(D))


def durable_rounds(folder: Path, engine: str) -> list[Ratio]:
    """A durable session against a bare insert plus a plain session."""
    plain = bridle.Session(policy(), engine=engine)
    durable = bridle.Session.open(f"sqlite:///{folder}/{engine}.db", "shop", policy=policy(), engine=engine)
    bodies = some_bodies(8 + 40 + 8 * (D + K + K * D))
    found = []
    with durable, bare_inserts(folder) as insert, bare_inserts(folder) as insert_too:
        play, alone = rounds_of(durable), rounds_of(plain)
        beside = rounds_of(bridle.Session(policy(), engine=engine))

        def bare(steps: int) -> None:
            for _ in range(steps):
                insert(next(bodies))

        def by_hand(steps: int) -> None:
            for _ in range(steps):
                beside(1)
                insert_too(next(bodies))

        for each in (alone, beside, play):
            each(size(200, 2))  # what is compiled, or looked at in the first rounds, is behind them
        found.append(blocks(f"a durable round, {engine}, against a bare insert plus a bare round", "1.3", play, bare, alone))
        found.append(blocks(f"a durable round, {engine}, against a bare round and then a bare insert, in turn", "", play, by_hand))
    return found


def replayed(folder: Path, engine: str) -> Ratio:
    """Opening a session that has so many events and no snapshot, against playing the same rounds without a journal."""
    url = f"sqlite:///{folder}/{engine}-replay.db"
    with bridle.Session.open(url, "shop", policy=policy(), engine=engine, snapshot_every=10**9) as session:
        rounds_of(session)(REPLAYED)
    ours, theirs = [], []
    for _ in range(size(5, 1)):
        connection = sqlite3.connect(folder / f"{engine}-replay.db")
        with connection:
            connection.execute("DELETE FROM snapshot")
        connection.close()
        begun = time.perf_counter()
        session = bridle.Session.open(url, "shop")
        ours.append(time.perf_counter() - begun)
        assert session.rounds == REPLAYED
        session.close()
        plain = bridle.Session(policy(), engine=engine)
        theirs.append(timed(rounds_of(plain), REPLAYED))
    speeds = [b / a for a, b in zip(ours, theirs, strict=True)]
    goal = "at least 0.6" if engine == "compiled" else ""
    return Ratio(f"replay, {engine}: its speed against the session's", goal, min(ours) / REPLAYED, min(theirs) / REPLAYED, speeds)


# --- PostgreSQL -------------------------------------------------------------------------------------------------------------------------


def in_postgres(url: str) -> list[Ratio]:
    """An insert that asks for the lease against one that does not, on the same table."""
    import psycopg

    bodies = some_bodies(BODY)
    with open_store(url) as store, psycopg.connect(url, autocommit=True) as connection:
        lease, numbers, others = store.take(store.create("shop", b"")), count(1), count(1)
        insert = INSERT.replace("?", "%s").replace("(1, 1,", "(0, 1,")

        def one(steps: int) -> None:
            for _ in range(steps):
                store.append(lease, [Event(next(numbers), 1, None, None, None, next(bodies))])

        def bare(steps: int) -> None:
            for _ in range(steps):
                connection.execute(insert, (next(others), 1, None, None, None, next(bodies)), prepare=True)

        def many(steps: int) -> None:
            for _ in range(steps):
                store.append(lease, [Event(next(numbers), 1, None, None, None, next(bodies)) for _ in range(GROUP)])

        return [
            blocks("one event, fenced, against a bare insert", "1.2", one, bare),
            blocks(f"{GROUP} events in one statement, against one", "5", many, one, each=max(2, BLOCK // 5)),
        ]


# --- the tables -------------------------------------------------------------------------------------------------------------------------


def measured(lines: list[Ratio]) -> list[dict[str, Any]]:
    """A table as it is kept."""
    found = []
    for line in lines:
        low, _, high = statistics.quantiles(line.ratios, n=4) if len(line.ratios) > 1 else (line.ratios[0],) * 3
        times = {"us": line.ours * 1e6, "against_us": line.theirs * 1e6}
        ratio = {"ratio": statistics.median(line.ratios), "low": low, "high": high}
        found.append({"what": line.what, "goal": line.goal, **{name: float(f"{value:.4g}") for name, value in (times | ratio).items()}})
    return found


def met(row: dict[str, Any]) -> str:
    """A ratio, and what it was to be where it is not."""
    goal, least = row["goal"].removeprefix(AT_LEAST), row["goal"].startswith(AT_LEAST)
    if not goal or (row["ratio"] >= float(goal) if least else row["ratio"] <= float(goal)):
        return f"{row['ratio']:.3g}"
    return f"{row['ratio']:.3g}, {'below' if least else 'above'} the goal of {goal}"


def markdown(found: dict[str, Any]) -> str:
    """The table of the documentation."""
    lines = ["| | us | against, us | ratio | quartiles |", "|---|---:|---:|---:|---:|"]
    for row in (row for table in found["tables"].values() for row in table):
        cells = (f"{row['us']:.1f}", f"{row['against_us']:.1f}", met(row), f"{row['low']:.3g} to {row['high']:.3g}")
        lines.append(f"| {row['what']} | {' | '.join(cells)} |")
    if found["load"] > 0.5 * found["cores"]:
        lines += [
            "",
            f"Other programs were at work meanwhile (a load of {found['load']:.0f} on {found['cores']} cores): most waits are theirs.",
        ]
    return "\n".join(lines)


def measure() -> dict[str, Any]:
    """All that can be measured here."""
    tables = {}
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0  # before it begins: afterwards its own work is in it
    with tempfile.TemporaryDirectory(prefix="bridle-durable-") as name:
        folder = Path(name)
        tables["SQLite: a store against bare inserts"] = measured(appended(folder))
        for engine in ("compiled", "python"):
            tables[f"sessions, engine {engine}"] = measured([*durable_rounds(folder, engine), replayed(folder, engine)])
    if TOY:
        print("PostgreSQL is left out at toy size")
    else:
        from helpers.postgres import Cluster, programs

        if programs() is None:
            print("PostgreSQL is not installed: left out")
        else:
            cluster = Cluster()
            try:
                tables["PostgreSQL: a store against bare inserts"] = measured(in_postgres(cluster.database("bench")))
            finally:
                cluster.close()
    machine = f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {platform.machine()}"
    when = datetime.now(UTC).date().isoformat()
    return {"machine": machine, "date": when, "load": round(load, 1), "cores": os.cpu_count() or 1, "tables": tables}


def main() -> None:
    """Measure, keep what was found, and put it into the documentation."""
    found = measure()
    target(Path(__file__).with_name("durable.json")).write_text(json.dumps(found, indent=1) + "\n")
    page = target(DOCS / "operations.md")
    text = page.read_text()
    start = text.index(BEGIN) + len(BEGIN)
    page.write_text(f"{text[:start]}\n{markdown(found)}\n{text[text.index(END, start) :]}")
    print(markdown(found))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        BLOCK = int(sys.argv[1])
    main()
