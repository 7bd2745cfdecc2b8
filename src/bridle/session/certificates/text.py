"""A certificate in plain sentences: what happened, what it means, what to do."""

from __future__ import annotations

from bridle.ops import Array
from bridle.session.certificates.certificate import Certificate
from bridle.session.rates import limit_names


def report(proof: Certificate) -> str:
    """The report, one paragraph a subject.

    >>> import bridle
    >>> session = bridle.Session(bridle.policy("anytime", bridle.Ball(2)))
    >>> session.observe(f=0.0, df=[1.0, 0.0], g=-1.0, dg=[0.0, 1.0])
    >>> print(session.report().splitlines()[0])
    1 round was observed; the total cost is 0, the cumulative violation 0.
    """
    parts = (_what, _regret, _known, _rules, _violation, _rates, _average, _price, _feasible, _moved, _missing, _promise, _alarms)
    return "\n".join(line for part in parts for line in part(proof))


def _what(proof: Certificate) -> list[str]:
    return [f"{_many(proof.rounds, 'round')} observed; the total cost is {proof.cost:.6g}, the cumulative violation {proof.ccv:.6g}."]


def _regret(proof: Certificate) -> list[str]:
    known = [value for value in (proof.regret, proof.regret_algorithm) if value is not None]
    if not known:
        lines = [f"Regret: no certificate, because {proof.why}."] if proof.why else []
        if proof.regret_any is not None and not proof.rates and proof.rounds > 0:
            lines.append(f"Regret against any {proof.compared} at all, feasible or not, is at most {proof.regret_any:.6g}.")
        return lines
    best = min(known)
    gain = (
        f"every feasible {proof.compared} would have cost at least {-best:.6g} more"
        if best < 0
        else f"no feasible {proof.compared} would have saved more than {best:.6g}"
    )
    alone = best == proof.regret
    assumed = "it assumes only" if alone else "by the policy's own proof it assumes that what the policy was told is true,"
    return [
        f"Regret: {gain} over these rounds. This is proved by what was observed; {assumed} that costs and constraints are convex "
        "and that values and gradients are right."
    ]


def _known(proof: Certificate) -> list[str]:
    if not proof.known:
        return []
    return [f"Known: limits were known before acting, and kept. A feasible {proof.compared} is one that keeps these in every round too."]


CARRY = 0.9
"""The rules that are named have this share of the weight, or more, together."""


def _rules(proof: Certificate) -> list[str]:
    if proof.weights is None:
        return []
    weights = proof.weights if proof.weights.ndim == 1 else proof.weights.mean(axis=1)  # of a mixture for each coordinate
    order = (-weights).argsort(kind="stable")
    most = int((weights[order].cumsum() < CARRY).sum()) + 1
    carry = ", ".join(f"{proof.rules[i]} {100.0 * weights[i]:.3g} %" for i in order[:most])
    means = "" if proof.weights.ndim == 1 else " on average over the coordinates"
    idle = int((weights <= 0.0).sum())
    return [f"Rules: {carry} of the mixture at present{means}" + (f"; {idle} of {len(weights)} have no weight." if idle else ".")]


def _moved(proof: Certificate) -> list[str]:
    moved = proof.moved
    if moved is None:
        return []
    extra = max(0.0, float(moved.hard.max()))
    return [
        f"Played: in {_many(moved.rounds, 'round', '')} something else was played than was decided. That is charged with "
        f"{moved.cost:.6g} of regret and {extra:.6g} of violation, which the figures here include."
    ]


def _violation(proof: Certificate) -> list[str]:
    if not proof.violated:
        return ["Violation: none."]
    higher = [*(count for _, count in proof.above[1:]), 0]
    counts = [f"{count} above {level:g}" for (level, count), more in zip(proof.above, higher, strict=bool(proof.above)) if count > more]
    lines = [f"Violation: {_many(proof.violated, 'round', '')} violated a constraint" + (f" ({', '.join(counts)})." if counts else ".")]
    if proof.names and proof.violations is not None:
        each = ", ".join(f"{name} by {total:.6g}" for name, total in _limits(proof, proof.violations))
        lines.append(f"Over all rounds {each}.")
    if proof.squared_bound is not None:
        lines.append(
            f"The squared distances to the limits add up to {proof.squared:.6g}; the policy's proof allows {proof.squared_bound:.6g} "
            "after costs like these."
        )
    return lines


