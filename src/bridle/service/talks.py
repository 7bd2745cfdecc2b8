"""What can be said to the service: every verb of a session as a conversation (`exchange.Talk`), for both kinds of clients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from urllib.parse import quote

import numpy as np
from numpy.typing import ArrayLike

from bridle import validate
from bridle.core import Bound, Domain, InputError
from bridle.domains.closed_form import BallSet, BoxSet, L1BallSet, ProductSet, SimplexSet, SpectrahedronSet
from bridle.domains.combinatorial import MatchingSet, PathSet, SpanningTreeSet
from bridle.domains.polyhedron import PolyhedronSet
from bridle.ops import Array
from bridle.policies.registry import Configured
from bridle.service.exchange import Body, Facts, ServiceLine, Talk, identity
from bridle.session.certificate import Certificate, Charge, Conflict, Moved
from bridle.session.feedback import Numbers, evaluate
from bridle.session.hints import HintGiven, parts_of
from bridle.session.late_feedback import Ticket
from bridle.session.rates import RateLimit

KnownHalfspaces = tuple[ArrayLike, ArrayLike] | None
"""Limits that are known before acting, as they can be sent: A x <= b."""


def said_domain(domain: Domain | Mapping[str, object]) -> Body:
    """A domain as the service reads it.

    >>> import bridle
    >>> said_domain(bridle.Box(0.0, 40.0, dim=1))
    {'kind': 'box', 'low': [0.0], 'high': [40.0]}
    """
    if isinstance(domain, Mapping):
        return dict(domain)
    if isinstance(domain, BoxSet):
        return {"kind": "box", "low": domain.low.tolist(), "high": domain.high.tolist()}
    if isinstance(domain, (BallSet, L1BallSet)):
        return {
            "kind": "ball" if isinstance(domain, BallSet) else "l1ball",
            "center": domain.middle.tolist(),
            "radius": float(domain.radius),
        }
    if isinstance(domain, SimplexSet):
        return {"kind": "simplex", "dim": domain.dim, "mass": float(domain.mass)}
    if isinstance(domain, SpectrahedronSet):
        return {"kind": "spectrahedron", "size": round(domain.dim**0.5), "trace": float(domain.trace)}
    if isinstance(domain, PolyhedronSet):
        return {"kind": "polyhedron", "A": domain.A.tolist(), "b": domain.b.tolist()}
    if isinstance(domain, PathSet):
        edges = np.stack([domain.tails, domain.heads], axis=-1).astype(int).tolist()
        return {"kind": "paths", "edges": edges, "source": 0, "target": domain.nodes - 1}
    if isinstance(domain, SpanningTreeSet):
        return {"kind": "spanningtrees", "edges": domain.ends.T.astype(int).tolist()}
    if isinstance(domain, MatchingSet):
        rows, columns = domain.middle.shape
        return {"kind": "matchings", "rows": rows, "columns": columns}
    if isinstance(domain, ProductSet):
        return {"kind": "product", "domains": [said_domain(part) for part in domain.domains]}
    raise InputError(f"domain must be one that the service knows, or its description as a dict, not {validate.show(domain)}")


def said_session(
    name: str,
    policy: str | Configured,
    domain: Domain | Mapping[str, object] | None,
    parameters: Mapping[str, object] | None,
    options: Mapping[str, object],
) -> Body:
    """The body that makes a session."""
    settings = dict(parameters or {})
    if isinstance(policy, Configured):
        domain, own = (policy.recipe[0] if domain is None else domain), policy.recipe[1]
        policy, settings = policy.name, {**own, **settings}
    if domain is None:
        raise InputError("domain must be given, unless the policy has one")
    body: Body = {"name": name, "policy": policy, "domain": said_domain(domain)}
    for key in ("rules", "rules_per", "features"):  # the service has them beside the parameters
        if key in settings:
            body[key] = settings.pop(key)
    if settings:
        body["parameters"] = settings
    body |= {key: value for key, value in options.items() if value is not None}
    return {key: _plain(value, key) for key, value in body.items()}


def _plain(value: object, name: str) -> object:
    """A value as JSON can hold it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each, f"{name}.{key}".lstrip(".")) for key, each in value.items()}
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return [_plain(each, name) for each in value]
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and isfinite(value)):
        return value
    raise InputError(f"{name} must be something that JSON can hold, not {validate.show(value)}")


def _numbers(name: str, value: Numbers) -> object:
    """Numbers of a record: finite, as nested lists."""
    return validate.array(name, value).tolist()


