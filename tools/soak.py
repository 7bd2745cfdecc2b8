"""What `make test` tries for a minute, for as long as it takes: hostile records, kills, faults, flipped bits, a hundred million rounds.

    python tools/soak.py                    everything: an hour or so
    python tools/soak.py --only kills       one part: records, kills, faults, products, and others (--help)
    python tools/soak.py --only kills --kind "durable session"       the tasks of a part whose names begin so; may be given again
    python tools/soak.py --share 0.01       a hundredth of each

It may be interrupted, and goes on where it was when it is started again (anew where the code has changed since). Results are kept
in soak/results.json. Exit status 1 if anything was wrong.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from hypothesis import HealthCheck, given, seed, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

import bridle  # noqa: E402
from bridle.core import BridleWarning  # noqa: E402
from helpers import (  # noqa: E402
    flips,
    hostile_records,
    hostile_requests,
    key_timing,
    killed_service,
    kills,
    known_rounds,
    long_runs,
    said_streams,
)
from helpers.file_kinds import KINDS, OTHERS, Kind  # noqa: E402

RECORDS, KILLS, ROUNDS, KNOWN, SAID = 10**6, 10**4, 10**8, 10**5, 10**4
CHUNK_RECORDS, CHUNK_KILLS, CHUNK_ROUNDS, CHUNK_KNOWN, CHUNK_SAID = 25_000, 100, 1 << 20, 2000, 100
SERVICE_KILLS, CHUNK_SERVICE = 500, 20
REQUESTS, CHUNK_REQUESTS, LOOKS_AT_KEYS = 10**5, 10**4, 10**6
SCRIPT = 250

Result: TypeAlias = dict[str, Any]
Task: TypeAlias = Callable[[Path], Result]


class Part(NamedTuple):
    """One part of the soak: what it is about, and its tasks by name, which can be done one by one."""

    about: str
    tasks: Callable[[float], Iterator[tuple[str, Task]]]


def hostile(number: int, engine: str, examples: int) -> Result:
    """A chunk of hostile records: hypothesis draws the scripts."""
    counts = {"records": 0, "refused": 0, "accepted": 0}

    @seed(number)
    @settings(max_examples=examples, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(cases(engine)), st.binary(min_size=SCRIPT * hostile_records.BYTES, max_size=SCRIPT * hostile_records.BYTES))
    def torment(case: hostile_records.Case, script: bytes) -> None:
        for name, count in hostile_records.play(case, script).items():
            counts[name] += count

    try:
        torment()
    except BaseException as problem:
        if isinstance(problem, KeyboardInterrupt):
            raise
        return {**counts, "wrong": 1, "what": [describe(problem)]}
    return {**counts, "wrong": 0}


def describe(problem: BaseException) -> str:
    """An exception of hypothesis, in one line."""
    inner = getattr(problem, "exceptions", (problem,))
    return "; ".join(" ".join(str(each).split())[:300] for each in inner)


def record_tasks(share: float) -> Iterator[tuple[str, Task]]:
    """Hostile records, in chunks; every tenth into compiled sessions."""
    chunks = max(1, round(RECORDS * share / CHUNK_RECORDS))
    examples = max(1, round(min(RECORDS * share, CHUNK_RECORDS) / SCRIPT))
    for number in range(chunks):
        engine = "compiled" if number % 10 == 9 else "python"
        yield f"{number + 1} of {chunks}, {engine}", lambda _, number=number, engine=engine: hostile(number, engine, examples)


@cache
def cases(engine: str) -> list[hostile_records.Case]:
    """The sessions to torment."""
    if engine == "python":
        return hostile_records.cases()
    return [hostile_records.Case(name, k, engine) for name in ("anytime", "sinha2024", "soft", "ogd") for k in (1, 2)]


def kill_tasks(share: float) -> Iterator[tuple[str, Task]]:
    """Kills of every kind, in chunks: so many of what is kept in files, and as many of what is kept in a database."""
    for kind in kills.TRADES | kills.DURABLE:
        each = max(1, math.ceil(KILLS * share / len(kills.DURABLE if kind in kills.DURABLE else kills.TRADES)))
        for number in range(0, each, CHUNK_KILLS):
            count = min(CHUNK_KILLS, each - number)
            yield f"{kind}, {number + count} of {each}", lambda _, kind=kind, number=number, count=count: killed(kind, number, count)


def killed(kind: str, number: int, count: int) -> Result:
    """A chunk of kills, in a process of its own, which forks."""
    command = [sys.executable, str(ROOT / "tests" / "helpers" / "kills.py"), "--kind", kind, "--kills", str(count), "--seed", str(number)]
    ran = subprocess.run(command, capture_output=True, text=True)
    try:
        found: Result = json.loads(ran.stdout)[kind]
    except (ValueError, KeyError):
        return {"wrong": 1, "what": [ran.stderr[-500:]]}
    return {"wrong": 0, **found}


def fault_tasks(share: float) -> Iterator[tuple[str, Task]]:
    """Every point of every operation, where `make test` tries some."""
    for name in ("test_files_that_fail", "test_payments_that_fail", "test_rounds_that_are_broken_off", "test_power_cuts"):
        yield name, lambda _, name=name: tested(name, share)


def tested(name: str, share: float) -> Result:
    """A test file, with every point of every operation; how many cases it has."""
    return pytested([str(ROOT / "tests" / "faults" / f"{name}.py")], share)


def product_tasks(share: float) -> Iterator[tuple[str, Task]]:
    """All cases and examples of the test files of which `make test` runs some, by room."""
    rooms: dict[str, list[str]] = {}
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        text = file.read_text(encoding="utf-8")
        if file.parent.name not in ("browser", "postgres") and ("mark.covering" in text or "helpers.extent" in text):
            rooms.setdefault(file.parent.name, []).append(str(file))
    for room, files in rooms.items():
        yield room, lambda _, files=files: pytested(files, share)


def pytested(arguments: list[str], share: float) -> Result:
    """What pytest says of these tests, run as far as they go."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "BRIDLE_SOAK": str(share)})
    last = ran.stdout.strip().splitlines()[-1] if ran.stdout.strip() else ran.stderr[-300:]
    return {"wrong": int(ran.returncode != 0), "what": [] if ran.returncode == 0 else [ran.stdout[-2000:]], "said": last}


