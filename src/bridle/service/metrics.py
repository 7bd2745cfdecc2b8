"""What the service counts and measures, for Prometheus: requests, commits, and every session that is open here."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from bridle.service.bodies import SessionStands

SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
EVENTS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10000)


class SessionFigures(NamedTuple):
    """What is measured of one session: where it stands, and by limit what was violated, and prices where there are any."""

    stands: SessionStands
    violations: dict[str, float]
    prices: dict[str, float]
    regret: float | None
    """The bound on regret that is proved, if one is."""


def session_metrics(sessions: Iterable[SessionFigures]) -> Iterator[Metric]:
    """The figures of these sessions."""
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
    for each in sessions:
        own = each.stands
        values = (own.round, own.pending, own.cost, own.quarantined, len(own.alarms), each.regret)
        families: Sequence[Any] = (rounds, pending, cost, quarantined, alarms, regret)
        for family, value in zip(families, values, strict=True):
            if value is not None:
                family.add_metric([own.name], value)
        budgets = {name: gate.left for name, gate in own.gates.items()}
        for family, named in ((violation, each.violations), (price, each.prices), (left, budgets)):
            for name, value in named.items():
                family.add_metric([own.name, name], value)
    yield from (rounds, pending, cost, quarantined, alarms, regret, violation, price, left)


class ValueSpread:
    """How values are spread over buckets: what a histogram of Prometheus shows, at a tenth of what one costs to use."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float] = SECONDS) -> None:
        self.bounds, self.counts, self.total = bounds, [0] * (len(bounds) + 1), 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def buckets(self) -> list[tuple[str, float]]:
        """How many values are at most each bound."""
        return list(zip((*(str(float(bound)) for bound in self.bounds), "+Inf"), accumulate(self.counts), strict=True))


class ServiceMetrics:
    """The meters of one server; each is used by one thread at a time. `sessions` is what was last measured of those that are open."""

    def __init__(self) -> None:
        self.sessions: list[SessionFigures] = []
        self.requests: Counter[tuple[str, int]] = Counter()
        self.seconds: defaultdict[str, ValueSpread] = defaultdict(ValueSpread)
        self.commit_seconds, self.commit_events, self.failed_commits = ValueSpread(), ValueSpread(EVENTS), 0

    def request(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self.seconds[route].add(seconds)
        self.requests[route, status] += 1

    def commit(self, events: int, seconds: float, failed: bool) -> None:
        """Count a commit."""
        if failed:
            self.failed_commits += 1
        else:
            self.commit_seconds.add(seconds)
            self.commit_events.add(events)

    def collect(self) -> Iterator[Metric]:
        """All figures, as the registry asks for them."""
        yield from session_metrics(self.sessions)
        requests = CounterMetricFamily("bridle_requests", "Requests by route and status", labels=["route", "status"])
        for (route, status), count in list(self.requests.items()):
            requests.add_metric([route, str(status)], count)
        seconds = HistogramMetricFamily("bridle_request_seconds", "How long requests took", labels=["route"])
        for route, spread in list(self.seconds.items()):
            seconds.add_metric([route], spread.buckets(), spread.total)
        yield from (requests, seconds)
        for name, text, spread in (
            ("bridle_commit_seconds", "How long commits took", self.commit_seconds),
            ("bridle_commit_events", "How many events went into a commit", self.commit_events),
        ):
            yield HistogramMetricFamily(name, text, buckets=spread.buckets(), sum_value=spread.total)
        yield CounterMetricFamily("bridle_failed_commits", "Commits that failed", value=self.failed_commits)

    def text(self) -> bytes:
        """All of it, as Prometheus reads it."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        return generate_latest(registry)
