"""Every registered policy keeps the contract, and its entry tells the truth about it."""

from __future__ import annotations

import dataclasses
import json
import pickle
import re
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import bridle
from bridle import cli, policies
from bridle.adversaries import Fixed
from bridle.checks import check_policy
from bridle.core import Bound, DoesNotApply, InputError
from bridle.policies.entry import GIVEN
from bridle.problems import takes
from helpers.extent import examples
from helpers.instances import CURVED, SIMULATED

NAMES = policies.names()
ROUNDS = 36

UNITS_MATTER = {
    "banditq": "rewards are between 0 and 1 by definition",
}
"""The policies that do not promise to ignore the units of costs and constraints, and why."""


# --- every registered policy


@pytest.mark.compiles
@pytest.mark.parametrize("name", NAMES)
def test_it_keeps_the_contract(name):
    rounds = examples(36, 90)  # after 30 every kind of round has come in every size; past the horizon, which is a third
    report = check_policy(name, rounds=rounds, scale_free=name not in UNITS_MATTER)
    checked = [line for line in report if not line.startswith("skipped")]
    skipped = [line for line in report if line.startswith("skipped")]
    places = {line.split(",")[0] for line in checked if ", k = " in line}
    everywhere = {"ball", "box", "segment", "simplex"}
    assert "simplex" in places
    for place in everywhere - places:  # then it says that it is for a simplex, or for this and others
        refused = [line.partition(":")[2] for line in skipped if line.startswith(f"skipped {place},")]
        assert refused
        assert all("simplex" in reason.lower() for reason in refused)
    if any("skipped sessions" in line for line in skipped):
        assert "function" in policies.entry(name).feedback
    if any(line.startswith("skipped batch") for line in skipped):
        assert any(line.startswith("skipped engines") for line in skipped)
    else:
        assert any(line.endswith(": engines") for line in checked)


@pytest.mark.parametrize("name", NAMES)
def test_its_entry_is_complete(name):
    item, known = policies.entry(name), policies.parameters(name)
    assert item.name == name
    assert re.fullmatch(r"[a-z0-9-]+", name)
    assert item.title.strip()
    for paper in item.reference.split("; "):
        assert re.fullmatch(r"[A-Z].+, [A-Z][A-Za-z ]+ (19|20)\d\d|[A-Z].+, arXiv (19|20)\d\d", paper), "a reference has a venue and a year"
    for order in (item.regret, item.violation):
        assert order == "-" or "O(" in order, order
    assert item.metric in ("ccv", "soft", "interval")
    assert item.metric == "ccv" or item.violation == "-" or item.metric in item.violation, "the order says what kind of violation it bounds"
    assert item.reduces in ("max", "max-distance", "all")
    assert item.feedback.strip()
    assert item.cost.strip()
    assert item.slater in ("no", "sharper", "required")
    for flag in (item.time_varying, item.strongly_convex, item.affine, item.rewards):
        assert isinstance(flag, bool)
    assert item.paper_constraints in ("time-varying", "fixed")
    assert item.time_varying or item.paper_constraints == "fixed", "no more is assumed here than in the paper"
    assert all(p.help.strip() for p in known)
    assert set(item.needs) <= {p.name for p in known}
    assert {p.name for p in known if p.required} <= set(item.needs), "what must be given is needed"
    assert item.strongly_convex <= ("modulus" in {p.name for p in known})


@pytest.mark.parametrize("name", NAMES)
def test_none_is_no_value_of_a_setting_that_must_be_given(name):
    required = [p.name for p in policies.parameters(name) if p.required]
    domain = bridle.Simplex(2) if "simplex" in policies.entry(name).domains else bridle.Ball(2)
    for missing in required:
        told = {key: None if key == missing else 1.0 for key in required}
        with pytest.raises(InputError, match=f"^policy {name} needs {missing}: "):
            bridle.policy(name, domain, **told)


@pytest.mark.parametrize("name", NAMES)
def test_its_variants_are_settings_it_takes(name):
    problem = place_for(name)
    for variant in policies.entry(name).variants:
        there = problem(variant)
        value = {"horizon": there.horizon, **there.constants}[variant.parameter] if variant.value is GIVEN else variant.value
        policy = bridle.policy_for(name, there, **{variant.parameter: value})
        for field, value in variant.changes.items():
            assert getattr(policy.entry, field) == value
    base = bridle.policy_for(name, problem(None))
    defaults = {p.name: p.default for p in policies.parameters(name) if not p.required}
    assert base.entry == policies.entry(name).with_settings(defaults)
    assert base.entry.variants == ()


def place_for(name: str):
    """Problems with a modulus, on a domain that the policy (or its variant) is for."""

    def problem(variant):
        domains = (variant.changes.get("domains") if variant else None) or policies.entry(name).domains
        return bridle.problem("fixed", horizon=ROUNDS, dim=3, modulus=0.5, domain=domains[0] if domains else "ball")

    return problem


