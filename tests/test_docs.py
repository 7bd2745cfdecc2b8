"""What the documentation says in figures and tables is what the library says."""

from __future__ import annotations

import fnmatch
import json
import math
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import bridle
from bridle import policies
from bridle.cli.listing import all_policies, all_problems
from helpers.scripts import script

ROOT = Path(__file__).parent.parent
TEXTS = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]


def doc_tables():
    return script("tools/doc_tables.py")


def test_the_readme_shows_six_policies_as_registered():
    table = doc_tables().first_markdown(all_policies())
    assert table in (ROOT / "README.md").read_text(), f"README.md must hold this table:\n{table}"


def test_the_documentation_lists_the_policies_as_registered():
    measured = json.loads((ROOT / "benchmarks" / "policies.json").read_text())
    assert measured.keys() == set(policies.names()), "run make bench: a policy has no measured cost"
    assert all(cost > 0.0 for found in measured.values() for cost in found.values()), "run make bench: a cost was not measured"
    assert doc_tables().policies_markdown(all_policies(), measured) in (ROOT / "docs" / "policies.md").read_text()


def test_the_documentation_lists_the_problems_as_registered():
    table = doc_tables().problems_markdown(all_problems())
    assert table in (ROOT / "docs" / "problems.md").read_text(), f"docs/problems.md must hold this table:\n{table}"


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
        if not target.startswith("http"):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_no_page_says_a_section_twice(path):
    headings = re.findall(r"^## .*$", re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL), re.MULTILINE)
    assert len(headings) == len(set(headings)), f"{path.name}: {headings}"


def test_every_public_name_is_documented_and_there():
    for name in bridle.__all__:
        assert getattr(bridle, name).__doc__, name


def test_documented_modules_come_with_the_package():
    """The documents write `bridle.adversaries.Recorded` and the like after `import bridle` alone."""
    modules = ("adversaries", "core", "domains", "engines", "functions", "learners", "ops", "policies", "problems", "rules", "validate")
    code = f"import bridle; assert all(hasattr(bridle, name) for name in {modules})"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_versions_agree():
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"version: {bridle.__version__}" in citation
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dynamic"] == ["version"]


def test_theorem_functions_named_in_the_docs_exist():
    from bridle import learners
    from bridle.learners import late, wrappers
    from bridle.policies import memories, sinha2023_arms, soft_free

    files = [sys.modules[policies.entry(name).factory.__module__] for name in policies.names()]
    homes = (*files, memories, sinha2023_arms, soft_free, learners, late, wrappers)
    text = (ROOT / "docs" / "theorems.md").read_text()
    for name in re.findall(r"`(\w+_(?:bound|regret)|theorem\d)`", text):
        assert any(hasattr(module, name) for module in homes) or name == "paper_bound", name


def benchmark_named(name):
    return script(f"benchmarks/{name}.py")


def test_the_documentation_shows_the_streams_as_they_were_measured():
    benchmark, page = benchmark_named("streams"), (ROOT / "docs" / "anytime.md").read_text()
    found = json.loads((ROOT / "benchmarks" / "streams.json").read_text())
    assert benchmark.markdown(found["games"]) in page, "run benchmarks/streams.py"
    assert benchmark.costs_markdown(found["costs"]) in page, "run benchmarks/streams.py"


def test_the_documentation_shows_the_rules_of_advice():
    table = doc_tables().advice_markdown()
    assert table in (ROOT / "docs" / "choosing.md").read_text(), f"docs/choosing.md must hold this table:\n{table}"


