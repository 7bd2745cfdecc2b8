"""Advice: every combination of answers has one, in words from the registry, with code that runs; and the command that gives it."""

from __future__ import annotations

import contextlib
import io
import json
import types
from itertools import product
from typing import Any

import pytest

import bridle
from bridle import advice, policies

CHOICES = {name: (None, 2000) if name == "horizon" else tuple(question.choices) for name, question in advice.QUESTIONS.items()}


def combinations() -> list[dict[str, Any]]:
    return [dict(zip(CHOICES, values, strict=True)) for values in product(*CHOICES.values())]


def rule_for(given: dict[str, Any]) -> int | None:
    """The number of the rule that the answers lead to, by its conditions alone; None where the answers contradict each other."""
    none = "none" in (given["constraints"], given["limit"])
    if not given["costs"] and (none or (given["known"] == "limits" and given["limit"] != "budget")):
        return None
    told = given | {"horizon": given["horizon"] is not None} | ({"limit": "none"} if none else {})
    return next(i for i, rule in enumerate(advice.RULES) if all(told[name] == value for name, value in rule.when.items()))


def by_rule() -> dict[int | None, list[dict[str, Any]]]:
    """All combinations of answers by the number of the rule that they lead to."""
    found: dict[int | None, list[dict[str, Any]]] = {}
    for answers in combinations():
        found.setdefault(rule_for(answers), []).append(answers)
    return found


EVERY = by_rule()

each_rule = pytest.mark.parametrize("number", range(len(advice.RULES)), ids=lambda i: f"{i + 1}-{advice.RULES[i].use}")


@each_rule
def test_every_rule_names_something_that_there_is(number):
    rule = advice.RULES[number]
    if rule.use[:1].isupper():
        assert rule.use in bridle.__all__
        return
    assert rule.use in policies.names()
    assert rule.settings.keys() <= {p.name for p in policies.parameters(rule.use)}


ROUNDS = 12
"""Of each different program: enough for feedback that comes five rounds late to come. One of each rule is run as it stands."""


@pytest.mark.slow
@each_rule
def test_every_combination_of_answers_is_advised_and_every_snippet_runs(number):
    """All combinations that lead to the rule; each different program is run. Warnings are errors."""
    programs = {}
    for given in EVERY[number]:
        found = bridle.advise(**given)
        assert found.use.removeprefix("bridle.") == advice.RULES[number].use
        assert found.guarantee
        assert all(found.needs.values()) or found.use.startswith("bridle.")
        programs.setdefault(found.snippet, given)
    assert programs
    for i, (program, given) in enumerate(programs.items()):
        assert "range(300)" in program
        out = io.StringIO()
        program = program if i == 0 else program.replace("range(300)", f"range({ROUNDS})")
        with contextlib.redirect_stdout(out):
            exec(compile(program, f"snippet for {given}", "exec"), {})  # the point is that it runs
        assert program.startswith("import bridle\n")
        assert out.getvalue().strip()


def test_no_rule_is_out_of_reach():
    assert EVERY.keys() == {None, *range(len(advice.RULES))}


def test_answers_that_contradict_each_other_are_refused():
    for given in EVERY[None]:
        with pytest.raises(bridle.InputError, match=r"^costs must be true where"):
            bridle.advise(**given)


def test_the_guarantee_is_the_registrys_own():
    found = bridle.advise(constraints="none")
    item = policies.entry(found.use)
    assert item.regret in found.guarantee
    assert item.reference in found.guarantee
    assert "Violation" not in found.guarantee, "there are no limits"
    assert "Regret" not in bridle.advise(costs=False).guarantee
    found = bridle.advise(costs=False, linear=True, few=True, horizon=50)
    words = {p.name: p.help for p in policies.parameters(found.use)}
    assert found.needs
    assert found.needs.items() <= words.items()


def test_a_class_speaks_for_itself(monkeypatch):
    """What is said of a class comes from its module's guarantee, else from its docstring, and from its signature."""

    class Pacer:
        """Spend a budget
        and never more.

        More about it.
        """

        def __init__(self, budget: float, rounds: int, plan: str = "even") -> None: ...

    monkeypatch.setattr(bridle, "Pacer", Pacer, raising=False)
    found = bridle.advise(limit="budget", delay=True)
    assert (found.use, found.guarantee, list(found.needs)) == ("bridle.Pacer", "Spend a budget and never more.", ["budget", "rounds"])
    module = types.ModuleType(
        "budgets", "Budgets.\n\nGuarantee: `gate_bound`: of a Pacer, never one cent\n    too much.\nReference: nobody.\n\nProof. Easy."
    )
    monkeypatch.setattr(advice.inspect, "getmodule", lambda made: module)
    assert bridle.advise(limit="budget").guarantee == "of a Pacer, never one cent too much."
    assert bridle.advise(limit="budget", costs=False).guarantee.startswith("A budget that cannot be exceeded by one unit")
    assert "rounds=40)" in bridle.advise(limit="budget", horizon=40).snippet


