"""Gates and pacers under threads, on files, between processes: not one unit more, whenever who dies."""

from __future__ import annotations

import copy
import json
import os
import pickle
import signal
import stat
import sys
import threading
import warnings

import numpy as np
import pytest

import bridle
from bridle import Gate, InputError, Pacer, journal, storage
from helpers.dying_writes import at_step, count_steps, die_at_step, fail
from helpers.interrupts import alarms

PACER = {"budget": 20.0, "rounds": 50, "value": 1.0, "spend": 1.0, "plan": [1, 2]}
AMOUNTS = [0.3, 0.25, 0.01, 0.4, 0.125, 0.3, 0.2]


@pytest.fixture
def few_slots(monkeypatch):
    """So few that a handful of payments uses them up."""
    monkeypatch.setattr(journal, "SLOTS", 3)


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch):
    """Processes die here, machines do not: a sync is a step like any other, and its wait would make no difference."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    monkeypatch.setattr(os, "fdatasync", lambda handle: None)


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


def test_threads_share_a_gate_on_a_file(tmp_path, few_slots):
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
            with pytest.raises(InputError, match=rf"^cannot \w+ {path}: process {holder.process} on .* holds it"):
                attempt()
    finally:
        holder.end(kill)
    with open_gate(path) as gate:
        assert gate.spent == 1.0
        with pytest.raises(InputError, match=r"this process \(process \d+ on .* holds it"):
            open_gate(path)
    assert os.listdir(tmp_path) == ["gate"]
    assert Gate.load(path).spent == 1.0


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


def test_a_holder_whose_lock_was_removed_is_fenced_off(tmp_path):
    path = tmp_path / "gate"
    old = open_gate(path)
    old.pay(1.0)
    (tmp_path / "gate.lock").unlink()
    new = open_gate(path)
    for _ in range(2):
        with pytest.raises(InputError, match="another process has taken it over"):
            old.pay(2.0)
    with pytest.raises(InputError, match="another process has taken it over"):
        old.set_budget(50.0)
    assert old.spent == 1.0
    new.pay(3.0)
    old.close()
    with pytest.raises(InputError, match="holds it"):  # the old one did not take the new one's lock away
        open_gate(path)
    new.close()
    assert Gate.load(path).spent == 4.0


def test_a_glance_at_the_file_that_fails_is_not_the_end(tmp_path, monkeypatch):
    """Only a file that is another one, or gone, fences a holder off; what the system could not tell is one error, and passes."""
    with open_gate(tmp_path / "gate") as gate:
        with monkeypatch.context() as patch:
            patch.setattr(os, "fstat", lambda handle: fail())
            with pytest.raises(InputError, match=r"cannot write .*gate: Input/output error"):
                gate.pay(1.0)
        assert gate.spent == 0.0
        gate.pay(2.0)
    assert Gate.load(tmp_path / "gate").spent == 2.0


def test_a_payment_acknowledged_while_another_takes_over_is_not_lost(tmp_path):
    """Without any lock: at every step of the new holder's opening the old one pays, and is refused or counted."""
    outcomes, n = set(), 0
    while True:
        n += 1
        path = tmp_path / f"gate{n}"
        old = open_gate(path)
        old.pay(1.0)
        (tmp_path / f"gate{n}.lock").unlink()
        acknowledged = [1.0]

        def pay(old=old, acknowledged=acknowledged):
            try:
                acknowledged.append(old.pay(2.0))
            except InputError as refused:
                outcomes.add(str(refused).partition(": ")[2])

        with at_step(n, pay) as steps:
            new = open_gate(path)
        new.pay(4.0)
        old.close()
        new.close()
        assert Gate.load(path).spent == sum(acknowledged) + 4.0
        outcomes.add(sum(acknowledged))
        if steps.taken < n:
            break
    assert len(outcomes) == 3  # refused, not paid, and paid


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
    with pytest.raises(InputError, match="holds it"):
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


