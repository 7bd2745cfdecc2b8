"""`anytime` with ``window="auto"``: a mixture of memories, so that nobody has to choose a window.

K copies of `anytime` (`bridle.policies._anytime`) play side by side: copy j begins anew every W_j = 16, 64, 256, ... rounds, the last one
never. What is played is a mixture of their decisions, x_t = sum_j w_t(j) x_t^j. One gradient a round is enough: each copy is fed what was
seen at x_t, read at its own decision as an affine function,

    f_t(x_t) + <grad f_t, x^j - x_t>,      g_t(x_t) + <grad g_t, x^j - x_t>,      dist_t^j = the distance from x^j to that halfspace H_t,

and the weights are those of Track (`bridle.learners.track`), which follows the copy that is best now, fed with

    l_t(j) = <grad f_t, x_t^j - x_t> + rho_t (dist_t^j - dist_t),      rho_t = 4 t^{1/4} max_{s <= t} |grad f_s|,

with dist_t the distance from x_t itself, which is the same for all. A distance outside has a price that grows with the rounds: where the
world stands still, the copies that remember longest violate least and end with the weight; where it moves, they cost more than their
violations are worth. (While no cost has had a slope, rho_t = 4 t^{1/4}; with the first that has, what the weights have learned is put into
its unit: units of costs, limits and actions do not matter.)

Guarantee: `moving_bound`. Let the rounds fall into m intervals, and u_1, ..., u_T be a path that moves by at most delta D within each,
    delta < sqrt(2) - 1 (at 0: m - 1 jumps), each u_t keeping the limits of all rounds of its interval (with ``cuts=0``: of its own round
    alone; no action has to be feasible for longer). Then, for every T and any adversary, up to logarithms,

    sum f_t(x_t) - f_t(u_t) <= G D O(T^{3/4} sqrt(m)),      sum dist_t <= D O(T^{3/4} + sqrt(m T)),      CCV <= max |grad g| sum dist_t.

    A path of length P has m <= 1 + P / (delta D) such intervals. Nobody has to know m, P, T or G. The regret has T^{3/4} only where the
    copies do violate: without limits the price is never paid, and dynamic regret is O(G D sqrt(T (1 + P/D))) up to logarithms
    (``limits=False``), the order of which no policy can beat.
Reference: bridle (this file); a mixture of copies fed with one gradient is that of L. Zhang, S. Lu, Z.-H. Zhou. Adaptive Online Learning in
    Dynamic Environments. NeurIPS 2018.

Proof. (1) The copies. Their theorem with u_t in place of u: |x_{t+1} - u_{t+1}|^2 <= |x_{t+1} - u_t|^2 + 2 D |u_{t+1} - u_t|, so that
AdaGrad's regret is at most sqrt(2) (D + P) sqrt(S) where u moves by P. The rest of the proof of `anytime` stands, with theta = 2 (D + P)^2
lam:

    V Regret + (1 - theta) e^{lam Q} - 1 <= V R,     R = sqrt(2) (D + P) sqrt(sum |grad f|^2),

for a copy from the beginning of each of its windows on, as long as u keeps what the copy still remembers. So within a window the copy has
regret R + theta/V and squares Q <= ln((1 + V (R + F)) / (1 - theta)) / lam, where F is what u can be behind.

(2) Pieces. The first interval is one piece, for the copy that never begins anew. In another one of n rounds, with windows r times as long
each, a window of the shortest copy begins after at most W_1 - 1 rounds. From there take windows of each length W_j < n while none of the
next length begins, fewer than r of each, and at last the beginning of a longer one: at most 1 + (r - 1) #{j : W_j < n} pieces (`pieces`;
windows of the longest length may be more). N is their number over all intervals. On each piece one copy has just begun, so (1) holds for
it; with Cauchy and Schwarz over the pieces

    sum <grad f_t, x_t^{j(t)} - u_t> <= sqrt(2 N) (1 + delta) D sqrt(sum |grad f|^2) + N theta / V,
    sum dist_t^{j(t)} <= sqrt(T N max Q),

but for the (m - 1) (W_1 - 1) rounds before pieces begin, which cost at most |grad f_t| D + rho_t D each.

(3) The mixture. dist_t, the distance from x_t to H_t, is convex: dist_t <= sum_j w_t(j) dist_t^j. So Track's regret against the sequence of
copies j(t), which switches N - 1 times, gives

    sum <grad f_t, x_t - u_t> + sum rho_t dist_t <= sum <grad f_t, x_t^{j(t)} - u_t> + sum rho_t dist_t^{j(t)} + Track(N - 1),

and the losses have ranges s_t <= D (|grad f_t| + rho_t). Leave out rho_t dist_t >= 0 for the regret.

(4) Violation. What u can be behind is at most D M_t t, M_t = max |grad f_s|, so A_t = sum_{s <= t} rho_s dist_s <= D M_t e(t) for every t,
e(t) the right side of (3) in units of D M_t, plus t; and e(t) / t^{1/4} does not fall (constants in e are multiplied by it). Summed
by parts,

    sum dist_t = A_T / rho_T + sum_{t < T} (A_t / rho_t) (1 - rho_t / rho_{t+1}) <= D e(T) / T^{1/4} (1 + ln(rho_T / rho_1)).

(Losses within 1e-9 D M_t of 0 are taken for 0, lest the weights learn from rounding: 2e-9 D M_t t more.)

Not proved: CCV of order sqrt(T) where some action keeps every limit, which `anytime` without a window has (the price of a forgetting copy
is learned, not known); anything where limits come rarely, beyond this; and that the price is right for anybody: it says what forgetting
may save, not what a violation costs you.

>>> import bridle, numpy as np
>>> session = bridle.Session(bridle.policy("anytime", bridle.Box(0.0, 10.0, dim=1), window="auto"))
>>> for t in range(600):
...     x, demand = session.decide(), 8.0 if t < 50 else 2.0  # one peak, long ago
...     session.observe(f=float(x[0]), df=[1.0], g=demand - float(x[0]), dg=[-1.0])
>>> x.round(1)  # without a window it would stay at 8.0
array([2.])
"""

