"""What the experiment comes to, as facts for programs: the contents of metrics.json."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from bridle.fraud.paper_model import PaperPoint


class SeedArea(TypedDict):
    """The areas of one seed, and how long it took."""

    seed: int
    auc: float
    auc_without_corners: float
    seconds: float


class PaperFacts(TypedDict):
    """What the experiment came to."""

    protocol: str
    variant: str
    about: str
    engine: str
    version: str
    rounds: int
    frauds: int
    inputs: int
    hidden: int
    weights: int
    settings: dict[str, float]
    lambdas: list[float]
    seeds: list[int]
    auc: float
    auc_without_corners: float
    auc_paper: float
    areas: list[SeedArea]
    points: list[PaperPoint]
    seconds: float
    us_per_round: float
    bound_why: str


CurvePoint = TypedDict("CurvePoint", {"lambda": float, "seed": int, "ccv": list[float]})
"""The CCV of one lambda on one seed along the way."""


class PaperCurves(TypedDict):
    """CCV at some rounds, for every lambda and seed."""

    rounds: list[int]
    each: list[CurvePoint]


class AlertsCurve(TypedDict):
    """The share of frauds caught against the share of rows flagged."""

    share: list[float]
    recall: list[float]


Judgement = TypedDict(
    "Judgement",
    {
        "auc": float, "average_precision": float, "auc_second_half": float, "average_precision_second_half": float, "auc_unseen": float,
        "average_precision_unseen": float, "recall_at_0.001": float, "recall_at_0.01": float,
    },
)  # fmt: skip
"""How good the scores of a stream are: over all of it, its second half, and what settings were not chosen on."""


class TrainingFacts(TypedDict, total=False):
    """What is known of a contestant of ours beyond its scores."""

    ccv: float
    us_per_row: float
    notes: list[str]
    tolerance: float
    policy: str
    model: str
    parameters: dict[str, object]


class ContestantFacts(Judgement):
    """One contestant, and what came of it."""

    name: str
    about: str
    seconds: float
    us_per_row: float
    ccv: float | None
    alerts: AlertsCurve


class StreamFacts(TypedDict):
    """What protocol `stream` came to; `tried` is there where the setting was chosen anew."""

    protocol: str
    version: str
    engine: str
    rounds: int
    frauds: int
    setting: dict[str, float]
    chosen_on: int
    auc: float
    average_precision: float
    us_per_row: float
    contestants: list[ContestantFacts]
    missing: list[str]
    tried: NotRequired[list[dict[str, float]]]