def _proposals(rules: ArrayLike) -> object:
    """What rules propose; a row of NaN has nothing to say."""
    rows = np.asarray(rules, dtype=np.float64)
    quiet = np.isnan(rows)
    validate.array("rules", np.where(quiet, 0.0, rows))
    if not quiet.any():
        return rows.tolist()
    return [
        None if (rest := np.isnan(row)).all() else [None if q else v for v, q in zip(row.tolist(), rest, strict=True)]
        for row in np.atleast_2d(rows)
    ]


def said_before(rules: Numbers, features: Numbers, known: KnownHalfspaces, hint: HintGiven = None) -> Body:
    """What is said of a round before it is decided."""
    body: Body = {}
    if rules is not None:
        body["rules"] = _proposals(rules)
    if features is not None:
        body["features"] = _numbers("features", features)
    if known is not None:
        if not isinstance(known, tuple) or len(known) != 2:
            raise InputError(f"known must be a pair (A, b) for A x <= b: functions cannot be sent; not {validate.show(known)}")
        body["known"] = {"A": _numbers("known A", known[0]), "b": _numbers("known b", known[1])}
    if hint is not None:
        body["hint"] = {name: values.tolist() for name, values in parts_of(hint).items()}
    return body


def said_record(record: Mapping[str, object]) -> Body:
    """A record of an observation: what was given of it, numbers as lists."""
    body: Body = {}
    for name, value in record.items():
        if value is None:
            continue
        if name in ("f", "df", "g", "dg", "modulus", "played"):
            body[name] = _numbers(name, value)  # type: ignore[arg-type]
        elif name == "ticket":
            body[name] = ticket_number(value)
        else:
            body[name] = _plain(value, name)
    return body


def ticket_number(ticket: object) -> int:
    """The number that stands for a round which has begun."""
    if isinstance(ticket, bool) or not hasattr(ticket, "__index__"):
        raise InputError(f"ticket must be one that `ask` has given, or its number, not {validate.show(ticket)}")
    return int(ticket.__index__())


def said_event(event: Mapping[str, object]) -> Body:
    """An event of a batch, as it is sent: an observation unless its `kind` says something else."""
    if not isinstance(event, Mapping):
        raise InputError(f"an event must be a dict, such as {{'f': 1.0, 'df': [0.5]}}, not {validate.show(event)}")
    kind = event.get("kind", "observe")
    rest = {name: value for name, value in event.items() if name != "kind"}
    if kind in ("decide", "ask"):
        said = {name: rest.pop(name, None) for name in ("rules", "features", "known", "hint")}
        return {"kind": kind, **said_before(**said), **rest}  # type: ignore[arg-type]
    return {"kind": kind, **said_record(rest)}


def read_certificate(facts: Facts) -> Certificate:
    """The certificate that was sent as JSON; what was not finite is None there, and stays so."""

    def array(value: object) -> Array | None:
        return None if value is None else np.array(value, dtype=np.float64)

    known = dict(facts)
    known.pop("limits", None)
    known["above"] = tuple((each["level"], each["rounds"]) for each in facts["above"])
    known["alarms"] = tuple((each["kind"], each["round"]) for each in facts["alarms"])
    known["charge"], known["bound"] = Charge(**facts["charge"]), Bound(**facts["bound"])
    known["rates"] = tuple(RateLimit(**each) for each in facts["rates"])
    known["rules"], known["names"] = tuple(facts["rules"]), tuple(facts["names"])
    for name in ("witness", "price", "balance", "weights", "violations"):
        known[name] = array(facts[name])
    if facts["conflict"] is not None:
        conflict: Facts = {key: tuple(each) if isinstance(each, list) else each for key, each in facts["conflict"].items()}
        known["conflict"] = Conflict(**conflict)
    if facts["moved"] is not None:
        moved: Facts = {key: array(each) if isinstance(each, list) else each for key, each in facts["moved"].items()}
        known["moved"] = Moved(**moved)
    return Certificate(**known)


def has_identity(body: Body) -> bool:
    """Whether what is said, or one of several events, is the caller's to say again: under its key, or of its ticket.

    >>> has_identity({"f": 0.3}), has_identity({"events": [{"kind": "observe", "ticket": 7}]})
    (False, True)
    """
    events: list[Body] = body.get("events", [])  # type: ignore[assignment]
    return any(name in each for each in (body, *events) for name in ("key", "ticket"))


