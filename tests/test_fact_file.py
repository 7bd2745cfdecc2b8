"""Gates and pacers under threads, on files, between processes: not one unit more, whenever who dies."""

from __future__ import annotations

import contextlib
import copy
import errno
import os
import pickle
import resource
import signal
import stat
import sys
import threading
import time
import warnings

import numpy as np
import pytest

from bridle import Gate, InputError, Pacer, storage
from bridle.fact_file import FactFile
from helpers.dying_writes import die_at_step
from helpers.extent import WHOLE
from helpers.interrupts import alarms

PACER = {"budget": 20.0, "rounds": 50, "value": 1.0, "spend": 1.0, "plan": [1, 2]}
AMOUNTS = [0.3, 0.25, 0.01, 0.4, 0.125, 0.3, 0.2]


def open_gate(path):
    return Gate.open(path, budget=20.0)


def open_pacer(path):
    return Pacer.open(path, **PACER)


KINDS = pytest.mark.parametrize("open_it", [open_gate, open_pacer])


# --- threads -----------------------------------------------------------------------------------------------------------------------------


def in_threads(count, work):
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)


@pytest.mark.parametrize("amount", [0.01, 3.0])
def test_threads_never_overspend_together(amount):
    for _ in range(20):
        gate, paid = Gate(1000 * amount), []

        def spend(number, gate=gate, paid=paid):
            while True:
                try:
                    gate.pay(amount)
                except InputError:
                    return
                paid.append(amount)

        in_threads(4, spend)
        assert len(paid) == 1000
        assert (gate.left, gate.spent) == (0.0, 1000 * amount)


def test_threads_share_a_pacer_without_losing_a_round():
    pacer = Pacer(100.0, 4000, 1.0, 1.0)
    in_threads(4, lambda number: [pacer.pay(0.01 * number) for _ in range(500)])
    assert (pacer.played, pacer.spent) == (2000, 30.0)
    assert pacer.planned == pytest.approx(2000 * 100.0 / 4000)


def test_threads_share_a_gate_on_a_file(tmp_path):
    with Gate.open(tmp_path / "gate", budget=0.40) as gate:
        paid = []

        def spend(number):
            for _ in range(20):
                try:
                    paid.append(gate.pay(0.01))
                except InputError:
                    return

        in_threads(4, spend)
    assert len(paid) == 40
    with Gate.open(tmp_path / "gate") as gate:
        assert (gate.spent, gate.left) == (0.4, 0.0)


def test_closing_waits_for_the_payment_that_is_under_way(tmp_path):
    for number in range(10):
        path, paid = tmp_path / f"gate{number}", []
        gate = open_gate(path)

        def spend(number, gate=gate, paid=paid):
            if number == 0:
                while len(paid) < 20:
                    pass
                gate.close()
                return
            for _ in range(500):
                try:
                    paid.append(gate.pay(0.01))
                except InputError as refused:
                    assert "it is closed" in str(refused)  # noqa: PT017 (a thread's failure fails the test)
                    return

        in_threads(3, spend)
        assert len(paid) >= 20
        assert Gate.load(path).spent == pytest.approx(0.01 * len(paid))


# --- one holder ---------------------------------------------------------------------------------------------------------------------------


class Holder:
    """Another process that holds a gate until it is told to end, or killed."""

    def __init__(self, path):
        ready, self.go = os.pipe(), os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.process = os.fork()
        if self.process == 0:
            with open_gate(path) as gate:
                gate.pay(1.0)
                os.write(ready[1], b"1")
                os.read(self.go[0], 1)
            os._exit(0)
        os.read(ready[0], 1)

    def end(self, kill=False):
        if kill:
            os.kill(self.process, signal.SIGKILL)
        else:
            os.write(self.go[1], b"1")
        os.waitpid(self.process, 0)


