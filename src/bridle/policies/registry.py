"""The registry: every policy under its name, with the function that makes it, its theorem, its assumptions and its reference."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Literal, ParamSpec, TypedDict, cast

import numpy as np

from bridle import records, showing, validate
from bridle.core import Bound, Constants, Domain, Feedback, InputError, Policy, TriesPoints, capability
from bridle.ops import Array, Scalar
from bridle.policies.common import STATE_CONSTANTS
from bridle.policies.entry import Entry, Parameter, Theorem, described, parameters_of, title_of
from bridle.policies.round_maps import AffineFeatures, RoundTerms, RuleMixture, mixed_by_the_policy, record_of, round_map
from bridle.records import R

P = ParamSpec("P")

_ENTRIES: dict[str, Entry] = {}
_OF_THE_LIBRARY: set[str] = set()
_LOADED: dict[str, Entry] = {}
"""Policies from files of the user's own (`bridle.policies.own`): known by name in this process, and not listed."""


class Through(TypedDict, total=False):
    """Through which map a policy's rounds are played.

    Parameters
    ----------
    rules
        How many rules propose actions, or a list of their names, of functions and of policies: mixtures of them are played.
        Default: the policy decides by itself. Values: a whole number, 1 or above, or a list. Unit: rules.
    rules_per
        What has one mixture of the rules. Default: round. Values: round or coordinate (on a box).
    features
        How many numbers are known of a round before acting: affine functions of them are played. Default: none.
        Values: a whole number, 1 or above. Unit: numbers.
    """

    rules: int | Sequence[object] | None
    rules_per: Literal["round", "coordinate"] | None
    features: int | None


def registered(**facts: Any) -> Callable[[Callable[P, object]], Callable[P, Configured]]:
    """Register a function that makes a policy's record; `facts` are fields of its `Entry`.

    The policy has the function's name, with ``-`` for ``_``, and the first line of its docstring as its title. From then on the function
    makes what `policy` makes of that name.
    """

    def decorate(factory: Callable[P, object]) -> Callable[P, Configured]:
        name = factory.__name__.replace("_", "-")
        _ENTRIES[name] = Entry(name, cast(Any, factory), title_of(factory), **facts)
        _OF_THE_LIBRARY.add(name)

        @wraps(factory)
        def make(*args: P.args, **settings: P.kwargs) -> Configured:
            return cast(Any, policy)(name, *args, **settings)  # type: ignore[no-any-return]

        return make

    return decorate


