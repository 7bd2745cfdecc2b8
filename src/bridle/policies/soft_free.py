"""Limits held on average with nothing told: natural prices, and steps in a part of the domain that grows as they pay.

The default form of policy `soft`. It needs a projection on X and its diameter D (an upper bound will do), and no Lipschitz constant, no
bound on |g|, no noise level and no horizon. Costs times a and constraint i times b_i give the same decisions. pi_i = sqrt(Sf/Sg_i) is the
natural price of limit i, with Sf the sum of |grad f|^2 and Sg_i that of |grad g_i|^2; N_i = sqrt(sum g_i^2) is the natural unit of
violation. A queue Q_i adds up what was overspent, and limit i weighs lam_i = (pi_i / (c N_i)) (Q_i + damping): whatever the box, in its
first rounds too.

    scale_i = sqrt(Sf) / (c sqrt(sum g_i^2) sqrt(Sg_i)),  0 where nothing was seen yet;  c = `weight`, kappa = `damping`
    price      nu_i = scale_i with the gradients of this round and the values before it;  m_i = scale_i after the last round
               Q_i <- min(1, sqrt(m_i/nu_i)) Q_i,  L_i += what that takes away
               h'_i = max(h_i [H_i >= -m_i N_i^2], -Q_i),   lam_i = nu_i (Q_i + h'_i) >= 0
    decision   p = grad f_t + sum_i lam_i grad g_{t,i},  S += |p|^2,  gam += <p, z - x_t>
               y = P_X(x_t - (min(2s, 1) D / sqrt(2 S)) p),   x_{t+1} = z + min(1, s D/|y - z|) (y - z)
    queue      H_i = min(0, H_i + nu_i h'_i g_i),  Q_i <- (Q_i + g_i)^+,  m_i = scale_i,
               h_i = kappa sqrt(t) (g_i + <grad g_{t,i}, x_{t+1} - x_t>), cut to +-N_i
    part       grow: where s < 1 and gam > s D sqrt(S), s <- min(1, 4s), S = gam = 0
               turn: else, once the rounds have doubled (first after 32), x_{t+1} = z = the mean decision since the last turn,
               s <- max(4^-5, s/4), S = gam = 0

Why each is there. AdaGrad steps over a box that is 1000 times too large for thousands of rounds: here it works in the ball of radius s D
around z, which grows fourfold as soon as what was gained over staying at z is significant. A turn forgives a start in the middle of a huge
box. A queue alone circles around a limit for ever: h, what the limit will be at x_{t+1} seen sqrt(t) rounds ahead, is the damping, and the
gate H makes it free in the proof. Q falls with m where costs get steeper (L), so that no price jumps. With a `cap` on prices, Q_i <-
min(Q_i, cap/m_i), L_i grows by what was cut, and h'_i is at most (cap/nu_i - Q_i)^+.

Guarantee: `observed_regret` and `observed_violation`, after every round, against every adversary, in observed quantities: for every u in X
    that meets all limits of all rounds,  Regret_t(u) + sum_i m_i Q_i^2/2 <= B_t + E_t, and of every limit  sum_s g_{s,i}(x_s) <= Q_i + L_i;
    closed forms are `learner_bound`, `queue_bound`, `lost_bound`: O(T^{3/4}) up to logarithms where gradients are bounded and values do not
    vanish. With room to spare `price_bound` (one limit): violation O(sqrt(T log T)), regret O(sqrt(T) log T). With errors of mean 0 in the
    values both lines hold in expectation; `unforeseen_bound` is what limits drawn anew each round, or errors in gradients, add. Not
    O(sqrt(T)) without room to spare: the form with constants has that (`bridle.policies._soft`).
Reference: bridle (this file).

Proof. *Decisions.* Fix an epoch (between two changes of s), u in X and u' = z + s (u - z), which is in X and within s D of z. P_X, and
the pull towards z (the projection on the ball, which maps X into X), bring nothing farther from u', and |x_t - u'| <= d = min(2s, 1) D.
AdaGrad: R' = sum <p, x_t - u'> <= sqrt(2) d sqrt(S). As x - u = (x - u')/s + (1/s - 1) (z - x), sum <p, x_t - u> = R'/s + (1/s - 1) gam:
summed over the epochs this is at most B_t = sum of sqrt(2) min(2, 1/s) D sqrt(S) + (1/s - 1) gam. Before an epoch's last round gam <= s D
sqrt(S), and that round adds at most s D |p|, so that gam <= sqrt(2) s D sqrt(S), and an epoch costs at most 3 sqrt(2) D sqrt(S). (Part of
an epoch: 5, as -gam <= 2 sqrt(2) s D sqrt(S), AdaGrad against z.) s grows at most log_4(1/s0) times, and once more for each turn.
*Prices.* By convexity and lam >= 0, Regret(u) + sum lam g(x_t) - sum lam g_t(u) <= B. Lowering Q makes nu Q^2 <= (m Q^2 before), so that
with E = sum of [m Q^2/2 after - nu Q^2/2 before - lam g] the m Q^2/2 of the end is at most E + sum lam g; and lam g_t(u) <= 0. *E.* One
limit, one round, h' = 0, m <= nu (or Q = 0). Where g >= 0 the term is at most m g^2/2 = pi g^2/(2 c N). Where g < 0 it is at most nu
g^2/2, and nu Q |g|. If g^2 <= N^2 before, the former is at most sqrt(2) pi g^2/(2 c N), and sum g^2/N <= 2 N. In the other rounds N grows
by sqrt(2) or more, so that their |g| add up to (2 + sqrt(2)) N. h' changes the term by -nu h' g. The gate is open only while the worst
sum of nu h' g over any last rounds is at least -m N^2 = -pi N/c, and a round changes that by nu |h'| |g| <= pi |g|/c: it is at least -2
pi N/c. *Known limits.* Let x be the nearest action to x_t of a convex set K that holds u. <x_t - x, x - u> >= 0, so that |x - u'|^2 -
|x_t - u'|^2 <= 2 (1 - s) <x_t - x, z - x> - |x_t - x|^2. Where that is 0 or less, and |x - z| <= s D, as always where z is in K or s = 1,
x may take the place of x_t in the epoch. Elsewhere the epoch ends, and another begins with s = 1; the parts that it leaves out are no
more than it adds. *Violation.* Q after a round is at least Q + g, with Q as lowered. *Room to spare.* Let tau be the last round with lam
<= theta: m Q after it is at most theta + 2 pi/c. From there on |grad f| D <= sigma lam, so that m Q^2/2 grows by no more than the
decisions' part and E; times 2 m that is a quadratic inequality in the price. *Errors.* lam depends on the past and on the lengths of this
round's gradients alone, so E lam xi = 0.

>>> import bridle
>>> problem = bridle.problem("halfspaces", horizon=500, dim=3)
>>> trace = bridle.play(bridle.policy("soft", problem.domain), problem)
>>> bridle.soft_violation(trace) <= trace.state.observed_violation
True
>>> bridle.regret(trace) <= trace.state.observed_regret
True
"""