# The paper's Table 1, row by row: regret, CCV, and what is assumed. Its b is `exponent`, its Theorem 2 comes in two rows.
TABLE = (
    ("mahdavi2012", "O(sqrt(T))", "O(T^3/4)", {"fixed"}),
    ("jenatton2016", "O(T^max(b,1-b))", "O(T^(1-b/2))", {"fixed"}),
    ("sun2017", "O(sqrt(T))", "O(T^3/4)", set()),
    ("neely2017", "O(sqrt(T))", "O(sqrt(T)) with Slater", {"Slater"}),
    ("yuan2018", "O(T^max(b,1-b))", "O(T^(1-b/2))", {"fixed"}),
    ("yu2020", "O(sqrt(T))", "O(1) with Slater", {"Slater", "fixed"}),
    ("yi2021", "O(T^max(b,1-b))", "O(T^((1-b)/2))", {"fixed"}),
    ("yi2022", "O(T^b) strongly convex", "O(T^(1-b/2))", set()),
    ("guo2022", "O(sqrt(T))", "O(T^3/4)", set()),
    ("guo2022-strong", "O(log T)", "O(sqrt(T log T))", {"strongly convex"}),
    ("yi2023", "O(T^max(b,1-b))", "O(T^(1-b/2))", set()),
    ("yi2023-strong", "O(log T)", "O(sqrt(T log T))", {"strongly convex"}),
    ("sinha2024", "O(sqrt(T))", "O(sqrt(T) log T)", set()),
    ("sinha2024-strong", "O(log T)", "O(sqrt(T log T))", {"strongly convex"}),
    ("sinha2024-strong", "O(log T)", "O(log T) where regret >= 0", {"strongly convex"}),
)


@pytest.mark.parametrize(("name", "regret", "violation", "assumed"), TABLE)
def test_it_is_registered_as_in_the_papers_table(name, regret, violation, assumed):
    item = policies.entry(name)
    assert regret in item.regret
    assert violation in item.violation
    assert ("fixed" in assumed) == (item.paper_constraints == "fixed")
    assert ("strongly convex" in assumed) == item.strongly_convex
    assert "Slater" not in assumed or item.slater != "no"
    assert item.slater != "required", "where the table has Slater's condition, a weaker bound without it is proved here"


KINDS = {
    "ball": bridle.Ball(3), "box": bridle.Box(-1.0, 1.0, dim=3), "simplex": bridle.Simplex(3), "l1": bridle.L1Ball(3),
    "polyhedron": bridle.Polyhedron(np.vstack([np.eye(3), -np.eye(3)]), np.ones(6)),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_it_is_made_on_the_domains_its_entry_names(name, kind):
    known = {"horizon": ROUNDS, "lipschitz": 1.0, "modulus": 0.5, "bound": 2.0, "slater": 0.5, "exp_concavity": 0.5}
    given = {p.name: known[p.name] for p in policies.parameters(name) if p.required}
    item = policies.entry(name)
    for extra in ({}, *(_settings_of(variant, known) for variant in item.variants)):
        allowed = item.with_settings(extra).domains
        if not allowed or kind in allowed:
            assert bridle.policy(name, KINDS[kind], **given, **extra).record.domain is KINDS[kind]
        else:
            with pytest.raises(InputError, match=allowed[0]):
                bridle.policy(name, KINDS[kind], **given, **extra)


def _settings_of(variant, known):
    """The variant's setting; where any value is, also what comes with it."""
    if variant.value is not GIVEN:
        return {variant.parameter: variant.value}
    return {name: known[name] for name in {variant.parameter, *variant.changes["needs"]} & known.keys()}


@pytest.mark.parametrize("name", NAMES)
def test_its_module_says_what_it_guarantees(name):
    text = sys.modules[policies.entry(name).factory.__module__].__doc__ or ""
    for part in ("Guarantee:", "Reference:", ">>> "):
        assert part in text, f"the module's docstring lacks {part}"
    assert (policies.entry(name).factory.__doc__ or "").strip(), "the factory says in one line what it makes"


def test_the_command_line_lists_every_policy(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["policies", "--json", "-"])
    assert not ended.value.code
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert set(NAMES) <= set(rows)
    for name in NAMES:
        assert [p["name"] for p in rows[name]["parameters"]] == [p.name for p in policies.parameters(name)]
        assert rows[name]["metric"] == policies.entry(name).metric
    fixed = "fixed in the paper, time-varying here"
    assert {name for name in NAMES if rows[name]["constraints"] == fixed} == {"mahdavi2012", "jenatton2016", "yuan2018", "yuan2018-strong"}
    assert {name for name in NAMES if rows[name]["constraints"] == "fixed"} == {"yu2020", "yi2021", "yi2021-dynamic", "hutchinson2025"}
    assert rows["banditq"]["domains"] == ["simplex"]
    assert rows["sun2017"]["assumes"] == ["domain: simplex (mirror=entropic)"]
    assert rows["mahdavi2012"]["assumes"] == ["fixed constraints, affine constraints (form=mirror-prox)"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"time_varying": False}, "policy copy is for constraints that stay the same"),
        ({"slater": "required"}, "policy copy assumes an action that satisfies every constraint with room to spare"),
        ({"rewards": True}, "policy copy is for costs -<r, x>"),
        ({"variants": (policies.Variant("step", 0.5, {"time_varying": False}),)}, "this step of policy copy is for constraints that stay"),
        ({"variants": (policies.Variant("step", None, {"time_varying": False}),)}, ""),
    ],
)
def test_results_warn_of_what_the_entry_assumes_and_the_problem_breaks(monkeypatch, changes, words):
    """The rule reads the registry's data: a copy of a policy that assumes more is warned about, under any name."""
    monkeypatch.setitem(policies.registry._ENTRIES, "copy", dataclasses.replace(policies.entry("ogd"), name="copy", **changes))
    problem = bridle.problem("halfspaces", horizon=ROUNDS, slater=0.0)
    policy = bridle.policy_for("copy", problem, step=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bridle.BridleWarning)
        trace = bridle.play(policy, problem)
    assert len(trace.warnings) == bool(words)
    assert "".join(trace.warnings).startswith(words)