@dataclass(frozen=True, eq=False)
class Configured:
    """A registered policy with its parameters: the record that plays, and what it was made from.

    Parameters
    ----------
    name : str
        The registered name.
    domain : Domain
        Where decisions are made; with rules or features, that of the weights.
    parameters : dict
        What the caller gave, by name.
    record : object
        The record that plays, of the policy's own type.
    runs : int or None
        How many runs the record stands for where a parameter was a list; None for one.
    through : RoundTerms, optional
        The map through which rounds are played, where they are.

    Examples
    --------
    >>> import bridle
    >>> policy = bridle.policy("ogd", bridle.Ball(2), lipschitz=1.0, step=[0.1, 0.2])
    >>> policy.name, policy.runs, sorted(policy.parameters)
    ('ogd', 2, ['lipschitz', 'step'])
    """

    name: str
    domain: Domain
    parameters: dict[str, Any]
    record: Any  # of the policy's own type
    runs: int | None
    through: RoundTerms | None = None

    def __repr__(self) -> str:
        domain, given = self.recipe
        # A sweep is held as a column, and was given as a list.
        told = {
            key: value[:, 0].tolist() if np.ndim(value) == 2 and isinstance(value, np.ndarray) else value for key, value in given.items()
        }
        return showing.call("policy", self.name, domain, **told)

    def _repr_html_(self) -> str:
        return str(showing.later("bridle.policies.pictures").policy_card(self))

    @property
    def recipe(self) -> tuple[Domain, dict[str, Any]]:
        """The domain and the parameters with which `policy` makes it again."""
        if self.through is None:
            return self.domain, self.parameters
        return self.through.outer, self.parameters | self.through.settings

    @property
    def settings(self) -> dict[str, object]:
        """Every parameter's value: the caller's, or the default."""
        return {**{p.name: p.default for p in parameters(self.name)}, **self.parameters}

    @property
    def entry(self) -> Entry:
        """What the registry knows of the policy with these settings."""
        return entry(self.name).with_settings(self.settings)

    def outside(self, constants: Constants) -> list[str]:
        """What the policy assumes and a problem with these constants breaks, in words; empty when nothing."""
        return entry(self.name).outside(self.settings, constants)

    def init(self, x1: Array) -> object:
        return self.record.init(x1)

    def decide(self, state: object) -> Array:
        x: Array = self.record.decide(state)
        return x

    def update(self, state: object, feedback: Feedback) -> object:
        return self.record.update(state, feedback)

    def bound(self, constants: Constants, t: float) -> Bound:
        """The sharpest proved bounds after t rounds of a problem with these constants."""
        return self._bound(entry(self.name).bound, constants, t)

    def bound_curve(self, constants: Constants, rounds: Sequence[int], regrets: Sequence[float | None]) -> list[Bound]:
        """`bound` after each of these rounds of a single run, given the regret at each of them."""
        none, theorem = self._misfit(constants), entry(self.name).bound
        curve = []
        for t, regret in zip(rounds, regrets, strict=True):
            facts: Constants = {**constants, "regret": regret}
            curve.append(self._late(t) or none or theorem(self, facts, t))
        return curve

    def paper_bound(self, constants: Constants, t: float) -> Bound:
        """The bounds as the paper states them, where they apply."""
        return self._bound(entry(self.name).paper, constants, t)

    def _bound(self, theorem: Theorem, constants: Constants, t: float) -> Bound:
        if self.runs is not None:
            return _together([self.run(i)._bound(theorem, _of_run(constants, i), t) for i in range(self.runs)])
        return self._late(t) or self._misfit(constants) or theorem(self, constants, t)

    def _late(self, t: float) -> Bound | None:
        """No bound past the policy's horizon."""
        horizon = self.parameters.get("horizon")
        return None if horizon is None or t <= horizon else Bound(why=f"round {t:g} is past the policy's horizon of {horizon:g}")

    def _misfit(self, constants: Constants) -> Bound | None:
        """No bound on a problem with another domain or number of constraints than the policy's."""
        D, point = constants.get("diameter"), constants.get("feasible")
        wider = D is not None and self.domain.diameter() > D * (1.0 + 1e-9)
        if wider or (
            point is not None and len(point) == self.domain.dim and not self.domain.contains(np.asarray(point, dtype=float), 1e-6)
        ):
            return Bound(why="the policy's domain is not the problem's")
        own, k = constraints_of(self.record), constants.get("constraints")
        if own is not None and k is not None and k != own:
            return Bound(why=f"the policy was made for {own} constraints, the problem reveals {k}")
        return None

    def run(self, i: int) -> Configured:
        """One run of a sweep, as a policy of its own."""
        alone = {key: float(value[i, 0]) if isinstance(value, np.ndarray) else value for key, value in self.parameters.items()}
        return policy(self.name, self.domain, **alone)


def _of_run(constants: Constants, i: int) -> Constants:
    """The constants of run i: of a number for each run (regret, scale), its own."""
    own = {key: constants.get(key) for key in ("regret", *STATE_CONSTANTS)}
    alone = {key: value[i] for key, value in own.items() if isinstance(value, np.ndarray) and value.ndim == 1}
    return cast(Constants, {**constants, **alone})


def _together(bounds: list[Bound]) -> Bound:
    """The bounds of several runs as one: nan for a run without a bound; `why` then says which runs those are."""

    def joined(values: Sequence[Scalar | None]) -> Array | None:
        return None if all(value is None for value in values) else np.array([np.nan if value is None else value for value in values])

    alike = len({bound.why for bound in bounds}) == 1
    why = bounds[0].why if alike else "; ".join(f"run {i}: {bound.why}" for i, bound in enumerate(bounds) if bound.why)
    numbers = zip(*(bound[:-1] for bound in bounds), strict=True)
    return Bound._make([*(joined(values) for values in numbers), why])


def names() -> list[str]:
    """The registered policy names.

    >>> "sinha2024" in names()
    True
    """
    return list(_ENTRIES)


def entry(name: str) -> Entry:
    """The registry's entry of this name."""
    validate.one_of("policy", name, _ENTRIES | _LOADED)
    return _LOADED.get(name) or _ENTRIES[name]


def known(name: str) -> bool:
    """Whether there is a policy of this name, registered or from a file of the user's own."""
    return name in _LOADED or name in _ENTRIES


def listed(name: str) -> Entry | None:
    """The entry that is registered under this name, if there is one."""
    return _ENTRIES.get(name)