def _rates(proof: Certificate) -> list[str]:
    lines = []
    for limit in proof.rates:
        if limit.measured is None:
            continue
        shares = f"{100.0 * limit.measured:.4g} %; {100.0 * limit.at_most:.4g} % were asked for"
        line = f"Rate: {limit.name} was violated in {limit.violated} of {limit.counted} counted rounds, {shares}."
        if limit.unavoidable:
            line += f" In {_many(limit.unavoidable, 'round', '')} of them even the safe action violated it."
        if limit.proved is None:
            line += f" Nothing more is proved, because {limit.why}."
        else:
            line += f" Whatever had come, it could not have been more than {100.0 * limit.proved:.4g} %."
        lines.append(line)
    return lines


def _average(proof: Certificate) -> list[str]:
    if proof.balance is None or not proof.rounds:
        return []
    means = [f"{name} was {abs(sum) / proof.rounds:.4g} {'above' if sum > 0 else 'below'} 0" for name, sum in _limits(proof, proof.balance)]
    return [f"Average: over all rounds {', '.join(means)} (soft violation {max(0.0, proof.balance.max()):.6g} in all)."]


def _price(proof: Certificate) -> list[str]:
    if proof.price is None or not proof.rounds:
        return []
    worth = [f"one more unit of {name} would have been worth about {price:.4g}" for name, price in _limits(proof, proof.price)]
    return [
        f"Price: {', '.join(worth)} in cost a round. This is an estimate: on a stream that stays the same it comes near the multiplier "
        "of the best action, and elsewhere nothing is proved of it."
    ]


def _limits(proof: Certificate, values: Array) -> list[tuple[str, float]]:
    return list(zip(limit_names(len(values), proof.names), values.tolist(), strict=True))


def _feasible(proof: Certificate) -> list[str]:
    conflict = proof.conflict
    if conflict is None:
        return (
            [f"Feasible: one {proof.compared} satisfies every constraint that is kept for comparison."] if proof.witness is not None else []
        )
    if not conflict.rounds:
        culprits = "the constraints of all violated rounds together"
    elif len(conflict.rounds) == 1 or proof.names:
        culprits = conflict.culprits(proof.names)
    else:
        culprits = "the constraints of rounds " + ", ".join(map(str, conflict.rounds[:-1])) + f" and {conflict.rounds[-1]} together"
    away = (
        f": every {proof.compared} is {conflict.margin:.4g} or farther outside one of them" if 0.0 < conflict.margin < float("inf") else ""
    )
    return [
        f"Infeasible: no {proof.compared} satisfies {culprits}{away} (found in round {conflict.found}).",
        "No bound on violation holds from here on. Relax one of these limits, check them for mistakes and noise, or use a policy for "
        "limits that hold on average or that move (drift).",
    ]


def _missing(proof: Certificate) -> list[str]:
    lines = []
    if proof.pending:
        lines.append(f"Waiting: the feedback of {_many(proof.pending, 'round', '')} is still to come and is not counted yet.")
    if proof.dropped:
        basis = "the Lipschitz constant given" if proof.charge.declared else "the longest gradient seen, if those missing are no longer"
        lines.append(
            f"Dropped: the feedback of {_many(proof.dropped, 'round', '')} never came. It may add up to "
            f"{proof.charge.regret:.6g} to the regret and {proof.charge.ccv:.6g} to the violation ({basis})."
        )
    return lines


def _promise(proof: Certificate) -> list[str]:
    bound = proof.bound
    known = (("regret", bound.regret), ("violation", bound.ccv), ("soft violation", bound.soft))
    said = [f"{name} at most {value:.6g}" for name, value in known if value is not None]
    if not said:
        return [f"Promise: the policy's theorem says nothing here: {bound.why}."] if bound.why else []
    more = f" ({bound.why})" if bound.why else ""
    return [f"Promise: by the policy's theorem, with the gradients as long as they were, {' and '.join(said)}{more}."]


def _alarms(proof: Certificate) -> list[str]:
    return ["Alarms: " + ", ".join(f"{kind} in round {t}" for kind, t in proof.alarms) + "."] if proof.alarms else []


def _many(count: int, noun: str, verb: str = "was") -> str:
    verb = {"": "", "was": " was" if count == 1 else " were"}[verb]
    return f"{count} {noun}{'' if count == 1 else 's'}{verb}"