from __future__ import annotations

from math import log, sqrt
from typing import NamedTuple

import numpy as np

from bridle import ops, records
from bridle.core import Alarm, Domain, Feedback
from bridle.learners.adagrad import adaptive_step
from bridle.ops import Array, Scalar, combine, dot, maximum, minimum, norm, pos, ratio, scalar, vector, where

WEIGHT, DAMPING = 1.0, 0.5
"""c and kappa, where none are given."""

SMALLEST_PART = 4.0**-5
"""s0: the part of the domain that the first steps are taken in, as a share of its diameter."""

GROWTH = 4.0
"""How much a part grows, and shrinks with a turn."""

FIRST_TURN = 32.0
"""After so many rounds z moves to the mean decision for the first time."""

ROUNDING = 4.0 * 2.0**-52
"""What a round may add to the rounding of a sum, as a part of it."""

CLOSE = 1e-12
"""What rounding may take an action out of a part, as a share of its radius."""

NO_COST = 1e-100
"""sqrt(Sf) before any cost: any positive number gives the same steps then."""


class NaturalQueues(NamedTuple):
    """Of every limit: the queue Q, the sums of g^2 and |grad g|^2, m, h, H, what was taken off the queue (L), and the sum of lam."""

    Q: Array
    values: Array
    slopes: Array
    m: Array
    h: Array
    H: Array
    L: Array
    paid: Array