@pytest.mark.parametrize("kill", [False, True])
def test_a_second_holder_is_refused_and_the_dead_hold_nothing(tmp_path, kill):
    path = tmp_path / "gate"
    mine = Gate(5.0)
    holder = Holder(path)
    try:
        for attempt in (lambda: open_gate(path), lambda: Gate.load(path), lambda: mine.save(path)):
            with pytest.raises(InputError, match=rf"^cannot open {path}: another holder has it"):
                attempt()
    finally:
        holder.end(kill)
    with open_gate(path) as gate:
        assert gate.spent == 1.0
        with pytest.raises(InputError, match="another holder has it"):
            open_gate(path)
        gate.pay(1.0)
    assert os.listdir(tmp_path) == ["gate"]
    assert Gate.load(path).spent == 2.0


def test_two_that_loaded_one_file_cannot_both_save_it(tmp_path):
    path = tmp_path / "gate"
    Gate(10.0).save(path)
    one, other = Gate.load(path), Gate.load(path)
    one.pay(6.0)
    other.pay(6.0)
    one.save(path)
    one.save(path)
    with pytest.raises(InputError, match="another gate was saved there since this one was"):
        other.save(path)
    assert Gate.load(path).spent == 6.0
    other.save(tmp_path / "elsewhere")


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_holder_whose_file_is_gone_is_refused_from_then_on(tmp_path, how):
    path = tmp_path / "gate"
    old = open_gate(path)
    old.pay(1.0)
    path.rename(tmp_path / "elsewhere")
    new = open_gate(path) if how == "replaced" else None
    for attempt in (lambda: old.pay(2.0), lambda: old.set_budget(50.0)):
        with pytest.raises(InputError, match="another file has taken its place" if new else "it was moved or removed"):
            attempt()
    assert old.spent == 1.0
    old.close()
    if new is not None:
        new.pay(3.0)
        new.close()
        assert Gate.load(path).spent == 3.0
    assert Gate.load(tmp_path / "elsewhere").spent == 1.0


def test_a_glance_at_the_file_that_fails_is_not_the_end(tmp_path, monkeypatch):
    """Only a file that is another one, or gone, ends a hold; what the system could not tell is one error, and passes."""

    def fail(path):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with open_gate(tmp_path / "gate") as gate:
        with monkeypatch.context() as patch:
            patch.setattr(os, "stat", fail)
            with pytest.raises(InputError, match=r"cannot write .*gate: Input/output error"):
                gate.pay(1.0)
        assert gate.spent == 0.0
        gate.pay(2.0)
    assert Gate.load(tmp_path / "gate").spent == 2.0


def test_of_two_that_make_the_file_at_once_one_holds_it(tmp_path, monkeypatch):
    """The second writes its own whole file and finds one there: it takes nothing away from the first."""
    path, write, first = tmp_path / "gate", storage.create, []

    def slow(place, data):
        monkeypatch.undo()
        first.append(open_gate(path))
        first[0].pay(1.0)
        write(place, data)

    monkeypatch.setattr(storage, "create", slow)
    with pytest.raises(InputError, match="another holder has it"):
        open_gate(path)
    first[0].close()
    assert Gate.load(path).spent == 1.0
    assert os.listdir(tmp_path) == ["gate"]


def test_a_forked_child_has_no_share_in_the_gate(tmp_path):
    path = tmp_path / "gate"
    gate = open_gate(path)
    gate.pay(1.0)

    def spend(acknowledge):
        try:
            gate.pay(1.0)
        except InputError as refused:
            acknowledge(refused)
        gate.close()  # which must not take the parent's lock away

    said = die_at_step(None, spend).acknowledged
    assert len(said) == 1
    assert f"it was opened by process {os.getpid()}" in said[0]
    with pytest.raises(InputError, match="another holder has it"):
        open_gate(path)
    gate.pay(1.0)
    gate.close()
    assert Gate.load(path).spent == 2.0


def test_a_gate_on_a_file_cannot_be_copied_and_one_in_memory_can(tmp_path):
    gate, pacer = Gate(3.0), Pacer(**PACER)
    gate.pay(1.0)
    pacer.pay(0.5)
    for copied in (copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))):
        other, paced = copied(gate), copied(pacer)
        other.pay(2.0)
        paced.pay(0.25)
        assert (other.left, gate.left, paced.played, pacer.played) == (0.0, 2.0, 2, 1)
    for open_it in (open_gate, open_pacer):
        with open_it(tmp_path / open_it.__name__) as held, pytest.raises(InputError, match="has one holder"):
            copy.deepcopy(held)