def source_of(item: Entry) -> str:
    """The file that defines an entry's factory; empty where that cannot be told."""
    code = getattr(inspect.unwrap(item.factory), "__code__", None)
    return code.co_filename if code else ""


def register(item: Entry) -> None:
    """Add a policy of your own under a new name, for this process.

    After that `bridle.policy`, `bridle.play`, sessions, `bridle compare` and the checks know it by its name. A file that is run again,
    edited, replaces what it registered.

    Parameters
    ----------
    item : Entry
        Its name, its factory, and what it assumes and promises: see `bridle.policies.Entry`.

    Examples
    --------
    >>> import bridle
    >>> from bridle.policies import Entry, entry
    >>> mine = Entry("my-adagrad", entry("adagrad").factory, "AdaGrad under another name", "-", regret="-", violation="-")
    >>> register(mine)
    >>> bridle.policy("my-adagrad", bridle.Ball(2)).name
    'my-adagrad'
    """
    there, source = _ENTRIES.get(item.name), source_of(item)
    if there is not None and (item.name in _OF_THE_LIBRARY or not os.path.isfile(source) or source_of(there) != source):
        raise InputError(f"a policy called {item.name!r} is registered already")
    _ENTRIES[item.name] = item


def loaded(name: str) -> Entry | None:
    """The entry that came from a file of the user's own under this name, if there is one."""
    return _LOADED.get(name)


def know(item: Entry) -> None:
    """Know a policy from a file of the user's own by its name, in the place of an earlier one from a file."""
    _LOADED[item.name] = item


def parameters(name: str) -> list[Parameter]:
    """The parameters of the policy of this name, as its function and that function's docstring have them.

    >>> [p.unit for p in parameters("anytime") if p.name in ("margin", "drift")]
    ['action', 'action']
    """
    return parameters_of(entry(name).factory)[1:]


def shared_parameters(name: str) -> list[Parameter]:
    """The parameters that every policy takes, less those that this one has itself: through which maps its rounds are played.

    A policy that tries points of the domain itself takes none of them.

    >>> [p.name for p in shared_parameters("anytime")]
    ['rules', 'rules_per', 'features']
    """
    own, shared = {p.name for p in parameters(name)}, described(Through)
    types = {} if entry(name).tries_points else Through.__annotations__
    return [Parameter(each, False, None, type=str(types[each]), **shared[each]) for each in types if each not in own]


@validate.computed
def policy(name: str, domain: Domain, **settings: object) -> Configured:
    """Make the policy registered as `name` on a domain, with its own parameters.

    Each policy of the library is also a function with its own signature: ``bridle.policies.anytime(domain, window=500)``.

    Parameters
    ----------
    name : str
        A name that `bridle policies` lists, or that `bridle.register` has added.
    domain : Domain
        Where decisions are made: a set of actions such as ``bridle.Ball(2)``.
    **settings : object
        Parameters of the policy; `bridle policies NAME` lists them. A list for a numeric one makes a sweep: one record that stands for as
        many runs. Most policies also take `rules`, `rules_per` and `features` (`bridle.policies.Through`).

    Examples
    --------
    >>> import bridle
    >>> policy("sinha2024", bridle.Ball(2), horizon=100, lipschitz=1.0).name
    'sinha2024'
    >>> bridle.policies.anytime(bridle.Box(0.0, 40.0, dim=1), rules=["ewma", "seasonal"]).domain.dim
    2
    """
    item = entry(name)
    if not (hasattr(domain, "project") and hasattr(domain, "diameter")):
        raise validate.refused("domain must be a domain such as bridle.Ball(dim=2)", domain)
    by_name = {p.name: p for p in parameters(name)}
    through = round_map(domain, **{key: settings.pop(key) for key in Through.__annotations__ if key in settings and key not in by_name})
    own = isinstance(through, RuleMixture) and item.mixed is not None
    through = mixed_by_the_policy(through) if isinstance(through, RuleMixture) and own else through
    domain = domain if through is None or own else through.inner
    for key in settings:
        if key in item.dropped:
            raise InputError(f"policy {name} no longer has a parameter {key}: {item.dropped[key]}")
        validate.one_of(f"parameter of policy {name}", key, by_name)
    missing = [p.name for p in by_name.values() if p.required and settings.get(p.name) is None]
    if missing:
        raise InputError(f"policy {name} needs {missing[0]}: {by_name[missing[0]].help}")
    canonical = {
        key: _one_value(key, value) if key in item.vectors else _canonical(key, value)
        for key, value in settings.items()
        if value is not None
    }
    if "constraints" in canonical and name in _OF_THE_LIBRARY:
        canonical["constraints"] = validate.whole("constraints", canonical["constraints"])
    lengths = {key: len(value) for key, value in canonical.items() if isinstance(value, np.ndarray)}
    for key in lengths:
        if key == "learner" or isinstance(by_name[key].default, str):
            raise InputError(f"{key} must be one name for all runs, not {validate.show(settings[key])}: only numbers can be swept")
    if len(set(lengths.values())) > 1:
        raise InputError("the lists of a sweep must be equally long, not " + ", ".join(f"{key}: {n}" for key, n in lengths.items()))
    for key, value in canonical.items():
        for leaf, inner in records.leaves(value).items() if records.is_record(value) else ():
            if np.ndim(inner) == 2 and np.shape(inner)[1] == 1 and leaf.split(".")[-1] not in ("Z", "A") and "domain" not in leaf:
                raise InputError(f"{key} holds {len(inner)} values of {leaf!r}; a sweep is made by giving lists to bridle.policy itself")
    runs = next(iter(lengths.values()), None)
    if through is not None and runs is not None:
        raise InputError(f"{through.keyword} are for one run: give every other parameter as a number")
    made = canonical
    if isinstance(through, AffineFeatures):
        made = canonical | {key: through.constant(key, canonical[key]) for key in item.actions if key in canonical}
    record = item.mixed(domain, through, **made) if own and item.mixed is not None else item.factory(domain, **made)
    if through is not None and capability(record, TriesPoints) is not None:
        raise InputError(f"{through.keyword} cannot be given: policy {name} tries points of the domain itself")
    return Configured(name, domain, canonical, record, runs, through)


