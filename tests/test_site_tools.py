"""What builds and checks the documentation site: notation as mathematics, docstrings as pages, links."""

from __future__ import annotations

import doctest
import importlib
import sys
from pathlib import Path

import pytest

import bridle
from bridle import policies
from helpers.scripts import script

ROOT = Path(__file__).parents[1]


@pytest.fixture
def site(monkeypatch):
    """The site's extension, as Sphinx finds it."""
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    return lambda name: importlib.import_module(f"bridle_site.{name}")


@pytest.mark.parametrize("name", ["notation", "docstrings", "module_text"])
def test_examples_of_the_extension_hold(site, name):
    assert doctest.testmod(site(name)).failed == 0


@pytest.mark.parametrize(
    ("plain", "drawn"),
    [
        ("Q_t = max(Q_{t-1}, eta_t)", r"Q_{t} = \max(Q_{t-1}, \eta_{t})"),
        ("<grad f, x> <= |x|^2", r"\langle \nabla  f, x\rangle  \le  |x|^{2}"),
        ("O(T^(3/4) log T)", r"O(T^{3/4} \log\, T)"),
        ("x = argmin over X of f(x)", r"x = \operatorname{argmin}_{x \in  X} f(x)"),
    ],
)
def test_notation_of_docstrings_becomes_mathematics(site, plain, drawn):
    assert site("notation").formula(plain) == drawn


def test_sentences_stay_sentences(site):
    """A hyphen, a number, a name with an underscore and a single letter are no mathematics."""
    text = "A right-endpoint sum of 20 rounds, time_varying for every t and a (b)."
    assert list(site("notation").runs(text)) == []


@pytest.mark.parametrize("name", policies.names())
def test_every_policy_has_all_parts_of_its_page(site, name):
    module = sys.modules[policies.entry(name).factory.__module__]
    text = site("module_text").read(module)
    assert any(line.strip().startswith(r"\begin{split}") for line in text.update), "the update has no formula"
    assert text.summary
    assert text.guarantee
    assert text.reference
    assert text.example[0].startswith(">>> ")


def test_every_name_of_the_package_has_a_page():
    names = script("tools/public_names.py")
    assert {names.page_of(name).slug for name in bridle.__all__} <= {page.slug for page in names.PAGES}
    assert names.page_of("InputError").slug == "warnings"


def test_a_name_without_a_page_is_said(monkeypatch):
    names = script("tools/public_names.py")
    monkeypatch.setattr(bridle, "stray", type("stray", (), {"__module__": "bridle.somewhere"}), raising=False)
    with pytest.raises(LookupError, match=r"on no page where bridle\.stray"):
        names.page_of("stray")


def page(body: str, head: str = "") -> str:
    return f"<html><head>{head}</head><body id='top'>{body}</body></html>"


FAULTS = [
    ({"index.html": page("<a href='away.html'>x</a>")}, "links to away.html, which is not there"),
    ({"index.html": page("<a href='b.html#no'>x</a>"), "b.html": page("<p id='yes'>")}, "b.html has no such anchor"),
    ({"index.html": page("<a href='#no'>x</a>")}, "index.html has no such anchor"),
    ({"index.html": page(""), "b.html": page("")}, "b.html: no link leads to it"),
    ({"index.html": page("<img src='no.png'>")}, "loads no.png, which is not there"),
    ({"index.html": page("", "<script src='https://cdn.example.org/x.js'></script>")}, "would not look the same without a network"),
    ({"index.html": page("", "<link rel='stylesheet' href='//fonts.example.org/x.css'>")}, "would not look the same without a network"),
    ({"index.html": page("<a href='https://exa mple.org'>x</a>")}, "is not an address"),
    ({"index.html": page("<a href='../elsewhere.html'>x</a>")}, "links to ../elsewhere.html, which is not there"),
]


@pytest.mark.parametrize(("files", "fault"), FAULTS, ids=[fault for _, fault in FAULTS])
def test_the_link_checker_finds_what_is_wrong(tmp_path, files, fault):
    (tmp_path / "elsewhere.html").write_text("outside the site")
    folder = tmp_path / "site"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    found = script("tools/check_site.py").check(folder).faults
    assert len(found) == 1
    assert fault in found[0]


def test_the_link_checker_counts_clicks(tmp_path):
    for name, leads in {"index": "b", "b": "c", "c": "d", "d": "index"}.items():
        (tmp_path / f"{name}.html").write_text(page(f"<a href='{leads}.html#top'>x</a><a href='https://example.org/#x'>y</a>"))
    site = script("tools/check_site.py").check(tmp_path, clicks=2)
    assert site.faults == ["d.html: 3 clicks from index.html, at most 2 are allowed"]
    assert (site.pages, site.links, site.outside) == (4, 8, {"https://example.org/#x"})
