"""The reports on limits on the gap between groups: their numbers, and one sentence for people."""

from __future__ import annotations

from typing import Any

import numpy as np

from bridle.adapters.group_levels import GAP_NAMES, GapLevel, GapState, most_gap_debt
from bridle.adapters.limit_report import LimitReport, short
from bridle.adapters.limit_words import Others, rates_seen


def gap_report(level: GapLevel, state: GapState, others: Others) -> LimitReport:
    """What became of a limit on the gap between groups."""
    name, counted, alarms = GAP_NAMES[int(level.kind.kind)], np.asarray(state.counted), np.asarray(state.alarms)
    came = counted > 0.0
    total = float(counted.sum())
    shares, targets = (np.divide(part, counted, out=np.zeros_like(counted), where=came) for part in (alarms, np.asarray(state.targets)))
    debts, numbers = np.asarray(level.debts(state)), range(len(counted)) if level.values is None else level.values
    names = [f"{value:g}" for value in numbers]
    seen: dict[str, Any] = {
        "groups": {
            key: {"counted": float(n), "share": float(share), "target": float(tau), "debt": float(debt)}
            for key, n, share, tau, debt in zip(names, counted, shares, targets, debts, strict=True)
        },
        **rates_seen(others[3]),
        "overruled": float(np.sum(state.overruled)),
    }
    open = int(np.sum(state.open))
    if not came.all():
        absent = " and ".join(key for key, here in zip(names, came, strict=True) if not here)
        words = f"no counted row of group {absent} has come, so that nothing can be said of the gap"
        return LimitReport(
            name, "at most", level.gap, None, None, None, words, None, "", None, int(total), open, words, seen
        )  # fmt: skip
    measured = float(shares.max() - shares.min())
    _, marks = state.recent.since(total)
    fresh = counted - marks[: len(counted)]
    recent = None
    if (fresh > 0.0).all():
        latest = (alarms - marks[len(counted) :]) / fresh
        recent = float(latest.max() - latest.min())
    most = most_gap_debt(level.eta, float(np.max(state.most_open)))
    unsure = np.minimum(1.0, (most + np.asarray(state.overruled)) / counted)
    high = min(
        1.0,
        max(
            float(max(targets[i] + unsure[i] - targets[j] + unsure[j], 0.0)) for i in range(len(names)) for j in range(len(names)) if i != j
        ),
    )
    worst = max(abs(float(debt)) / float(n) for debt, n in zip(debts, counted, strict=True))
    least = int(counted.min())
    words = (
        f"group shares are {', '.join(f'{key}: {short(float(share))}' for key, share in zip(names, shares, strict=True))}; their debts "
        f"account for at most {short(worst)} each; a promise within {short(level.gap)} needs {int(most / level.gap):,} counted rows "
        f"of each group, and the smallest has {least:,}"
    )
    held = measured <= 1.1 * level.gap
    offsets = np.asarray(level.offsets(state))
    price = float(np.max(np.abs(offsets))) if np.isfinite(offsets).all() else None
    return LimitReport(
        name, "at most", level.gap, measured, recent, (0.0, high), "", price, "log-odds between a group's threshold and the common one",
        int(state.broken) + 1 if held else None, int(total), open, words, seen,
    )  # fmt: skip