def test_what_is_closed_can_be_asked_and_does_not_pay(tmp_path):
    with open_pacer(tmp_path / "pacer") as pacer:
        pacer.pay(0.5)
    assert (pacer.spent, pacer.played, pacer.gate.allows(1.0)) == (0.5, 1, True)
    for attempt in (lambda: pacer.pay(0.5), lambda: pacer.gate.pay(0.5), lambda: pacer.set_budget(99.0)):
        with pytest.raises(InputError, match="it is closed"):
            attempt()
    assert (pacer.spent, pacer.budget) == (0.5, 20.0)
    pacer.close()


# --- opening ------------------------------------------------------------------------------------------------------------------------------


def test_opening_again_must_ask_for_the_same(tmp_path):
    path = tmp_path / "gate"
    with pytest.raises(InputError, match="No such file"):
        Gate.open(path)
    with Gate.open(path, budget=20.004, unit=0.01) as gate:
        gate.pay(7.0)
    for wrong, said in (({"budget": 21.0}, "its budget is 20.0, not 21.0"), ({"unit": 0.1}, "its unit is 0.01, not 0.1")):
        with pytest.raises(InputError, match=said):
            Gate.open(path, **wrong)
    for same in ({}, {"budget": 20.001}, {"unit": 0.01, "budget": 20.0}):
        with Gate.open(path, **same) as gate:
            assert gate.left == 13.0
    with Gate.open(path) as gate:
        gate.set_budget(30.0)
    with Gate.open(path, budget=30.0) as gate:
        assert gate.left == 23.0
    assert os.listdir(tmp_path) == ["gate"]


def test_opening_a_pacer_again_must_ask_for_the_same(tmp_path):
    path = tmp_path / "pacer"
    with pytest.raises(InputError, match="rounds must be given"):
        Pacer.open(path, budget=20.0, value=1.0)
    with open_pacer(path) as pacer:
        pacer.pay(0.5)
    for name, wrong in {"rounds": 51, "value": 2.0, "spend": 2.0, "plan": [1, 3], "goal": "value", "unit": 0.1, "budget": 19.0}.items():
        with pytest.raises(InputError, match=f"its {name} is "):
            Pacer.open(path, **{name: wrong})
    with open_pacer(path) as pacer:
        assert pacer.played == 1
    with pytest.raises(InputError, match="does not hold a gate"):
        Gate.open(path)


def test_a_file_that_was_saved_is_opened(tmp_path):
    gate = Gate(20.0)
    gate.pay(3.0)
    gate.save(tmp_path / "saved")
    with open_gate(tmp_path / "saved") as held:
        assert held.spent == 3.0


def test_the_mode_of_a_gate_s_file_is_kept(tmp_path):
    path = tmp_path / "gate"
    with open_gate(path):
        path.chmod(0o600)
    with open_gate(path) as gate:
        for _ in range(5):
            gate.pay(0.1)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in (tmp_path / "pipe", tmp_path, tmp_path / "no" / "folder", "a\0b"):
        with pytest.raises(InputError, match=r"^cannot (read|open|write) "):
            open_gate(name)
    with pytest.raises(InputError, match="path must be the path of a file"):
        open_gate(None)
    assert sorted(os.listdir(tmp_path)) == ["pipe"]


# --- dying --------------------------------------------------------------------------------------------------------------------------------


def stands(open_it, folder):
    """The facts after 0, 1, 2 ... of the payments."""
    with open_it(folder / "reference") as held:
        return [held.facts(), *((held.pay(amount), held.facts())[1] for amount in AMOUNTS)]


class Spender:
    """A process that opens the file and pays, and says after each payment that it is acknowledged."""

    def __init__(self, work):
        self.heard = b""
        self.said, writing = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.process = os.fork()
        if self.process == 0:
            try:
                work(lambda: os.write(writing, b"1"))
            finally:
                os._exit(0)
        os.close(writing)

    def wait_for(self, payments):
        """Until so many are acknowledged."""
        while len(self.heard) < payments and (more := os.read(self.said, payments - len(self.heard))):
            self.heard += more

    def end(self, kill):
        """How many payments it acknowledged, and how it ended: -9 where it was killed."""
        if kill:
            os.kill(self.process, signal.SIGKILL)
        said = self.heard
        while more := os.read(self.said, 1 << 16):
            said += more
        os.close(self.said)
        return len(said), os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])