@pytest.mark.parametrize("given", [{}, {"delay": True}, {"costs": False, "linear": True, "few": True}], ids=str)
def test_a_program_plays_no_more_rounds_than_there_are(given):
    for horizon in (1, 7):
        exec(bridle.advise(horizon=horizon, **given).snippet, {})
        assert f"range({horizon})" in bridle.advise(horizon=horizon, **given).snippet


def test_late_feedback_changes_the_program_and_not_the_choice():
    at_once, late = (bridle.advise(strongly_convex=True, delay=delay) for delay in (False, True))
    assert at_once.use == late.use
    assert "session.ask()" in late.snippet
    assert "session.ask()" not in at_once.snippet
    assert late.notes == [advice.LATE_NOTE]


def test_nothing_is_promised_where_what_is_allowed_moves():
    """Unless the policy forgets, or its promise holds whatever comes."""
    assert bridle.advise(moving=True).notes == [advice.WINDOW_NOTE]
    assert bridle.advise(moving=True, limit="average", costs=False).notes == [advice.MOVING_NOTE]
    assert advice.MOVING_NOTE not in bridle.advise(moving=True, constraints="none").notes
    assert advice.MOVING_NOTE not in bridle.advise(moving=True, limit="share").notes
    assert bridle.advise(moving=True, limit="none", rules=True).notes == [advice.RULES_NOTE, advice.FOLLOW_NOTE]


def test_a_world_that_moves_never_meets_anytime_without_a_window():
    moving = [given for number, every in EVERY.items() if number is not None for given in every if given["moving"]]
    uses = set()
    for given in moving:
        rule = advice.RULES[rule_for(given)]
        uses.add(rule.use)
        assert rule.use != "anytime" or "window" in rule.settings
        assert "drift" not in rule.settings, "a number that nobody has"
    assert uses == {"Gate", "Pacer", "anytime", "rate", "mlpoly", "soft", "sinha2024-ocs"}


WINDOW = f"window={advice._literal(advice.WINDOW['window'])}"

SAYS = [
    ({"limit": "share"}, "rate", "at_most=0.05, safe=[0.0, 0.0])"),
    ({"limit": "share", "moving": True}, "rate", "at_most=0.05, safe=[1.0, 0.0])"),
    ({"limit": "share", "rules": True}, "rate", 'rules=["careful", "usual", "bold"])'),
    ({"limit": "share", "known": "features"}, "rate", "session.decide(features=phi)"),
    ({"limit": "average"}, "soft", 'bridle.policy("soft", domain)'),
    ({"limit": "average", "known": "forecast"}, "soft", 'rules=["forecast", "forecast + margin", "safe"])'),
    ({"known": "limits"}, "adagrad", "session.decide(known=(A, b))"),
    ({"known": "limits", "rules": True}, "adagrad", "session.decide(rules=R, known=(A, b))"),
    ({"known": "limits", "moving": True, "delay": True}, "anytime", "session.ask(known=(A, b))"),
    ({"known": "limits", "strongly_convex": True}, "anytime", "modulus=1.0"),
    ({"moving": True}, "anytime", f'bridle.policy("anytime", domain, {WINDOW})'),
    ({"moving": True, "rules": True}, "anytime", f"{WINDOW}, rules="),
    ({"rules": True, "delay": True}, "anytime", "session.ask(rules=R)"),
    ({"rules": True, "strongly_convex": True}, "anytime", 'rules=["careful", "usual", "bold"])'),
    ({"limit": "none", "rules": True}, "mlpoly", "session.decide(rules=R)"),
    ({"limit": "none", "known": "features"}, "adagrad", "features=2"),
    ({"limit": "budget"}, "bridle.Pacer", "bridle.Pacer(budget=1000.0"),
    ({"limit": "budget", "costs": False}, "bridle.Gate", "gate.allows(amount)"),
]


