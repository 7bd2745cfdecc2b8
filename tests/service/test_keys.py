"""Keys: what is kept of them, what opens and what does not, and what a key may do."""

from __future__ import annotations

import asyncio
import hmac
import threading
import time

import pytest

from bridle.core import InputError
from bridle.database.rows import StoreError
from bridle.service import auth
from bridle.service.auth import SCOPES, KeyRing, make_key, may, recognise
from bridle.service.config import ServiceLimits
from bridle.service.errors import HTTPError


class FakeKeys:
    """The keys of a store, and how often they were read."""

    def __init__(self, *keys):
        self.rows, self.reads = list(keys), 0

    def list(self):
        self.reads += 1
        return list(self.rows)


class FakeStore:
    def __init__(self, *keys):
        self.keys = FakeKeys(*keys)


def ring_with(*keys, **limits):
    ring = KeyRing(FakeStore(*keys), ServiceLimits(**limits), insecure=False)
    return ring


def admitted(ring, text, scope="read"):
    async def ask():
        return await ring.admit(None if text is None else f"Bearer {text}", scope)

    return asyncio.run(ask())


def test_nothing_that_is_kept_contains_the_secret():
    text, key = make_key("shop", ["decide"], 1.0)
    secret = text.split("_", 2)[2]
    assert len(secret) >= 43
    assert secret.encode() not in b"".join(
        each.encode() if isinstance(each, str) else each for each in key if isinstance(each, (str, bytes))
    )
    assert key.salt != make_key("shop", ["decide"], 1.0)[1].salt


def test_equal_secrets_have_different_hashes():
    assert auth.hashed("secret", b"a" * 16) != auth.hashed("secret", b"b" * 16)


def test_a_slow_read_does_not_bring_a_revoked_key_back():
    text, key = make_key("shop", ["read"], 1.0)
    ring = ring_with(key)
    slow, waiting = threading.Event(), threading.Event()

    def old():
        waiting.set()
        slow.wait(10.0)
        return [key]

    async def read():
        ring.store.keys.list = old
        first = asyncio.create_task(ring.refresh())
        await asyncio.to_thread(waiting.wait, 10.0)
        ring.store.keys.list = lambda: [key._replace(revoked=2.0)]
        await ring.refresh()
        slow.set()
        await first

    asyncio.run(read())
    assert recognise(text, ring.keys) is None


def test_every_changed_character_makes_a_key_wrong():
    text, key = make_key("shop", ["decide"], 1.0)
    keys = {key.id: key}
    assert recognise(text, keys) is key
    for i, letter in enumerate(text):
        other = text[:i] + ("A" if letter != "A" else "B") + text[i + 1 :]
        assert recognise(other, keys) is None, i
    assert recognise(text + "x", keys) is None
    assert recognise("", keys) is None
    assert recognise("x" * 10_000, keys) is None


def test_one_key_does_not_open_with_the_secret_of_another():
    (one, first), (two, second) = make_key("a", ["read"], 1.0), make_key("b", ["read"], 1.0)
    mixed = f"brk_{first.id}_{two.split('_', 2)[2]}"
    assert recognise(mixed, {first.id: first, second.id: second}) is None
    assert recognise(one, {second.id: second}) is None


def test_secrets_are_compared_in_constant_time_also_for_unknown_keys(monkeypatch):
    text, key = make_key("shop", ["read"], 1.0)
    compared, own = [], hmac.compare_digest

    def compare(a, b):
        compared.append((len(a), len(b)))
        return own(a, b)

    monkeypatch.setattr(auth.hmac, "compare_digest", compare)
    recognise(text, {key.id: key})
    recognise(text, {})
    recognise("rubbish", {key.id: key})
    assert compared == [(32, 32)] * 3


@pytest.mark.parametrize("scope", SCOPES)
def test_a_key_may_do_what_its_scopes_say(scope):
    _, key = make_key("one", [scope], 1.0)
    assert [may(key, other) for other in SCOPES] == [scope in (other, "admin") for other in SCOPES]


@pytest.mark.parametrize(("name", "scopes"), [("", ["read"]), ("a" * 101, ["read"]), ("a\nb", ["read"]), ("a", []), ("a", ["root"])])
def test_keys_without_a_name_or_a_known_scope_are_refused(name, scopes):
    with pytest.raises(InputError):
        make_key(name, scopes, 1.0)