from __future__ import annotations

from itertools import pairwise
from math import log, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bridle import domains, ops, records
from bridle.core import Alarm, Bound, Constants, Domain, Feedback
from bridle.learners import Track
from bridle.learners.track import track_regret
from bridle.ops import Array, Scalar, along, combine, maximum, minimum, norm, pos, ratio, scalar, where
from bridle.policies.anytime_forms import TOUCH

SHORTEST, LONGER, FORGETFUL = 16, 4, 7
"""The shortest window, how many times longer each next one is, and how many there are: the longest is of 65,536 rounds."""

WINDOWS = (*(float(SHORTEST * LONGER**j) for j in range(FORGETFUL)), np.inf)
"""After how many rounds each copy begins anew; the last never does."""


TOLL = 4.0
"""What a distance outside costs a copy in the first round, in units of the steepest cost; it grows as t^{1/4}."""


class MemoryState(NamedTuple):
    """The copies, one a row; how many rounds of each one's window are over; the learner that mixes them; the rounds; the length of the
    first cost gradient that had one, and of the longest; what the last copy was charged for distances beyond what the mixture was, and
    with that what the mixture has lost to it at most."""

    copies: Any
    over: Array
    top: Any
    rounds: Scalar
    first: Scalar
    steepest: Scalar
    charged: Scalar
    behind: Scalar

    @property
    def observed_rounds(self) -> Scalar:
        return self.rounds

    @property
    def observed_regret(self) -> Scalar:
        """What the mixture has lost to the copy that never begins anew: sum <grad f_t, x_t - x_t^j> is at most this."""
        return self.behind

    @property
    def V(self) -> Scalar:
        """That of the copies, which all see the same first gradient."""
        V: Array = self.copies.V[..., 0, :]
        return ops.first(V) if V.ndim == 1 else V


