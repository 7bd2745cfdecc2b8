"""A page for every registered policy, from its entry in the registry and the docstring of its module."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from bridle import policies
from bridle.cli.listing import Facts, full_policy
from bridle_site import module_text, pictures, rst
from bridle_site.docstrings import plain_line
from bridle_site.parameter_table import parameter_table


def write(folder: Path) -> None:
    """Write the pages, and the list of them."""
    names = policies.names()
    modules = sorted({policies.entry(name).factory.__module__ for name in names})
    for name in names:
        rst.write(folder / "policies" / f"{name}.rst", page(name))
    for module in modules:
        rst.write(folder / "source" / f"{module.rpartition('.')[2]}.rst", source(module))
    rst.write(folder / "policies" / "index.rst", index(names))
    rst.write(folder / "source" / "index.rst", sources(modules))


def index(names: list[str]) -> list[str]:
    """The list of all policies with their guarantees."""
    facts = [full_policy(name) for name in names]
    rows = [
        [f":doc:`{each['name']} <{each['name']}>`", plain_line(each["title"]), order(each["regret"]), order(each["violation"])]
        for each in facts
    ]
    return [
        *rst.heading("Policies", "="),
        "Every registered policy has a page: what it does in a round, what is proved of it, what it must be told, how it plays.",
        "",
        "``bridle advise`` names the one for what you know; see :doc:`/choosing`. A violation is CCV unless it says *soft* or *interval*.",
        "",
        *rst.table(("policy", "what", "regret", "violation"), rows, (20, 40, 20, 20)),
        *rst.directive("toctree", "", {"hidden": ""}, names),
    ]


def page(name: str) -> list[str]:
    """The page of one policy."""
    facts, item = full_policy(name), policies.entry(name)
    module = sys.modules[item.factory.__module__]
    text = module_text.read(module)
    picture = pictures.of_policy(name)
    short = module.__name__.rpartition(".")[2]
    also = [other for other in policies.names() if other != name and policies.entry(other).factory.__module__ == module.__name__]
    return [
        *rst.heading(name, "="),
        *rst.directive("rst-class", "lead", None, ()),
        f"{plain_line(facts['title'][0].upper() + facts['title'][1:])}.",
        "",
        *fact_table(facts),
        *rst.heading("What it does"),
        text.summary,
        "",
        *text.update,
        *(["The same file has " + ", ".join(f":doc:`{other} <{other}>`" for other in also) + ".", ""] if also else []),
        *rst.heading("What is proved"),
        *proved(text.guarantee),
        *variants(item),
        *rst.heading("In a game"),
        *rst.directive("figure", f"/_pictures/{picture.path.name}", {"alt": picture.alt, "class": "chart"}, [picture.caption]),
        *rst.heading("Parameters"),
        f"``bridle.policy({name!r}, domain, ...)`` takes these. `bridle.policy_for` takes what is needed from a problem's constants.",
        "",
        *parameter_table(facts["parameters"]),
        *rst.heading("Example"),
        *rst.doctest(text.example),
        *rst.heading("Reference"),
        text.reference,
        "",
        f"Source: :doc:`bridle.policies.{short} </reference/source/{short}>`.",
        "",
        *(rst.directive("dropdown", "The proof", None, text.proof) if any(text.proof) else []),
    ]


def proved(guarantee: list[str]) -> list[str]:
    """What is proved, where the name of a function alone would say nothing."""
    first, *others = guarantee
    return [f"The theorem is a function beside the code: {first}" if first.startswith("`") else first, *others]


def order(text: str) -> str:
    """The order of a bound, or a dash for none."""
    return plain_line(text) if text != "-" else "none"


def fact_table(facts: Facts) -> list[str]:
    """What a reader wants to know first."""
    sharper = ["a sharper bound with Slater's condition"] if facts["slater"] == "sharper" else []
    rows = [
        ["Regret", order(facts["regret"])],
        ["Violation", order(facts["violation"])],
        ["Assumes", plain_line("; ".join([*facts["assumes"], *sharper]) or "a feasible action, convex costs and constraints")],
        ["Constraints", plain_line(f"{facts['constraints']}; of several, {several(facts['several_constraints'])}")],
        ["Must be told", ", ".join(f"``{need}``" for need in facts["needs"]) or "nothing"],
        ["Sees", plain_line(facts["feedback"])],
        ["A round costs", plain_line(facts["per_round"])],
        ["Reference", plain_line(facts["reference"])],
    ]
    return rst.table((), rows, (20, 80), "facts")


def several(kind: str) -> str:
    """How several constraints are treated, in words."""
    return {"max": "the largest counts", "max-distance": "the one that is farthest away counts", "all": "each counts"}.get(kind, kind)


def variants(item: policies.Entry) -> list[str]:
    """What differs with a parameter."""
    if not item.variants:
        return []
    rows = [
        [f"``{each.parameter}={each.value}``", plain_line("; ".join(changed(key, value) for key, value in each.changes.items()))]
        for each in item.variants
    ]
    return ["With some parameters the guarantee is another one:", "", *rst.table(("parameter", "then"), rows, (30, 70))]


CHANGED = {
    "regret": lambda value: "no regret is bounded" if value == "-" else f"regret {value}",
    "violation": lambda value: "no violation is bounded" if value == "-" else f"violation {value}",
    "affine": lambda value: "constraints must be affine" if value else "constraints need not be affine",
    "domains": lambda value: f"the domain must be a {' or a '.join(value)}" if value else "for every domain",
    "metric": lambda value: {"ccv": "the violation that is bounded is CCV", "soft": "the violation that is bounded is soft"}.get(
        value, str(value)
    ),
    "slater": lambda value: {"no": "Slater's condition does not help", "sharper": "sharper with Slater's condition"}.get(value, str(value)),
    "needs": lambda value: f"must be told {', '.join(value)}" if value else "need not be told anything",
    "time_varying": lambda value: "constraints may change" if value else "constraints must stay the same",
    "strongly_convex": lambda value: "costs must be strongly convex" if value else "costs need not be strongly convex",
    "cost": lambda value: f"a round costs {value}",
    "reduces": lambda value: f"of several constraints, {several(value)}",
}
"""How a field of an entry that a parameter changes is said."""


def changed(key: str, value: Any) -> str:
    """What a parameter changes, in words."""
    return CHANGED[key](value) if key in CHANGED else f"{key.replace('_', ' ')} {value}"


def source(module: str) -> list[str]:
    """The page that shows a module."""
    path = "src/" + module.replace(".", "/") + ".py"
    return [*rst.heading(module, "="), *rst.directive("literalinclude", f"/../{path}", {"language": "python", "linenos": ""})]


def sources(modules: list[str]) -> list[str]:
    """The list of the modules."""
    short = [module.rpartition(".")[2] for module in modules]
    return [*rst.heading("Source of the policies", "="), *rst.directive("toctree", "", {"maxdepth": "1"}, short)]