def test_the_ring_admits_refuses_and_names_what_is_missing():
    text, key = make_key("shop", ["read"], 1.0)
    ring = ring_with(key)
    assert admitted(ring, text) == key
    for wrong in (None, "", "brk_x_y", text[:-1]):
        with pytest.raises(HTTPError) as turned:
            admitted(ring, wrong)
        assert turned.value.status == 401
        assert text not in str(turned.value)
    with pytest.raises(HTTPError, match="lacks the scope admin; it has read") as turned:
        admitted(ring, text, "admin")
    assert turned.value.status == 403


def test_a_key_that_was_added_just_now_is_found_and_one_revoked_is_forgotten():
    text, key = make_key("shop", ["read"], 1.0)
    ring = ring_with()
    asyncio.run(ring.refresh())
    ring.store.keys.rows.append(key)
    assert admitted(ring, text) == key  # also right after a read
    ring.store.keys.rows[0] = key._replace(revoked=2.0)
    asyncio.run(ring.refresh())
    with pytest.raises(HTTPError) as turned:
        admitted(ring, text)
    assert turned.value.status == 401


def test_valid_keys_wait_for_the_first_read_and_share_it():
    text, key = make_key("shop", ["read"], 1.0)
    ring = ring_with(key)
    own, begun, finish = ring.store.keys.list, threading.Event(), threading.Event()

    def slow():
        begun.set()
        assert finish.wait(10.0)
        return own()

    async def ask():
        ring.store.keys.list = slow
        starting = asyncio.create_task(ring.refresh())
        await asyncio.to_thread(begun.wait, 10.0)
        requests = [asyncio.create_task(ring.admit(f"Bearer {text}", "read")) for _ in range(50)]
        await asyncio.sleep(2.0 * auth.AT_MOST_EVERY)
        finish.set()
        await starting
        return await asyncio.gather(*requests)

    assert asyncio.run(ask()) == [key] * 50
    assert ring.store.keys.reads == 2  # the one that was under way, and one for all requests


def test_a_key_added_during_a_read_is_found_by_the_next():
    text, key = make_key("shop", ["read"], 1.0)
    ring = ring_with()
    begun, finish = threading.Event(), threading.Event()

    def before_it_was_added():
        begun.set()
        assert finish.wait(10.0)
        return []

    async def ask():
        own, ring.store.keys.list = ring.store.keys.list, before_it_was_added
        reading = asyncio.create_task(ring.refresh())
        await asyncio.to_thread(begun.wait, 10.0)
        ring.store.keys.list = own
        ring.store.keys.rows.append(key)
        request = asyncio.create_task(ring.admit(f"Bearer {text}", "read"))
        await asyncio.sleep(0.0)
        finish.set()
        await reading
        return await request

    assert asyncio.run(ask()) == key


def test_while_keys_cannot_be_read_unknown_keys_are_told_to_come_again():
    (text, key), (other, second) = make_key("shop", ["read"], 1.0), make_key("new", ["read"], 1.0)
    ring = ring_with(key)
    own = ring.store.keys.list

    def broken():
        raise StoreError("the database is gone")

    ring.store.keys.list = broken
    with pytest.raises(HTTPError) as turned:
        admitted(ring, text)  # nothing was ever read
    assert turned.value.status == 503
    assert int(turned.value.headers["Retry-After"]) >= 1
    ring.store.keys.list = own
    assert admitted(ring, text) == key
    ring.store.keys.list = broken
    ring.store.keys.rows.append(second)
    assert admitted(ring, text) == key  # it is known
    with pytest.raises(HTTPError) as turned:
        admitted(ring, other)
    assert turned.value.status == 503
    with pytest.raises(HTTPError) as turned:
        admitted(ring, None)  # no key is no key, whatever the database says
    assert turned.value.status == 401
    ring.store.keys.list = own
    assert admitted(ring, other) == second


def test_wrong_keys_do_not_make_the_database_busy():
    ring = ring_with()

    async def ask():
        return await asyncio.gather(*(ring.admit("Bearer brk_000000000000_x", "read") for _ in range(200)), return_exceptions=True)

    begun = time.monotonic()
    for _ in range(4):
        assert {turned.status for turned in asyncio.run(ask())} == {401}
    assert time.monotonic() - begun >= 3.0 * auth.AT_MOST_EVERY
    assert ring.store.keys.reads == 4


def test_a_key_that_asks_too_often_is_told_when_to_come_again():
    text, key = make_key("shop", ["read"], 1.0)
    ring = ring_with(key, rate=0.01)
    admitted(ring, text)
    with pytest.raises(HTTPError) as turned:
        admitted(ring, text)
    assert turned.value.status == 429
    assert int(turned.value.headers["Retry-After"]) >= 1
