"""The report page as text: what it says, that nothing in the rows can break it, and that it is written whole or not at all."""

from __future__ import annotations

import os
import re
from html.parser import HTMLParser

import pytest

import bridle
from bridle.comparisons import analysis, charts, html_page, html_report
from bridle.comparisons.rows import grouped, horizon_of, label_engines, problem_of
from bridle.showing import marks as kinds
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
        lines = table[1:]
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
        assert bridle.problems.problem_facts(name).summary in text
    unknown = [row | {"problem": "mine.py", "problem_label": "mine.py"} for row in ROWS]
    assert "Here: d = 10, 1 constraint a round." in read(unknown).text


def test_the_first_is_named_and_ties_are_told():
    rows = [row for row in ROWS if row["problem"] == "fixed"]
    best = next(row["label"] for row in analysis.ranking(rows) if row["horizon"] == 300)
    assert f"At T = 300 {best} ranks first: median regret" in read(rows).text
    below = [row | {"regret": -5.0, "ccv": 1.0, "cost": 3.0} for row in rows if row["policy"] == "ogd"]
    two = [*below, *(row | {"policy": "other", "label": "other", "ccv": 9.0} for row in below)]
    assert "At T = 300 ogd ranks first: median regret −5.000 (below zero, which counts as zero), CCV 1.000." in read(two).text  # noqa: RUF001
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
    assert analysis.BY_COST in text
    assert "The score is the larger of total cost above the lowest and CCV" in text
    assert analysis.BY_COST not in read(ROWS).text
    assert "the front of cost against CCV:" in text
    moving = read([row | {"dynamic_regret": None if row["does_not_apply"] else -1.0 - row["ccv"]} for row in rows]).text
    assert analysis.BY_PATH in moving
    assert "The score is the larger of dynamic regret and CCV" in moving
    assert re.search(r"first: median dynamic regret .[\d.]+ \(below zero, which counts as zero\), CCV", moving)
    assert "the front of regret against CCV:" in read(ROWS).text


# --- what it is made of ---------------------------------------------------------------------------------------------------------------


def test_the_marks_are_those_of_the_charts():
    """To the six digits that a reader is shown; where they are drawn is looked at in a browser."""
    tags = read(ROWS).tags
    lines = [attributes for tag, attributes in tags if tag == "g" and "data-y" in attributes]
    points = [attributes for _, attributes in tags if "data-rank" in attributes]
    bars = [attributes for _, attributes in tags if "data-value" in attributes]
    figures = charts.all_charts(ROWS)
    expected = [mark for chart in figures for mark in chart.marks]
    for kind, found in ((kinds.Line, lines), (kinds.Point, points), (kinds.Bar, bars)):
        marks = [mark for mark in expected if isinstance(mark, kind)]
        if kind is kinds.Point:
            marks = [mark for chart in figures if chart.kind == "tradeoff" for mark in reversed(chart.marks)]
        assert [int(one["data-policy"]) for one in found] == [mark.policy for mark in marks]
        for one, mark in zip(found, marks, strict=True):
            if kind is kinds.Line:
                values = [float(text) if text else None for text in one["data-y"].split(",")]
                assert values == pytest.approx(mark.y, rel=1e-5, abs=1e-300)
                assert one["data-label"] == mark.label
            else:
                given = one["data-values"] if kind is kinds.Point else one["data-value"]
                assert [float(text) for text in given.split(",")] == ([mark.x, mark.y] if kind is kinds.Point else [mark.value])


def test_every_axis_has_ticks_with_texts():
    """Also where all values are alike, tiny, or none at all."""
    one = [row for row in ROWS if row["problem"] == "fixed" and row["horizon"] == 100 and row["seed"] == 0 and not row["does_not_apply"]]
    fields = [ROWS, one[:1]]
    for value in (0.0, 1e-12, 3.0, -7.0, 1e9):
        fields.append([row | {"ccv": abs(value), "regret": value, "curve_regret": [value] * len(row["curve_rounds"]),
                              "curve_ccv": [abs(value)] * len(row["curve_rounds"]), "curve_regret_bound": None, "curve_ccv_bound": None}
                       for row in one])  # fmt: skip
    for rows in fields:
        page = html_report.render_report(rows, None, None, "")
        areas = page.split('<div class="area"')[1:]
        assert areas
        for area in areas:
            picture = area[: area.index("</svg></div>")]
            for which in ("xtick", "ytick"):
                texts = re.findall(rf'<text class="{which}"[^>]*>([^<]*)</text>', picture)
                assert len(texts) >= 2, (which, picture[:400])
                assert all(texts)
                assert len(set(texts)) == len(texts)


def test_formulas_are_set_and_nothing_of_how_they_are_typed_is_seen():
    rows = [
        row | {"problem": name, "problem_label": name} for row in ROWS[:2] for name in ("halfspaces", "pricing", "recommendation", "game")
    ]
    found = read(rows)
    assert "`" not in found.text
    assert "^" not in found.text.replace(" ^", "")
    assert ("sup", {}) in found.tags
    assert ("code", {}) in found.tags


def test_nothing_in_the_rows_can_break_the_page():
    honest = read(ROWS)
    text_keys = ("problem", "problem_label", "policy", "label", "does_not_apply", "bound_why", "regret_why", "engine", "bridle_version")
    rows = [row | {key: NASTY for key in text_keys if row.get(key)} | {"warnings": [NASTY]} for row in ROWS[:8]]
    nasty = read(rows, title=NASTY, command=NASTY, date=NASTY)
    assert len(nasty.scripts) == len(honest.scripts)
    shown = " ".join(NASTY.split())
    assert nasty.text.count(shown) > 10
    assert not [tag for tag, _ in nasty.tags if tag in ("img", "iframe", "object", "embed", "base", "link")]
    assert {attributes["data-label"] for _, attributes in nasty.tags if "data-label" in attributes} == {NASTY}


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


def test_it_is_one_small_file(tmp_path):
    path = html_report.write_report(ROWS, str(tmp_path / "report.html"))
    assert path == tmp_path / "report.html"
    assert os.listdir(tmp_path) == ["report.html"]
    text = path.read_text(encoding="utf-8")
    assert len(text) < 400_000  # 7 policies, 2 problems, 2 horizons
    assert re.search(r"<dd>\d{4}-\d\d-\d\d</dd>", text)


def test_the_demonstration_stays_under_a_megabyte(tmp_path):
    """4 problems, 4 horizons, 7 policies with all of their curves: what `make demo` and the documentation show."""
    rows = [
        row | {"problem": problem, "problem_label": problem, "horizon": 300 * 2**step}
        for row in ROWS if row["problem"] == "halfspaces" and row["horizon"] == 300
        for problem in ("halfspaces", "minimax", "late-constraint", "violation-seeking") for step in range(4)
    ]  # fmt: skip
    assert html_report.write_report(rows, tmp_path / "report.html").stat().st_size < 1_000_000


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