def _canonical(name: str, value: object) -> object:
    """Numbers as Python numbers, lists of numbers as ``(runs, 1)`` arrays, the rest as it is."""
    if isinstance(value, (list, np.ndarray, range)) or (isinstance(value, tuple) and not hasattr(value, "_fields")):
        swept = validate.array(name, value)
        if swept.ndim == 2 and swept.shape[1] == 1:
            swept = swept[:, 0]
        if swept.ndim == 0:
            return float(swept)
        if swept.ndim != 1 or swept.size == 0:
            raise validate.refused(f"{name} must be a number, or a list of one number per run", value)
        return swept[:, None]
    return value.item() if isinstance(value, np.generic) and value.dtype.kind in "fiubU" else value


def _one_value(name: str, value: object) -> object:
    """A number, or a list of numbers that is one value, as a tuple."""
    numbers = validate.array(name, value)
    if numbers.ndim > 1 or numbers.size == 0:
        raise validate.refused(f"{name} must be a number or a list of numbers", value)
    return float(numbers) if numbers.ndim == 0 else tuple(numbers.tolist())


def domain_of(policy: object) -> Domain | None:
    """The policy's domain; None if it does not tell."""
    return getattr(policy, "domain", None)


def playing_record(policy: object) -> Policy[Any]:
    """The record that plays, with the methods of a policy."""
    record: Policy[Any] = record_of(policy)
    for method in ("init", "decide", "update"):
        if not hasattr(record, method):
            make = (
                f"; bridle.policy({policy!r}, domain) makes the policy of that name"
                if isinstance(policy, str) and policy in _ENTRIES
                else ""
            )
            raise InputError(f"policy must have a method `{method}`; {validate.show(policy)} has none{make}")
    return record


def constraints_of(record: object) -> int | None:
    """How many constraints a round must reveal for this record: the length of its field `each`; None where any number will do."""
    each = getattr(record, "each", None)
    return None if each is None else len(each)


def learns_constraints(record: object) -> bool:
    """Whether the first feedback with constraints tells this record how many there are: its field `each` is None."""
    return hasattr(record, "each") and record.each is None


def for_constraints(record: R, k: int) -> R:
    """The record made for k constraints, where it left open how many."""
    return record._replace(each=np.ones(k)) if learns_constraints(record) else record  # type: ignore[attr-defined]


def with_room(record: Any, state: R, k: int) -> R:
    """The state with room for k constraints, where the record left open how many and the state has not learned it yet."""
    if not learns_constraints(record) or record.learned(state) is not None:
        return state

    def widened(leaf: Scalar, like: Scalar) -> Scalar:
        return leaf if np.shape(leaf) == np.shape(like) else np.broadcast_to(leaf, np.shape(like)).copy()

    return records.transform(widened, state, for_constraints(record, k).init(record.decide(state)))