def flip_tasks(share: float) -> Iterator[tuple[str, Task]]:
    """A file of every kind."""
    every = max(1, round(1.0 / share))
    for name, kind in (KINDS | OTHERS).items():
        yield name, lambda folder, kind=kind: flipped(kind, folder, every)


def flipped(kind: Kind, folder: Path, every: int) -> Result:
    """Every bit of a file of this kind, one at a time, or every so many."""
    path = folder / "flipped"
    found = flips.flip(kind, path, lambda size: range(0, 8 * size, every))
    path.unlink()
    counts = {name: value for name, value in found._asdict().items() if name != "unnoticed"}
    return {**counts, "wrong": len(found.unnoticed), "what": found.unnoticed[:10]}


def game_tasks(share: float) -> Iterator[tuple[str, Task]]:
    """A long game of every stream."""
    rounds = max(1000, round(ROUNDS * share))
    for stream in long_runs.STREAMS:
        yield (
            stream,
            lambda _, stream=stream: drifts(long_runs.game(stream, rounds, progress=lambda done, of: say(f"round {done:,} of {of:,}"))),
        )


def session_tasks(share: float) -> Iterator[tuple[str, Task]]:
    """A long session of two streams: one that is rounded the same way again and again, one that is not."""
    rounds = max(2, round(ROUNDS * share / long_runs.CYCLE)) * long_runs.CYCLE

    def play(stream: str, folder: Path) -> Result:
        path = folder / f"session-{long_runs.slug(stream)}"
        latest: list[long_runs.Drift] = []
        for done, latest in long_runs.session_rounds(stream, rounds, path, CHUNK_ROUNDS):  # noqa: B007
            say(f"round {done:,} of {rounds:,}")
        path.unlink()
        return drifts(latest)

    for stream in ("0.1 every round", "normal"):
        yield stream, lambda folder, stream=stream: play(stream, folder)