def test_a_file_that_was_saved_is_opened_and_one_without_a_digest_says_so(tmp_path):
    gate = Gate(20.0)
    gate.pay(3.0)
    gate.save(tmp_path / "saved")
    with open_gate(tmp_path / "saved") as held:
        assert (held.spent, held.unchecked) == (3.0, False)
    facts = {"library": "bridle", "kind": "gate", "schema": 1, **gate.facts()}
    (tmp_path / "old").write_text(json.dumps(facts, indent=1))
    with pytest.warns(bridle.UncheckedWarning, match="has no digest"):
        held = open_gate(tmp_path / "old")
    assert (held.spent, held.unchecked) == (3.0, True)
    held.close()
    with open_gate(tmp_path / "old") as held:
        assert not held.unchecked


def test_the_mode_of_a_gate_s_file_is_kept(tmp_path, few_slots):
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


def trajectory(open_it, folder):
    """The facts after 0, 1, 2 ... of the payments."""
    facts = []
    with open_it(folder / "reference") as held:
        facts.append(held.facts())
        for amount in AMOUNTS:
            held.pay(amount)
            facts.append(held.facts())
    return facts


@pytest.mark.slow
@KINDS
def test_no_kill_loses_an_acknowledged_payment_or_gives_one_back(open_it, tmp_path, few_slots):
    """Between every two steps of opening, paying, replacing the file and closing; whoever comes next finds all that was acknowledged."""
    stands, place = trajectory(open_it, tmp_path), tmp_path / "here"

    def spend(acknowledge):
        with open_it(place / "file") as held:
            for amount in AMOUNTS:
                held.pay(amount)
                acknowledge(amount)  # here the money leaves

    n, uncertain = 0, 0
    while True:
        n += 1
        place.mkdir()
        died = die_at_step(n, spend, sigkill=True)
        storage.sweep(place)
        with open_it(place / "file") as held:
            counted = stands.index(held.facts())
        assert counted - len(died.acknowledged) in (0, 1)  # at most the one that was under way
        uncertain += counted > len(died.acknowledged)
        assert os.listdir(place) == ["file"]
        (place / "file").unlink()
        place.rmdir()
        if not died.killed:
            break
    assert died.acknowledged == [str(amount) for amount in AMOUNTS]
    assert n > 60
    assert 0 < uncertain < n // 2


@KINDS
def test_a_failure_of_any_step_is_one_error_and_not_counted(open_it, tmp_path, few_slots):
    stands = trajectory(open_it, tmp_path)

    def spend(held, refused):
        for amount in AMOUNTS:
            before = held.facts()
            try:
                held.pay(amount)
            except InputError as wrong:
                refused.append(str(wrong))
                assert held.facts() == before
                held.pay(amount)

    n = 0
    while True:
        n += 1
        path, refused = tmp_path / f"file{n}", []
        held = open_it(path)
        with at_step(n, fail) as steps:
            spend(held, refused)
        assert held.facts() == stands[-1]
        assert all(text == f"cannot write {path}: Input/output error" or "in its place" in text for text in refused)
        held.close()
        with open_it(path) as held:
            assert held.facts() == stands[-1]
        if steps.taken < n:
            break
        assert refused
    assert n > 40
    assert not [name for name in os.listdir(tmp_path) if name.endswith((".tmp", ".lock"))]


class Stop(BaseException):
    """What a signal handler may raise."""


@KINDS
def test_an_interrupted_payment_is_counted_or_not_and_says_so(open_it, tmp_path, few_slots):
    def stop():
        raise Stop

    said, n = set(), 0
    while True:
        n += 1
        path, paid = tmp_path / f"file{n}", 0.0
        held = open_it(path)
        with at_step(n, stop) as steps:
            for amount in AMOUNTS:
                try:
                    held.pay(amount)
                except Stop as stopped:
                    note = stopped.__notes__[0]
                    said.add(note.partition(" is")[2])
                    paid += amount * ("not" not in note)
                else:
                    paid += amount
        held.close()
        with open_it(path) as held:
            assert held.spent == pytest.approx(paid, abs=0.02)
        if steps.taken < n:
            break
    assert n > 40
    assert said == {" counted"}  # once the disk is asked, it is


