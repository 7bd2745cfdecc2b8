"""Sessions from plain JSON: what comes out is what Python makes, and nothing large, nested or executable goes in."""

from __future__ import annotations

import numpy as np
import pytest

import bridle
from bridle.core import InputError
from bridle.service.config import ServiceLimits, checked_name
from bridle.service.recipes import domain_of, gates_of, session_recipe

SMALL = ServiceLimits(dim=100, constraints=10, rules=20)
BOX = {"kind": "box", "low": 0.0, "high": 40.0, "dim": 2}

ROADS = [["home", "bridge"], ["home", "tunnel"], ["tunnel", "bridge"], ["bridge", "work"], ["tunnel", "work"]]

DOMAINS = [
    ({"kind": "ball", "dim": 3, "radius": 2.0}, lambda: bridle.Ball(3, 2.0)),
    ({"kind": "ball", "center": [1.0, 2.0]}, lambda: bridle.Ball(center=[1.0, 2.0])),
    (BOX, lambda: bridle.Box(0.0, 40.0, dim=2)),
    ({"kind": "box", "low": [0.0, 1.0], "high": [2.0, 3.0]}, lambda: bridle.Box([0.0, 1.0], [2.0, 3.0])),
    ({"kind": "simplex", "dim": 4, "mass": 2.0}, lambda: bridle.Simplex(4, 2.0)),
    ({"kind": "l1ball", "dim": 2}, lambda: bridle.L1Ball(2)),
    ({"kind": "spectrahedron", "size": 2}, lambda: bridle.Spectrahedron(2)),
    ({"kind": "polyhedron", "A": [[-1.0, 0.0], [0.0, -1.0], [1.0, 1.0]], "b": [0.0, 0.0, 1.0]},
     lambda: bridle.Polyhedron([[-1.0, 0.0], [0.0, -1.0], [1.0, 1.0]], [0.0, 0.0, 1.0])),
    ({"kind": "halfspace", "a": [1.0, 1.0], "b": 1.0, "within": BOX},
     lambda: bridle.Halfspace([1.0, 1.0], 1.0, bridle.Box(0.0, 40.0, dim=2))),
    ({"kind": "product", "domains": [BOX, {"kind": "simplex", "dim": 2}]},
     lambda: bridle.Product(bridle.Box(0.0, 40.0, dim=2), bridle.Simplex(2))),
    ({"kind": "paths", "edges": ROADS, "source": "home", "target": "work"}, lambda: bridle.Paths(ROADS, "home", "work")),
    ({"kind": "matchings", "rows": 2, "columns": 3}, lambda: bridle.Matchings(2, 3)),
    ({"kind": "matchings", "rows": 2}, lambda: bridle.Matchings(2)),
    ({"kind": "spanningtrees", "edges": [["a", "b"], ["b", "c"], ["c", "a"]]}, lambda: bridle.SpanningTrees([(0, 1), (1, 2), (2, 0)])),
]  # fmt: skip


@pytest.mark.parametrize(("said", "made"), DOMAINS, ids=[said["kind"] for said, _ in DOMAINS])
def test_a_domain_is_the_one_that_python_makes(said, made):
    domain, other = domain_of("domain", said, SMALL), made()
    for seed in range(5):
        x = np.random.default_rng(seed).normal(0.0, 30.0, other.dim)
        assert np.array_equal(domain.project(x), other.project(x))


def nested(depth):
    return BOX if not depth else {"kind": "product", "domains": [nested(depth - 1)]}


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (None, "domain must be a table"),
        ([], "domain must be a table"),
        ({}, "unknown domain.kind None"),
        ({"kind": "bal"}, "did you mean ball"),
        ({"kind": "ball"}, "dim or center must be given"),
        ({"kind": "box", "low": 0.0}, "needs high"),
        ({"kind": "box", "low": 0.0, "high": 1.0, "dims": 2}, "did you mean dim"),
        ({"kind": "ball", "dim": 101}, "domain.dim must be at most 100 on this server, not 101"),
        ({"kind": "ball", "dim": 1e300}, "domain.dim must be at most"),
        ({"kind": "spectrahedron", "size": 11}, "domain.size must be at most 10"),
        ({"kind": "product", "domains": [{"kind": "ball", "dim": 60}] * 2}, "dimension of domain must be at most 100"),
        ({"kind": "ball", "dim": "3"}, "domain.dim must be a number"),
        ({"kind": "ball", "dim": True}, "dim must be"),
        ({"kind": "ball", "center": [[[[1.0]]]]}, "lists in lists in lists"),
        ({"kind": "ball", "center": {"a": 1}}, "must be a number, a name, or a list"),
        ({"kind": "box", "low": 1.0, "high": 0.0, "dim": 1}, "the box is empty"),
        ({"kind": "halfspace", "a": [1.0], "b": 1.0, "within": 5}, "domain.within must be a table"),
        ({"kind": "paths", "edges": ROADS, "source": "home"}, "of kind paths needs target"),
        ({"kind": "paths", "edges": "home", "source": 0, "target": 1}, "domain.edges must be a list"),
        ({"kind": "paths", "edges": [["a"]], "source": "a", "target": "b"}, "domain of kind paths: edges must be pairs"),
        ({"kind": "paths", "edges": [["a", "b"], ["b", "a"]], "source": "a", "target": "b"}, "edges must have no cycle"),
        ({"kind": "paths", "edges": [[0, 1]] * 101, "source": 0, "target": 1}, "number of domain.edges must be at most 100"),
        ({"kind": "matchings", "rows": 11}, "domain.rows times domain.columns must be at most 100"),
        ({"kind": "matchings", "rows": 1, "columns": 1e300}, "domain.rows times domain.columns must be at most 100"),
        ({"kind": "matchings", "rows": "2"}, "domain.rows must be a number"),
        ({"kind": "matchings", "rows": 3, "columns": 2}, "columns must be 3 or above"),
        ({"kind": "spanningtrees", "edges": [["a", "b"], ["c", "d"]]}, "no way leads from 'a' to 'c'"),
        ({"kind": "spanningtrees", "edges": [[["a"], "b"]]}, "edges must be pairs of numbers or names"),
    ],
)
def test_a_bad_domain_is_one_sentence(said, sentence):
    with pytest.raises(InputError, match=sentence):
        domain_of("domain", said, SMALL)


