"""What the documentation says in figures and tables is what the library says."""

from __future__ import annotations

import importlib.util
import json
import re
import tomllib
from pathlib import Path

import pytest

import bridle
from bridle import policies, report

ROOT = Path(__file__).parent.parent
TEXTS = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]


def test_the_readme_lists_the_policies_as_registered():
    measured = json.loads((ROOT / "benchmarks" / "policies.json").read_text())
    assert measured.keys() == set(policies.names()), "run make bench: a policy has no measured cost"
    assert all(cost > 0.0 for found in measured.values() for cost in found.values()), "run make bench: a cost was not measured"
    assert report.policies_markdown(report.all_policies(), measured) in (ROOT / "README.md").read_text()


def test_the_documentation_lists_the_problems_as_registered():
    table = report.problems_markdown(report.all_problems())
    assert table in (ROOT / "docs" / "problems.md").read_text(), f"docs/problems.md must hold this table:\n{table}"


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
        if not target.startswith("http"):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_every_public_name_is_documented_and_there():
    for name in bridle.__all__:
        assert getattr(bridle, name).__doc__, name


def test_the_versions_agree():
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"version: {bridle.__version__}" in citation
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dynamic"] == ["version"]


def test_theorem_functions_named_in_the_docs_exist():
    from bridle import learners, wrappers
    from bridle.policies import anytime, sinha2024

    text = (ROOT / "docs" / "theorems.md").read_text()
    for name in re.findall(r"`(\w+_(?:bound|regret)|theorem\d)`", text):
        assert any(hasattr(module, name) for module in (sinha2024, anytime, learners, wrappers)) or name == "paper_bound", name


def test_the_documentation_shows_the_exponents_that_were_measured():
    spec = importlib.util.spec_from_file_location("exponents", ROOT / "benchmarks" / "exponents.py")
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    found = json.loads((ROOT / "benchmarks" / "exponents.json").read_text())
    assert benchmark.markdown(found) in (ROOT / "docs" / "exponents.md").read_text()
    assert {row["policy"] for row in found} >= set(policies.names()) - set(benchmark.SLOW) - {"ftpl"}, "run benchmarks/exponents.py"
    assert all(row["share"] <= 1.0 for row in found)
