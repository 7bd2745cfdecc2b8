"""What the service counts and measures, for Prometheus: requests, commits, and every session that is open here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
EVENTS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10000)


@dataclass
class SessionFigures:
    """What is measured of one session; what is not known is None, or not there."""

    name: str
    rounds: int
    pending: int
    cost: float
    quarantined: int
    violations: dict[str, float] = field(default_factory=dict)
    prices: dict[str, float] = field(default_factory=dict)
    certified_regret: float | None = None
    alarms: int = 0
    left: dict[str, float] = field(default_factory=dict)


class SessionCollector:
    """Asks for the figures of every session when somebody scrapes."""

    def __init__(self, ask: Callable[[], Iterable[SessionFigures]]) -> None:
        self.ask = ask

    def collect(self) -> Iterator[Metric]:
        one, per_limit = ["session"], ["session", "limit"]
        rounds = CounterMetricFamily("bridle_rounds", "Rounds that were observed", labels=one)
        pending = GaugeMetricFamily("bridle_pending", "Rounds that wait for feedback", labels=one)
        cost = GaugeMetricFamily("bridle_cost", "The total cost so far", labels=one)
        quarantined = CounterMetricFamily("bridle_quarantined", "Requests that were refused and kept", labels=one)
        alarms = GaugeMetricFamily("bridle_alarms", "Kinds of warning that were given", labels=one)
        regret = GaugeMetricFamily("bridle_certified_regret", "The proved upper bound on regret, where there is one", labels=one)
        violation = GaugeMetricFamily("bridle_violation", "The cumulative violation of a limit", labels=per_limit)
        price = GaugeMetricFamily("bridle_price", "What one more unit of a limit seems to be worth", labels=per_limit)
        left = GaugeMetricFamily("bridle_budget_left", "What is left of a budget", labels=["session", "gate"])
        for each in self.ask():
            rounds.add_metric([each.name], each.rounds)
            pending.add_metric([each.name], each.pending)
            cost.add_metric([each.name], each.cost)
            quarantined.add_metric([each.name], each.quarantined)
            alarms.add_metric([each.name], each.alarms)
            if each.certified_regret is not None:
                regret.add_metric([each.name], each.certified_regret)
            for family, values in ((violation, each.violations), (price, each.prices), (left, each.left)):
                for name, value in values.items():
                    family.add_metric([each.name, name], value)
        yield from (rounds, pending, cost, quarantined, alarms, regret, violation, price, left)


class ServiceMetrics:
    """The meters of one server."""

    def __init__(self, ask: Callable[[], Iterable[SessionFigures]]) -> None:
        self.registry = CollectorRegistry(auto_describe=False)
        self.registry.register(SessionCollector(ask))
        self.requests = Counter("bridle_requests", "Requests by route and status", ["route", "status"], registry=self.registry)
        self.seconds = Histogram(
            "bridle_request_seconds", "How long requests took", ["route"], buckets=SECONDS, registry=self.registry
        )  # fmt: skip
        self.commit_seconds = Histogram("bridle_commit_seconds", "How long commits took", buckets=SECONDS, registry=self.registry)
        self.commit_events = Histogram("bridle_commit_events", "How many events went into a commit", buckets=EVENTS, registry=self.registry)
        self.failed_commits = Counter("bridle_failed_commits", "Commits that failed", registry=self.registry)
        self._seconds: dict[str, Callable[[float], None]] = {}
        self._requests: dict[tuple[str, int], Callable[[], None]] = {}

    def request(self, route: str, status: int, seconds: float) -> None:
        """Count a request; to find a label's meter takes longer than to use it."""
        took = self._seconds.get(route)
        if took is None:
            took = self._seconds[route] = self.seconds.labels(route).observe
        took(seconds)
        count = self._requests.get((route, status))
        if count is None:
            count = self._requests[route, status] = self.requests.labels(route, str(status)).inc
        count()

    def commit(self, events: int, seconds: float) -> None:
        """Count a commit."""
        self.commit_seconds.observe(seconds)
        self.commit_events.observe(events)

    def text(self) -> bytes:
        """All of it, as Prometheus reads it."""
        return generate_latest(self.registry)