V, G, D, T, M, MU, DRIFT, SLATER, MARGIN = 0.5, 1.0, 2.0, 1000.0, 2.0, 1.0, 1.0, 0.5, 0.1
R, F, STRONG, WIDE = math.sqrt(2.0 * T) * D * G, G * D * T, G * G * (1.0 + math.log(T)) / MU, D * D + 2.0 * D * DRIFT
SQUARES = 4.0 * D * D * math.log(2.0 + 2.0 * V * (R + F))
VARIANTS = [
    ({}, "regret", R + 0.5 / V),
    ({}, "squared", SQUARES),
    ({"modulus": MU}, "regret", STRONG + 0.5 / V),
    ({"modulus": MU}, "squared", 8.0 * D * D * math.log(2.0 + 2.0 * V * (STRONG + F))),
    ({"form": "self-bounding", "smoothness": M}, "regret", R + 0.25 / V),
    ({"form": "self-bounding", "smoothness": M}, "ccv", 8.0 * D * D * M * math.log(2.0 + 4.0 * V * (R + F))),
    ({"form": "value", "lipschitz": G}, "squared", SQUARES * G * G),
    ({"drift": DRIFT}, "regret", math.sqrt(2.0 * T * WIDE) * G + 0.5 / V),
    ({"drift": DRIFT}, "squared", 4.0 * WIDE * math.log(2.0 + 2.0 * V * (math.sqrt(2.0 * T * WIDE) * G + F))),
    ({"margin": MARGIN}, "ccv", G * SQUARES / (4.0 * MARGIN)),
    ({"margin": MARGIN}, "regret", R + 0.5 / V + MARGIN * G / SLATER * G * D * T),
    ({"cuts": 0}, "squared", SQUARES),
    ({"halfspace": False}, "squared", SQUARES),
]
"""The formulas of docs/anytime.md, in its order."""


@pytest.mark.parametrize(("given", "what", "stated"), VARIANTS)
def test_the_variants_of_anytime_have_the_bounds_that_the_page_states(given, what, stated):
    known = {"lipschitz": G, "diameter": D, "feasible": [0.0] * 3, "slater": SLATER, "modulus": MU, "smoothness": M, "constraints": 1}
    proved = getattr(bridle.policy("anytime", bridle.Ball(3), V=V, **given).bound(known, T), what)
    assert proved == pytest.approx(stated, rel=1e-12)


def test_the_frontier_is_the_registry_and_what_was_measured():
    tables, page = doc_tables(), (ROOT / "docs" / "frontier.md").read_text()
    rows, found = tables.frontier_rows(), json.loads((ROOT / "benchmarks" / "exponents.json").read_text())
    assert tables.frontier_markdown(rows, found) in page
    named = {name for row in rows for name in row["policies"]}
    limited = [name for name in policies.names() if policies.entry(name).violation != "-"]
    recent = {name for name in limited if any(year in policies.entry(name).reference for year in ("2025", "2026"))}
    assert recent - named == set()


def test_the_documentation_shows_the_exponents_that_were_measured():
    benchmark = benchmark_named("exponents")
    found = json.loads((ROOT / "benchmarks" / "exponents.json").read_text())
    assert benchmark.markdown(found) in (ROOT / "docs" / "exponents.md").read_text()
    assert {row["policy"] for row in found} >= set(policies.names()) - set(benchmark.SLOW) - {"ftpl"}, "run benchmarks/exponents.py"
    assert all(row["share"] <= 1.0 for row in found)


def test_the_documentation_shows_the_rates_that_were_measured():
    benchmark, found = benchmark_named("rates"), json.loads((ROOT / "benchmarks" / "rates.json").read_text())
    assert benchmark.markdown(found) in (ROOT / "docs" / "rates.md").read_text(), "run benchmarks/rates.py"
    for row in found:
        measured = {name: figures[1] for name, figures in row["found"].items() if "`rate`" in name}
        assert all(abs(rate - row["share"]) < 0.0015 for rate in measured.values()), row["stream"]


@pytest.mark.parametrize(("name", "mixed"), [("pricing", "`soft`, the four rules mixed"), ("recommendation", "`soft`, the rules mixed")])
def test_the_pages_of_applications_show_what_was_measured(name, mixed):
    """And what they say in words: rules mixed without a knob lose little to the best rule with knobs chosen in hindsight."""
    benchmark, found = benchmark_named(name), json.loads((ROOT / "benchmarks" / f"{name}.json").read_text())
    assert benchmark.markdown(found) in (ROOT / "docs" / f"{name}.md").read_text(), f"run benchmarks/{name}.py"
    assert [row["kind"] for row in found] == list(benchmark.KINDS)
    gain, wrong = ("revenue", "turned away") if name == "pricing" else ("clicks", "off")
    for row in found:
        allowed = [row[rule] for rule in benchmark.RULES if row[rule][wrong] <= 0.03]
        assert row[mixed][gain] >= 0.95 * max(rule[gain] for rule in allowed), row["kind"]
        assert row[mixed][wrong] <= 0.01, row["kind"]


