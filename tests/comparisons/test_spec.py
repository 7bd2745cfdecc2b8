"""The grid of a comparison, and the keys of its cells: what is another cell, what is the same, and what is refused before anything runs."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path
from typing import Any

import pytest

import bridle
from bridle import policies
from bridle.comparisons import cell as cells
from bridle.comparisons import run as compare
from bridle.comparisons.cell import Cell, Instance
from bridle.comparisons.keys import SOURCES, fingerprint
from bridle.comparisons.spec import grid
from bridle.core import InputError

HOME = Path(bridle.__file__).parent


def test_another_configuration_is_another_cell(tmp_path, monkeypatch):
    base = {"problem": "fixed", "settings": {}, "horizon": 10, "seed": 0, "inputs": {}}
    changed: list[dict[str, Any]] = [
        {"problem": "minimax"}, {"settings": {"dim": 3}}, {"horizon": 11}, {"seed": 1}, {"inputs": {"data.csv": "00"}},
    ]  # fmt: skip
    made = [Cell(Instance(**{**base, **change}), "ogd", {}) for change in ({}, *changed)]
    made += [Cell(made[0].instance, "adagrad", {}), Cell(made[0].instance, "ogd", {"step": 1}), Cell(made[0].instance, "ogd", {}, "jax")]
    keys = {cell.key for cell in made}
    assert len(keys) == len(made)
    assert len({cell.instance.key for cell in made}) == 1 + len(changed)
    assert Cell(Instance(**base), "ogd", {}).key in keys
    monkeypatch.setattr(cells, "fingerprint", lambda: "edited")
    assert Cell(Instance(**base), "ogd", {}).key not in keys


ROOMS = sorted({path.relative_to(HOME).parts[0].removesuffix(".py") for path in HOME.rglob("*.py")} - {"__init__", "__main__"})


@pytest.mark.parametrize("room", ROOMS)
def test_the_fingerprint_changes_with_the_sources_that_make_numbers(tmp_path, monkeypatch, room):
    """And with no others."""
    home = tmp_path / "bridle"
    shutil.copytree(HOME, home, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(bridle, "__file__", str(home / "__init__.py"))
    before = fingerprint.__wrapped__()
    for path in (home / room).rglob("*.py") if (home / room).is_dir() else [home / f"{room}.py"]:
        path.write_text(path.read_text() + "\n# edited\n")
    makes_numbers = room not in (
        "adapters",
        "advice",
        "budgets",
        "checks",
        "cli",
        "comparisons",
        "database",
        "durable",
        "fact_file",
        "fraud",
        "journal",
        "limits",
        "pacing",
        "rules",
        "service",
        "session",
        "showing",
        "storage",
    )
    assert (fingerprint.__wrapped__() != before) == makes_numbers


def test_what_makes_numbers_imports_nothing_else():
    """A module outside of the fingerprint that these rooms used could change a row unnoticed."""
    rooms = [HOME / name if (HOME / name).is_dir() else HOME / f"{name}.py" for name in SOURCES]
    files = [path for room in rooms for path in (room.rglob("*.py") if room.is_dir() else [room])]
    names = {name for path in files for name in imported(path)}
    why = "storage keeps compiled programs and raw data, and changes neither; showing says what things look like"
    assert names - set(SOURCES) <= {"storage", "showing"}, why


def imported(path: Path) -> set[str]:
    """The rooms and modules of bridle that a file imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "bridle":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bridle."):
            found.add(str(node.module).split(".")[1])
        elif isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("bridle.")}
    return found


def test_a_problem_in_other_words_is_the_same_cell():
    plain = grid(["halfspaces"], ["ogd"], [10]).cells[0]
    assert grid(["halfspaces:dim=10"], ["ogd"], [10]).cells[0].key == plain.key
    assert grid(["halfspaces"], ["ogd"], [10], sweep={"dim": [10.0]}).cells[0].key == plain.key
    assert grid(["halfspaces:dim=9"], ["ogd"], [10]).cells[0].key != plain.key


