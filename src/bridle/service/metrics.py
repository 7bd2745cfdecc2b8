"""What the service counts and measures, for Prometheus: requests, commits, and every session that is open here."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
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


class Spread:
    """How values are spread over buckets: what a histogram of Prometheus shows, at a tenth of what one costs to use."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds, self.counts, self.total = bounds, [0] * (len(bounds) + 1), 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def buckets(self) -> list[tuple[str, float]]:
        """How many values are at most each bound."""
        return list(zip((*(str(float(bound)) for bound in self.bounds), "+Inf"), accumulate(self.counts), strict=True))


class RequestCollector:
    """What the server itself has counted, when somebody scrapes."""

    def __init__(self, metrics: ServiceMetrics) -> None:
        self.metrics = metrics

    def collect(self) -> Iterator[Metric]:
        own = self.metrics
        requests = CounterMetricFamily("bridle_requests", "Requests by route and status", labels=["route", "status"])
        for (route, status), count in list(own.requests.items()):
            requests.add_metric([route, str(status)], count)
        seconds = HistogramMetricFamily("bridle_request_seconds", "How long requests took", labels=["route"])
        for route, spread in list(own.seconds.items()):
            seconds.add_metric([route], spread.buckets(), spread.total)
        yield from (requests, seconds)
        for name, text, spread in (
            ("bridle_commit_seconds", "How long commits took", own.commit_seconds),
            ("bridle_commit_events", "How many events went into a commit", own.commit_events),
        ):
            yield HistogramMetricFamily(name, text, buckets=spread.buckets(), sum_value=spread.total)
        yield CounterMetricFamily("bridle_failed_commits", "Commits that failed", value=own.failed_commits)


class ServiceMetrics:
    """The meters of one server; each is used by one thread at a time."""

    def __init__(self, ask: Callable[[], Iterable[SessionFigures]]) -> None:
        self.registry = CollectorRegistry(auto_describe=False)
        self.requests: dict[tuple[str, int], int] = {}
        self.seconds: dict[str, Spread] = {}
        self.commit_seconds, self.commit_events = Spread(SECONDS), Spread(EVENTS)
        self.failed_commits = 0
        self.registry.register(SessionCollector(ask))
        self.registry.register(RequestCollector(self))

    def request(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        spread = self.seconds.get(route)
        if spread is None:
            spread = self.seconds[route] = Spread(SECONDS)
        spread.add(seconds)
        self.requests[route, status] = self.requests.get((route, status), 0) + 1

    def commit(self, events: int, seconds: float) -> None:
        """Count a commit."""
        self.commit_seconds.add(seconds)
        self.commit_events.add(events)

    def failed(self) -> None:
        """Count a commit that failed."""
        self.failed_commits += 1

    def text(self) -> bytes:
        """All of it, as Prometheus reads it."""
        return generate_latest(self.registry)
