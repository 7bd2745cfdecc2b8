"""The tasks of benchmarks/practice.py: bridle with settings fixed in advance, and what others do with knobs chosen in hindsight."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import bridle
from bridle import learners
from bridle.adapters.linear import LabelledRow, LinearModel, ModelSettings
from bridle.adapters.scaling import past_scaled
from bridle.core import Feedback
from bridle.fraud import stream_model
from bridle.fraud.scores import roc_auc
from bridle.game.play import policy_for
from bridle.limits import GroupGap
from parts import demand_rules
from parts.auctions import Auctions, paced, tuned
from parts.demand_rules import Array, Trace
from parts.practice_data import people, relatives, shown
from parts.toy import size, transactions

ENGINE = size("compiled", "python")
UNITS = (1e-3, 1e3)
LARGE = 10.0
"""How many times too large the box is made."""

COMPARED = 3_000
"""In so many slots decisions in other units are compared."""

STOCK, OWN, ROOMY = "`rate`", "`rate`, rules", "`rate`, rules, box x10"


# --- capacity before demand -----------------------------------------------------------------------------------------------------------


def capacities(traces: list[Trace], share: float, own: bool, top: float = 1.0, slots: int | None = None) -> tuple[list[Array], bool]:
    """What `rate` chooses slot by slot, and whether its counts of violations are exact: sessions on all traces, played at once.

    Amounts are in units in which all there is is `top`. A trace that has ended goes on with its last demand, which nobody looks at.
    """
    more: dict[str, Any] = {"rules": demand_rules.NAMES} if own else {}
    policy = bridle.policy("rate", bridle.Box(0.0, top, dim=1), at_most=share, safe=[top], **more)
    record, scales = policy.record, [top / trace.top for trace in traces]
    lengths = [min(slots or len(trace.judged), len(trace.judged)) for trace in traces]
    last = [np.minimum(np.arange(max(lengths)), length - 1) for length in lengths]
    values = np.array([trace.judged[at] * scale for trace, at, scale in zip(traces, last, scales, strict=True)])
    chosen, df, dg = np.empty_like(values), np.ones((len(traces), 1)), -np.ones((len(traces), 1, 1))
    state = record.init(np.full((len(traces), 1), top / 2.0))
    if own:
        proposed = [demand_rules.proposals(trace, share) * scale for trace, scale in zip(traces, scales, strict=True)]
        rules = np.array([each[at] for each, at in zip(proposed, last, strict=True)])[:, :, :, None]
        state = record.begin(state, np.array([policy.through.first(each) for each in rules[:, 0]]))
    exact = True
    for t in range(max(lengths)):
        state = record.propose(state, rules[:, t]) if own else state
        x = record.decide(state)
        state = record.update(state, Feedback(x, x, df, values[:, t : t + 1] - x, dg))
        chosen[:, t] = x[:, 0]
        exact = exact and (t % 1000 > 0 or not record.level.identity(state.level).any())
    return [row[:length] / scale for row, length, scale in zip(chosen, lengths, scales, strict=True)], exact


def capacity(traces: list[Trace], share: float) -> dict[str, Any]:
    """A row for each trace: ours, and the others in hindsight with as many violations as ours or as are asked for."""
    large = [trace._replace(top=LARGE * trace.top) for trace in traces]
    plain, _ = capacities(traces, share, own=False)
    both, exact = capacities([*traces, *large], share, own=True)
    usual, roomy = both[: len(traces)], both[len(traces) :]
    apart = 0.0
    for units in UNITS:
        for chosen, same in zip(usual, capacities(traces, share, own=True, top=units, slots=COMPARED)[0], strict=True):
            apart = max(apart, float(np.abs(same / chosen[: len(same)] - 1.0).max()))
    rows = []
    for trace, *decisions in zip(traces, plain, usual, roomy, strict=True):
        found = {name: demand_rules.outcome(trace, chosen) for name, chosen in zip((STOCK, OWN, ROOMY), decisions, strict=True)}
        allowed = int(max(share, found[OWN].rate) * len(trace.judged) + 1e-9)
        others = demand_rules.in_hindsight(trace, share, allowed)
        kept = [name for name, each in others.items() if each.rate * len(trace.judged) <= allowed + 1e-6]
        best = min(kept, key=lambda name: others[name].cost)
        every = {name: each._asdict() for name, each in (found | others).items()}
        rows.append({"trace": trace.name, "share": share, "slots": len(trace.judged), "best": best, "found": every})
    return {"rows": rows, "units": apart, "exact": exact}


# --- impressions within a budget ------------------------------------------------------------------------------------------------------


def scored(features: Array, signs: Array) -> Array:
    """The log-odds that an online logistic model gives each row before it learns it."""
    model = LinearModel(features.shape[1], ModelSettings((-1, 1), constraints=None, policy="adagrad"), ENGINE)
    scores = np.empty(len(signs))
    for i, (row, sign) in enumerate(zip(features, signs.tolist(), strict=True)):
        scores[i] = model.scores(row)
        model.take(LabelledRow(row, sign, 1.0))
    return scores


def clicks() -> dict[str, Any]:
    """Impressions at one price each, a thirty-second of them to be bought: the value won over the best choice in hindsight.

    What an impression is worth is the chance of a click that a model, learned as it goes, gives it. The first day is history.
    """
    rows = shown()
    scores = scored(rows.features, rows.signs)
    values = 1.0 / (1.0 + np.exp(-scores[rows.past :]))
    stream = Auctions(values, np.ones(len(values)))
    ours = paced(stream, "second")[0]
    apart = max(abs(paced(stream, "second", units)[0] / ours - 1.0) for units in UNITS)
    others = tuned([stream], "second")
    return {
        "rounds": len(values), "Pacer": ours / stream.best(), "units": apart,
        "others": {name: {"share": share, "knobs": knobs} for name, (share, knobs) in others.items()},
    }  # fmt: skip


# --- fraud: at most one in ten missed -------------------------------------------------------------------------------------------------

MISSED = 0.1
LAST = 2_000
"""Rows among which a row is ranked."""

BUDGETS = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Shares of rows to flag that somebody might have fixed: the rules."""