class Memories(NamedTuple):
    """The mixture; `windows` is ``(K, 1)``, `top` mixes the K copies, and `toll` is what distances cost them."""

    inner: Any  # `bridle.policies._anytime.Anytime`, each copy as a run of its own
    windows: Array
    top: Any  # a learner on the simplex
    toll: Scalar

    @property
    def domain(self) -> Domain:
        domain: Domain = self.inner.domain
        return domain

    @property
    def mixed(self) -> tuple[str, ...]:
        """The names of what is mixed."""
        return tuple(f"memory of {f'{W:g}' if np.isfinite(W) else 'all'} rounds" for W in np.asarray(self.windows)[:, 0])

    def init(self, x1: Array) -> MemoryState:
        zero, over = scalar(x1), ops.vector(x1, self.windows[:, 0])
        copies, top = self.inner.init(over[..., None] + x1[..., None, :]), self.top.init(over + 1.0 / over.shape[-1])
        return MemoryState(copies, over[..., None], top, zero, zero, zero, zero, zero)

    def decide(self, state: MemoryState) -> Array:
        return combine(self.weights(state), state.copies.x)

    def weights(self, state: MemoryState) -> Array:
        """What each memory is worth at present."""
        weights: Array = self.top.decide(state.top)
        return weights

    def update(self, state: MemoryState, feedback: Feedback) -> MemoryState:
        own, dg = state.copies.x, feedback.dg
        away = own - feedback.x[..., None, :]
        g = feedback.g[..., None, :] + away @ ops.namespace(dg).swapaxes(dg, -1, -2)
        length, rounds = norm(feedback.df), state.rounds + 1.0
        first, steepest = where(state.first > 0.0, state.first, length), maximum(state.steepest, length)
        # While no cost has had a slope, distances are weighed in units of 1; the first that has one puts them into its own.
        unit = where(steepest > 0.0, steepest, 0.0 * steepest + 1.0)
        factor = where(state.steepest > 0.0, 0.0 * unit + 1.0, unit)
        rho, far = self.toll * price(rounds) * unit, self.distances(g, dg) - self.distances(feedback.g[..., None, :], dg)
        losses = (away @ feedback.df[..., None])[..., 0] + rho * far
        # Copies that agree up to rounding have lost the same: the weights have no scale of their own, and would learn from rounding.
        losses = losses * (ops.absolute(losses) > TOUCH * unit * self.reach)
        charged = factor * state.charged + rho * (ops.first(far[-1:]) if far.ndim == 1 else far[..., -1:])
        top = self.top.step(self.top.rescale(state.top, factor), losses)
        moved = self.inner.update(state.copies, Feedback(own, feedback.f, feedback.df[..., None, :], g, dg[..., None, :, :]))
        over = state.over + 1.0
        copies = _each(over >= self.windows, self.inner.anew(moved), moved)
        over = where(over >= self.windows, 0.0 * over, over)
        behind = charged + self.top.certified(top) + 2.0 * TOUCH * rounds * unit * self.reach
        return MemoryState(copies, over, top, rounds, first, steepest, charged, behind)

    def distances(self, g: Array, dg: Array) -> Array:
        """How far each copy is outside of the farthest halfspace, from the limits' values ``(..., K, k)`` at its decision."""
        lengths = ops.sqrt((dg * dg).sum(axis=-1))[..., None, :]
        far = ratio(g, lengths) + self.inner.margin * (lengths > 0.0)
        capped: Array = minimum(pos(along(far, "max")), self.inner.reach)  # K of them, or 1
        return capped[..., 0]

    @property
    def reach(self) -> Scalar:
        """The diameter, of each run."""
        reach: Scalar = self.inner.reach if np.ndim(self.inner.reach) == 0 else self.inner.reach[..., 0]
        return reach

    def certified_regret(self, state: MemoryState) -> float | None:
        """The proof's own upper bound on the regret so far: that of the copy which never begins anew, and the mixture's against it."""
        alone = records.transform(lambda leaf: _alone(leaf[-1]), state.copies)
        copy = self.inner.certified_regret(alone)
        return None if copy is None else float(copy + state.behind)

    def alarm(self, state: MemoryState) -> Alarm | None:
        alarm: Alarm | None = self.inner.alarm(state.copies)
        return alarm


def memories(inner: Any, windows: tuple[float, ...] = WINDOWS) -> Memories:
    """The mixture of copies of `inner`, which begin anew after so many rounds."""
    return Memories(inner, np.array(windows)[:, None], Track(domains.Simplex(len(windows))), TOLL)


def price(rounds: Scalar) -> Scalar:
    """How many times as much as in the first round a distance outside costs a copy now: t^{1/4}."""
    return ops.sqrt(ops.sqrt(rounds))


def _alone(leaf: Array) -> Scalar:
    """A leaf of one copy as one of a run of its own: numbers are floats."""
    return float(leaf[0]) if leaf.shape == (1,) else leaf


def _each(flag: NDArray[np.bool_], a: Any, b: Any) -> Any:
    """The copies' state `a` for those copies for which `flag` holds, ``(..., K, 1)``, else `b`."""
    return records.transform(lambda p, q: where(flag if p.ndim == flag.ndim else flag[..., None], p, q), a, b)


