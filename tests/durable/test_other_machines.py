"""A journal that was written where arithmetic is another: every decision is as it was but for rounding, and it goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import bridle
from bridle.database import open_store
from bridle.durable import inspection, snapshot
from bridle.durable.replay import ReplayError
from bridle.session.session import Session

PROGRAM = """
import json, sys
import numpy as np
import bridle
from bridle.durable import snapshot

url, policy, first, last = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
domain, rng = bridle.Ball(40), np.random.default_rng(first)
session = bridle.Session.open(url, "run", policy=bridle.policy(policy, domain))
for t in range(first, last):
    x = session.decide()
    df, dg = rng.standard_normal(40), rng.standard_normal((3, 40))
    session.observe(f=float(df @ x), df=df, g=dg @ x - 1.0, dg=dg, key=f"event {t}")
print(json.dumps([snapshot.machine(), session.rounds, session.decide().tolist(), session.cost]))
sys.stdout.flush()
import os
os._exit(0)  # as if it had been killed: there is no snapshot
"""


def play(url: str, policy: str, first: int, last: int, kernel: str) -> tuple[str, int, np.ndarray, float]:
    """Some rounds in a process whose BLAS takes this kernel."""
    environment = {**os.environ, "OPENBLAS_CORETYPE": kernel, "OPENBLAS_NUM_THREADS": "1"}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, url, policy, str(first), str(last)], capture_output=True, text=True, env=environment, check=False
    )
    assert run.returncode == 0, run.stderr
    machine, rounds, x, cost = json.loads(run.stdout)
    return machine, rounds, np.array(x), cost


@pytest.mark.parametrize("policy", ["anytime", "soft"])
def test_a_journal_of_one_kernel_opens_under_another(tmp_path, policy):
    url = f"sqlite:///{tmp_path}/run.db"
    made, *_ = play(url, policy, 0, 40, "Prescott")
    there, rounds, x, cost = play(url, policy, 40, 80, "Haswell")
    if made == there:
        pytest.fail("these kernels are the same here: the test tries nothing")
    assert rounds == 80
    alone, again, y, whole = play(f"sqlite:///{tmp_path}/alone.db", policy, 0, 40, "Haswell")
    assert (alone, again) == (there, 40)
    _, _, y, whole = play(f"sqlite:///{tmp_path}/alone.db", policy, 40, 80, "Haswell")
    np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-9)
    assert cost == pytest.approx(whole, rel=1e-6)
    back, rounds, _, _ = play(url, policy, 80, 90, "Prescott")
    assert (back, rounds) == (made, 90)


def written(url: str) -> None:
    session = bridle.Session.open(url, "run", policy=bridle.policy("anytime", bridle.Ball(2)))
    for t in range(20):
        session.observe(f=float(t % 3), df=[0.5, float(t)], g=0.25, dg=[1.0, 0.5])
    session.journal.store.close()  # no snapshot


@pytest.mark.parametrize(("change", "opens"), [(1e-12, True), (1e-7, True), (1e-2, False)])
def test_elsewhere_rounding_is_accepted_and_nothing_more(tmp_path, monkeypatch, change, opens):
    """The journal says of event 5 that another decision stood after it: where arithmetic is the same, that is refused however near."""
    url, own = f"sqlite:///{tmp_path}/run.db", Session.standing

    def otherwise(session: Session) -> bytes:
        standing = np.frombuffer(own(session))
        return (standing * (1.0 + change)).tobytes() if session.rounds == 5 else standing.tobytes()

    with monkeypatch.context() as patch:
        patch.setattr(Session, "standing", otherwise)
        written(url)
    with pytest.raises(ReplayError, match=r"event 5 \(observe\) leads to another decision now"):
        bridle.Session.open(url, "run")
    monkeypatch.setattr("bridle.durable.replay.machine", lambda: "another machine")
    if not opens:
        with pytest.raises(ReplayError, match="event 5"):
            bridle.Session.open(url, "run")
        return
    with open_store(url) as store:
        said = inspection.verify(store, "run")
        assert (said.events, said.rounded, said.wrong) == (20, 1, [])
    session = bridle.Session.open(url, "run")
    assert (session.rounds, session.journal.snapshot_at) == (20, 20)  # from here on it is as this machine has it
    session.journal.store.close()


def test_the_machine_is_told_by_its_arithmetic():
    assert snapshot.machine().split("arithmetic ")[1] == snapshot.machine()[-8:]
