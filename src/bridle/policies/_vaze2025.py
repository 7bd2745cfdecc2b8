"""Vaze, Sinha 2025: online gradient descent, projected on all that the constraints so far have left (nested projections).

    S_t     = S_{t-1} with g_{t,i}(x_t) + <grad g_{t,i}(x_t), y - x_t> <= 0 for every i,      S_0 = X
    x_{t+1} = P_{S_t}(x_t - eta_t grad f_t(x_t)),      eta_t = D / (G sqrt(t)), or 1 / (modulus t) for strongly convex costs

An affine constraint that has been violated, by more than 1e-7 times the domain's scale (up to which nothing is done), never is
again; of another convex one, S_t holds the halfspace at x_t, and it may be violated elsewhere. (The paper projects on S_{t-1} first and on
S_t then, and on the sets {g_t <= 0}.)

S_t is kept as at most `cuts` halfspaces. One is left out where the domain or a single other one implies it; when there is no more room, all
that the others imply go, each of which is proved by a program: S_t stays what it is. If that makes no room, those that have not held a
decision for longest go, and the count is in the state (`lost`): the bounds below do not need them, but what they forbade may come back. A
halfspace that leaves nothing of S_t is left out and counted: then no action satisfies every constraint, or some are so nearly opposite
that rounding decides (those may be exceeded by up to 1e-6 of the domain's scale). A gradient step longer than 1000 D is cut to that: the
projection of points farther away is lost in rounding.

Most rounds cost one product with all the halfspaces. Where some are violated, a quadratic program over few of them finds the projection
(DAQP, ``pip install 'bridle-oco[qp]'``); it runs on the Python engine only.

Guarantee: `nested_bound`; with eta = D / (G sqrt(t)) regret is at most 1.5 G D sqrt(t) and the CCV O(t^{3/4}), whatever the dimension; with
    modulus O(log t) and O(sqrt(t log t)). Sinha and Sarkar 2026 (arXiv 2605.21107, of which the abstract was at hand) bound the CCV of
    nested projections by C_d sqrt(t) and, with modulus, C_d log(t): decisions projected on nested sets travel no farther than C_d times the
    diameter and the gradient steps together. That holds for these halfspaces too, as long as none is dropped. C_d depends on the
    dimension alone and is not known as a number, so that orders stand in the tables and the bound here is the one without it.
Reference: R. Vaze, A. Sinha. O(sqrt(T)) Static Regret and Instance Dependent Constraint Violation for Constrained Online Convex
    Optimization. NeurIPS 2025. Update as in the paper with one projection for its two; the bound is proved for exactly this update.

Proof. Let u be feasible: it is in every S_t. With y = x_t - eta_t grad f_t and p = x_{t+1} its projection,

    |p - u|^2 <= |y - u|^2 - |y - p|^2 = |x_t - u|^2 - 2 eta_t <grad f_t, x_t - u> + eta_t^2 |grad f_t|^2 - |y - p|^2.

Divided by 2 eta_t and summed by parts this bounds regret by D^2 / (2 eta_t) + (G^2/2) sum eta_s; of strongly convex costs, modulus/2 sum
|x_s - u|^2 pays for all that 1/eta grows, and (G^2/2) sum eta_s remains. Summed as it is, it says that sum |y - p|^2 <= W_t = D^2 +
sum (2 eta_s G D + eta_s^2 G^2). As p satisfies the halfspaces of its round, g_t(x_t) <= <grad g_t, x_t - p> <= G (eta_t G + |y - p|), and
CCV_t <= G (G sum eta_s + sqrt(t W_t)) by Cauchy and Schwarz. Only the halfspaces of the round itself are needed for that, and that no set
excludes u.

>>> import bridle
>>> problem = bridle.problem("halfspaces", horizon=500, dim=3)
>>> trace = bridle.play(bridle.policy_for("vaze2025", problem), problem)
>>> trace.warnings, bool(bridle.ccv(trace) < 0.01 * bridle.ccv(bridle.play(bridle.policy_for("sinha2024", problem), problem)))
((), True)
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from bridle import ops, showing, validate
from bridle.core import Alarm, Bound, Constants, Domain, Feedback
from bridle.ops import Array
from bridle.policies.common import (
    curvature_of,
    diameter_of,
    flat,
    harmonic,
    in_advance,
    over_costs,
    powers,
    require_single_run,
    rounds_by_modulus,
    unmet,
)
from bridle.policies.entry import Configuration, Setting
from bridle.policies.registry import Through, registered
from bridle.solvers import nearest_point

FAR = 1000.0
"""Times the diameter: no gradient step is longer."""


class NestedState(NamedTuple):
    """The decision; `used` rows <A_i, x - middle> <= b_i, and the round in which each came or last held a decision; what was left out."""

    x: Array
    A: Array
    b: Array
    seen: Array
    used: float
    t: float
    left_out: float
    lost: float


class NestedHalfspaces(NamedTuple):
    """Halfspaces in use, without the room for more."""

    A: Array
    b: Array
    seen: Array

    def keep(self, which: NDArray[np.bool_]) -> NestedHalfspaces:
        return self if which.all() else NestedHalfspaces(*(part[which] for part in self))

    def with_row(self, a: Array, b: float, t: float) -> NestedHalfspaces:
        return NestedHalfspaces(np.vstack([self.A, a]), np.append(self.b, b), np.append(self.seen, t))


@showing.shown("Nested")
class Nested(NamedTuple):
    """Gradient steps of length `step` / sqrt(t), or `step` / t where `modulus` is above 0, projected on all that is left.

    With a modulus t counts costs by their moduli.
    """

    domain: Domain
    place: nearest_point.CutProjector
    diameter: float
    step: float
    modulus: float
    slots: Array

    @property
    def compiled(self) -> bool:
        """No: programs to solve, over sets of growing size."""
        return False

    def init(self, x1: Array) -> NestedState:
        require_single_run("vaze2025", x1)
        room = len(self.slots)
        return NestedState(x1, np.zeros((room, len(x1))), np.zeros(room), np.zeros(room), 0.0, 0.0, 0.0, 0.0)

    def decide(self, state: NestedState) -> Array:
        return state.x

    def update(self, state: NestedState, feedback: Feedback) -> NestedState:
        n, t = int(state.used), state.t + 1.0
        if self.modulus > 0.0:
            t = float(rounds_by_modulus(state.t, feedback.modulus, self.modulus))
        rows, left_out, lost = NestedHalfspaces(state.A[:n], state.b[:n], state.seen[:n]), state.left_out, state.lost
        eta = self.step / (t if self.modulus > 0.0 else sqrt(t))
        length = ops.norm(feedback.df)
        v = state.x - min(eta, FAR * self.diameter / length if length > 0.0 else eta) * feedback.df
        fresh = []
        for g, dg in zip(feedback.g, feedback.dg, strict=True):
            size = float(ops.norm(dg))
            if size == 0.0:
                left_out += float(g > 0.0)
                continue
            slack = nearest_point.ROW_SLACK * self.place.scale
            if 0.0 < g <= 100.0 * slack * size:  # a known wall that the decision is at; or, at the last point left, rounding and no more
                continue
            a = dg / size
            fresh.append((a, float(a @ (feedback.x - self.place.middle)) - float(g) / size + slack))
        if n + len(fresh) > len(self.slots) and fresh:
            rows, gone = self._make_room(rows, len(fresh), lost > 0.0)
            lost += gone
        after = rows
        for a, b in fresh:
            after = self._added(after, a, b, t)
        x, held = self._project(v, after, t)
        if x is None:  # a contradiction, or nearly: one at a time, with up to a thousand times the room for rounding
            after = rows
            for a, b in fresh:
                wider = (
                    self._added(after, a, b + room * nearest_point.ROW_SLACK * self.place.scale, t) for room in (0.0, 9.0, 99.0, 999.0)
                )
                found = next((more for more in wider if more is after or self._project(v, more, t)[0] is not None), None)
                after, left_out = (after, left_out + 1.0) if found is None else (found, left_out)
            x, held = self._project(v, after, t)
        if x is None:  # the solver has given up on what was not empty before
            left_out, x, held = left_out + 1.0, self.domain.project(state.x), []
        return self._stored(state, after, held, x, t, left_out, lost)

    def _project(self, v: Array, rows: NestedHalfspaces, t: float) -> tuple[Array | None, list[int]]:
        hint = np.flatnonzero(rows.seen >= t - 1.0)  # what held the last decision, and what is new
        return nearest_point.nearest(self.place, v, rows.A, rows.b, hint.tolist() if len(hint) <= 2 * len(v) else [])

    def _added(self, rows: NestedHalfspaces, a: Array, b: float, t: float) -> NestedHalfspaces:
        """The rows with one more; without those that it implies, or as they are where one of them, or the domain, implies it.

        <a, y> = <a', y> + <a - a', y> <= b' + |a - a'| reach for all y = x - middle of the domain, so that is tested.
        """
        reach = self.place.reach()
        if b >= min(reach, self._highest(a)):
            return rows
        apart = np.sqrt(np.maximum(2.0 - 2.0 * (rows.A @ a), 0.0))
        for i in np.flatnonzero(apart < 1e-4):  # where the square of the difference has cancelled
            apart[i] = ops.norm(rows.A[i] - a)
        apart *= reach * (1.0 + 1e-6)
        if (rows.b + apart <= b).any():
            return rows
        return rows.keep(b + apart > rows.b).with_row(a, b, t)

    def _highest(self, a: Array) -> float:
        """The largest <a, x - middle> on the domain, where that is quickly had."""
        if not getattr(self.domain, "compiled", True):
            return float("inf")
        return -float(self.domain.linear_min(-a)) - float(a @ self.place.middle)

    def _make_room(self, rows: NestedHalfspaces, fresh: int, lossy: bool) -> tuple[NestedHalfspaces, float]:
        """The rows without those that are implied, and if that is not enough without the ones unused for longest: how many of these."""
        if not lossy:
            rows = rows.keep(~nearest_point.redundant(self.place, rows.A, rows.b))
        most = max(0, len(self.slots) - max(fresh, len(self.slots) // 8))
        gone = max(0, len(rows.b) - most)
        kept = np.full(len(rows.b), True)
        kept[np.argsort(rows.seen, kind="stable")[:gone]] = False
        return rows.keep(kept), float(gone)

    def _stored(
        self, state: NestedState, rows: NestedHalfspaces, held: list[int], x: Array, t: float, left_out: float, lost: float
    ) -> NestedState:
        n, room = len(rows.b), len(self.slots)
        A, b, seen = np.zeros_like(state.A), np.zeros(room), np.zeros(room)
        first = max(0, n - room)  # more constraints in one round than there is room for: the last ones stay
        A[: n - first], b[: n - first], seen[: n - first] = rows.A[first:], rows.b[first:], rows.seen[first:]
        seen[[i - first for i in held if i >= first]] = t
        return NestedState(x, A, b, seen, float(n - first), t, left_out, lost + float(first))

    def alarm(self, state: NestedState) -> Alarm | None:
        """That halfspaces were left out or given up; None while none was."""
        if state.left_out > 0.0:
            text = f"{state.left_out:g} constraints were left out: no action was found that meets them and those before, and no bound holds"
            # The proof needs the next decision to satisfy the halfspaces of the round. Rounding may have decided: it proves no more.
            return Alarm(text, voids_bound=True)
        if state.lost > 0.0:
            room = f"for lack of room (cuts = {len(self.slots)})"
            text = f"{state.lost:g} halfspaces were given up {room}: old constraints may be violated again"
            return Alarm(text, voids_bound=False)  # the proof needs the halfspaces of the round alone
        return None


def _nested(domain: Domain, diameter: float, step: float, modulus: float, cuts: int) -> Nested:
    return Nested(domain, nearest_point.projector_for(domain), diameter, step, modulus, np.ones(validate.whole("cuts", cuts)))


def nested_bound(policy: Configuration[Nested], constants: Constants, t: float) -> Bound:
    """The proof above, for the steps as they are.

    In a session a round may have no cost, or one of another modulus: eta_s is then 1 over the sum of the moduli, all sums of it are over
    the rounds with a cost, modulus D^2 / 2 is added where moduli were smaller than told (see `bridle.policies.common`), and t counts the
    rounds with a cost or a violation. The bound on the CCV rests on no lower bound on regret.
    """
    record = policy.record
    if why := unmet(constants, modulus=record.modulus):
        return Bound(why=why)
    G, D, c = constants["lipschitz"], constants["diameter"], record.step
    rounds = t
    if record.modulus > 0.0:
        seen = curvature_of(constants, t)
        steps, squares, rounds = c * float(over_costs(seen, 1.0)), c * c * float(over_costs(seen, 2.0)), seen.costs + seen.struck
        regret = 0.5 * G * G * steps + 0.5 * record.modulus * D * D * in_advance(seen)
    else:
        steps, squares = c * float(powers(t, 0.5)), c * c * harmonic(t)
        regret = D * D * sqrt(t) / (2.0 * c) + 0.5 * G * G * steps
    W = D * D + 2.0 * G * D * steps + G * G * squares
    return Bound(flat(min(regret, G * D * t)), ccv=flat(min(G * (G * steps + sqrt(rounds * W)), G * D * t)))


DOMAINS = ("ball", "box", "simplex", "l1", "polyhedron")


@registered(
    reference="Vaze & Sinha, NeurIPS 2025",
    regret="O(sqrt(T))",
    violation="O(T^3/4), O(C_d sqrt(T)) by Sinha & Sarkar 2026, O(1) in many instances",
    bound=nested_bound,
    reduces="all",
    domains=DOMAINS,
    cost="1 product with all halfspaces; a small quadratic program where some are violated",
    needs=("lipschitz", "diameter"),
)
def vaze2025(
    domain: Domain,
    *,
    lipschitz: Setting,
    diameter: Setting | None = None,
    cuts: int = 1000,
    constraints: int | None = None,
    **through: Unpack[Through],
) -> Nested:
    """Nested projections on all revealed halfspaces.

    Parameters
    ----------
    lipschitz
        G, a Lipschitz constant of every cost and constraint on the domain. Values: above 0. Unit: cost and
        constraint per unit of action.
    diameter
        D, the domain's Euclidean diameter. Default: the domain's own diameter. Values: above 0. Unit: action.
    cuts
        How many of the last violated halfspaces to keep. Values: a whole number, 1 or above. Unit: halfspaces.
    constraints
        k, how many constraints a round reveals; only checked. Default: any number. Values: a whole number, 1 or
        above. Unit: constraints.
    """
    G, D = validate.positive("lipschitz", lipschitz), cast(float, diameter_of(domain, diameter))
    return _nested(domain, D, D / G, 0.0, cuts)


@registered(
    reference="Vaze & Sinha, NeurIPS 2025",
    regret="O(log T)",
    violation="O(sqrt(T log T)), O(C_d log T) by Sinha & Sarkar 2026",
    bound=nested_bound,
    reduces="all",
    strongly_convex=True,
    domains=DOMAINS,
    cost="1 product with all halfspaces; a small quadratic program where some are violated",
    needs=("modulus", "diameter"),
)
def vaze2025_strong(
    domain: Domain,
    *,
    modulus: Setting,
    diameter: Setting | None = None,
    cuts: int = 1000,
    constraints: int | None = None,
    **through: Unpack[Through],
) -> Nested:
    """Nested projections for strongly convex costs.

    Parameters
    ----------
    modulus
        Strong convexity of the costs. Values: above 0. Unit: cost per squared unit of action.
    diameter
        D, the domain's Euclidean diameter. Default: the domain's own diameter. Values: above 0. Unit: action.
    cuts
        How many of the last violated halfspaces to keep. Values: a whole number, 1 or above. Unit: halfspaces.
    constraints
        k, how many constraints a round reveals; only checked. Default: any number. Values: a whole number, 1 or
        above. Unit: constraints.
    """
    mu = validate.positive("modulus", modulus)
    return _nested(domain, cast(float, diameter_of(domain, diameter)), 1.0 / mu, mu, cuts)
