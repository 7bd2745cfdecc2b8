"""The words for parameters: none is stale, and a policy of one's own can bring its own."""

from __future__ import annotations

import inspect

import bridle
from bridle import policies
from bridle.core import Domain
from bridle.policies.documentation import document
from bridle.policies.entry import Entry
from bridle.policies.round_maps import SETTINGS
from bridle.policies.words import OF_POLICY, PARAMETER_WORDS, ParameterWords, sentences
from bridle.problems import problem_facts, problem_names
from bridle.problems import words as problem_words
from bridle.problems.documentation import document as document_problem


def test_no_words_are_for_a_parameter_that_there_is_not():
    taken = {name: {p.name for p in policies.parameters(name)} for name in policies.names()}
    assert set(OF_POLICY) <= set(taken)
    assert {name: set(words) - taken[name] for name, words in OF_POLICY.items() if set(words) - taken[name]} == {}
    assert set(PARAMETER_WORDS) - {name for names in taken.values() for name in names} - set(SETTINGS) == set()


def test_no_words_are_for_a_problem_that_there_is_not():
    taken = {name: {p["name"] for p in problem_facts(name)["parameters"]} for name in problem_names()}
    assert {name: set(words) - taken[name] for name, words in problem_words.OF_PROBLEM.items() if set(words) - taken[name]} == {}
    assert set(problem_words.PARAMETER_WORDS) == {name for names in taken.values() for name in names}


def priced(domain: Domain, price: float, step: float = 0.1) -> object:
    return bridle.policy("adagrad", domain).record


def test_a_policy_of_ones_own_brings_its_words():
    words = {"price": ParameterWords("what a violation costs", "cost per unit of constraint", "above 0")}
    policies.register(Entry("priced", priced, "a price on violations", "-", regret="-", violation="-", words=words))
    price, step = policies.parameters("priced")
    assert sentences(price.facts()) == "what a violation costs. Must be given. Values: above 0. Unit: cost per unit of constraint."
    assert (step.help, step.default, step.unit) == ("the step size", 0.1, "action per unit of gradient")
    text = document("priced")
    assert "price : float\n    What a violation costs. Must be given." in text
    assert text.startswith("A price on violations.\n")


def test_the_docstring_of_every_name_has_every_parameter():
    for name in policies.names():
        text = document(name)
        assert all(f"\n{p.name} : " in text for p in [*policies.parameters(name), *policies.shared_parameters(name)])
        assert inspect.cleandoc(text) == text
    for name in problem_names():
        assert all(f"\n{p['name']} : " in document_problem(name) for p in problem_facts(name)["parameters"])


def test_the_examples_of_policies_and_problems_run():
    for name in policies.names():
        code = document(name).partition("Examples\n--------\n")[2].replace(">>> ", "")
        made: dict[str, object] = {}
        exec(code, made)
        assert made["made"].name == name  # type: ignore[attr-defined]