@pytest.mark.slow
@KINDS
def test_no_kill_loses_an_acknowledged_payment_or_gives_one_back(open_it, tmp_path):
    """At random moments of opening, paying and closing; the next holder finds all that was acknowledged, and at most one more."""
    rng, expected, path = np.random.default_rng(0), stands(open_it, tmp_path), tmp_path / "here"
    killed = midway = 0

    def spend(acknowledge):
        with open_it(path) as held:
            for amount in AMOUNTS:
                held.pay(amount)
                acknowledge()  # here the money leaves

    for _ in range(400 if WHOLE else 40):
        spender = Spender(spend)
        spender.wait_for(rng.integers(0, len(AMOUNTS)))
        time.sleep(rng.uniform(0.0, 0.006))  # opening takes as long, and a payment half of it
        said, ended = spender.end(kill=True)
        killed += ended == -signal.SIGKILL
        midway += 0 < said < len(AMOUNTS)
        with open_it(path) as held:
            counted = expected.index(held.facts())
        assert counted - said in (0, 1)
        path.unlink()
    assert killed > 10
    assert midway > 5


@pytest.mark.slow
def test_one_file_goes_from_life_to_life(tmp_path):
    """Killed at random moments again and again: not one unit more than the budget, and no acknowledged one lost."""
    rng, path, released = np.random.default_rng(1), tmp_path / "gate", 0

    def spend(acknowledge):
        with Gate.open(path, budget=3.0) as gate:
            while gate.allows(0.05):
                gate.pay(0.05)
                acknowledge()

    for _ in range(300 if WHOLE else 30):
        spender = Spender(spend)
        time.sleep(rng.uniform(0.0, 0.15))
        released += 5 * spender.end(kill=True)[0]
        if path.exists():
            assert released <= round(100 * Gate.load(path).spent) <= 300
    assert released > 30
    released += 5 * Spender(spend).end(kill=False)[0]
    assert Gate.load(path).left == 0.0
    assert {name for name in os.listdir(tmp_path)} <= {"gate"}


@KINDS
def test_a_write_that_fails_is_one_error_and_not_counted(open_it, tmp_path):
    """The system refuses to write more than so many bytes of a file: SQLite's journal, or the file itself."""
    expected = stands(open_it, tmp_path)

    def spend(acknowledge):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        for limit in (0, 100, 511, 512, 600, 1023, 1100):
            path = tmp_path / f"file{limit}"
            with open_it(path) as held:
                held.pay(AMOUNTS[0])
                before = held.facts()
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
                try:
                    held.pay(AMOUNTS[1])
                except InputError as wrong:
                    assert str(wrong).startswith(f"cannot write {path}: ")  # noqa: PT017 (a failure ends the child)
                    assert held.facts() == before
                finally:
                    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
                if held.facts() == before:
                    acknowledge()
                    held.pay(AMOUNTS[1])
                assert held.facts() == expected[2]
            with open_it(path) as held:
                assert held.facts() == expected[2]
        acknowledge()

    said, _ = Spender(spend).end(kill=False)
    assert said >= 4  # at least three limits were felt, and all of it held


class Stop(BaseException):
    """What a signal handler may raise."""


@KINDS
def test_an_interrupted_payment_is_counted_or_not_and_says_so(open_it, tmp_path):
    """A timer raises into `pay` at any moment: memory, file and the note on the exception agree."""
    said = set()
    for number in range(40):
        path, paid = tmp_path / f"file{number}", 0.0
        with alarms(Stop) as set_timer, open_it(path) as held:
            set_timer(1e-4 * (1 + number % 25))
            try:
                for amount in AMOUNTS:
                    held.pay(amount)
                    paid += amount
            except Stop as stopped:
                notes = getattr(stopped, "__notes__", [])
                said.update(note.partition(" is")[2] for note in notes)
                counted = any(note.endswith("is counted") for note in notes)
                assert held.spent == pytest.approx(paid + amount * counted, abs=0.02) or not notes
            set_timer(0.0)
            paid = held.spent
        with open_it(path) as held:
            assert held.spent == paid
    assert " counted" in said


