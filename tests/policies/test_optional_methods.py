"""What records can do beyond their protocols: capabilities, of which one function asks, and facts that CONTRIBUTING lists."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import NamedTuple

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
    "counted": "an exception that leaves a session",
    "detach": "a tensor of PyTorch",
    "dtype": "an array",
    "events": "a batch that a client sends",
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


def section(title: str) -> str:
    """A section of CONTRIBUTING."""
    return CONTRIBUTING.read_text(encoding="utf-8").partition(f"## {title}")[2].partition("\n## ")[0]


def tabled() -> set[str]:
    """The names in the first column of the table of facts."""
    cells = [line.split("|")[1] for line in section("Facts that records carry").splitlines() if line.startswith("| `")]
    return {name for cell in cells for name in re.findall(r"`(\w+)", cell)}


def capabilities() -> dict[str, type]:
    """The protocols of `bridle.core` that say what else a record can do: they are told from the others by an abstract or a written body."""
    found = {name: each for name, each in vars(core).items() if getattr(each, "_is_protocol", False) and each.__module__ == core.__name__}
    return {name: each for name, each in found.items() if each not in PROTOCOLS}


def members(kind: type) -> set[str]:
    return {name for name in vars(kind) if not name.startswith("_")}


def test_contributing_lists_the_capabilities_and_their_methods():
    rows = [line.split("|")[1:3] for line in section("Capabilities").splitlines() if line.startswith("| `")]
    listed = {name.strip(" `"): methods for name, methods in rows}
    assert listed.keys() == capabilities().keys()
    for name, kind in capabilities().items():
        assert set(re.findall(r"`(\w+)`", listed[name])) == members(kind)
        assert set(re.findall(r"\[`(\w+)`\]", listed[name])) == members(kind) - vars(kind)["__abstractmethods__"]


def test_one_function_asks_for_capabilities():
    """What a capability has is not looked for by its name, but for the fields that learners and policies share with other records."""
    of_capabilities = {name for kind in capabilities().values() for name in members(kind)}
    assert {name: files for name, files in asked().items() if name in of_capabilities} == {}


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
    assert len(tabled()) > 15


class Half(NamedTuple):
    """A record that can be moved, and says nothing of a metric."""

    x: float

    def move(self, state: float, x: float) -> float:
        return x - self.x


def test_a_capability_answers_for_what_a_record_leaves_out():
    movable = core.capability(Half(0.5), core.Movable)
    assert movable is not None
    assert (movable.move(0.0, 2.0), movable.metric(0.0)) == (1.5, None)
    assert core.capability(Half(0.5), core.Surrogate) is None  # it has no abstract method of it
    assert core.capability(Half(0.5), core.Certifies) is None  # all of whose methods may be left out, but not all at once
    ogd = bridle.policy("ogd", bridle.Ball(2), lipschitz=1.0).record
    certifies = core.capability(ogd, core.Certifies)
    assert certifies is not None
    assert certifies.alarm(ogd.init(ogd.domain.center())) is None