STEPS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
WEIGHTS = size((1.0, 10.0, 100.0, 1_000.0, 10_000.0), (1.0, 10.0))
"""What a fraud counts: class weights."""


def ranks(scores: Array) -> Array:
    """The share of the last rows that have a higher score: to flag a row, so large a share must be flagged."""
    found = np.ones(len(scores))
    padded = np.concatenate([np.full(LAST, np.nan), scores])
    for start in range(0, len(scores), LAST):
        part = scores[start : start + LAST]
        windows = np.lib.stride_tricks.sliding_window_view(padded[start : start + LAST + len(part) - 1], LAST)
        found[start : start + len(part)] = (windows > part[:, None]).sum(axis=1) / np.maximum((~np.isnan(windows)).sum(axis=1), 1)
    return found


def flagged(fraud: Array, flags: Array, **more: object) -> dict[str, Any]:
    """Recall, specificity and precision, and what else there is to say."""
    yes = fraud > 0.0
    some = flags.any()
    return {
        "recall": float(flags[yes].mean()), "specificity": float((~flags[~yes]).mean()),
        "precision": float(yes[flags].mean()) if some else 0.0, **more,
    }  # fmt: skip


def between(values: list[float], at: Array, rows: int) -> Array:
    """What was in force at each row, where the i-th value was until row at[i], that row included, and the last one to the end."""
    lengths = np.diff(np.concatenate([[0], at + 1]))
    lengths[-1] += rows - at[-1] - 1
    return np.repeat(values, lengths)


def tracked(needed: Array, step: float) -> list[float]:
    """Five lines that people write: more after a miss, less after a hit."""
    level, levels = 0.01, []
    for need in needed.tolist():
        levels.append(level)
        level = min(max(level + step * ((need > level) - MISSED), 0.0), 1.0)
    return levels


