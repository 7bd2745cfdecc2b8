"""How much a client may ask for: sizes, and how often.

>>> bucket = Bucket(rate=2.0, burst=3.0)
>>> [bucket.take(0.0) for _ in range(4)]  # three at once, and then one each half second
[0.0, 0.0, 0.0, 0.5]
>>> bucket.take(0.5)
0.0
"""

from __future__ import annotations

from dataclasses import dataclass

from bridle import validate
from bridle.core import InputError


@dataclass(frozen=True)
class ServiceLimits:
    """What one client may ask for; a table `limits` in the configuration has the same names."""

    body: int = 16_000_000
    """Bytes of a request."""
    header: int = 32_768
    """Bytes of the request line and the headers of a request."""
    connections: int = 2_000
    """Connections of all clients; fewer if the system allows the process fewer open files."""
    deadline: float = 10.0
    """Seconds for the header of a request, and for its body, which has one more for every 16 KB received."""
    batch: int = 10_000
    """Events of a batch."""
    rate: float = 20_000.0
    """Requests a second of one key, on average; twice as many at once."""
    sessions: int = 2_000
    """Sessions that one key may have open at the same time."""
    waiting: int = 10_000
    """Requests that may wait for one session."""
    dim: int = 100_000
    """Dimensions of a decision."""
    constraints: int = 1_000
    """Constraints of a round."""
    rules: int = 1_000
    """Rules, or features, of a session."""

    @classmethod
    def checked(cls, **given: object) -> ServiceLimits:
        """With these in the place of the defaults."""
        known = {name: field.default for name, field in cls.__dataclass_fields__.items()}
        clean: dict[str, float] = {}
        for name, value in given.items():
            validate.one_of("limit", name, known)
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise InputError(f"limits.{name} must be a number, not {validate.show(value)}")
            clean[name] = (
                validate.positive(f"limits.{name}", value) if name in ("rate", "deadline") else validate.whole(f"limits.{name}", value)
            )
        return cls(**clean)  # type: ignore[arg-type]


class Bucket:
    """A bucket of tokens that fills at a rate: each request takes one."""

    __slots__ = ("burst", "rate", "then", "tokens")

    def __init__(self, rate: float, burst: float) -> None:
        self.rate, self.burst, self.tokens, self.then = rate, burst, burst, 0.0

    def take(self, now: float) -> float:
        """Take a token at this time: 0, or how many seconds to wait for one (and none is taken)."""
        self.tokens = min(self.burst, self.tokens + (now - self.then) * self.rate)
        self.then = now
        if self.tokens >= 1.0:
            self.tokens -= 1.0
            return 0.0
        return (1.0 - self.tokens) / self.rate
