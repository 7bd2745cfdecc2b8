"""A shop that lets the decision service hold capacity for it: real demand, a live page, and a server that may be killed at any moment.

    python examples/service_shop.py                  the service, two sessions, the page at the address that is shown
    python examples/service_shop.py --kill           and the server is stopped and killed at random, while the shop goes on

The demand is that of a data centre (`bridle data fetch google`), or made up where that cannot be had. At the end the journal is held
against a session that nobody disturbed: every round that was acknowledged counts once, and the decisions are the same to the last bit.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import warnings
from pathlib import Path

import numpy as np

import bridle
from bridle import data

DAY = 288  # slots of five minutes
BOX = bridle.Box(0.0, 100.0, dim=1)
STOCK = bridle.rules.demand_rules(BOX, day=DAY)
RATE = bridle.policy("rate", BOX, at_most=0.05, safe=[100.0], rules=[rule.name for rule in STOCK])
SOFT = bridle.policy("soft", BOX)


def demand(slots: int, seed: int) -> tuple[np.ndarray, str]:
    """What is needed in each slot, in percent of what is installed, and where that comes from."""
    try:
        used = data.load("google")["cpu_util_percent"]
        start = seed % max(1, len(used) - slots)
        return np.resize(used[start:], slots), "processors of a data centre, every five minutes"
    except bridle.InputError:
        rng, t = np.random.default_rng(seed), np.arange(slots)
        made = 40.0 + 12.0 * np.sin(2.0 * np.pi * t / DAY) + 4.0 * rng.standard_normal(slots)
        return np.clip(made, 0.0, 100.0), "made up: `bridle data fetch google` brings the real record"


class Server:
    """`bridle serve` in a process of its own, on one file, that can be stopped, killed and started again."""

    def __init__(self, folder: Path, port: int) -> None:
        self.url, self.stops, self.kills = f"http://127.0.0.1:{port}", 0, 0
        database = f"sqlite:///{folder / 'shop.db'}"
        self._command = [sys.executable, "-m", "bridle", "serve", "--db", database, "--port", str(port), "--insecure", "--log", "warning"]
        self._log, self._lock = (folder / "server.log").open("ab"), threading.Lock()
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self._command, stdout=self._log, stderr=self._log)

    def disturb(self, signal_number: int) -> None:
        """Stop or kill it, and start it again."""
        with self._lock:
            self.kills += signal_number == signal.SIGKILL
            self.stops += signal_number == signal.SIGTERM
            os.kill(self.process.pid, signal_number)
            self.process.wait()
            self.start()

    def ready(self) -> bool:
        """Whether it answers."""
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=1.0) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def close(self) -> None:
        with self._lock:
            self.process.terminate()
            self.process.wait()
            self._log.close()


def disturb_at_random(server: Server, over: threading.Event, every: float, seed: int, most: int) -> None:
    """Until it is over: kill the server, or stop it politely, after random times; now and then while it still starts."""
    rng = np.random.default_rng(seed)
    while server.stops + server.kills < most and not over.wait(float(rng.exponential(every))):
        server.disturb(signal.SIGKILL if rng.random() < 0.7 else signal.SIGTERM)
        while rng.random() < 0.98 and not over.wait(0.1) and not server.ready():
            pass


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return int(place.getsockname()[1])


def trade(session: bridle.Session, need: float, proposals: np.ndarray | None, **key: str) -> float:
    """One slot: decide, see what was needed, say so. The session is here or at the service: the verbs are the same."""
    x = float((session.decide() if proposals is None else session.decide(rules=proposals))[0])
    session.observe(f=x, df=[1.0], g=need - x, dg=[-1.0], **key)
    return x


def main(
    slots: int = 2000,
    kill: bool = False,
    pause: float = 0.02,
    port: int = 0,
    seed: int = 0,
    show: bool = False,
    every: float = 3.0,
    most: int = 1_000_000,
) -> dict:
    """Play `slots` slots, `pause` seconds apart; with `kill` the server is disturbed `most` times at most. What came of it."""
    needed, source = demand(slots, seed)
    proposals = bridle.rules.propose(STOCK, needed[:, None])
    over = threading.Event()
    with tempfile.TemporaryDirectory(prefix="bridle-shop-") as folder:
        server = Server(Path(folder), port or free_port())
        saboteur = threading.Thread(target=disturb_at_random, args=(server, over, every, seed, most), daemon=True)
        try:
            with bridle.Client(server.url, timeout=5.0, retries=40) as client:
                held = client.create("shop-rate", RATE, names=["too little"])
                mean = client.create("shop-average", SOFT, names=["too little"])
                print(f"demand: {source}\nlive page: {server.url}", flush=True)
                if show:
                    import webbrowser

                    webbrowser.open(server.url)
                if kill:
                    saboteur.start()
                decided = []
                for t, need in enumerate(needed):
                    decided.append((trade(held, need, proposals[t], key=f"slot-{t}"), trade(mean, need, None, key=f"slot-{t}")))
                    if t % 200 == 199:
                        print(f"slot {t + 1}: server stopped {server.stops} times, killed {server.kills} times", flush=True)
                    time.sleep(pause)
                over.set()
                if kill:
                    saboteur.join()
                found = {
                    "slots": slots, "journal": (held.rounds, mean.rounds), "stops": server.stops, "kills": server.kills,
                    "rate": held.rates[0].measured, "cost": (held.cost, mean.cost),
                }  # fmt: skip
        finally:
            over.set()
            server.close()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bridle.BridleWarning)
        twins = bridle.Session(RATE, names=["too little"]), bridle.Session(SOFT, names=["too little"])
        undisturbed = [(trade(twins[0], need, proposals[t]), trade(twins[1], need, None)) for t, need in enumerate(needed)]
    lost = [slots - rounds for rounds in found["journal"]]
    same = undisturbed == decided and found["cost"] == tuple(twin.cost for twin in twins)
    return found | {"lost": sum(max(0, each) for each in lost), "doubled": sum(max(0, -each) for each in lost), "same": same}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A shop on the decision service.")
    parser.add_argument("--slots", type=int, default=8000, help="how many slots of demand")
    parser.add_argument("--pause", type=float, default=0.02, help="seconds between two slots")
    parser.add_argument("--kill", action="store_true", help="stop and kill the server at random")
    parser.add_argument("--every", type=float, default=10.0, help="with --kill: seconds between two disturbances, on average")
    parser.add_argument("--port", type=int, default=8711, help="where the page is; 0: any that is free")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", action="store_true", help="open the page in a browser")
    given = parser.parse_args()
    found = main(given.slots, given.kill, given.pause, given.port, given.seed, given.show, given.every)
    print(f"{found['slots']} slots in two sessions; the server was stopped {found['stops']} times and killed {found['kills']} times")
    print(f"rounds lost: {found['lost']}; counted twice: {found['doubled']}")
    print(f"like a session that nobody disturbed, to the last bit: {'yes' if found['same'] else 'no'}")
    print(f"too little in {100.0 * found['rate']:.2f} % of the slots, where 5 % were allowed")
    sys.exit(0 if found["lost"] == found["doubled"] == 0 and found["same"] else 1)