def drifts(found: list[long_runs.Drift]) -> Result:
    """How far totals are off, as a result."""
    return {
        "rounds": found[0].rounds,
        "largest relative error": max(each.relative for each in found),
        "allowed": long_runs.largest_drift(found[0].rounds),
        "wrong": sum(not each.fine for each in found),
        "what": [each._asdict() for each in found],
    }


def known_tasks(share: float) -> Iterator[tuple[str, Task]]:
    """Rounds with limits that are known before acting, on every kind of domain."""
    rounds = max(20, round(CHUNK_KNOWN * min(1.0, share * KNOWN / CHUNK_KNOWN)))
    many = max(1, round(share * KNOWN / CHUNK_KNOWN))

    def play(number: int, kind: str) -> Result:
        return known_rounds.known_rounds(kind, number, rounds)._asdict()

    for number in range(many):
        kind = list(known_rounds.DOMAINS)[number % len(known_rounds.DOMAINS)]
        yield f"{number + 1} of {many}, {kind}", lambda _, number=number, kind=kind: play(number, kind)


def said_tasks(share: float) -> Iterator[tuple[str, Task]]:
    """Small streams with all that can be said to a session, every claim against brute force."""
    many = max(1, round(share * SAID / CHUNK_SAID))

    def play(number: int) -> Result:
        what = []
        for i in range(CHUNK_SAID):
            case = said_streams.drawn(CHUNK_SAID * number + i)
            try:
                session = said_streams.make(case)
                said_streams.hold(case, session, said_streams.play(case, session))
            except AssertionError as broken:
                what.append(f"{case}: {broken}")
        return {"streams": CHUNK_SAID, "wrong": len(what), "what": what}

    for number in range(many):
        yield f"{number + 1} of {many}", lambda _, number=number: play(number)


def service_tasks(share: float) -> Iterator[tuple[str, Task]]:
    """Kills of a server under load, in chunks; clients try again, and each has a twin that nobody interrupts."""
    all_of_them = max(1, round(share * SERVICE_KILLS))
    for number in range(0, all_of_them, CHUNK_SERVICE):
        count = min(CHUNK_SERVICE, all_of_them - number)
        yield f"{number + count} of {all_of_them}", lambda _, number=number, count=count: served(number, count)


def served(number: int, count: int) -> Result:
    """A chunk of kills of a server."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", BridleWarning)
        run = killed_service.kill_server(Path(folder), count, number)
    return {"kills": count, "rounds": run.rounds, "wrong": len(run.wrong), "what": run.wrong}


def hostile_tasks(share: float) -> Iterator[tuple[str, Task]]:
    """Hostile requests to a running server, in chunks; what it accepts is told to a twin."""
    all_of_them = max(hostile_requests.PARTS * len(hostile_requests.NAMES), round(share * REQUESTS))
    for number in range(0, all_of_them, CHUNK_REQUESTS):
        count = min(CHUNK_REQUESTS, all_of_them - number)
        yield f"{number + count} of {all_of_them}", lambda _, number=number, count=count: asked_hostile(number, count)


def asked_hostile(number: int, count: int) -> Result:
    """A chunk of hostile requests."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", BridleWarning)
        run = hostile_requests.hostile_requests(Path(folder), count, number)
    counts = {name: getattr(run, name) for name in ("requests", "accepted", "refused", "unanswered")}
    return {**counts, "megabytes": str([round(each, 1) for each in run.megabytes]), "wrong": len(run.wrong), "what": run.wrong[:10]}


def key_tasks(share: float) -> Iterator[tuple[str, Task]]:
    """How long wrong keys take to be refused: whether that tells anything of the right one."""

    def look(_: Path) -> Result:
        found = key_timing.compare(max(2000, round(share * LOOKS_AT_KEYS)))
        return {"looks": found.looks, "largest t": found.largest, "wrong": len(found.wrong), "what": found.wrong}

    yield "near and far keys", look