@pytest.mark.parametrize(("given", "use", "says"), SAYS, ids=str)
def test_what_is_known_already_is_said_to_the_policy(given, use, says):
    found = bridle.advise(**given)
    assert found.use == use
    assert says in found.snippet
    assert ("modulus" in found.snippet.split("bridle.Session")[0]) == (
        given.get("strongly_convex", False) and not given.get("rules", False)
    )


def test_notes_say_what_answers_do_to_each_other():
    assert advice.BOTH_NOTE in bridle.advise(rules=True, known="features").notes
    assert advice.KEPT_NOTE in bridle.advise(limit="average", known="limits").notes
    assert advice.KEPT_NOTE not in bridle.advise(known="limits").notes
    assert advice.FEATURES_NOTE in bridle.advise(known="features").notes
    assert advice.RULES_NOTE in bridle.advise(known="forecast").notes
    assert advice.POOL_NOTE in bridle.advise(limit="share", delay=True).notes
    assert advice.LATE_NOTE not in bridle.advise(limit="share", delay=True).notes


def test_a_share_is_promised_as_a_number_of_rounds():
    guarantee = bridle.advise(limit="share").guarantee
    assert "at most eps n + 80 + (1 - eps) violations" in guarantee
    assert "nothing is promised" not in guarantee


def test_no_limits_can_be_said_in_two_ways():
    one, two = bridle.advise(limit="none"), bridle.advise(constraints="none", limit="average")
    assert one == two
    assert advice.complete_answers(limit="none") == advice.complete_answers(constraints="none")


def test_a_policy_that_needs_a_horizon_says_so_where_it_is_unknown(monkeypatch):
    monkeypatch.setattr(advice, "RULES", (advice.Rule({}, "neely2017", "because"),))
    assert "Doubling" in bridle.advise().notes[0]
    assert "horizon=10000" in bridle.advise().snippet
    assert "horizon=77" in bridle.advise(horizon=77).snippet
    assert bridle.advise(horizon=77).notes == []


def test_a_rule_that_gives_a_policy_what_it_has_not_is_an_error(monkeypatch):
    monkeypatch.setattr(advice, "RULES", (advice.Rule({}, "adagrad", "because", {"modulus": 1.0}),))
    with pytest.raises(bridle.InputError, match="policy adagrad has no parameter modulus"):
        bridle.advise()
    monkeypatch.setattr(advice, "RULES", (advice.Rule({}, "nobody2030", "because"),))
    with pytest.raises(bridle.InputError, match="unknown policy 'nobody2030'"):
        bridle.advise()


WRONG = [
    ({"constraints": "some"}, "constraints must be one of fixed, changing, none, not 'some'"),
    ({"limit": "often"}, "limit must be one of safety, average, share, budget, none, not 'often'"),
    ({"known": True}, "known must be one of nothing, limits, features, forecast, not True"),
    ({"rules": 3}, "rules must be one of true, false, not 3"),
    (
        {"known": "limits", "costs": False},
        "costs must be true where known is 'limits': what is known is kept, and there is nothing else to decide for",
    ),
    ({"noise": "yes"}, "noise must be one of true, false, not 'yes'"),
    ({"noise": 1}, "noise must be one of true, false, not 1"),
    ({"horizon": 0}, "horizon must be 1 or above, not 0"),
    ({"horizon": 1.5}, "horizon must be a whole number, not 1.5"),
    ({"horizons": 10}, "unknown answer 'horizons'; did you mean horizon?"),
]


@pytest.mark.parametrize(("given", "message"), WRONG, ids=str)
def test_answers_that_make_no_sense_are_refused(given, message):
    with pytest.raises(bridle.InputError) as refusal:
        bridle.advise(**given)
    assert str(refusal.value) == message


# --- questions ------------------------------------------------------------------------------------------------------------------------


def test_the_questions_asked_decide_and_no_others_are_asked():
    """Answered from every combination, the questions end, and lead to the rule that all answers together lead to."""
    for number, every in EVERY.items():
        for given in every if number is not None else ():
            if (given["limit"] == "none") != (given["constraints"] == "none"):
                continue  # nobody who is asked answers so
            told: dict[str, Any] = {}
            while (name := advice.next_question(told)) is not None:
                assert name not in told
                told[name] = given[name]
            first = advice.FIRST[: 1 if given["limit"] == "budget" else None]
            assert tuple(told)[: len(first)] == first, "how often, what is known, rules, and whether it moves come first"
            seen = advice.seen_by_rules(told)
            assert next(i for i, rule in enumerate(advice.RULES) if rule.when.items() <= seen.items()) == number