def pieces(t: float, parts: float = 1.0, windows: tuple[float, ...] = WINDOWS) -> float:
    """N: into how many pieces, on each of which some copy has just begun, so many intervals of t rounds can be divided at most.

    >>> pieces(1000.0), pieces(1000.0, 3), pieces(2.0**18, 2)
    (1.0, 21.0, 24.0)
    """
    lengths = windows[:-1]
    each = 1.0 + sum(longer / shorter - 1.0 for shorter, longer in pairwise(lengths) if shorter < t)
    return 1.0 + (parts - 1.0) * each + (t // lengths[-1] if parts > 1.0 and t > lengths[-1] else 0.0)


def moving_bound(
    t: float,
    *,
    lipschitz: float,
    diameter: float,
    parts: float = 1.0,
    moves: float = 0.0,
    first: float | None = None,
    V: float | None = None,
    lam: float | None = None,
    theta: float | None = None,
    windows: tuple[float, ...] = WINDOWS,
    toll: float = TOLL,
    limits: bool = True,
) -> Bound:
    """What is proved after t rounds against paths that move by at most `moves` times the diameter within each of `parts` intervals.

    `first` is the length of the first cost gradient that had one (default: the longest, `lipschitz`), V and lam those of the copies
    (default: 10 / (D first) and 1/(4 D^2)), theta 2 D^2 (1 + moves)^2 lam unless it is given; rho_t = toll t^{1/4} M_t. Without `limits`
    nothing is ever charged for distances. The bound on regret is about the path, that on CCV about what is played.

    >>> bound = moving_bound(10_000, lipschitz=1.0, diameter=2.0)
    >>> round(bound.regret), round(bound.ccv), round(moving_bound(10_000, lipschitz=1.0, diameter=2.0, limits=False).regret)
    (20000, 9647, 1274)
    """
    if lipschitz == 0.0:
        return Bound(0.0, ccv=0.0)
    G, D, M = lipschitz, diameter, lipschitz if first is None else min(first, lipschitz)
    rate = 0.25 / (D * D) if lam is None else lam
    share = 2.0 * (D * (1.0 + moves)) ** 2 * rate if theta is None else theta
    if share >= 1.0:
        return Bound(why=f"theta = {share:.4g} must be below 1: the path moves too far within an interval, or lam is too large")
    N, K, rise = pieces(t, parts, windows), len(windows), float(price(float(t)))
    weight = 10.0 / (D * M) if V is None else V
    # All in units of D G.
    copies = sqrt(2.0 * N * t) * (1.0 + moves) + 2.0 * TOUCH * t
    begun = N * share / (weight * D * (G if V is None else M))
    lost = (parts - 1.0) * (windows[0] - 1.0)
    track = track_regret(K, t, t, switches=N - 1.0)
    if not limits:
        return Bound(min(copies + begun + lost + track, t) * G * D, ccv=0.0)
    ahead = weight * D * G * (sqrt(2.0 * t) * (1.0 + moves) + t)
    outside = sqrt(t * N * log((1.0 + ahead) / (1.0 - share)) / rate) / D
    rho = toll * rise
    regret = copies + begun + lost * (1.0 + rho) + rho * outside + track * (1.0 + rho)
    # The right side and what may be behind, over rho: constants of it as they are, as if they grew with rho.
    level = (t + copies + track) / rho + begun / toll + lost * (1.0 + 1.0 / toll) + outside + track
    return Bound(min(regret, t) * G * D, ccv=min(level * (1.0 + log(G * rise / M)), t) * G * D)


def memories_bound(record: Memories, constants: Constants, t: float) -> Bound:
    """`moving_bound` for one action that keeps every limit: the copy that never begins anew is the one to compare with.

    After a game, or in a session, regret is at most what is proved of that copy and what the mixture has lost to it.
    """
    theta, lam = (float(value) for value in record.inner.squares_of(0.0))
    first, G, D = constants.get("first"), constants["lipschitz"], float(record.inner.reach)
    if record.inner.margin > 0.0:
        return Bound(why="with a margin nothing is proved of a mixture of memories")
    if first is None:
        return Bound(why="the bound depends on the first gradient, which a game or a session has to see")
    M, V = float(first), None if record.inner.V is None else float(record.inner.V)
    windows = tuple(np.asarray(record.windows)[:, 0].tolist())
    bound = moving_bound(t, lipschitz=G, diameter=D, first=M or None, V=V, lam=lam, theta=theta, windows=windows, toll=float(record.toll))
    lost = constants.get("observed_regret")
    if bound.regret is None or lost is None or constants.get("observed_rounds") != t:
        return bound
    seen = sqrt(2.0 * t) * G * D + theta * (0.1 * D * M if V is None else 1.0 / V) + float(lost)
    return bound._replace(regret=min(float(bound.regret), seen))