@pytest.mark.parametrize("name", ["yi2021", "yu2020"])
def test_results_warn_where_constraints_are_read_as_affine_and_are_not(name):
    disc = bridle.Quadratic(1.0, offset=-0.1, center=np.zeros(2))
    constants = {"lipschitz": 2.0, "diameter": 2.0, "feasible": np.zeros(2), "time_varying": False}
    problem = bridle.Problem(bridle.Ball(2), Fixed(bridle.Round(bridle.Affine([1.0, 0.0]), (disc,))), constants, parameters={"horizon": 9})
    for form, count in (("affine", 1), ("function", 0)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bridle.BridleWarning)
            trace = bridle.play(bridle.policy_for(name, problem, form=form), problem)
        assert len(trace.warnings) == count
        assert all(f"this form of policy {name} is for affine constraints" in note for note in trace.warnings)


def curved(where: str) -> bool:
    """Whether the problem can have strongly convex costs."""
    return takes(where, "modulus") and where != "lower-bound"


def refusal(name: str, where: str) -> str:
    """Why a policy is refused on a problem, as a pattern of the error; empty where it must play."""
    if policies.entry(name).strongly_convex and not curved(where) and where not in CURVED:
        return "not strongly convex"
    placed = takes(where, "domain") or where in ("game", "recommendation", "experts")  # on a simplex, or on any domain
    if policies.entry(name).domains == ("simplex",) and not placed:
        return "domain must be a simplex"
    if name == "banditq" and not takes(where, "constraints"):
        return r"made for \d+, the problem reveals \d"
    if any(p.name == "slater" and p.required for p in policies.parameters(name)):
        return "" if bridle.problem(where, horizon=ROUNDS).constants.get("slater") else "slater"
    return ""


def pairs(refused: bool):
    """Every policy and every problem, with the strong convexity the policy needs where the problem can have it."""
    for name in NAMES:
        for where in SIMULATED:
            about = {"modulus": 0.5} if policies.entry(name).strongly_convex and curved(where) else {}
            if bool(refusal(name, where)) == refused:
                yield pytest.param(name, where, about, id=f"{name}-{where}")


def setting(name: str, where: str, about: dict[str, Any]) -> tuple[Any, Any]:
    """The policy and the problem; on the simplex where the policy does not live on the problem's usual ball."""
    problem = bridle.problem(where, horizon=ROUNDS, **about)
    try:
        return bridle.policy_for(name, problem), problem
    except InputError as no:
        if "simplex" not in str(no).lower() or not takes(where, "domain"):
            raise
    problem = bridle.problem(where, horizon=ROUNDS, domain="simplex", **about)
    return bridle.policy_for(name, problem), problem


def fitted(name: str, where: str, about: dict[str, Any]) -> tuple[Any, Any]:
    """Likewise, with as many constraints as the policy is for, where the problem can have them."""
    policy, problem = setting(name, where, about)
    each = getattr(policy.record, "each", None)
    if each is not None and len(each) != problem.constants["constraints"] and takes(where, "constraints"):
        problem = bridle.problem(**{"name": where, **problem.parameters, "constraints": len(each)})
    return policy, problem