PARTS = {
    "records": Part("hostile records into sessions of every policy", record_tasks),
    "kills": Part("kills while a session is saved, or written to a journal, and a gate or pacer pays", kill_tasks),
    "faults": Part("every file operation, allocation and interrupt of save, load, pay and observe", fault_tasks),
    "products": Part("all cases and examples of the tests of which make test runs some", product_tasks),
    "flips": Part("every bit of a small file of every kind", flip_tasks),
    "games": Part("compiled rounds of games against exact sums", game_tasks),
    "session": Part("compiled rounds of sessions against exact sums, saved and loaded on the way", session_tasks),
    "known": Part("rounds with limits that are known before acting: kept, or refused", known_tasks),
    "service": Part("kills of the decision service under load, with clients that try again", service_tasks),
    "hostile": Part(
        "hostile requests to the decision service: no error of its own, no growth, nothing changed by what is refused", hostile_tasks
    ),
    "keys": Part("how long wrong keys take to be refused", key_tasks),
    "said": Part("rules, features, known limits, overrides and late feedback: every claim against brute force", said_tasks),
}


def say(text: str) -> None:
    """Show progress on the line it has."""
    if sys.stderr.isatty():
        print(f"\r    {text:<60}", end="", file=sys.stderr, flush=True)


def sources() -> str:
    """What the results depend on: a hash of the library and of what torments it."""
    files = [
        *(ROOT / "src").rglob("*.py"),
        *(ROOT / "tests" / "helpers").glob("*.py"),
        *(ROOT / "tests" / "faults").glob("*.py"),
        Path(__file__),
    ]
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sorted(files))).hexdigest()[:16]


def main() -> int:
    """Do what is left to do."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", choices=list(PARTS), action="append", help="a part; may be given again")
    parser.add_argument("--kind", action="append", help="only tasks whose names begin with this and a comma; may be given again")
    parser.add_argument("--share", type=float, default=1.0, help="how much of each part to do, 1 for all")
    parser.add_argument("--out", type=Path, default=ROOT / "soak", help="where results are kept")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    file, own = given.out / "results.json", {"sources": sources(), "share": given.share}
    kept = json.loads(file.read_text()) if file.exists() else {}
    done: dict[str, Any] = kept if {name: kept.get(name) for name in own} == own else {**own, "version": bridle.__version__, "parts": {}}
    wrong = 0
    warnings.simplefilter("ignore", BridleWarning)
    try:
        for name in given.only or PARTS:
            print(f"{name}: {PARTS[name].about}", flush=True)
            results = done["parts"].setdefault(name, {})
            for task, work in PARTS[name].tasks(given.share):
                if given.kind and not any(task.startswith(f"{kind}, ") and task[len(kind) + 2 :][:1].isdigit() for kind in given.kind):
                    continue
                if task not in results or results[task].get("wrong"):
                    begun = time.monotonic()
                    results[task] = {**work(given.out), "seconds": round(time.monotonic() - begun, 1)}
                    file.write_text(json.dumps(done, indent=1))
                say("")
                shown = {key: value for key, value in results[task].items() if key != "what"}
                print(f"\r  {task}: {', '.join(f'{key} {number(value)}' for key, value in shown.items())}", flush=True)
                for line in results[task].get("what", ()) if results[task]["wrong"] else ():
                    print(f"    wrong: {line}", flush=True)
                wrong += results[task]["wrong"]
    except KeyboardInterrupt:
        print(f"\ninterrupted; start again to go on. What is done: {file}", flush=True)
        return 130
    for name in given.only or PARTS:
        print(f"{name}: {totals(done['parts'][name])}")
    print(f"{'nothing was wrong' if not wrong else f'{wrong} wrong'}; all of it: {file}")
    return int(wrong > 0)


def totals(results: dict[str, Result]) -> str:
    """What the tasks of a part add up to."""
    added: dict[str, float] = {}
    for result in results.values():
        for key, value in result.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                added[key] = (
                    max(added.get(key, 0), value) if "relative" in key or key in ("allowed", "worst") else added.get(key, 0) + value
                )
    return ", ".join(f"{key} {number(value)}" for key, value in added.items())


def number(value: object) -> str:
    """A number as it is read best."""
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    sys.exit(main())