def _weighted_scores(rows: stream_model.StreamRows, weight: float) -> Array:
    """The log-odds of the same model where a fraud counts so much."""
    problem = stream_model.logistic(rows, tolerance=0.1)
    weights = np.where(rows.fraud > 0.0, weight, 1.0)
    table = problem.adversary.table
    heavy = table._replace(cost=table.cost._replace(weight=weights))
    problem = replace(problem, adversary=problem.adversary._replace(table=heavy))
    trace = stream_model.quiet_play(policy_for("adagrad", problem, diameter=2.0), problem, ENGINE)
    return np.asarray(np.log(np.expm1(np.asarray(trace.costs).reshape(-1) / weights)) * (1.0 - 2.0 * rows.fraud))


def fraud() -> dict[str, Any]:
    """Card fraud, at most a tenth of it missed, as few others flagged as can be; a round for each fraud, when it has become known.

    Everybody but the class weights goes by the same scores, of an online logistic model without limits. The decision is the share of rows
    to flag: those with the highest scores among the last 2,000.
    """
    rows = stream_model.rows_of(transactions())
    who = stream_model.Contestant("free", "adagrad", {"diameter": 2.0})
    scores = stream_model.scores(stream_model.play_contestant(rows, who, ENGINE), rows.fraud).reshape(-1)
    rank, at = ranks(scores), np.flatnonzero(rows.fraud > 0.0)
    needed, allowed = rank[at], int(MISSED * len(at))
    policy = bridle.policy("rate", bridle.Box(0.0, 1.0, dim=1), at_most=MISSED, safe=[1.0], rules=len(BUDGETS))
    session, levels = bridle.Session(policy), []
    for need in needed.tolist():
        x = float(session.decide(rules=np.array(BUDGETS)[:, None])[0])
        session.observe(f=x, df=[1.0], g=need - x, dg=[-1.0])
        levels.append(x)
    ours = flagged(rows.fraud, rank <= between(levels, at, len(rank)))
    missed = max(allowed, session.rates[0].violated)
    found = {"`rate` on the share flagged": ours | {"exact": session.rates[0].exact}}
    steps = [flagged(rows.fraud, rank <= between(tracked(needed, step), at, len(rank)), knobs=f"step {step:g}") for step in STEPS]
    found["tracked threshold, step in hindsight"] = most_specific(steps, missed, len(at))
    fixed = np.sort(needed)[::-1][missed]
    found["fixed share, in hindsight"] = flagged(rows.fraud, rank <= fixed, knobs=f"{100 * fixed:.2g} %")
    line = np.sort(scores[at])[missed]
    found["fixed threshold, in hindsight"] = flagged(rows.fraud, scores >= line, knobs=f"{line:.3g}")
    weighted = [flagged(rows.fraud, _weighted_scores(rows, weight) >= 0.0, knobs=f"a fraud counts {weight:g}") for weight in WEIGHTS]
    found["class weights, in hindsight"] = most_specific(weighted, missed, len(at))
    return {"rounds": len(rank), "frauds": len(at), "auc": float(roc_auc(rows.fraud, scores)), "found": found}


def most_specific(found: list[dict[str, Any]], missed: int, frauds: int) -> dict[str, Any]:
    """The one with the fewest false alarms among those that miss no more; where none does, the one that misses least."""
    kept = [each for each in found if (1.0 - each["recall"]) * frauds <= missed + 1e-6]
    return max(kept, key=lambda each: each["specificity"]) if kept else max(found, key=lambda each: each["recall"])


# --- a gap between groups, on average -------------------------------------------------------------------------------------------------

GAP, RADIUS = 0.1, 3.0
PENALTIES = np.concatenate([[0.0], np.geomspace(0.01, 30.0, 22)])