def test_an_interrupt_before_the_disk_is_asked_is_not_counted(monkeypatch, tmp_path):
    with open_gate(tmp_path / "gate") as gate:

        def stop(self):
            raise Stop

        monkeypatch.setattr(FactFile, "check", stop)
        with pytest.raises(Stop) as stopped:
            gate.pay(1.0)
        monkeypatch.undo()
        assert stopped.value.__notes__ == ["the payment of 1.0 is not counted"]
        assert gate.spent == 0.0


def test_interrupts_in_a_tight_loop_leave_the_pacer_whole(tmp_path):
    """A timer raises into `pay` again and again: price, plan and spending stay together, in memory."""
    pacer, share, interrupted = Pacer(1e6, 10**6, 1.0, 1.0), 1.0, 0

    with alarms(Stop) as set_timer:
        for _ in range(300):
            try:
                set_timer(2e-4)
                while True:
                    pacer.pay(0.25)
            except Stop:
                interrupted += 1
            assert pacer.spent == 0.25 * pacer.played
            assert pacer.planned == pytest.approx(share * pacer.played)
    assert interrupted == 300
    assert pacer._kept.lock.acquire(blocking=False)


# --- damage -------------------------------------------------------------------------------------------------------------------------------


def files_of(folder):
    """One file of each kind: saved, and left behind by a holder who was killed."""
    for open_it in (open_gate, open_pacer):
        kind = "gate" if open_it is open_gate else "pacer"

        def spend(acknowledge, open_it=open_it, kind=kind):
            held = open_it(folder / f"{kind}-held")
            for amount in AMOUNTS[:2]:
                held.pay(amount)
            acknowledge()
            time.sleep(60.0)

        spender = Spender(spend)
        os.set_blocking(spender.said, True)
        os.read(spender.said, 1)
        spender.end(kill=True)
        with open_it(folder / f"{kind}-other") as held:
            held.pay(0.3)
            held.save(folder / f"{kind}-saved")
        yield open_it, folder / f"{kind}-held"
        yield open_it, folder / f"{kind}-saved"


@pytest.mark.slow
def test_every_flipped_bit_is_detected_or_harmless(tmp_path):
    for open_it, path in files_of(tmp_path):
        with open_it(path) as held:
            good = held.facts()
        whole, refused = path.read_bytes(), 0
        bits = range(8 * len(whole)) if WHOLE else np.random.default_rng(0).choice(8 * len(whole), 600, replace=False).tolist()
        for bit in bits:
            data = bytearray(whole)
            data[bit // 8] ^= 1 << bit % 8
            path.write_bytes(data)
            try:
                with open_it(path) as held:
                    assert held.facts() == good, f"bit {bit % 8} of byte {bit // 8} of {path.name}"
            except InputError:
                refused += 1
        path.write_bytes(whole)
        assert refused > 0.2 * len(bits)


def test_every_truncation_is_detected_or_harmless(tmp_path):
    for open_it, path in files_of(tmp_path):
        with open_it(path) as held:
            good = held.facts()
        whole = path.read_bytes()
        for length in range(0, len(whole) - 1, 1 if WHOLE else 37):
            path.write_bytes(whole[:length])
            with contextlib.suppress(InputError), open_it(path) as held:
                assert held.facts() == good, f"{length} bytes of {path.name}"  # nothing but the empty end of a page is missing


def test_deep_and_strange_json_is_one_error(tmp_path):
    path = tmp_path / "gate"
    for text in (
        "",
        "\n",
        "[" * 100_000,
        '{"library": ' + "[" * 100_000,
        '{"library": "bridle", "kind": "gate", "schema": 1, "unit": ' + "9" * 5000 + "}",
        "NaN",
    ):
        path.write_text(text)
        for kind in (Gate, Pacer):
            for attempt in (kind.load, kind.open):
                with pytest.raises(InputError, match=r"cannot open .*: (it is damaged, or|file is not a database)"):
                    attempt(path)
