"""Rounds that are played through a map: the policy decides on weights, and what is played is an affine function of them.

    x_t = B_t w_t + b_t,     f~_t(w) = f_t(B_t w + b_t),     grad f~_t = B_t' grad f_t,     the same for every constraint

The map of a round is known before the round is played, and the weights are of a fixed convex set W. So f~ and the g~ are convex functions
on W, the policy is an ordinary one on W, and every theorem, certificate and total is about them, word for word.

rules      K rules propose an action each, W is the simplex, and x_t is a mixture: in the domain, because that is convex. What is proved is
           about the best fixed mixture of the rules that keeps the limits. With ``rules_per="coordinate"``, on a box, W is a product of
           simplices, and every coordinate has a mixture of its own.

features   x_t is an affine function of what is known, phi_t: x_t = P_X(c + h (u_0 + sum_i u_i phi_i / s_i)), each coordinate with
           coefficients of its own. c is the centre of the domain and h half its width (of a box, in each coordinate), s_i the largest
           |phi_i| so far, so that units do not matter; coefficients are between -1 and 1, so that each feature alone can move the action
           across the domain. What leaves the domain is moved in, and charged (`bridle.session.actions`). What is proved is about the best
           fixed coefficients that keep the limits, as if actions outside of the domain were allowed.

Weights sum to 1, so b_t may be any point that is subtracted from all proposals: it is their mean, which makes the gradients shortest. A
rule that proposes nothing (NaN) sleeps: it is taken to propose what is played, the mixture of the others with the weights as they are. So
it gains and loses nothing in that round, and what is proved against it is about the rounds in which it was awake.

Guarantee: that of the policy, with the constants of f~ and g~ on W: the diameter is sqrt(2), and with |grad f| <= G and no two proposals of
    a round farther apart than D, |grad f~| <= G D sqrt((K - 1)/2) (`rules_lipschitz`).
Reference: N. Cesa-Bianchi, G. Lugosi, Prediction, Learning, and Games, 2006, ch. 2 (experts and their mixtures).

>>> import bridle
>>> session = bridle.Session(bridle.policy("adagrad", bridle.Box(0.0, 40.0, dim=1), rules=["low", "high"]))
>>> for _ in range(100):
...     x = session.decide(rules=[[1.0], [9.0]])
...     session.observe(f=float((x[0] - 7.0) ** 2), df=2.0 * (x - 7.0))
>>> session.decide(rules=[[1.0], [9.0]]).round(3), session.weights.round(3)
(array([7.]), array([0.25, 0.75]))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import sqrt
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from bridle import validate
from bridle.core import Domain, Feedback, InputError
from bridle.domains import Box, Product, Simplex
from bridle.domains.closed_form import BoxSet
from bridle.ops import Array

KEYWORDS = ("rules", "features")
"""Under which name a caller says, before each round, what its map is made of."""

SHARES = ("round", "coordinate")
"""What has one mixture of the rules."""

TIED = 1e-9
"""Sums of distances that differ by no more than this part are equal."""


@dataclass(frozen=True, eq=False)
class AffineMap:
    """x = B w + b; with `apart` every coordinate has weights of its own, one block of w after the other: x_j = <B_j, w_j> + b_j."""

    B: Array
    b: Array
    apart: bool = False

    def at(self, w: Array) -> Array:
        """What the weights stand for."""
        moved: Array = (self.B * w.reshape(self.B.shape)).sum(axis=1) if self.apart else self.B @ w
        return moved + self.b

    def pull(self, gradients: Array) -> Array:
        """Gradients with respect to the weights, from those with respect to what is played; one, or one a row."""
        if not self.apart:
            return np.ascontiguousarray(gradients @ self.B)
        return (gradients[..., None] * self.B).reshape(*gradients.shape[:-1], -1)

    def limits(self, A: Array, b: Array) -> tuple[Array, Array]:
        """Limits A x <= b as limits on the weights."""
        return self.pull(A), b - A @ self.b


class RoundReading(NamedTuple):
    """The map of a round, None where decisions are actions; what the decision stands for; and what is played."""

    map: AffineMap | None
    y: Array
    x: Array


@dataclass(frozen=True, eq=False)
class RuleMixture:
    """Actions as mixtures of what rules propose: their names, the actions' domain, and that of the weights.

    `apart`: every coordinate has a mixture of its own. `asked` are the rules that the session asks itself, by their places: functions of
    the past (a tuple of the last observations, each a `Feedback` at what was played, the newest last), which give an action, or None to
    sleep; and policies, which are fed what was seen, read at their own proposal as affine functions.
    """

    names: tuple[str, ...]
    outer: Domain
    inner: Domain
    apart: bool
    asked: Mapping[int, object] = field(default_factory=dict)
    keyword = "rules"
    compared = "fixed mixture of the rules"

    @property
    def settings(self) -> dict[str, Any]:
        """What to give to `bridle.policy` for it."""
        rules = tuple(self.asked.get(i, name) for i, name in enumerate(self.names))
        return {"rules": rules} | ({"rules_per": "coordinate"} if self.apart else {})

    @property
    def callers(self) -> int:
        """How many rules the caller speaks for."""
        return len(self.names) - len(self.asked)

    @property
    def wanted(self) -> str:
        """What a caller is asked for, in words."""
        return f"rules must be given, decide(rules=R), with what each of the {self.callers} rules proposes in this round"

    @property
    def players(self) -> list[tuple[int, Any]]:
        """The rules that are policies: the place and the record of each."""
        return [(i, record_of(rule)) for i, rule in self.asked.items() if is_policy(rule)]

    @property
    def states(self) -> tuple[object, ...]:
        """The states in which policies that are rules begin."""
        return tuple(record.init(self.outer.center()) for _, record in self.players)

    def ask(self, past: tuple[Feedback, ...], states: tuple[object, ...]) -> dict[int, object]:
        """What the rules propose that are asked, by their places; None for one that sleeps."""
        left = iter(states)
        return {
            i: record_of(rule).decide(next(left)) if is_policy(rule) else cast("Callable[[object], object]", rule)(past)
            for i, rule in self.asked.items()
        }

    def learn(self, states: tuple[object, ...], R: Array, seen: Feedback) -> tuple[object, ...]:
        """The states of policies that are rules after an observation; R is what was proposed in its round."""
        learned = []
        for (i, record), state in zip(self.players, states, strict=True):
            way, (g, dg) = R[i] - seen.x, self._limits_for(i, record, state, seen)
            read = Feedback(R[i], float(seen.f) + float(seen.df @ way), seen.df, g + dg @ way, dg)
            learned.append(record.update(state, read))
        return tuple(learned)

    def _limits_for(self, i: int, record: Any, state: object, seen: Feedback) -> tuple[Array, Array]:
        """The limits of a round for a policy that is a rule: as many as it takes, where the round has none."""
        each = getattr(record, "each", None)
        k: int | None = len(each) if each is not None else record.learned(state) if hasattr(record, "learned") else None
        if k is None or k == len(seen.g):
            return seen.g, seen.dg
        if seen.g.any() or seen.dg.any():
            raise InputError(f"g must hold {k} constraint value{'s' if k > 1 else ''}, as many as {self._name(i)} takes, not {len(seen.g)}")
        return np.zeros(k), np.zeros((k, len(seen.x)))

    def checked(self, given: object, asked: Mapping[int, object] | None = None) -> Array:
        """What the rules propose, one a row: actions of the domain, or NaN where a rule sleeps. `asked` were those that are asked."""
        K, d = len(self.names), self.outer.dim
        n = K - len(asked or {})
        R = validate.floats("rules", np.zeros((0, d)) if given is None else given, "an array of numbers")
        R = R.reshape(n, 1) if R.shape == (n,) and d == 1 else R
        if R.shape != (n, d):
            raise InputError(f"rules must have shape {(n, d)}, a row for each rule, not {R.shape}")
        if asked:
            own, R = R, np.full((K, d), np.nan)
            R[[i for i in range(K) if i not in asked]] = own
            for i, answer in asked.items():
                if answer is not None:
                    said = validate.floats(self._name(i), answer, "an action, or None")
                    if said.shape != (d,) and not (d == 1 and said.size == 1):
                        raise validate.refused(f"{self._name(i)} must propose an action of shape {(d,)}", answer)
                    R[i] = said.reshape(d)
        asleep = np.isnan(R)
        if not asleep.any():
            if self.outer.contains(R):  # also finite
                return R
        elif asleep.all(axis=0).any():
            raise InputError("rules must propose something: every rule sleeps (proposes NaN)" + (" in a coordinate" if self.apart else ""))
        elif not self.apart and (asleep != asleep[:, :1]).any():
            i = int(np.flatnonzero((asleep != asleep[:, :1]).any(axis=1))[0])
            raise InputError(f"rules must propose a whole action or sleep (NaN throughout); {self._name(i)} proposes {validate.show(R[i])}")
        whole = np.where(asleep, self.outer.center(), R)
        for i in range(K):
            if not (np.isfinite(whole[i]).all() and self.outer.contains(whole[i])):
                raise InputError(f"rules must propose actions of the domain; {self._name(i)} proposes {validate.show(R[i])}")
        return R

    def _name(self, i: int) -> str:
        return f"rules[{i}] ({self.names[i]})"

    def first(self, R: Array) -> Array:
        """The weights to begin with: all on the medoid, the proposal that is nearest to all others; of every coordinate, if apart.

        On a line the two in the middle of an even number are equally near. Up to rounding that is a tie, which the first wins: or else it
        would depend on the units who does.
        """
        gaps = np.where(np.isnan(R), np.inf, 0.0)[:, None] + np.nan_to_num(np.abs(R[:, None] - R[None]))  # (K, K, d)
        sums = gaps.sum(axis=1) if self.apart else np.sqrt((gaps * gaps).sum(axis=2)).sum(axis=1)[:, None]
        medoids: Array = np.eye(len(R))[(sums <= (1.0 + TIED) * sums.min(axis=0)).argmax(axis=0)].reshape(-1)
        return medoids

    def shaped(self, w: Array) -> Array:
        """The weights as a caller sees them: one for each rule, or a column of them for each coordinate."""
        return w.reshape(-1, len(self.names)).T.copy() if self.apart else w.copy()

    def awake(self, R: Array, w: Array) -> tuple[Array, Array]:
        """The proposals with what sleeping rules are taken to propose, and the mixture that is played."""
        asleep = np.isnan(R)
        if not asleep.any():
            x = (self.shaped(w) * R).sum(axis=0) if self.apart else w @ R
            return R, np.minimum(np.maximum(x, R.min(axis=0)), R.max(axis=0))  # rounding must not lead out of the domain
        there = ~asleep
        share = np.where(there, self.shaped(w) if self.apart else w[:, None], 0.0)
        total = share.sum(axis=0)
        share = np.where(total > 0.0, share / np.where(total > 0.0, total, 1.0), there / there.sum(axis=0))
        x = (share * np.where(there, R, 0.0)).sum(axis=0)
        x = np.minimum(np.maximum(x, np.fmin.reduce(R, axis=0)), np.fmax.reduce(R, axis=0))
        return np.where(there, R, x), x

    def action(self, R: Array, w: Array) -> Array:
        """What is played."""
        return self.awake(R, w)[1]

    def read(self, R: Array, w: Array) -> RoundReading:
        """The map of this round, in which the weights were w, what they stand for, and what is played."""
        whole, x = self.awake(R, w)
        mean = whole.mean(axis=0)
        return RoundReading(AffineMap((whole - mean).T, mean, self.apart), x, x)


@dataclass(frozen=True, eq=False)
class OwnMixture(RuleMixture):
    """Rules that the policy's record mixes itself: it is handed what they propose (``propose``), and decides on actions."""

    compared = "action"

    def action(self, R: Array, w: Array) -> Array:
        return w

    def read(self, R: Array, w: Array) -> RoundReading:
        return RoundReading(None, w, w)


