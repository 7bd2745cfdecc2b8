"""What records may offer beyond their protocols is written down: CONTRIBUTING names every attribute that is found by its name."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import bridle
from bridle import core

PACKAGE = Path(bridle.__file__).parent
CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"
PROTOCOLS = (core.Domain, core.Function, core.Learner, core.Potential, core.Policy, core.Adversary)

OF_OTHER_THINGS = {
    "O_BINARY": "the operating system",
    "O_CLOEXEC": "the operating system",
    "O_NOFOLLOW": "the operating system",
    "O_NONBLOCK": "the operating system",
    "advance_many": "an engine's module",
    "adversary": "a problem, or why there is none",
    "compile": "a function that numba has made",
    "counted": "an exception that leaves a session",
    "detach": "a tensor of PyTorch",
    "dtype": "an array",
    "fchmod": "the operating system",
    "eqns": "a program that JAX has traced",
    "figures": "a line of a log",
    "history": "a session, where it was given one",
    "kind": "the type of an array's numbers",
    "jaxpr": "a program that JAX has traced, with its constants",
    "key": "the body of a request",
    "model_": "a fitted estimator",
    "names": "the rules of a session",
    "ndim": "an array",
    "path": "a route",
    "policy": "a user's module",
    "policy_for": "the package, unless another project has overwritten it",
    "problem": "a user's module",
    "reason": "an error of the network",
    "register_at_fork": "the operating system",
    "requires_grad": "a tensor of PyTorch",
    "sched_getaffinity": "the operating system",
    "set_xscale": "axes of matplotlib",
    "shape": "an array",
    "sqlite_errorcode": "an error of SQLite",
    "store": "a service that has begun",
    "strerror": "an error of the operating system",
    "through": "a policy as the registry has made it",
    "tolist": "an array",
    "val": "a constant in a program that JAX has traced",
}
"""Attributes that are asked of what is no record, and of what."""


def asked() -> dict[str, set[str]]:
    """The names that `hasattr` and `getattr` look for, and the files they do it in; what compilers' own objects have is left out."""
    names: dict[str, set[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        if "codegen" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            looks = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("hasattr", "getattr")
            if looks and isinstance(node.args[1], ast.Constant) and not node.args[1].value.startswith("_"):
                names.setdefault(node.args[1].value, set()).add(str(path.relative_to(PACKAGE)))
    return names


def tabled() -> set[str]:
    """The names in the first column of the table."""
    section = CONTRIBUTING.read_text(encoding="utf-8").partition("## What a record may offer")[2].partition("\n## ")[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return {name for cell in cells for name in re.findall(r"`(\w+)", cell)}


def required() -> set[str]:
    """What the protocols themselves demand."""
    return {name for protocol in PROTOCOLS for name in vars(protocol) if not name.startswith("_")}


def test_every_optional_method_is_in_the_table():
    unknown = {name: files for name, files in asked().items() if name not in tabled() | required() | OF_OTHER_THINGS.keys()}
    assert not unknown, f"CONTRIBUTING.md must say what these are, who asks for them and what they return: {unknown}"


def test_the_table_names_nothing_that_is_gone():
    sources = "".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    gone = {name for name in tabled() if not re.search(rf"\b{name}\b", sources)}
    assert not gone, f"CONTRIBUTING.md lists what nothing asks for: {gone}"
    assert len(tabled()) > 25
