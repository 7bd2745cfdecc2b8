"""
The decision service, killed in the middle
==========================================

``bridle serve`` keeps sessions behind HTTP with a journal underneath. This script starts one on a free port, plays
against it, kills the server with SIGKILL half-way, starts it again, and goes on. Nothing that was acknowledged is
lost. What is lost is time: the round that met the kill waits for the restart.

Read more: :doc:`/service`.
"""

import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import bridle

folder = tempfile.TemporaryDirectory(prefix="bridle-gallery-")
with socket.socket() as place:
    place.bind(("127.0.0.1", 0))
    port = place.getsockname()[1]


def start():
    """The server in a process of its own; without keys, for this machine alone."""
    database = f"sqlite:///{Path(folder.name) / 'gallery.db'}"
    command = [sys.executable, "-m", "bridle", "serve", "--db", database, "--port", str(port), "--insecure", "--log", "warning"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


# %%
# The client has the verbs of a session. It sends an event again under the same identity until it is answered, so
# that a retry counts once.

rounds = 120
rng = np.random.default_rng(0)
needs = 12.0 + 3.0 * np.sin(np.arange(rounds) / 8.0) + rng.standard_normal(rounds)
server = start()
waits, held = np.empty(rounds), np.empty(rounds)
try:
    with bridle.Client(f"http://127.0.0.1:{port}", retries=40) as client:
        policy = bridle.policy("rate", bridle.Box(0.0, 40.0, dim=1), at_most=0.05, safe=[40.0])
        session = client.create("shop-17", policy, names=["too little"])
        for t, need in enumerate(needs):
            if t == 60:
                server.kill()  # SIGKILL: no chance to say goodbye
                server.wait()
                server = start()
            began = time.perf_counter()
            held[t] = session.decide()[0]
            session.observe(f=held[t], df=[1.0], g=need - held[t], dg=[-1.0])
            waits[t] = time.perf_counter() - began
        counted, short = session.rounds, session.rates[0].violated
finally:
    server.terminate()
    server.wait()
    folder.cleanup()
print(f"{rounds} rounds played, {counted} in the journal; {short} with too little")

# %%

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.plot(needs, color="#999999", label="needed")
left.plot(held, color="#0072B2", label="held")
left.axvline(60, color="#D55E00", linestyle="--", label="kill -9, restart")
left.set(xlabel="round", ylabel="capacity (units)", title=f"{counted} of {rounds} rounds are in the journal")
left.legend()
right.semilogy(1000 * waits, ".", color="#0072B2")
right.axvline(60, color="#D55E00", linestyle="--")
right.set(xlabel="round", ylabel="wait for a round (ms)", title="One round pays for the restart")
plt.show()
