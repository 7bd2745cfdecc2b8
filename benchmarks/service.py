"""The decision service over HTTP, beside a FastAPI endpoint that commits the same bytes itself: requests a second, waits, memory.

Both are asked by the same load in the same run, one after the other and again, so that the ratios mean something where the times do not.
The service does all that it does in production: it asks for keys, logs every request and measures it. The load is wrk where it is
installed, else a loop of connections here.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import bridle
from parts.toy import TOY, size, target

DIM, LIMITS = 30, 3
CLIENTS = (1, 8, 32)
GOALS = {1: 0.8, 8: 1.4, 32: 1.6}
BATCH, BATCH_GOAL = 100, 20_000
SESSIONS = size(1000, 10)
SECONDS, REPEATS = size(2.0, 0.2), size(3, 1)
RECORDS = size(2000, 100)
WRK = None if TOY else shutil.which("wrk")
DOCS = Path(__file__).parents[1] / "docs"
BEGIN, END = "<!-- measured by benchmarks/service.py -->", "<!-- end -->"

NAIVE = textwrap.dedent("""
    import sqlite3, sys
    from fastapi import FastAPI, Request
    from pydantic import BaseModel

    class Record(BaseModel):
        f: float
        df: list[float]
        g: list[float]
        dg: list[list[float]]

    database = sqlite3.connect(sys.argv[1], isolation_level=None, check_same_thread=False)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=FULL")
    database.execute("CREATE TABLE event (id INTEGER PRIMARY KEY, session INTEGER, seq INTEGER, body BLOB, UNIQUE (session, seq))")
    app, seq, row = FastAPI(), 0, bytes(int(sys.argv[3]))

    @app.post("/observe")
    async def observe(record: Record) -> dict:
        global seq
        seq += 1
        database.execute("INSERT INTO event (session, seq, body) VALUES (1, ?, ?)", (seq, row))
        return {"round": seq, "next": record.df}

    if __name__ == "__main__":
        import uvicorn
        uvicorn.run(app, port=int(sys.argv[2]), access_log=False, log_level="warning")