def test_a_sweep_goes_to_whatever_has_the_parameter():
    made = grid(["fixed", "lower-bound"], ["sinha2024", "ogd"], [40], 2, sweep={"dim": [3, 4], "preset": ["theory", "practice"]}).cells
    seen = {(cell.instance.problem, *cell.instance.settings.items(), cell.policy, *cell.settings.items()) for cell in made}
    dims, presets = [("dim", 3), ("dim", 4)], [("preset", "theory"), ("preset", "practice")]
    expected = {(name, dim, "sinha2024", preset) for name in ("fixed", "lower-bound") for dim in dims for preset in presets}
    assert seen == expected | {(name, dim, "ogd") for name in ("fixed", "lower-bound") for dim in dims}
    assert len(made) == 2 * len(seen)


def test_a_setting_that_one_problem_cannot_have_is_a_row_there(tmp_path):
    rows = compare.compare(["fixed", "lower-bound"], ["ogd"], [40], 1, tmp_path, sweep={"dim": [3]}, jobs=1)
    assert [row["does_not_apply"] for row in rows] == [None, "dim of problem lower-bound is its horizon, 40, not 3"]
    assert rows[0]["problem_label"] == "fixed dim=3"
    assert rows[0]["problem_settings"] == '{"dim":3}'


@pytest.mark.parametrize(("asked", "message"), [
    ({"problems": ["halfspace"]}, "unknown problem 'halfspace'; did you mean halfspaces"),
    ({"policies": ["sinha2042"]}, "unknown policy 'sinha2042'; did you mean sinha2024"),
    ({"policies": ["sinha2024:presset=practice"]}, "unknown parameter of policy sinha2024 'presset'; did you mean preset"),
    ({"policies": ["sinha2024:preset=practise"]}, "'practise'"),
    ({"policies": ["sinha2024:preset"]}, "takes NAME=VALUE, not 'preset'"),
    ({"problems": ["fixed:dimm=3"]}, "unknown parameter of problem fixed 'dimm'; did you mean dim"),
    ({"problems": ["fixed:dim=0"]}, "dim must be 1 or above, not 0"),
    ({"horizons": [0]}, "horizon must be 1 or above, not 0"),
    ({"horizons": []}, "horizons must hold at least one"),
    ({"seeds": 0}, "seeds must be 1 or above, not 0"),
    ({"seeds": []}, "seeds must hold at least one seed"),
    ({"sweep": {"lamb": [1.0]}}, "unknown parameter of these problems and policies 'lamb'; did you mean lam"),
    ({"sweep": {"lam": [-1.0]}}, "lam must be above 0, not -1"),
    ({"sweep": {"lam": []}}, "lam must be given at least one value"),
    ({"sweep": {"domain": [bridle.Ball(3)]}}, "domain must be a number or text in a comparison"),
    ({"engine": "jaxx"}, "unknown engine 'jaxx'; did you mean jax"),
    ({"jobs": 0}, "jobs must be 1 or above, not 0"),
])  # fmt: skip
def test_what_is_wrong_is_said_before_anything_runs(tmp_path, monkeypatch, asked, message):
    monkeypatch.setattr(cells, "play", lambda *a, **k: pytest.fail("something ran"))
    with pytest.raises(InputError) as wrong:
        compare.compare(**{"problems": ["fixed"], "policies": ["sinha2024"], "horizons": [10], "seeds": 1, "out": tmp_path} | asked)
    assert message in str(wrong.value)
    assert "\n" not in str(wrong.value)


def test_a_policy_of_the_users_own_is_keyed_by_its_file(tmp_path, monkeypatch):
    """It is played in this process, as others do not know it."""
    own = policies.entry("ogd")
    policies.register(policies.Entry("mine", lambda domain, lipschitz: own.factory(domain, lipschitz=lipschitz), "mine", "-", "-", "-"))
    rows = compare.compare(["fixed"], ["mine", "ogd"], [50], 1, tmp_path, jobs=1)
    assert rows[0]["cost"] == rows[1]["cost"]
    with pytest.raises(InputError, match="policy mine is registered in this process alone"):
        compare.compare(["fixed"], ["mine"], [51], 1, tmp_path, jobs=2)
    monkeypatch.setattr(cells, "hash_own_source", lambda policy: "edited")
    assert grid(["fixed"], ["mine"], [50]).cells[0].key != rows[0]["key"]