def test_an_interrupt_before_the_disk_is_asked_is_not_counted(monkeypatch, tmp_path):
    with open_gate(tmp_path / "gate") as gate:

        def stop(self):
            raise Stop

        monkeypatch.setattr(journal.Journal, "check", stop)
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
    """One file of each kind: saved, and left behind by a holder who died with some slots used, one of them half-written."""
    for open_it in (open_gate, open_pacer):
        kind = "gate" if open_it is open_gate else "pacer"

        def spend(acknowledge, open_it=open_it, kind=kind):
            held = open_it(folder / f"{kind}-held")
            for amount in AMOUNTS[:2]:
                held.pay(amount)

        die_at_step(None, spend)
        with open_it(folder / f"{kind}-other") as held:
            held.pay(0.3)
            held.save(folder / f"{kind}-saved")
        yield kind, folder / f"{kind}-held"
        yield kind, folder / f"{kind}-saved"


def test_every_flipped_bit_is_detected_or_harmless(tmp_path, few_slots):
    for kind, path in files_of(tmp_path):
        whole = path.read_bytes()
        good, checked = journal.decode(whole, kind, "it")
        assert checked
        data, refused = bytearray(whole), 0
        for bit in range(8 * len(whole)):
            data[bit // 8] ^= 1 << bit % 8
            try:
                facts, checked = journal.decode(bytes(data), kind, "it")
            except InputError:
                refused += 1
            else:
                assert {name: facts.get(name) for name in good} == good, f"bit {bit % 8} of byte {bit // 8} of {path.name}"
            data[bit // 8] ^= 1 << bit % 8
        assert refused > 0.4 * 8 * len(whole)


def test_every_truncation_is_detected(tmp_path, few_slots):
    """Also where entries are cut off whole: then money would be given back."""
    for kind, path in files_of(tmp_path):
        whole = path.read_bytes()
        for length in range(len(whole) - 1):
            with pytest.raises(InputError):
                journal.decode(whole[:length], kind, "it")
        with pytest.raises(InputError):
            journal.decode(whole + b"\0", kind, "it")


def test_an_entry_means_nothing_in_another_place_or_file(tmp_path):
    paths = [tmp_path / "one", tmp_path / "two"]
    for path in paths:
        gate = open_gate(path)
        for amount in (1.0, 2.0, 3.0):
            gate.pay(amount)
        gate.close()
    one, two = (path.read_bytes() for path in paths)
    slots, size = one.index(b"\n") + 1, journal.SLOT
    earlier = one[slots : slots + size]
    for forged in (one[: slots + size] + earlier + one[slots + 2 * size :], one[:slots] + two[slots:]):
        with pytest.raises(InputError, match="an entry does not fit its checksum"):
            journal.decode(forged, "gate", "it")


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
                with pytest.raises(InputError, match=r"cannot (read|load) "):
                    attempt(path)


def test_one_payment_is_one_write_and_one_sync(tmp_path):
    with open_gate(tmp_path / "gate") as gate:
        gate.pay(0.5)
        with at_step(None, lambda: None) as steps:
            gate.pay(0.5)
    assert steps.names == ["write", "sync_data"]
    assert count_steps(lambda: None) == 0


@pytest.mark.slow
def test_many_kills_at_random_steps(tmp_path):
    """With the slots as they are: one file that goes from life to life, as it would in service."""
    rng, path, released = np.random.default_rng(0), tmp_path / "gate", 0

    def spend(acknowledge):
        with Gate.open(path, budget=100.0) as gate:
            while gate.allows(0.05):
                gate.pay(0.05)
                acknowledge("paid")

    for _ in range(50):
        died = die_at_step(int(rng.integers(1, 120)), spend, sigkill=True)
        released += 5 * len(died.acknowledged)
        storage.sweep(tmp_path)
        if path.exists():
            assert released <= round(100 * Gate.load(path).spent) <= 10_000
        assert {name for name in os.listdir(tmp_path)} <= {"gate", "gate.lock"}
    assert released > 300
