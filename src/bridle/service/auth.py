"""API keys: what they may do, how they are made and recognised.

A key reads ``brk_ID_SECRET``. The ID is public: it names the key in lists, logs and the audit. The SECRET has 256 random bits, is shown
once, and is kept as a salted hash. So much randomness cannot be guessed from a fast hash, and a slow one would only make every request
slow: it is BLAKE2b.

>>> text, made = make_key("shop", ["decide", "observe"], when=0.0)
>>> text.startswith(f"brk_{made.id}_"), recognise(text, {made.id: made}) is made, may(made, "decide"), may(made, "admin")
(True, True, True, False)
>>> recognise(text[:-1] + "!", {made.id: made}) is None, recognise(text, {made.id: made._replace(revoked=1.0)}) is None
(True, True)
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Collection, Mapping

from bridle import validate
from bridle.core import InputError
from bridle.database.rows import AccessKey

SCOPES = ("decide", "observe", "read", "admin")
"""What a key may do; `admin` may do everything."""

PREFIX = "brk_"
LONGEST = 200
"""No key is longer, in characters."""

ANYBODY = AccessKey("-", "anybody", "admin", b"", b"", "", 0.0, None)
"""Who asks where no keys are asked for."""

NOBODY = AccessKey("-", "nobody", "", bytes(16), bytes(32), "", 0.0, 0.0)
"""What a text is compared with that names no key, so that it takes as long as one that does."""


def may(key: AccessKey, scope: str) -> bool:
    """Whether a key has this scope."""
    scopes = key.scopes.split()
    return scope in scopes or "admin" in scopes


def who(key: AccessKey) -> str:
    """How a key is named in logs and in the audit."""
    return f"{key.name} ({key.id})"


def make_key(name: str, scopes: Collection[str], when: float) -> tuple[str, AccessKey]:
    """A new key: its text, which is kept nowhere, and what is kept of it."""
    if not isinstance(name, str) or not 0 < len(name.strip()) <= 100 or not name.isprintable():
        raise InputError(f"the name of a key must have 1 to 100 printable characters, not {validate.show(name)}")
    if not scopes:
        raise InputError(f"a key needs a scope: {', '.join(SCOPES)}")
    for scope in scopes:
        validate.one_of("scope", scope, SCOPES)
    public, secret, salt = secrets.token_hex(6), secrets.token_urlsafe(32), secrets.token_bytes(16)
    kept = " ".join(scope for scope in SCOPES if scope in scopes)
    return f"{PREFIX}{public}_{secret}", AccessKey(public, name.strip(), kept, salt, hashed(secret, salt), "", when, None)


def hashed(secret: str, salt: bytes) -> bytes:
    """What is kept of a secret."""
    return hashlib.blake2b(secret.encode(), digest_size=32, salt=salt, person=b"bridle-key").digest()


def recognise(text: str, keys: Mapping[str, AccessKey]) -> AccessKey | None:
    """The key that this text is, if it is one and was not revoked. How long it takes says nothing of how near a wrong one came."""
    public, _, secret = text[:LONGEST].removeprefix(PREFIX).partition("_")
    key = keys.get(public, NOBODY)
    same = hmac.compare_digest(hashed(secret, key.salt), key.digest)
    return key if same and key.revoked is None and text.startswith(PREFIX) and len(text) <= LONGEST else None