def test_domains_do_not_nest_without_end():
    with pytest.raises(InputError, match="deeper than"):
        domain_of("domain", nested(50), SMALL)


def test_a_session_is_made_from_its_body():
    body = {"policy": "rate", "domain": BOX, "parameters": {"at_most": 0.05, "safe": [40.0, 40.0]}, "names": ["late"], "pending": 5}
    recipe = session_recipe(body, SMALL)
    assert (recipe.policy.name, recipe.policy.parameters["at_most"]) == ("rate", 0.05)
    assert recipe.options == {"names": ["late"], "pending": 5, "most_constraints": 10}
    session = bridle.Session(recipe.policy, recipe.x1, **recipe.options)
    assert session.names == ("late",)


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"policy": "anytim"}, "did you mean anytime"),
        ({"policy": 5}, "policy must be the name of a policy"),
        ({"parameters": {"horizont": 5}}, "did you mean horizon|unknown parameter"),
        ({"parameters": []}, None),
        ({"parameters": {"domain": 5}}, "domain is none of them"),
        ({"parameters": {"name": "soft"}}, "name is none of them"),
        ({"parameters": {"learner": {"__class__": "os.system"}}}, "must be a number, a name, or a list"),
        ({"parameters": {"samples": 10**9}, "policy": "ftpl"}, "samples must be at most"),
        ({"parameters": {"cuts": 10**9}}, "cuts must be at most"),
        ({"parameters": {"constraints": 11}}, "constraints must be at most 10"),
        ({"rules": 21}, "rules must be at most 20"),
        ({"rules": ["a"] * 21}, "the number of rules must be at most 20"),
        ({"features": 10**6}, "features must be at most"),
        ({"names": ["a"] * 11}, "the number of names must be at most 10"),
        ({"names": "abc"}, "names must be a list"),
        ({"most_constraints": 11}, "most_constraints must be at most 10"),
        ({"pending": 10**12}, "pending must be at most"),
        ({"levels": [1.0] * 1000}, "the number of levels must be at most"),
        ({"gates": {"a b": {"budget": 1.0}}}, "the name of a gate"),
        ({"gates": {"a": {}}}, "gates.a needs budget"),
        ({"gates": {"a": {"budget": 1.0, "path": "x"}}}, "unknown setting of gates.a"),
        ({"gates": {str(i): {"budget": 1.0} for i in range(101)}}, "the number of gates"),
    ],
)  # fmt: skip
def test_what_a_client_may_not_ask_for_is_one_sentence(more, sentence):
    body = {"policy": "anytime", "domain": BOX} | more
    if sentence is None:
        assert session_recipe(body, SMALL).policy.name == "anytime"
        return
    with pytest.raises(InputError, match=sentence):
        session_recipe(body, SMALL)


def test_gates_and_pacers_are_told_apart_by_their_rounds():
    assert gates_of({"march": {"budget": 5.0}, "ads": {"budget": 5.0, "rounds": 10}}).keys() == {"march", "ads"}
    with pytest.raises(InputError, match=r"unknown setting of gates\.march"):
        gates_of({"march": {"budget": 5.0, "goal": "value"}})


@pytest.mark.parametrize("name", ["", "a b", "a/b", "../a", ".a", "a" * 101, "ä", None, 5, "a\n"])
def test_names_that_do_not_fit_into_an_address_are_refused(name):
    with pytest.raises(InputError, match="name must have"):
        checked_name("name", name)