def groups() -> dict[str, Any]:
    """Who earns over 50,000 dollars, where the mean log-odds of men and women are at most 0.1 apart, on average over the stream.

    Ours is `soft`, told nothing but the limit. The others add the gap beyond 0.1 to the loss, times a weight that is chosen in hindsight:
    the one with the lowest loss among those that kept the limit on average, and ours with no limit at all.
    """
    rows = people()
    a = np.column_stack([np.ones(len(rows.signs)), past_scaled(rows.features)])
    limit, apart = GroupGap(at_most=GAP).bind((0, 1)), np.empty_like(a)
    memory = limit.start(a.shape[1])
    for t, (row, group) in enumerate(zip(a, rows.groups, strict=True)):
        memory, gap = limit.reveal(memory, row, 1.0, group)
        apart[t] = gap.A[0]
    domain = bridle.Ball(a.shape[1], RADIUS)
    session, ours = bridle.Session(bridle.policy("soft", domain), engine=ENGINE), np.empty((len(a), 2))
    for t, (row, sign, away) in enumerate(zip(a, rows.signs.tolist(), apart, strict=True)):
        w = session.decide()
        score, gap = float(row @ w), float(away @ w)
        loss = float(np.logaddexp(0.0, -sign * score))
        session.observe(f=loss, df=-sign * row * -np.expm1(-loss), g=[gap - GAP, -gap - GAP], dg=np.stack([away, -away]))
        ours[t] = score, gap
    learner, many = learners.AdaGrad(domain), PENALTIES[:, None]
    state, others = learner.init(np.zeros((len(PENALTIES), a.shape[1]))), np.empty((len(a), 2, len(PENALTIES)))
    for t, (row, sign, away) in enumerate(zip(a, rows.signs.tolist(), apart, strict=True)):
        w = learner.decide(state)
        score, gap = w @ row, w @ away
        slope = -sign / (1.0 + np.exp(np.clip(sign * score, -50.0, 50.0)))
        beyond = many * (np.sign(gap) * (np.abs(gap) > GAP))[:, None]
        state = learner.step(state, slope[:, None] * row + beyond * away)
        others[t] = score, gap
    found = [_fair(rows.signs, others[:, 0, i], others[:, 1, i], f"weight {PENALTIES[i]:.3g}") for i in range(len(PENALTIES))]
    mine = _fair(rows.signs, ours[:, 0], ours[:, 1], "")
    kept = [each for each in found if each["gap"] <= max(GAP, mine["gap"])]
    best = min(kept, key=lambda each: each["loss"]) if kept else min(found, key=lambda each: each["gap"])
    return {"rounds": len(a), "found": {"`soft`": mine, "a penalty, its weight in hindsight": best, "no limit": found[0]}}


def _fair(signs: Array, scores: Array, gaps: Array, knobs: str) -> dict[str, Any]:
    """The mean log-loss, the AUC, and the mean gap, of scores given before the label was known."""
    loss = float(np.logaddexp(0.0, -signs * scores).mean())
    return {"loss": loss, "auc": float(roc_auc(0.5 * (signs + 1.0), scores)), "gap": float(abs(gaps.mean())), "knobs": knobs}


# --- portfolios under a limit that is known before acting -----------------------------------------------------------------------------

CALM = 0.8
"""The volatility that is allowed, of that of equal parts; both as the last days show it."""

DAYS = 60
"""How long the covariance remembers."""

CUTS = 30


def covariances(returns: Array) -> Array:
    """What is known of the covariance before each day."""
    found, now = np.empty((len(returns), returns.shape[1], returns.shape[1])), np.cov(returns[:DAYS].T)
    mean = returns[:DAYS].mean(axis=0)
    for t, row in enumerate(returns):
        found[t] = now
        if t >= DAYS:
            off = row - mean
            now, mean = now + (np.outer(off, off) - now) / DAYS, mean + off / DAYS
    return found


def least_variance(C: Array, x: Array, steps: int) -> Array:
    """The parts of least variance, nearly: so many projected steps from x."""
    simplex, step = bridle.Simplex(len(x)), 1.0 / np.linalg.eigvalsh(C)[-1]
    for _ in range(steps):
        x = np.asarray(simplex.project(x - step * (C @ x)))
    return x


