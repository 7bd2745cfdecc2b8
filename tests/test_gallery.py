"""The gallery: what `make docs` cannot see of its scripts. That they run is shown there."""

import ast
from pathlib import Path

import pytest

from helpers.scripts import script

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples" / "gallery").glob("plot_*.py"))


def test_the_order_of_the_gallery_names_every_example_once():
    order = script("docs/_ext/bridle_site/gallery_order.py")
    assert len(EXAMPLES) >= 12
    assert sorted(order.FIRST) == [path.stem.removeprefix("plot_") for path in EXAMPLES]
    key = order.GalleryOrder("examples/gallery")
    assert sorted(["plot_service.py", "plot_unnamed.py", "plot_late_constraint.py"], key=key)[0] == "plot_late_constraint.py"
    assert sorted(["plot_service.py", "plot_unnamed.py", "plot_late_constraint.py"], key=key)[-1] == "plot_unnamed.py"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_a_picture_says_what_it_shows(path):
    """Every chart has a title and names what it shows; the page has a title; draws have a seed."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    title, underline = ast.get_docstring(tree).splitlines()[:2]
    assert len(underline) == len(title)
    assert set(underline) == {"="}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    charts = [names for call in calls if call.func.attr == "set" if "ylabel" in (names := {word.arg for word in call.keywords})]
    assert all("title" in names for names in charts)
    assert any("xlabel" in names for names in charts) or any(call.func.attr == "set_title" for call in calls)
    assert [call for call in calls if call.func.attr == "default_rng" and not call.args] == [], "a seed is missing"
    assert any(call.func.attr == "show" for call in calls)