class GrowingPart(NamedTuple):
    """The ball around z in which steps are taken: its share s of the diameter, S and gam of this epoch, and the mean of the last decisions.

    `until` is the round of the next turn, `epochs` how many have ended, `spent` what B counts for those.
    """

    z: Array
    s: Scalar
    S: Scalar
    gam: Scalar
    mean: Array
    n: Scalar
    until: Scalar
    epochs: Scalar
    spent: Scalar


class NaturalState(NamedTuple):
    """The decision, the part and the queues; the rounds, Sf, E, in how many rounds the cap held a queue back, and the diameter."""

    x: Array
    part: GrowingPart
    queues: NaturalQueues
    rounds: Scalar
    Sf: Scalar
    E: Scalar
    capped: Scalar
    diameter: Scalar

    @property
    def observed_rounds(self) -> Scalar:
        """After how many rounds this is observed."""
        return self.rounds

    @property
    def observed_regret(self) -> Scalar:
        """B + E - sum m Q^2/2: regret so far is at most this, against every action that meets all limits of all rounds."""
        part, queues = self.part, self.queues
        B = part.spent + epoch_cost(self.diameter, part.s, part.S, part.gam)
        return B + self.E - 0.5 * dot(queues.m * queues.Q, queues.Q)

    @property
    def observed_violation(self) -> Scalar:
        """The largest of Q + L: what the values of any limit add up to, at most."""
        most = (self.queues.Q + self.queues.L).max(axis=-1) * (1.0 + ROUNDING * self.rounds)
        return float(most) if self.x.ndim == 1 else most[..., None]