""")
"""What somebody would write in an afternoon: it decodes the record, commits as many bytes as the journal does, and answers."""

SCRIPT = textwrap.dedent("""
    local bodies, keyed, paths, at = {}, %(keyed)s, {}, 0
    for line in io.lines("%(bodies)s") do bodies[#bodies + 1] = line end
    for line in io.lines("%(paths)s") do paths[#paths + 1] = line end
    local headers = { ["Content-Type"] = "application/json", ["Authorization"] = "Bearer %(key)s" }
    local mark = "%(mark)s"
    function request()
      at = at + 1
      if keyed then headers["Idempotency-Key"] = mark .. at end
      return wrk.format("POST", paths[(at - 1) %% #paths + 1], headers, bodies[(at - 1) %% #bodies + 1])
    end
    function done(summary, latency, requests)
      local e = summary.errors
      local wrong = e.connect + e.read + e.write + e.status + e.timeout
      local rate = summary.requests / summary.duration * 1e6
      io.write(string.format("RESULT %%f %%f %%f %%d\\n", rate, latency:percentile(50), latency:percentile(99), wrong))
    end
""")


def records() -> list[dict[str, Any]]:
    """Feedback with linear costs and limits that were kept: the load does not know the decisions, and must not contradict itself."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(RECORDS):
        dg = rng.normal(size=(LIMITS, DIM))
        dg /= np.linalg.norm(dg, axis=1, keepdims=True)  # a ball of diameter 2: with g below -2 no action violates them
        df, g = rng.normal(size=DIM) / DIM**0.5, rng.uniform(-2.5, -2.1, LIMITS)
        found.append({"f": float(rng.normal()), "df": df.tolist(), "g": g.tolist(), "dg": dg.tolist()})
    return found


# --- servers ------------------------------------------------------------------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return int(place.getsockname()[1])


@contextmanager
def running(command: list[str], port: int, ready: str, log: Path):
    """A server in a process of its own, from when it answers."""
    import httpx

    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file)
        try:
            for _ in range(600):
                try:
                    if httpx.get(f"http://127.0.0.1:{port}{ready}").status_code == 200:
                        break
                except httpx.TransportError:
                    pass
                if process.poll() is not None:
                    raise RuntimeError(log.read_text())
                time.sleep(0.05)
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


def memory(process: subprocess.Popen) -> float:
    """Bytes that a process holds in memory."""
    status = Path(f"/proc/{process.pid}/status")
    return 1024.0 * int(re.search(r"VmRSS:\s+(\d+)", status.read_text()).group(1)) if status.exists() else float("nan")


# --- load ---------------------------------------------------------------------------------------------------------------------------------


class Load:
    """Bodies that are sent to paths of a server, by so many connections at once."""

    def __init__(self, folder: Path, port: int, key: str) -> None:
        self.folder, self.port, self.key, self.runs = folder, port, key, 0

    def __call__(self, clients: int, paths: list[str], bodies: list[str], keyed: bool = False) -> dict[str, float]:
        self.runs += 1
        mark = f"{self.port}-{self.runs}-"
        if WRK is None:
            return asyncio.run(self._here(clients, paths, bodies, mark if keyed else ""))
        (self.folder / "bodies").write_text("\n".join(bodies) + "\n")
        (self.folder / "paths").write_text("\n".join(paths) + "\n")
        facts = {
            "bodies": self.folder / "bodies",
            "paths": self.folder / "paths",
            "key": self.key,
            "mark": mark,
            "keyed": str(keyed).lower(),
        }
        (self.folder / "load.lua").write_text(SCRIPT % facts)
        seconds = max(1, round(SECONDS))
        command = ["wrk", "-t1", f"-c{clients}", f"-d{seconds}s", "-s", str(self.folder / "load.lua"), f"http://127.0.0.1:{self.port}"]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        found = re.search(r"RESULT (\S+) (\S+) (\S+) (\d+)", said)
        assert found is not None, said
        assert found.group(4) == "0", f"requests went wrong: {said}"
        rate, half, most = (float(found.group(i)) for i in (1, 2, 3))
        return {"per_second": rate, "p50_ms": half / 1e3, "p99_ms": most / 1e3}

    async def _here(self, clients: int, paths: list[str], bodies: list[str], mark: str) -> dict[str, float]:
        waits: list[float] = []
        count, stop = 0, time.perf_counter() + SECONDS

        async def one() -> None:
            nonlocal count
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            while time.perf_counter() < stop:
                body, path = bodies[count % len(bodies)].encode(), paths[count % len(paths)]
                count += 1
                lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {self.key}", "Content-Type: application/json"]
                lines += [f"Content-Length: {len(body)}", *([f"Idempotency-Key: {mark}{count}"] if mark else []), "", ""]
                begun = time.perf_counter()
                writer.write("\r\n".join(lines).encode() + body)
                head = await reader.readuntil(b"\r\n\r\n")
                assert head.split(b" ", 2)[1] == b"200", head
                await reader.readexactly(int(re.search(rb"content-length: (\d+)", head.lower()).group(1)))
                waits.append(time.perf_counter() - begun)
            writer.close()

        await asyncio.gather(*(one() for _ in range(clients)))
        waits.sort()
        return {"per_second": len(waits) / SECONDS, "p50_ms": 1e3 * waits[len(waits) // 2], "p99_ms": 1e3 * waits[int(0.99 * len(waits))]}


def best(runs: list[dict[str, float]]) -> dict[str, float]:
    """The run with the most requests a second: others were disturbed."""
    return max(runs, key=lambda run: run["per_second"])


# --- what is measured ---------------------------------------------------------------------------------------------------------------------


def one_session(service: Load, naive: Load, bodies: list[str]) -> list[dict[str, Any]]:
    """One request a round, by 1, 8 and 32 clients; the two servers take turns."""
    rows = []
    for clients in CLIENTS:
        runs: dict[str, list[dict[str, float]]] = {"naive": [], "bridle": [], "keyed": []}
        for _ in range(REPEATS):
            runs["naive"].append(naive(clients, ["/observe"], bodies))
            runs["bridle"].append(service(clients, ["/v1/sessions/one/observe"], bodies))
            runs["keyed"].append(service(clients, ["/v1/sessions/one/observe"], bodies, keyed=True))
        found = {name: best(each) for name, each in runs.items()}
        ratio = statistics.median(
            ours["per_second"] / theirs["per_second"] for ours, theirs in zip(runs["bridle"], runs["naive"], strict=True)
        )
        rows.append({"clients": clients, **found, "ratio": ratio, "goal": GOALS[clients]})
    return rows


def batches(service: Load, bodies: list[str]) -> dict[str, Any]:
    """A hundred rounds in one request."""
    events = [f'{{"kind":"observe",{body[1:]}' for body in bodies]
    many = [f'{{"events":[{",".join(events[i : i + BATCH])}]}}' for i in range(0, len(events) - BATCH + 1, BATCH)]
    runs = [service(2, ["/v1/sessions/batches/batch"], many) for _ in range(REPEATS)]
    found = best(runs)
    return {"events_per_second": BATCH * found["per_second"], "p50_ms": found["p50_ms"], "p99_ms": found["p99_ms"], "goal": BATCH_GOAL}


def thousand(service: Load, client: bridle.Client, process: subprocess.Popen, bodies: list[str]) -> dict[str, Any]:
    """Many sessions open at once, each of them asked."""
    before, begun = memory(process), time.perf_counter()
    for i in range(SESSIONS):
        client.create(f"many-{i}", "anytime", bridle.Ball(DIM), engine="compiled")
    made = time.perf_counter() - begun
    paths = [f"/v1/sessions/many-{i}/observe" for i in range(SESSIONS)]
    service(8, paths, bodies)  # the first round of each
    played = best([service(32, paths, bodies) for _ in range(REPEATS)])
    after = memory(process)
    return {"sessions": SESSIONS, "made_per_second": SESSIONS / made, "kib_each": (after - before) / SESSIONS / 1024.0, **played}


def measure() -> dict[str, Any]:
    """All of it, in one run."""
    bodies = [json.dumps(record) for record in records()]
    with tempfile.TemporaryDirectory(prefix="bridle-toy-" if TOY else "bridle-bench-") as name:
        folder = Path(name)
        database = f"sqlite:///{folder / 'service.db'}"
        made = subprocess.run(
            [sys.executable, "-m", "bridle", "keys", "add", "load", "--db", database, "--scope", "admin"],
            capture_output=True,
            text=True,
            check=True,
        )
        key, port, other = made.stdout.split()[0], free_port(), free_port()
        (folder / "naive.py").write_text(NAIVE)
        (folder / "bridle.toml").write_text("[limits]\nrate = 1_000_000\n")
        serve = [
            sys.executable,
            "-m",
            "bridle",
            "serve",
            "--config",
            str(folder / "bridle.toml"),
            "--db",
            database,
            "--port",
            str(port),
            "--log",
            "info",
        ]
        size_of_row = str(8 * (1 + DIM + LIMITS + LIMITS * DIM) + 40)
        plain = [sys.executable, str(folder / "naive.py"), str(folder / "naive.db"), str(other), size_of_row]
        with running(serve, port, "/readyz", folder / "service.log") as process, running(plain, other, "/docs", folder / "naive.log"):
            service, naive = Load(folder, port, key), Load(folder, other, "-")
            with bridle.Client(f"http://127.0.0.1:{port}", key=key) as client:
                for session in ("one", "batches"):
                    client.create(session, "anytime", bridle.Ball(DIM), engine="compiled")
                    for body in bodies[:70]:  # compiled, and past the first look
                        client.session(session).observe(**json.loads(body))
                found = {"rounds": one_session(service, naive, bodies), "batch": batches(service, bodies)}
                found["many"] = thousand(service, client, process, bodies)
                rounds = client.session("one").rounds
        journal = sum(path.stat().st_size for path in folder.glob("service.db*"))
    facts = {"date": datetime.now(UTC).date().isoformat(), "cores": os.cpu_count(), "python": platform.python_version()}
    load = "wrk" if WRK else "connections of this program"
    return {**facts, "load": load, "dim": DIM, "limits": LIMITS, **found, "rounds_played": rounds, "journal_bytes": journal}


def met(value: float, goal: float) -> str:
    return f"{value:.2f}" if value >= goal else f"{value:.2f}, below the goal of {goal:g}"


def markdown(found: dict[str, Any]) -> str:
    """The tables of the documentation."""
    lines = [
        "| clients | FastAPI with its own commit: a second (p50, p99 ms) | `bridle serve`: rounds a second | with identities | ratio |",
        "|---:|---:|---:|---:|---:|",
    ]
    for row in found["rounds"]:
        cells = [
            f"{row[name]['per_second']:,.0f} ({row[name]['p50_ms']:.2f}, {row[name]['p99_ms']:.1f})"
            for name in ("naive", "bridle", "keyed")
        ]
        lines.append(f"| {row['clients']} | {' | '.join(cells)} | {met(row['ratio'], row['goal'])} |")
    batch, many = found["batch"], found["many"]
    events = batch["events_per_second"]
    missed = "" if events >= batch["goal"] else f" (the goal was {batch['goal']:,})"
    lines += [
        "",
        "| | |",
        "|---|---:|",
        f"| batches of {BATCH}: rounds a second | {events:,.0f}{missed} |",
        f"| the wait for such a batch, p50 and p99 | {batch['p50_ms']:.1f} and {batch['p99_ms']:.1f} ms |",
        f"| {many['sessions']:,} sessions open at once, 32 clients: rounds a second | {many['per_second']:,.0f} |",
        f"| their wait, p50 and p99 | {many['p50_ms']:.1f} and {many['p99_ms']:.1f} ms |",
        f"| memory of one such session | {many['kib_each']:,.0f} KiB |",
        f"| sessions made a second | {many['made_per_second']:,.0f} |",
    ]
    return "\n".join(lines)


def main() -> None:
    found = measure()
    target(Path(__file__).with_name("service.json")).write_text(json.dumps(found, indent=1) + "\n")
    page = target(DOCS / "service.md")
    text = page.read_text()
    start = text.index(BEGIN) + len(BEGIN)
    page.write_text(f"{text[:start]}\n{markdown(found)}\n{text[text.index(END, start) :]}")
    print(markdown(found))


if __name__ == "__main__":
    main()