def mixed_by_the_policy(through: RuleMixture) -> OwnMixture:
    """These rules, for a policy that mixes them itself."""
    return OwnMixture(**{each.name: getattr(through, each.name) for each in fields(through)})


@dataclass(frozen=True, eq=False)
class AffineFeatures:
    """Actions as affine functions of `count` features: the actions' domain, that of the coefficients, and what these are multiplied with.

    What a round's map is made of has two rows: the features in units of their scales, and the scales.
    """

    count: int
    outer: Domain
    inner: Domain
    half: Array
    keyword = "features"
    compared = "fixed affine function of the features"

    @property
    def settings(self) -> dict[str, Any]:
        """What to give to `bridle.policy` for it."""
        return {"features": self.count}

    @property
    def wanted(self) -> str:
        """What a caller is asked for, in words."""
        return f"features must be given, decide(features=phi), with the {self.count} numbers that are known of this round"

    def constant(self, name: str, action: object) -> tuple[float, ...]:
        """The coefficients of the function that is this action, whatever the features are; `name` is what the caller calls it."""
        x = validate.vector(name, action, self.outer.dim)
        if not self.outer.contains(x):
            raise InputError(f"{name} must lie in the domain; {validate.show(action)} does not")
        w = np.zeros((len(x), 1 + self.count))
        w[:, 0] = (x - self.outer.center()) / np.where(self.half > 0.0, self.half, 1.0)
        if not self.inner.contains(w.reshape(-1)):
            raise InputError(
                f"{name} cannot be {validate.show(action)} with features: no function with coefficients up to 1 is that action"
            )
        return tuple(w.reshape(-1).tolist())

    def scaled(self, given: object, scale: Array | None) -> Array:
        """The features in units of the largest size that each has had, this round's too; and these."""
        phi = validate.vector("features", given, self.count)
        largest = np.maximum(np.abs(phi), 0.0 if scale is None else scale)
        return np.stack([phi / np.where(largest > 0.0, largest, 1.0), largest])

    def scale_of(self, terms: Array, scale: Array | None) -> Array:
        """The largest size of every feature once a round is counted."""
        largest: Array = terms[1] if scale is None else np.maximum(scale, terms[1])
        return largest

    def action(self, terms: Array, w: Array) -> Array:
        """What is played: the nearest action of the domain."""
        return self.read(terms, w).x

    def read(self, terms: Array, w: Array) -> RoundReading:
        """The map of this round, what the coefficients w stand for, and what is played: the nearest action of the domain."""
        map = AffineMap(self.half[:, None] * np.append(1.0, terms[0]), self.outer.center(), apart=True)
        y = map.at(w)
        return RoundReading(map, y, np.array(self.outer.project(y), dtype=float))

    def coefficients(self, w: Array, scale: Array | None) -> Array:
        """The function itself, (1 + features, dim): what it is without features, and what each adds for a unit of it."""
        units = np.zeros(self.count) if scale is None else np.where(scale > 0.0, 1.0 / np.where(scale > 0.0, scale, 1.0), 0.0)
        slopes: Array = (self.half[:, None] * w.reshape(len(self.half), -1)).T * np.append(1.0, units)[:, None]
        slopes[0] += self.outer.center()
        return slopes