class Terminal(io.StringIO):
    """Standard input on which somebody types these lines."""

    def isatty(self) -> bool:
        return True


def test_on_a_terminal_it_asks(run, monkeypatch):
    monkeypatch.setattr("sys.stdin", Terminal("sometimes\nnone\n\nperhaps\nn\nn\ny\nyes\n"))
    # limit twice, known, rules twice, moving, strongly convex, delay
    status, out, err = run("advise")
    assert status == 0
    assert out.startswith("Use anytime: without limits its steps")
    assert "limit must be one of safety, average, share, budget, none, not 'sometimes'" in err
    assert "the answer must be y or n, not 'perhaps'" in err
    assert "Are the costs strongly convex" in err
    assert "Does feedback come late?" in err
    assert "Do limits change?" not in err, "it does not matter without limits"
    assert "session.ask()" in out


def test_on_a_terminal_it_asks_for_the_horizon_where_that_decides(run, monkeypatch):
    monkeypatch.setattr("sys.stdin", Terminal("safety\n\n\n\nn\nn\ny\ny\nsoon\n500\nn\n"))
    status, out, err = run("advise", "--json", "-")
    # limit, known, rules, moving, noise, costs, linear, few, horizon twice, delay
    assert (status, "horizon must be a number of rounds or unknown, not 'soon'" in err) == (0, True)
    facts = json.loads(out)
    assert (facts["use"], facts["answers"]["horizon"]) == ("steiner", 500)
    assert "horizon=500" in facts["snippet"]


def test_a_terminal_that_ends_is_an_interruption(run, monkeypatch):
    monkeypatch.setattr("sys.stdin", Terminal(""))
    assert run("advise")[0] == 130


# --- the command ----------------------------------------------------------------------------------------------------------------------


def test_the_command_says_what_the_function_says(run, tmp_path):
    path = tmp_path / "advice.json"
    arguments = ("--constraints", "changing", "--strongly-convex", "--delay", "--horizon", "unknown", "--known", "nothing", "--no-rules")
    status, out, err = run("advise", *arguments, "--json", path)
    found = bridle.advise(constraints="changing", strongly_convex=True, delay=True)
    assert (status, err) == (0, "")
    assert found.snippet in out
    assert f"Use anytime: {found.why}." in out
    assert f"Guarantee. {found.guarantee}" in out
    assert "  modulus: Strong convexity of the costs" in out
    assert f"Note: {advice.LATE_NOTE}." in out
    assert out.endswith(f"facts written to {path}\n")
    facts = json.loads(path.read_text())
    assert facts == {"answers": advice.complete_answers(constraints="changing", strongly_convex=True, delay=True), **found.facts()}
    assert json.loads(run("advise", *arguments, "--json", "-")[1]) == facts


def test_the_command_takes_what_is_known_and_rules(run):
    status, out, _ = run("advise", "--limit", "share", "--known", "forecast", "--rules", "--moving", "--json", "-")
    found = bridle.advise(limit="share", known="forecast", rules=True, moving=True)
    assert (status, json.loads(out)["snippet"]) == (0, found.snippet)
    assert json.loads(out)["settings"]["rules"] == ["careful", "usual", "bold", "forecast", "forecast + margin", "safe"]


def test_off_a_terminal_nothing_told_is_nothing_known(run):
    status, out, _ = run("advise")
    assert status == 0
    assert bridle.advise().snippet in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--constraints", "some"), "constraints must be one of fixed, changing, none, not 'some'"),
        (("--horizon", "long"), "horizon must be a number of rounds or unknown, not 'long'"),
        (("--horizon", "-3"), "horizon must be 1 or above, not -3"),
        (("--limit", "soft"), "limit must be one of safety, average, share, budget, none, not 'soft'"),
        (("--limit", "none", "--no-costs"), "costs must be true where there are no limits"),
        (("--known", "all"), "known must be one of nothing, limits, features, forecast, not 'all'"),
        (("--slaterr",), "No such option: --slaterr"),
        (("--json", "/nowhere/at/all.json"), "cannot write /nowhere/at/all.json: there is no folder /nowhere/at"),
    ],
)
def test_bad_input_is_one_line_and_status_2(run, arguments, message):
    status, out, err = run("advise", *arguments)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert message in err