class NaturalPrices(NamedTuple):
    """The policy: prices from what was seen alone, and AdaGrad in a growing part of the domain."""

    domain: Domain
    diameter: Scalar
    weight: Scalar  # c
    damping: Scalar  # kappa
    smallest: Scalar  # s0
    cap: Scalar  # the largest price
    each: Array | None  # (k,): its length is the number of constraints; None: the first feedback with constraints says how many

    def init(self, x1: Array) -> NaturalState:
        one, none = scalar(x1), vector(x1, np.zeros(1) if self.each is None else self.each)
        first, D = one + self.smallest, one + self.diameter
        part = GrowingPart(x1, first, one, one, 0.0 * x1, one, one + FIRST_TURN, one, one)
        return NaturalState(x1, part, NaturalQueues(*[none] * 8), 0.0, one, one, one, D)

    def decide(self, state: NaturalState) -> Array:
        return state.x

    def update(self, state: NaturalState, feedback: Feedback) -> NaturalState:
        x, part, queues, t = state.x, state.part, state.queues, state.rounds + 1.0
        df, g, dg, D = feedback.df, feedback.g, feedback.dg, self.diameter
        # Prices: with the gradients of this round, and the values before it.
        Sf, slopes = state.Sf + dot(df, df), queues.slopes + (dg * dg).sum(axis=-1)
        nu = self.scale(Sf, queues.values, slopes)
        Q = queues.Q * minimum(ops.sqrt(ratio(queues.m, nu)) + (nu == 0.0), 1.0)
        damping = maximum(minimum(self.foreseen(queues), pos(ratio(self.cap, nu) - Q)), -Q)
        lam = nu * (Q + damping)
        # The decision.
        p = df + combine(lam, dg)
        S, gam, s = part.S + dot(p, p), part.gam + dot(p, part.z - x), part.s
        step = adaptive_step(minimum(2.0 * s, 1.0) * D, S)
        y = self.domain.project(x - step * p)
        far, r = norm(y - part.z), s * D
        after = where(far <= r, y, part.z + ratio(r, far) * (y - part.z))
        n = part.n + 1.0
        mean = part.mean + (x - part.mean) / n
        # The queues.
        H = minimum(queues.H + nu * damping * g, 0.0)
        values = queues.values + g * g
        m = self.scale(Sf, values, slopes)
        longer = pos(Q + g)
        over = pos(m * longer - self.cap)
        held: Scalar = 1.0 * (norm(over) > 0.0)  # type: ignore[assignment]
        cut = ratio(over, m)
        kept = longer - cut
        ahead = g + (dg @ (after - feedback.x)[..., None])[..., 0]
        most = ops.sqrt(values)
        h = maximum(minimum(self.damping * ops.sqrt(t) * ahead, most), -most)
        E = state.E + 0.5 * dot(m * kept, kept) - 0.5 * dot(nu * Q, Q) - dot(lam, g)
        # The part.
        grow: Scalar = 1.0 * (s < 1.0) * (gam > r * ops.sqrt(S))  # type: ignore[assignment]
        turn: Scalar = (1.0 - grow) * (t >= part.until)  # type: ignore[assignment]
        same = 1.0 - grow - turn
        changed = where(grow > 0.0, minimum(GROWTH * s, 1.0), where(turn > 0.0, maximum(s / GROWTH, self.smallest), s))
        z = where(turn > 0.0, mean, part.z)  # a mean of points of X is in X
        return NaturalState(
            where(turn > 0.0, mean, after),
            GrowingPart(
                z, changed, same * S, same * gam, (1.0 - turn) * mean, (1.0 - turn) * n, where(turn > 0.0, 2.0 * t, part.until),
                part.epochs + grow + turn, part.spent + (grow + turn) * epoch_cost(D, s, S, gam),
            ),
            NaturalQueues(kept, values, slopes, m, h, H, queues.L + (queues.Q - Q) + cut, queues.paid + lam),
            t, Sf, E, state.capped + held, state.diameter,
        )  # fmt: skip

    def move(self, state: NaturalState, x: Array) -> NaturalState:
        """The state with x in place of its next decision: the nearest action that keeps limits which are known before acting.

        In the part as it is where that brings x no farther from any u' = z + s (u - z); else in the whole domain from here on.
        """
        part, way = state.part, state.x - x
        near = norm(x - part.z) <= (1.0 + CLOSE) * part.s * self.diameter
        within = (part.s >= 1.0) | (near & (2.0 * (1.0 - part.s) * dot(way, part.z - x) <= dot(way, way)))
        spent = part.spent + epoch_cost(self.diameter, part.s, part.S, part.gam)
        none = 0.0 * part.S
        whole = part._replace(z=x, s=none + 1.0, S=none, gam=none, epochs=part.epochs + 1.0, spent=spent)
        return state._replace(x=x, part=records.choose(within, part, whole))

    def scale(self, Sf: Scalar, values: Array, slopes: Array) -> Array:
        """sqrt(Sf) / (c sqrt(values) sqrt(slopes)), and 0 where values or slopes are: products in an order that is safe at any scale."""
        return ratio(ops.sqrt(Sf) + NO_COST * (Sf == 0.0), self.weight * ops.sqrt(values) * ops.sqrt(slopes))

    def foreseen(self, queues: NaturalQueues) -> Array:
        """h where its gate is open, else 0."""
        return queues.h * ((queues.m > 0.0) * (queues.H + queues.m * queues.values >= 0.0))

    def unforeseen(self, before: NaturalState, after: NaturalState) -> Scalar:
        """How much the prices of the round from `before` to `after` were not what was known before it: the round's term of C."""
        queues = before.queues
        known = minimum(queues.m * pos(queues.Q + self.foreseen(queues)), self.cap)
        return abs(after.queues.paid - queues.paid - known).sum(axis=-1)  # type: ignore[no-any-return]

    def price(self, state: NaturalState) -> Array:
        """The mean of lam over all rounds."""
        return ratio(state.queues.paid, state.rounds)

    def certified_regret(self, state: NaturalState) -> float:
        """The theorem with what was observed."""
        return float(state.observed_regret)

    def learned(self, state: NaturalState) -> int | None:
        """How many constraints the state is about; None while any number will do."""
        queues = state.queues
        k = queues.Q.shape[-1]
        return k if k > 1 or self.each is not None or queues.values.any() or queues.slopes.any() else None

    def alarm(self, state: NaturalState) -> Alarm | None:
        """That the cap held a queue back; None while it has not."""
        return capped_alarm(state.capped, "the limit need not hold any more")  # what was forgotten is in L


def capped_alarm(capped: Scalar, so: str) -> Alarm | None:
    """That a cap held a queue back in `capped` rounds, and what follows; None while it has not. A lower queue only lowers the regret."""
    count = float(np.max(np.asarray(capped)))
    if count == 0.0:
        return None
    rounds = f"{count:g} round{'' if count == 1.0 else 's'}"
    text = f"the price of a limit was held at its cap in {rounds}: what was overspent there is forgotten, and {so}"
    return Alarm(text, voids_bound=False)