def test_the_documentation_shows_the_applications_as_they_were_measured():
    """And what it says in words of them."""
    benchmark, found = benchmark_named("applications"), json.loads((ROOT / "benchmarks" / "applications.json").read_text())
    assert benchmark.markdown(found) in (ROOT / "docs" / "problems.md").read_text(), "run benchmarks/applications.py"
    assert [row["kind"] for row in found] == list(benchmark.KINDS)
    violation = {row["kind"]: {who: each[1] for who, each in row["found"].items()} for row in found}
    least = [min(each, key=lambda who: each[who]) for each in violation.values()]
    assert least == ["`vaze2025`", "`vaze2025`", "leader", "`vaze2025`", "`vaze2025`"]
    for kind, each in violation.items():
        assert kind == "`recommendation`, 3 groups" or 4.0 <= each["leader"] / each["`vaze2025`"] <= 20.0
        assert each["`anytime`"] <= 0.02 * each["`ogd`"]


def test_the_documentation_shows_capacity_as_it_was_measured():
    benchmark, found = benchmark_named("capacity"), json.loads((ROOT / "benchmarks" / "capacity.json").read_text())
    assert benchmark.markdown(found) in (ROOT / "docs" / "capacity.md").read_text(), "run benchmarks/capacity.py"
    for row in found:
        best = min(cost for cost, _, _ in row["rules"].values())
        assert all(abs(rate - row["share"]) < 0.0006 for _, rate in row["ours"].values()), row["stream"]
        assert row["ours"]["`rate`, stock rules"][0] <= 1.05 * best, row["stream"]


def test_the_documentation_shows_pacing_as_it_was_measured():
    benchmark, found = benchmark_named("pacing"), json.loads((ROOT / "benchmarks" / "pacing.json").read_text())
    assert benchmark.markdown(found) in (ROOT / "docs" / "pacing.md").read_text(), "run benchmarks/pacing.py"


def test_the_documentation_shows_what_was_measured_where_the_world_moves():
    benchmark, found = benchmark_named("moving"), json.loads((ROOT / "benchmarks" / "moving.json").read_text())
    assert benchmark.markdown(found) in (ROOT / "docs" / "moving.md").read_text(), "run benchmarks/moving.py"
    for row in found:
        costs = {name: cost + benchmark.PRICES[0] * violation for name, (cost, violation) in row["found"].items()}
        windows = [cost for name, cost in costs.items() if name != "dynamic" and not name.endswith(benchmark.RESTART)]
        assert costs["auto"] <= 1.1 * min(windows), (row["task"], row["stream"])


def test_dynamic_is_near_the_best_of_windows_and_restarts_in_hindsight():
    benchmark, found = benchmark_named("moving"), json.loads((ROOT / "benchmarks" / "moving.json").read_text())
    assert benchmark.markdown_dynamic(found) in (ROOT / "docs" / "moving.md").read_text(), "run benchmarks/moving.py"
    moving = [row["found"] for row in found if row["stream"] != "still"]
    assert len(moving) >= 5
    for row in moving:
        assert sum(row["dynamic"]) <= 1.3 * sum(row[benchmark.best_of_all(row)])


def test_the_documentation_shows_what_was_measured_in_practice():
    benchmark, page = benchmark_named("practice"), (ROOT / "docs" / "practice.md").read_text()
    found = json.loads((ROOT / "benchmarks" / "practice.json").read_text())
    assert benchmark.rendered(page, found) == page, "run benchmarks/practice.py --resume"
    assert all(each["exact"] and each["units"] < 1e-9 for each in found.values() if "rows" in each)
    rows = benchmark.capacities(found)
    assert {row["trace"].split()[0] for row in rows} == {"google", "azure", "alibaba", "electricity", "bikes", "traffic"}
    for row in rows:
        ours = row["found"][benchmark.OWN]
        assert abs(ours["rate"] - row["share"]) * row["slots"] <= benchmark.MOST
        assert row["found"][benchmark.ROOMY]["cost"] <= 1.05 * ours["cost"] or row["slots"] < benchmark.LONG
    ratios = benchmark.by_set(rows)
    assert sum(ratio <= 1.0 for ratio in ratios.values()) >= 0.8 * len(ratios), ratios
    assert max(ratios.values()) <= 1.05


def test_the_documentation_shows_the_service_as_it_was_measured():
    benchmark, found = benchmark_named("service"), json.loads((ROOT / "benchmarks" / "service.json").read_text())
    assert benchmark.markdown(found) in (ROOT / "docs" / "service.md").read_text(), "run benchmarks/service.py"
    assert [row["clients"] for row in found["rounds"]] == list(benchmark.CLIENTS)