RoundTerms: TypeAlias = RuleMixture | AffineFeatures
"""What maps of rounds are made of."""


def is_policy(rule: object) -> bool:
    """Whether a rule is a policy, and not a function of the past."""
    return all(hasattr(record_of(rule), method) for method in ("init", "decide", "update"))


def record_of(policy: object) -> Any:
    """The record that plays, whether or not it comes from the registry."""
    return getattr(policy, "record", policy)


def rules_lipschitz(G: float, D: float, rules: int) -> float:
    """The longest gradient with respect to the weights of K rules: G D sqrt((K - 1)/2), if no two proposals are farther apart than D.

    |B' p|^2 <= |p|^2 sum |a_i - mean|^2, and that sum is the sum of |a_i - a_j|^2 over all pairs, divided by K. The best constant for
    K = 2, where it is G D / sqrt(2).

    >>> rules_lipschitz(1.0, 2.0, 9)
    4.0
    """
    return G * D * sqrt((rules - 1.0) / 2.0)


def round_map(domain: Domain, rules: object = None, rules_per: object = None, features: object = None) -> RoundTerms | None:
    """Through which map rounds on `domain` are played, by the settings of `bridle.policy`; None where there are none of these."""
    if rules_per is not None and rules is None:
        raise InputError(f"rules_per must be given with rules, not alone ({validate.show(rules_per)})")
    if features is not None:
        if rules is not None:
            raise InputError("rules and features cannot both be given: actions are mixtures, or functions of features")
        count = validate.whole("features", features)
        half = 0.5 * (domain.high - domain.low) if isinstance(domain, BoxSet) else np.full(domain.dim, 0.5 * float(domain.diameter()))
        return AffineFeatures(count, domain, Box(-1.0, 1.0, dim=domain.dim * (1 + count)), half)
    if rules is None:
        return None
    apart = rules_per is not None and validate.one_of("rules_per", rules_per, SHARES) == "coordinate"
    if apart and not isinstance(domain, BoxSet):
        raise InputError(f"rules_per='coordinate' is for a box: elsewhere mixtures apart may leave the domain, {validate.show(domain)}")
    names, asked = _named_rules(rules, domain)
    simplex = Simplex(len(names))
    return RuleMixture(names, domain, Product(*[simplex] * domain.dim) if apart else simplex, apart, asked)


