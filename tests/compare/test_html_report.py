"""The report page as text: what it says, that nothing in the rows can break it, and that it is written whole or not at all."""

from __future__ import annotations

import json
import os
import re
import sys
from html.parser import HTMLParser

import pytest

import bridle
from bridle.compare import analysis, charts, html_page, html_report
from bridle.compare.rows import grouped, horizon_of, label_engines, problem_of
from helpers import comparison_rows

ROWS = comparison_rows.grid()
NASTY = "</script><script>alert(1)</script><!-- ]]> \"'&amp; $title ${data} %{x} \u2028 ü😀"


class Reader(HTMLParser):
    """The page's elements, its text outside of scripts, and the cells of its tables."""

    VOID = frozenset({"meta", "br", "img", "input", "link", "hr", "path"})

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.words, self.scripts, self.tables = [], [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        elif tag == "script":
            self.scripts.append("")

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += text
            return
        if "style" not in self.open:
            self.words.append(text)
        if "td" in self.open or ("th" in self.open and self.tables):
            self.tables[-1][-1][-1] += text

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Plotly's script is five megabytes of no interest here."""
    real = html_report._plotly
    monkeypatch.setattr(html_report, "_plotly", lambda: "/* plotly */")
    return real


def read(rows, **given):
    return Reader(html_report.render_report(label_engines(rows), given.get("title"), given.get("command"), given.get("date", "2026-01-31")))


# --- what it says ---------------------------------------------------------------------------------------------------------------------


def test_it_says_what_was_run():
    text = read(ROWS, command="bridle compare halfspaces fixed", date="2026-01-31").text
    for part in ("halfspaces", "fixed", "100, 300", "0, 1", "48 played, 8 do not apply", "2026-01-31", bridle.__version__):
        assert part in text
    assert "bridle compare halfspaces fixed" in text
    assert "Policies compared on halfspaces and fixed" in text
    assert "7 policies on 2 problems, horizons from 100 to 300 rounds, 2 seeds each" in text


def test_a_title_can_be_given():
    tags = html_report.render_report(ROWS, "Mine & yours", None, "2026-01-31")
    assert "<title>Mine &amp; yours</title>" in tags
    assert "<h1>Mine &amp; yours</h1>" in tags


def test_the_tables_hold_the_ranking():
    tables = read(ROWS).tables
    ranked = analysis.ranking(ROWS)
    assert len(tables) == 1 + 4  # at a glance, then two problems with two horizons
    groups = [grouped(own, horizon_of) for own in grouped(ranked, problem_of).values()]
    for table, rows in zip(tables[1:], [rows for group in groups for rows in group.values()], strict=True):
        lines = table[2:]
        assert len(lines) == len(rows)
        for cells, row in zip(lines, rows, strict=True):
            assert row["label"] in cells[0]
            if row["does_not_apply"]:
                assert cells[1].startswith("does not apply: the costs of problem")
                continue
            assert cells[0].startswith(str(row["rank"]))
            assert ("◆" in cells[0]) == row["pareto"]
            assert number(cells[1]) == pytest.approx(row["regret"], rel=1e-3, abs=0.5 if abs(row["regret"]) >= 1000 else 1e-9)
            assert number(cells[4]) == pytest.approx(row["ccv"], rel=1e-3, abs=1e-9)
            assert cells[6] == ("-" if row["ccv_exponent"] is None else f"t{row['ccv_exponent']:.2f}")
            assert number(cells[8]) == pytest.approx(row["us_per_round"], rel=1e-2)
            assert (cells[7] == "-") == (row["metric"] == "ccv")


def number(text):
    return 0.0 if text == "≈ 0" else float(text.replace("−", "-").replace(",", ""))  # noqa: RUF001


def test_at_a_glance_has_the_ranks_at_the_longest_horizon():
    glance = read(ROWS).tables[0]
    ranks = {(row["label"], row["problem"]): row["rank"] for row in analysis.ranking(ROWS) if row["horizon"] == 300}
    for cells in glance[1:]:
        assert [cell for cell in cells[2:]] == [str(ranks[cells[0], problem] or "-") for problem in ("halfspaces", "fixed")]
    means = [float(cells[1]) for cells in glance[1:] if cells[1] != "-"]
    assert means == sorted(means)
    assert 'id="glance"' not in html_report.render_report([row for row in ROWS if row["problem"] == "fixed"], None, None, "")


def test_reasons_warnings_and_gaps_are_told_in_sentences():
    rows = [row for row in comparison_rows.grid() if row["problem"] == "fixed" and row["horizon"] == 100]
    rows[0]["warnings"] = ["the policy was told something odd"]
    rows[0]["regret_why"] = "no action is feasible"
    gone = [row for row in rows if not (row["label"] == "ogd" and row["seed"] == 1)]
    text = read(gone).text
    assert "sinha2024-strong: does not apply, the costs of problem fixed are not strongly convex (modulus 0)." in text
    assert "sinha2024: the policy was told something odd." in text
    assert "sinha2024: regret is not known, no action is feasible." in text
    assert "sinha2024-ocs: about the bound, Algorithm 2 has no costs" in text
    assert "Not every policy has all 2 seeds yet: ogd at T = 100 (1)." in text
    assert "Not every policy" not in read(rows).text


def test_a_broken_bound_raises_an_alarm():
    rows = [row for row in comparison_rows.grid() if row["problem"] == "fixed" and row["horizon"] == 100]
    assert "must not happen" not in read(rows).text
    rows[0] |= {"ccv_bound_holds": False}
    text = read(rows).text
    assert "Above the bound of its theorem, which must not happen: sinha2024 at T = 100 (ccv)." in text


def test_problems_are_explained_in_their_own_words():
    text = read(ROWS).text
    for name in ("halfspaces", "fixed"):
        assert bridle.problems.problem_facts(name)["summary"] in text
    unknown = [row | {"problem": "mine.py", "problem_label": "mine.py"} for row in ROWS]
    assert "Here: d = 10, 1 constraint a round." in read(unknown).text


def test_the_first_is_named_and_ties_are_told():
    rows = [row for row in ROWS if row["problem"] == "fixed"]
    best = next(row["label"] for row in analysis.ranking(rows) if row["horizon"] == 300)
    assert f"At T = 300 {best} ranks first: median regret" in read(rows).text
    equal = [row | {"regret": 1.0, "ccv": 2.0, "cost": 3.0, "does_not_apply": None} for row in rows]
    assert "all policies do equally well here: regret 1.000, CCV 2.000." in read(equal).text
    nobody = [row | {"does_not_apply": "no"} for row in rows]
    assert "No policy could be ranked here." in read(nobody).text


@pytest.mark.parametrize("keep", [
    lambda row: row["seed"] == 0, lambda row: row["does_not_apply"], lambda row: row["label"] == "ogd", lambda row: row["horizon"] == 100,
])  # fmt: skip
def test_parts_of_a_grid_make_a_page(keep):
    rows = [row for row in ROWS if keep(row)]
    assert rows
    assert "How to read this page" in read(rows).text


def test_what_is_not_known_makes_a_page():
    rows = [row | {"regret": None, "curve_regret": None, "us_per_round": None, "ccv_bound": None, "bridle_version": None} for row in ROWS]
    text = read(rows).text
    assert "There is no regret to draw here." in text
    assert "regret not known" in text


# --- what it is made of ---------------------------------------------------------------------------------------------------------------


def test_the_data_are_those_of_the_charts():
    scripts = read(ROWS).scripts
    (data,) = (json.loads(text) for text in scripts if text.startswith('{"policies"'))
    assert len(data["charts"]) == len(charts.all_charts(ROWS))
    assert data["policies"] == [charts.style(i)._asdict() for i in range(7)]
    for given, chart in zip(data["charts"], charts.all_charts(ROWS), strict=True):
        assert given["kind"] == chart.kind
        assert [mark["label"] for mark in given["marks"]] == [mark.label for mark in chart.marks]
        if chart.kind in ("regret", "ccv"):
            assert [mark["y"] for mark in given["marks"]] == [mark.y for mark in chart.marks]


def test_nothing_in_the_rows_can_break_the_page():
    honest = read(ROWS)
    text_keys = ("problem", "problem_label", "policy", "label", "does_not_apply", "bound_why", "regret_why", "engine", "bridle_version")
    rows = [row | {key: NASTY for key in text_keys if row.get(key)} | {"warnings": [NASTY]} for row in ROWS[:8]]
    nasty = read(rows, title=NASTY, command=NASTY, date=NASTY)
    assert len(nasty.scripts) == len(honest.scripts)
    shown = " ".join(NASTY.split())
    assert nasty.text.count(shown) > 10
    assert not [tag for tag, _ in nasty.tags if tag in ("img", "iframe", "object", "embed", "base", "link")]
    (data,) = (json.loads(text) for text in nasty.scripts if text.startswith('{"policies"'))
    assert data["charts"][0]["problem"] == NASTY


def test_it_asks_for_nothing_from_elsewhere():
    found = read(ROWS)
    places = [value for _, attributes in found.tags for key, value in attributes.items() if key in ("src", "href", "action", "data")]
    assert places
    assert all(place.startswith("#") for place in places)
    css = html_page.read_template("report.css").template
    assert "url(" not in css
    assert "@import" not in css
    (policy,) = (attributes["content"] for tag, attributes in found.tags if attributes.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")


def test_names_that_a_file_system_lets_pass_but_utf8_does_not(tmp_path):
    rows = [row | {"label": "odd \udcff name"} for row in ROWS[:2]]
    assert "odd ? name" in html_report.write_report(rows, tmp_path / "r.html").read_text(encoding="utf-8")


# --- writing --------------------------------------------------------------------------------------------------------------------------


def test_it_is_one_file_with_plotly_inside(tmp_path, monkeypatch, small):
    monkeypatch.setattr(html_report, "_plotly", small)
    path = html_report.write_report(ROWS, str(tmp_path / "report.html"))
    assert path == tmp_path / "report.html"
    assert os.listdir(tmp_path) == ["report.html"]
    text = path.read_text(encoding="utf-8")
    assert text.count("plotly.js v") >= 1
    assert len(text) > 3_000_000
    assert re.search(r"<dd>\d{4}-\d\d-\d\d</dd>", text)


def test_the_same_rows_give_the_same_page(tmp_path):
    pages = [html_report.write_report(comparison_rows.grid(), tmp_path / f"{i}.html", date="2026-01-31").read_bytes() for i in range(2)]
    assert pages[0] == pages[1]


def test_the_old_page_stays_where_writing_fails(tmp_path, monkeypatch):
    path = html_report.write_report(ROWS, tmp_path / "report.html")
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(bridle.InputError, match="No space left on device"):
        html_report.write_report(ROWS[:4], path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["report.html"]


def test_where_it_cannot_be_written_it_says_so(tmp_path):
    with pytest.raises(bridle.InputError, match=r"cannot write .*nowhere.*: No such file or directory"):
        html_report.write_report(ROWS, tmp_path / "nowhere" / "report.html")


def test_no_rows_are_refused(tmp_path):
    with pytest.raises(bridle.InputError, match="rows must hold at least one game"):
        html_report.write_report([], tmp_path / "report.html")
    assert os.listdir(tmp_path) == []


def test_without_plotly_it_names_the_extra(tmp_path, monkeypatch, small):
    monkeypatch.setattr(html_report, "_plotly", small)
    monkeypatch.setitem(sys.modules, "plotly", None)
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(bridle.InputError, match=re.escape("needs the package plotly: pip install 'bridle-oco[report]'")):
        html_report.write_report(ROWS, tmp_path / "report.html")
    assert os.listdir(tmp_path) == []