# --- the theorems, in observed quantities ----------------------------------------------------------------------------------------------
#
# bar pi: the largest natural price so far. Lam: the largest nu Q or m Q so far. N = sqrt(sum g^2). S: the sum of |p|^2 over all rounds.


def epoch_cost(D: Scalar, s: Scalar, S: Scalar, gam: Scalar) -> Scalar:
    """What an epoch adds to B: sqrt(2) min(2, 1/s) D sqrt(S) + (1/s - 1) gam."""
    return sqrt(2.0) * minimum(1.0 / s, 2.0) * D * ops.sqrt(S) + (1.0 / s - 1.0) * gam


def most_epochs(t: float, smallest: float = SMALLEST_PART) -> float:
    """The most epochs after t rounds: the first, one for each fourfold from the smallest part to 1, and two for each turn.

    >>> most_epochs(31), most_epochs(32), most_epochs(64)
    (6.0, 8.0, 10.0)
    """
    grown = np.ceil(log(1.0 / smallest, GROWTH) - 1e-9)
    turns = np.floor(1.0 + np.log2(t / FIRST_TURN)) if t >= FIRST_TURN else 0.0
    return float(1.0 + grown + 2.0 * turns)


def learner_bound(D: Scalar, epochs: Scalar, S: Scalar) -> Scalar:
    """3 sqrt(2) D sqrt(K S): B is at most this, with S the sum of |p|^2 over all rounds."""
    return 3.0 * sqrt(2.0) * D * ops.sqrt(epochs * S)


def steps_bound(Sf: float, slopes: Array, price: Array, natural: Array, weight: float) -> float:
    """sqrt(Sf) + sum_i (Lam_i + bar pi_i/c) sqrt(Sg_i): sqrt(S) over all rounds is at most this."""
    return sqrt(Sf) + float(((price + natural / weight) * np.sqrt(slopes)).sum())


def queue_bound(size: Array, price: Array, natural: Array, weight: float) -> float:
    """(2 + sqrt(2)) sum_i N_i (bar pi_i/c + Lam_i): E is at most this."""
    return (2.0 + sqrt(2.0)) * float((size * (natural / weight + price)).sum())


def lost_bound(longest: float, first: float, Sf: float) -> float:
    """(1/4) ln(Sf/first) times the longest queue: L is at most this where `first` was Sf in the first round with m > 0, and no cap is."""
    return 0.25 * longest * log(Sf / first)


def price_bound(cost: float, slater: float, D: float, natural: float, share: float, epochs: float, weight: float) -> float:
    """The largest price m Q of the only limit, where an action has g_t <= -slater always and the scale never rises.

    `cost` is the longest cost gradient, `share` the largest D sqrt(Sg)/N, and with theta = cost D/slater, a = 10 sqrt(2 K) share/c and e =
    2 (2 + sqrt(2))/c:  Lam <= theta + 2 bar pi/c + bar pi (a + e + sqrt(a (1 + 1/c) + e/c)). `share` is bounded where values do not vanish.
    The scale never rises, from round to round or within one, where the natural price does not: then no queue is lowered.
    """
    a, e = 10.0 * sqrt(2.0 * epochs) * share / weight, 2.0 * (2.0 + sqrt(2.0)) / weight
    return cost * D / slater + natural * (2.0 / weight + a + e + sqrt(a * (1.0 + 1.0 / weight) + e / weight))


def unforeseen_bound(price: Array, natural: Array, first_slopes: Array, slopes: Array, first: Array, Sf: float, weight: float) -> float:
    """sum_i (Lam_i + bar pi_i/c) (1/2) (ln(Sg_i/first) + ln(Sf/first)): C, the sum of `NaturalPrices.unforeseen`, is at most this.

    The firsts are those of the first round with m_i > 0. Where limits are drawn anew, or gradients have errors of mean 0, F C is added to
    the bound on the expected regret, with F the largest |g + <grad g, u - x>| as revealed.
    """
    return float(((price + natural / weight) * 0.5 * (np.log(slopes / first_slopes) + np.log(Sf / first))).sum())