@pytest.mark.parametrize(("name", "where", "about"), list(pairs(refused=True)))
def test_it_is_refused_in_words_where_it_does_not_apply(name, where, about):
    with pytest.raises(InputError, match=refusal(name, where)):
        bridle.play(*setting(name, where, about))


def test_why_a_policy_does_not_apply_is_data():
    with pytest.raises(DoesNotApply) as caught:
        bridle.policy_for("yi2023-strong", bridle.problem("fixed", horizon=10))
    no = caught.value
    assert no.policy == "yi2023-strong"
    assert no.reason == "the costs of problem fixed are not strongly convex (modulus 0)"
    assert no.general == "the costs of the problem are not strongly convex (modulus 0)"
    assert str(no) == f"policy yi2023-strong does not apply: {no.reason}"
    again = pickle.loads(pickle.dumps(no))  # it comes from a worker's process
    assert (str(again), again.general) == (str(no), no.general)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "where", "about"), list(pairs(refused=False)))
def test_it_plays_every_problem_or_says_why_not(name, where, about):
    policy, problem = fitted(name, where, about)
    item = policies.entry(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bridle.BridleWarning)
        trace = bridle.play(policy, problem, keep="decisions")
    assert trace.rounds == ROUNDS
    assert problem.domain.contains(trace.decisions)
    changes = bool(problem.constants.get("time_varying"))
    assert any("stay the same" in note for note in trace.warnings) == (changes and not item.time_varying)
    assert any("room to spare" in note for note in trace.warnings) == bool(
        item.slater == "required" and not problem.constants.get("slater")
    )

    for bound in (policy.bound(problem.constants, ROUNDS), policy.paper_bound(problem.constants, ROUNDS)):
        assert isinstance(bound, Bound)
        numbers = {key: value for key, value in bound._asdict().items() if key != "why" and value is not None}
        assert numbers or bound.why, "a theorem gives numbers, or says why not"
        assert all(np.all(np.isfinite(value)) for value in numbers.values())
        if changes and not item.time_varying:
            assert bound.why
            assert not numbers, f"a theorem for fixed constraints gave {numbers} where they change"
        seen = {
            "ccv": bridle.ccv(trace), "soft": bridle.soft_violation(trace), "interval": bridle.interval_violation(trace),
            "squared": bridle.squared_ccv(trace),
        }  # fmt: skip
        for key in seen.keys() & numbers.keys():
            assert seen[key] <= numbers[key] * (1 + 1e-9) + 1e-9, f"{key} is {seen[key]}, above the bound {numbers[key]}"
        if "regret" in numbers:
            against = problem.constants["benchmark" if problem.constants["feasible"] is None else "feasible"]
            total = sum(float(np.sum(block.cost.value(against))) for block in replay(trace))
            assert float(trace.totals.cost) - total <= float(np.max(numbers["regret"])) * (1 + 1e-9) + 1e-9


def replay(trace):
    """The rounds of the stream, one by one."""
    from bridle import records

    for block in trace.blocks():
        length = len(next(iter(records.leaves(block).values())))
        for i in range(length):
            yield records.take(block, float(i))


@pytest.mark.parametrize("name", NAMES)
def test_past_its_horizon_it_bounds_nothing(name):
    policy, problem = setting(name, "fixed", {"modulus": 0.5} if policies.entry(name).strongly_convex else {})
    if "horizon" in policy.parameters:
        late = policy.bound(problem.constants, ROUNDS + 1)
        assert "horizon" in late.why
        assert late._replace(why="") == Bound()


@pytest.mark.parametrize("name", NAMES)
def test_without_a_feasible_action_no_violation_is_bounded(name):
    policy, problem = setting(name, "fixed", {"modulus": 0.5} if policies.entry(name).strongly_convex else {})
    unknown = {**problem.constants, "feasible": None, "window": None, "optimum": None, "slater": None}
    bound = policy.bound(unknown, ROUNDS)
    assert bound._replace(why="", regret=None) == Bound()
    assert bound.why or policies.entry(name).violation == "-"  # what ignores the constraints has regret against any action


def test_a_bound_takes_the_feasible_action_as_a_list():
    known = {"lipschitz": 1.0, "diameter": 2.0**0.5, "constraints": 1}
    for domain, action in ((bridle.Simplex(3), [0.25, 0.25, 0.5]), (bridle.Ball(3, radius=2.0**-0.5), [0.1, 0.2, 0.3])):
        policy = bridle.policy("sinha2024", domain, horizon=50, lipschitz=1.0)
        as_list, as_array = (policy.bound(known | {"feasible": each}, 50).ccv for each in (action, np.array(action)))
        assert as_list == as_array > 0.0
        assert policy.bound(known | {"feasible": [0.0, 0.0, 9.0]}, 50).why == "the policy's domain is not the problem's"
