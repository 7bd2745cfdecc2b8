"""A service in memory, for what the client does when answers are lost: a real session, events with identities, and a hostile line."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import httpx

import bridle


class FakeService:
    """The routes of rounds over a real `Session`, without a journal; `log` has the requests, `played` counts the events."""

    def __init__(self, session: bridle.Session) -> None:
        self.session, self.answers, self.log, self.played = session, {}, [], 0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        verb, key = urlsplit(str(request.url)).path.split("/")[-1], request.headers.get("idempotency-key")
        self.log.append((request.method, verb, key))
        if request.method == "GET":
            facts = {"round": self.session.rounds, "cost": self.session.cost, "ccv": self.session.ccv}
            looks = {
                "certificate": lambda: json.loads(self.session.certificate().json()),
                "report": lambda: {"text": self.session.report()},
            }
            return httpx.Response(200, json=looks.get(verb, lambda: facts)())
        body = json.loads(request.content)
        if key in self.answers:
            said, answer = self.answers[key]
            return httpx.Response(200, json=answer) if said == body else httpx.Response(409, json={"error": "the key was used before"})
        try:
            answer = self.act(verb, body)
        except bridle.InputError as wrong:
            return httpx.Response(422, json={"error": str(wrong), "request": "r-1"})
        if key is not None:
            self.answers[key] = body, answer
            self.played += 1
        return httpx.Response(200, json=answer)

    def act(self, verb: str, body: dict[str, Any]) -> dict[str, Any]:
        session = self.session
        if "known" in body:
            body = body | {"known": (body["known"]["A"], body["known"]["b"])}
        if verb == "decide":
            return {"x": session.decide(**body).tolist(), "round": session.rounds}
        if verb == "ask":
            ticket = session.ask(**body)
            return {"ticket": ticket.id, "x": ticket.x.tolist(), "round": session.rounds}
        getattr(session, verb)(**body)
        return {"round": session.rounds, "next": session.decide().tolist()}


def hostile(serve: Callable[[httpx.Request], httpx.Response], rng: Any, share: float) -> Callable[[httpx.Request], httpx.Response]:
    """A line on which `share` of the requests go wrong: some never arrive, of others the answer is lost, others come too early."""

    def handle(request: httpx.Request) -> httpx.Response:
        if rng.random() >= share:
            return serve(request)
        fate = rng.integers(6)
        if fate == 0:
            raise httpx.ConnectError("refused", request=request)
        if fate == 1:
            return httpx.Response(429, headers={"Retry-After": "0"}, json={"error": "too many requests"})
        if fate == 2:
            return httpx.Response(503, headers={"Retry-After": "0"}, json={"error": "the server starts"})
        serve(request)  # it has counted, and the answer is lost
        if fate == 3:
            raise httpx.ReadTimeout("too long", request=request)
        if fate == 4:
            raise httpx.RemoteProtocolError("broken off", request=request)
        return httpx.Response(502, text="<html>bad gateway</html>")

    return handle