def calm_enough(C: Array, x: Array, calmest: Array, most: float) -> Array:
    """x moved towards the parts of least variance as far as needed."""
    a, b, c = (x - calmest) @ C @ (x - calmest), calmest @ C @ (x - calmest), calmest @ C @ calmest - most
    if x @ C @ x <= most:
        return x
    if c >= 0.0 or a <= 0.0:
        return calmest
    return np.asarray(calmest + (-b + np.sqrt(b * b - a * c)) / a * (x - calmest))


def played_portfolio(name: str, R: Array, C: Array, calmest: Array, most: Array) -> tuple[Array, int]:
    """A session with the limit known before each day, by tangents of the variance; and on how many days nothing could have kept it."""
    session, chosen, without = bridle.Session(bridle.policy(name, bridle.Simplex(R.shape[1]))), np.empty_like(R), 0
    for t in range(DAYS, len(R)):
        A: list[Array] = []
        b: list[float] = []
        x = session.decide()
        feasible = calmest[t] @ C[t] @ calmest[t] < most[t]
        played = None
        for _ in range(CUTS):
            variance = float(x @ C[t] @ x)
            if variance <= most[t] * (1.0 + 1e-6) or not feasible:
                break
            A.append(2.0 * C[t] @ x / most[t])
            b.append(1.0 + variance / float(most[t]))
            x = session.decide(known=(np.array(A), np.array(b)))
        if x @ C[t] @ x > most[t]:
            played = calm_enough(C[t], x, calmest[t], float(most[t]))
            without += not feasible
        chosen[t] = x if played is None else played
        gain = float(chosen[t] @ R[t])
        session.observe(f=-float(np.log(gain)), df=-R[t] / gain, **({} if played is None else {"played": played}))
    return chosen, without


def portfolio(name: str) -> dict[str, Any]:
    """Growth under a limit on volatility that is known before each day: 0.8 of that of equal parts, both by the last 60 days or so."""
    R = relatives(name)
    R = R[: size(len(R), 80)]
    C, n = covariances(R - 1.0), R.shape[1]
    equal, calm = np.full(n, 1.0 / n), np.full(n, 1.0 / n)
    calmest = np.empty_like(R)
    for t in range(DAYS, len(R)):
        calmest[t] = calm = least_variance(C[t], calm, 500 if t == DAYS else 20)
    most = CALM**2 * np.einsum("tij,i,j->t", C, equal, equal)
    rules = {
        "1/n moved towards least variance": np.array([calm_enough(C[t], equal, calmest[t], float(most[t])) for t in range(DAYS, len(R))]),
        "least variance": calmest[DAYS:],
        "1/n, no limit": np.tile(equal, (len(R) - DAYS, 1)),
    }
    chosen, without = played_portfolio("adagrad", R, C, calmest, most)
    found = {"`adagrad`, `known=`": _wealth(chosen[DAYS:], R[DAYS:], C[DAYS:], most[DAYS:])}
    for rule, chosen in rules.items():
        found[rule] = _wealth(chosen, R[DAYS:], C[DAYS:], most[DAYS:])
    return {"set": name, "days": len(R) - DAYS, "without": without, "found": found}


def _wealth(chosen: Array, R: Array, C: Array, most: Array) -> dict[str, float]:
    """Growth a year, the days over the limit, the volatility of what was earned over that of equal parts, and the turnover a day."""
    gains = (chosen * R).sum(axis=1)
    variances = np.einsum("tij,ti,tj->t", C, chosen, chosen)
    grown = chosen * R / gains[:, None]
    return {
        "growth": float(np.exp(252.0 * np.log(gains).mean()) - 1.0),
        "over": float((variances > most * (1.0 + 1e-4)).mean()),
        "volatility": float(np.log(gains).std() / np.log(R.mean(axis=1)).std()),
        "turnover": float(0.5 * np.abs(chosen[1:] - grown[:-1]).sum(axis=1).mean()),
    }