def test_a_goal_of_the_service_that_is_missed_is_said_to_be():
    found = json.loads((ROOT / "benchmarks" / "service.json").read_text())
    found["rounds"][0] |= {"ratio": 0.79}
    found["batch"] |= {"events_per_second": 19_000.0}
    table = benchmark_named("service").markdown(found)
    assert "0.79, below the goal of 0.8" in table
    assert "19,000 (the goal was 20,000)" in table


def test_the_documentation_shows_durable_sessions_as_they_were_measured():
    benchmark, found = benchmark_named("durable"), json.loads((ROOT / "benchmarks" / "durable.json").read_text())
    assert benchmark.markdown(found) in (ROOT / "docs" / "operations.md").read_text(), "run benchmarks/durable.py"
    rows = [row["what"] for table in found["tables"].values() for row in table]
    for what in ("a durable round, compiled", "a durable round, python", "replay, compiled", "one event, fenced"):
        assert any(row.startswith(what) for row in rows), what


def test_a_goal_of_durable_sessions_that_is_missed_is_said_to_be():
    row = {"what": "it", "us": 1.0, "against_us": 2.0, "low": 0.5, "high": 0.7}
    rows = [{**row, "goal": goal, "ratio": ratio} for goal, ratio in (("1.3", 1.31), ("1.3", 1.3), ("at least 0.6", 0.59), ("", 9.0))]
    table, busy = (benchmark_named("durable").markdown({"tables": {"some": rows}, "load": load, "cores": 2}) for load in (0.4, 1.5))
    assert "Other programs were at work" in busy
    ends = [line.split(" | ")[3] for line in table.splitlines()[2:]]
    assert ends == ["1.31, above the goal of 1.3", "1.3", "0.59, below the goal of 0.6", "9"]


def test_the_page_of_results_shows_what_was_measured():
    benchmark, place = benchmark_named("results"), ROOT / "benchmarks"
    found = json.loads((place / "results.json").read_text())
    assert benchmark.markdown(found) == (place / "results.md").read_text(), "run benchmarks/peers.py --render"
    assert benchmark.excerpt(found) in (ROOT / "README.md").read_text(), "run benchmarks/peers.py --render"
    assert benchmark.speeds(found) in (ROOT / "docs" / "speed.md").read_text(), "run benchmarks/peers.py --render"
    assert not found["failed"]
    latest = json.loads((place / "fraud.json").read_text())
    assert found["fraud"] == {name: latest[name] for name in found["fraud"]}, "run benchmarks/peers.py --render"


def test_a_goal_that_is_missed_is_said_to_be():
    benchmark = benchmark_named("results")
    sides = {
        "NumPy loop by hand": 10.0,
        "numba loop by hand": 0.1,
        "numba loop by hand, sums reordered": 0.05,
        "Session, certify=False": 19.0,
    }
    slow = {
        **sides,
        "Session, certify=False": 21.0,
        "play, engine compiled": 0.31,
        "play, engine jax, 256 runs": 0.051,
        "play, engine compiled, 256 runs": 0.06,
    }
    fast = {**sides, "play, engine compiled": 0.29, "play, engine jax, 256 runs": 0.049, "play, engine compiled, 256 runs": 0.03}
    for times, met in ((fast, True), (slow, False)):
        part = {"runs": 256, "rows": [{"name": name, "us": us} for name, us in times.items()]}
        found = {goal.what: goal.met for goal in benchmark.goals({"algorithm1": part})}
        assert [*found.values()] == [met] * 4


def test_the_source_distribution_holds_what_the_tests_read():
    """Places that tests name from the root on, as ``ROOT / "docs"`` or ``script("tools/...")``, are among those that are packed."""
    packed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py")]
    read = {place for text in texts for place in re.findall(r'(?:ROOT|parents\[\d\]|parent\.parent)\)? / "([^"/]+)', text)}
    read |= {place for text in texts for place in re.findall(r'\bscript\(f?"([^"/{]+)/', text)}
    assert {"docs", "benchmarks", "tools"} <= read, "the patterns of this test find nothing"
    always = {"pyproject.toml", "build"}  # `make docs` makes the other
    assert {place for place in read - always if not any(fnmatch.fnmatch(place, pattern) for pattern in packed)} == set()