def _named_rules(rules: object, domain: Domain) -> tuple[tuple[str, ...], dict[int, object]]:
    """The names of rules, and those of them that are asked."""
    if not isinstance(rules, Sequence) or isinstance(rules, (str, bytes)):
        return tuple(str(i) for i in range(validate.whole("rules", rules))), {}
    names: list[str] = []
    asked: dict[int, object] = {}
    for i, rule in enumerate(rules):
        if isinstance(rule, str) and rule:
            names.append(rule)
            continue
        if not is_policy(rule) and not callable(rule):
            raise validate.refused("rules must be a whole number or a list of names, functions and policies", rules)
        own = getattr(rule, "domain", None)
        if is_policy(rule) and (getattr(rule, "through", None) is not None or getattr(rule, "runs", None) is not None):
            raise InputError(
                f"rules[{i}] must decide on one action by itself: {rule.name} was made with rules, features or a list to sweep"
            )
        if is_policy(rule) and own is not None and own.dim != domain.dim:
            raise InputError(f"rules[{i}] must decide in {domain.dim} dimensions, not in {own.dim}")
        name = str(getattr(rule, "name", None) or getattr(rule, "__name__", None) or type(rule).__name__)
        names.append(f"{name} {i}" if name in names or name == "<lambda>" else name)
        asked[i] = rule
    if not names or len(set(names)) < len(names):
        raise validate.refused("rules must have names that differ, at least one", rules)
    return tuple(names), asked
