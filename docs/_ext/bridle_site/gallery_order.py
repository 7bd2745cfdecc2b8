"""The order of the gallery: from what a round is to what runs in production."""

from __future__ import annotations

FIRST = (
    "late_constraint", "regret_and_ccv", "lower_bound", "fraud", "capacity", "pacing", "recall", "fairness", "portfolio", "own_rules",
    "moving_world", "late_feedback", "zero_violation", "noise", "certificate", "service",
)  # fmt: skip
"""The examples, each without ``plot_`` and ``.py``; one that is not named comes last."""


class GalleryOrder:
    """The key by which sphinx-gallery sorts the examples of a folder."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, filename: str) -> tuple[int, str]:
        name = filename.removeprefix("plot_").removesuffix(".py")
        return FIRST.index(name) if name in FIRST else len(FIRST), name