class SessionTalks:
    """The verbs of one session."""

    def __init__(self, line: ServiceLine, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise InputError(f"name must be that of a session, not {validate.show(name)}")
        self.name, self._line = name, line
        self._path = f"/v1/sessions/{quote(name, safe='')}"
        self._ahead: list[float] | None = None
        """The next decision, where the answer to an observation has brought it along."""
        self._seen: int | None = None
        """How many rounds had been observed by the last answer that was certainly a new one."""

    def _look(self, what: str = "") -> Talk[Facts]:
        return self._line.ask("GET", self._path + what, about=self.name)

    def _event(self, what: str, body: Body, key: str | None) -> Talk[Facts]:
        self._ahead = None
        facts = yield from self._line.ask("POST", self._path + what, body, key=identity(key), about=self.name)
        # Under an identity of the caller's this may be the answer of long ago, with the decision of then.
        own, count = key is None and not has_identity(body), facts.get("round")
        if count is not None and (own or (self._seen is not None and count > self._seen)):
            self._ahead, self._seen = facts.get("next"), count
        return facts

    def decide(
        self,
        *,
        rules: Numbers = None,
        features: Numbers = None,
        known: KnownHalfspaces = None,
        hint: HintGiven = None,
        key: str | None = None,
    ) -> Talk[Array]:
        """The decision of this round, as `Session.decide`; `known` is a pair (A, b).

        Without arguments it takes no request after an `observe` of this object, whose answer has brought it along. Where several clients
        observe in one session, each round belongs to a ticket: `ask`.
        """
        body = said_before(rules, features, known, hint)
        if not body and key is None and self._ahead is not None:
            return np.array(self._ahead)
        identified = identity(key) if body or key is not None else None  # a plain one is no event
        facts = yield from self._line.ask("POST", self._path + "/decide", body, key=identified, about=self.name)
        self._ahead = None  # the decision is this one now, for as long as the session says so
        if key is None:
            self._seen = facts["round"]
        return np.array(facts["x"], dtype=np.float64)

    def ask(
        self,
        *,
        rules: Numbers = None,
        features: Numbers = None,
        known: KnownHalfspaces = None,
        hint: HintGiven = None,
        points: int | None = None,
        key: str | None = None,
    ) -> Talk[Ticket]:
        """Begin a round whose feedback comes later, as `Session.ask`: its ticket, with an `id` and the decision `x`, or points to try."""
        tried: Body = {} if points is None else {"points": validate.whole("points", points)}
        facts = yield from self._event("/ask", said_before(rules, features, known, hint) | tried, key)
        return Ticket(int(facts["ticket"]), np.array(facts["x"], dtype=np.float64))

    def observe(
        self,
        f: ArrayLike = 0.0,
        df: Numbers = None,
        g: Numbers = None,
        dg: Numbers = None,
        modulus: Numbers = None,
        *,
        ticket: Ticket | int | None = None,
        played: Numbers = None,
        pay: Mapping[str, float] | None = None,
        key: str | None = None,
    ) -> Talk[None]:
        """What was revealed at the decision, as `Session.observe`. Once it returns the round is durable, and counts once.

        `pay` are payments from the session's budgets, by their names, that happen with it or not at all.
        """
        silent = df is None and isinstance(f, float) and f == 0.0  # no cost: it is left out there too
        values: Body = {"f": None if silent else f, "df": df, "g": g, "dg": dg, "modulus": modulus}
        record = values | {"ticket": ticket, "played": played, "pay": pay}
        yield from self._event("/observe", said_record(record), key)

    def forget(self, ticket: Ticket | int, *, key: str | None = None) -> Talk[None]:
        """Give a round up, as `Session.forget`."""
        yield from self._event("/forget", {"ticket": ticket_number(ticket)}, key)

    def batch(self, events: Iterable[Mapping[str, object]], *, key: str | None = None) -> Talk[list[Facts]]:
        """Several events in one request, in their order: one answer each, which is ``{"error": sentence}`` for one that was refused.

        An event is a dict of the arguments of `observe`, or with a ``kind`` (observe, ask, forget, decide) those of that verb.
        """
        facts = yield from self._event("/batch", {"events": [said_event(event) for event in events]}, key)
        answers: list[Facts] = facts["answers"]
        return answers

    def step(
        self,
        cost: object,
        constraints: Sequence[object] = (),
        *,
        rules: Numbers = None,
        features: Numbers = None,
        known: KnownHalfspaces = None,
        hint: HintGiven = None,
    ) -> Talk[Array]:
        """One whole round from functions, which are evaluated here, as `Session.step`."""
        x = yield from self.decide(rules=rules, features=features, known=known, hint=hint)
        f, df = evaluate("cost", cost, x, several=False)
        limits = [evaluate(f"constraints[{i}]", each, x, several=True) for i, each in enumerate(constraints)]
        g = np.concatenate([value.reshape(-1) for value, _ in limits]) if limits else None
        dg = np.concatenate([grad.reshape(-1, len(x)) for _, grad in limits]) if limits else None
        yield from self.observe(f.item(), df, g, dg)
        return x

    def change_limit(
        self, limit: str | int, *, offset: float | None = None, at_most: float | None = None, key: str | None = None
    ) -> Talk[None]:
        """Change a limit from now on, as `DurableSession.change_limit`: where it stands, or how often it may be violated (scope admin)."""
        numbers = {"offset": offset, "at_most": at_most}
        told = {name: validate.number(name, value) for name, value in numbers.items() if value is not None}
        yield from self._event("/limits", {"limit": limit, **told}, key)

    def pay(self, gate: str, amount: float, *, key: str | None = None) -> Talk[Facts]:
        """Pay from a gate or a pacer of the session: whether it counted, and what is left."""
        body = {"gate": gate, "amount": validate.number("amount", amount)}
        facts = yield from self._line.ask("POST", self._path + "/pay", body, key=identity(key), about=self.name)
        return facts

    def bid(self, gate: str, value: float) -> Talk[Facts]:
        """What a pacer of the session bids for something of this value."""
        body = {"gate": gate, "value": validate.number("value", value)}
        facts = yield from self._line.ask("POST", self._path + "/bid", body, about=self.name)
        return facts

    def budget(self, gate: str, budget: float, rounds: int | None = None, *, key: str | None = None) -> Talk[Facts]:
        """Change the budget of a gate or a pacer (scope admin)."""
        body: Body = {"gate": gate, "budget": validate.number("budget", budget)} | ({} if rounds is None else {"rounds": rounds})
        facts = yield from self._line.ask("POST", self._path + "/budget", body, key=identity(key), about=self.name)
        return facts

    def certificate(self) -> Talk[Certificate]:
        """What the observations prove, as `Session.certificate`."""
        return read_certificate((yield from self._look("/certificate")))

    def report(self) -> Talk[str]:
        """The certificate in plain sentences."""
        return str((yield from self._look("/report"))["text"])

    def facts(self) -> Talk[Facts]:
        """All that the list of sessions shows of this one."""
        return (yield from self._look())

    def last_rounds(self, last: int = 100) -> Talk[list[Facts]]:
        """The last rounds that this server has played: round, x, f, g, violation, cost, ccv."""
        rounds: list[Facts] = (yield from self._look(f"/rounds?last={validate.whole('last', last)}"))["rounds"]
        return rounds

    def quarantine(self, limit: int = 100, offset: int = 0) -> Talk[list[Facts]]:
        """Records that were refused: when, why, and what they were."""
        page = f"?limit={validate.whole('limit', limit)}&offset={validate.whole('offset', offset, 0)}"
        refused: list[Facts] = (yield from self._look(f"/quarantine{page}"))["quarantine"]
        return refused

    def close(self) -> Talk[None]:
        """Let the server give the session back: its lease and its memory; the journal stays (scope admin)."""
        yield from self._line.ask("DELETE", self._path, about=self.name)
        self._ahead = None

    # --- figures, which a session has as properties --------------------------------------------------------------------------------------

    def rounds(self) -> Talk[int]:
        """How many rounds were observed."""
        return int((yield from self._look())["round"])

    def cost(self) -> Talk[float]:
        """The total cost so far."""
        return float((yield from self._look())["cost"])

    def ccv(self) -> Talk[float]:
        """The cumulative constraint violation so far."""
        return float((yield from self._look())["ccv"])

    def violations(self) -> Talk[Array]:
        """The cumulative violation of every constraint."""
        return np.array((yield from self._look())["violations"], dtype=np.float64)

    def names(self) -> Talk[tuple[str, ...]]:
        """The names of the limits."""
        return tuple((yield from self._look())["names"] or ())

    def pending(self) -> Talk[int]:
        """How many rounds wait for feedback."""
        return int((yield from self._look())["pending"])

    def dropped(self) -> Talk[int]:
        """How many rounds were forgotten or dropped: their feedback never came."""
        return int((yield from self._look())["dropped"])

    def alarms(self) -> Talk[list[Facts]]:
        """The warnings that were given: kind, round, and where it is known the text."""
        alarms: list[Facts] = (yield from self._look("/alarms"))["alarms"]
        return alarms

    def weights(self) -> Talk[Array]:
        """What each rule is worth at present."""
        return np.array((yield from self._look("/weights"))["weights"], dtype=np.float64)

    def rates(self) -> Talk[tuple[RateLimit, ...]]:
        """The limits on how often, one record each."""
        return tuple(RateLimit(**each) for each in (yield from self._look("/rates"))["rates"])

    def price(self) -> Talk[Array]:
        """What one more unit of each limit seems to be worth at present."""
        return np.array((yield from self._look("/prices"))["prices"], dtype=np.float64)
