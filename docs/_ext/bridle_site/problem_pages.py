"""A page for every registered problem, from its factory."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np

from bridle import problems
from bridle.cli.listing import full_problem
from bridle.problems import problem_names
from bridle_site import pictures, rst
from bridle_site.docstrings import plain_line
from bridle_site.module_text import paragraphs
from bridle_site.parameter_table import parameter_table

CONSTANTS = {
    "diameter": "D, the domain's diameter",
    "lipschitz": "G, a Lipschitz constant of every cost and constraint",
    "bound": "F, the largest \\|g\\| on the domain",
    "modulus": "strong convexity of the costs",
    "slater": "the margin by which one action satisfies every constraint",
    "constraints": "k, how many constraints a round reveals",
    "affine": "whether constraints are affine",
    "time_varying": "whether constraints change from round to round",
    "exp_concavity": "exp-concavity of the costs",
}
"""The constants that policies ask for, in words."""


def write(folder: Path) -> None:
    """Write the pages, and the list of them."""
    names = problem_names()
    for name in names:
        rst.write(folder / "problems" / f"{name}.rst", page(name))
    rst.write(folder / "problems" / "index.rst", index(names))


def index(names: list[str]) -> list[str]:
    """The list of all problems."""
    rows = [[f":doc:`{name} <{name}>`", plain_line(full_problem(name)["summary"])] for name in names]
    return [
        *rst.heading("Problems", "="),
        "Every registered problem has a page: what x, f and g are, its parameters, its constants, and how three policies do on it.",
        ":doc:`/problems` says how to bring a problem of your own.",
        "",
        *rst.table(("problem", "what"), rows, (25, 75)),
        *rst.directive("toctree", "", {"hidden": ""}, names),
    ]


def page(name: str) -> list[str]:
    """The page of one problem."""
    facts, game = full_problem(name), pictures.of_problem(name)
    _, _, model = (inspect.getdoc(getattr(problems, name.replace("-", "_"))) or "").partition("\n\n")
    model = model.partition("Parameters\n---")[0]
    return [
        *rst.heading(name, "="),
        *rst.directive("rst-class", "lead", None, ()),
        plain_line(facts["summary"]),
        "",
        *rst.heading("The model"),
        *paragraphs(model),
        *rst.heading("In a game"),
        *(
            rst.directive("figure", f"/_pictures/{game.path.name}", {"alt": game.alt, "class": "chart"}, [game.caption])
            if game.path is not None
            else [game.caption, ""]
        ),
        *rst.heading("Parameters"),
        f"``bridle.problem({name!r}, horizon=..., seed=...)`` takes these, and so does ``bridle play {name} --set NAME=VALUE``.",
        "",
        *parameter_table(facts["parameters"]),
        *rst.heading("Constants"),
        "What is true of the instance in the picture. A policy's bound is computed from these numbers.",
        "",
        *constant_table(game.constants),
        *rst.heading("Example"),
        *rst.doctest(game.example),
    ]


def constant_table(constants: dict[str, object]) -> list[str]:
    """The constants of the instance."""
    rows = [[f"``{key}``", text, number(constants[key])] for key, text in CONSTANTS.items() if constants.get(key) is not None]
    return rst.table(("constant", "meaning", "here"), rows, (20, 60, 20)) if rows else ["None is known.", ""]


def number(value: object) -> str:
    """A constant as it is read."""
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    return f"{float(value):.4g}" if np.ndim(value) == 0 else "an array"
