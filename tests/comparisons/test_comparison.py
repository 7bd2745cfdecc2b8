"""The result of a comparison: a list as before, and what it makes of itself."""

from __future__ import annotations

import inspect
import json
import pickle
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

import bridle
import bridle.comparisons.analysis
from bridle.comparisons import Comparison, compare, comparison, frames, tables
from bridle.showing.tables import escape_latex
from helpers import comparison_rows

ROWS = Comparison(comparison_rows.grid())


def test_compare_is_a_plain_function(tmp_path, monkeypatch):
    """Also once its module has been imported: the two do not share a name."""
    monkeypatch.chdir(tmp_path)
    result = bridle.compare("fixed", ["anytime", "ogd"], horizons=40, seeds=2)
    again = compare(["fixed"], ["anytime", "ogd"], horizons=[40], seeds=2)
    measured = ("label", "seed", "horizon", "cost", "regret", "ccv")
    assert [[row[name] for name in measured] for row in result] == [[row[name] for name in measured] for row in again]
    assert bridle.comparisons.analysis.ranking(result) == result.ranking()
    assert isinstance(result, bridle.Comparison)
    assert inspect.isfunction(bridle.compare)
    assert bridle.compare is compare
    assert pickle.loads(pickle.dumps(bridle.compare)) is bridle.compare
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def test_it_is_the_list_that_it_was(tmp_path):
    assert json.loads(json.dumps(ROWS)) == list(ROWS) == ROWS.rows
    assert ROWS[0]["policy"] == "sinha2024"
    assert len(list(iter(ROWS))) == len(ROWS)


def test_rows_that_say_little_are_still_shown():
    games = [{"problem": "p", "policy": name, "horizon": 9, "cost": 0.0, "regret": None, "ccv": v} for name, v in (("a", 2.0), ("b", 1.0))]
    shown = Comparison(games)
    assert repr(shown).startswith("Comparison: 2 games of 1 problem")
    assert bridle.comparisons.analysis.BY_COST in shown._repr_html_()
    assert f"p, T = 9: {bridle.comparisons.analysis.BY_COST}" in tables.ranking_notes(shown.ranking(), ROWS.rows)


def test_a_folder_keeps_the_games_and_gives_them_back(tmp_path):
    result = bridle.compare("fixed", "ogd", 30, 2, tmp_path / "kept")
    assert (tmp_path / "kept" / "store").is_dir()
    assert Comparison.load(tmp_path / "kept") == result
    assert Comparison.load(result.save(tmp_path / "alone.parquet")) == result


@pytest.mark.parametrize("content", [b"", b"no parquet", None])
def test_what_is_no_comparison_is_one_error(tmp_path, content):
    path = tmp_path / "x.parquet"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(bridle.InputError, match=f"cannot read {re.escape(str(path))}"):
        Comparison.load(path)


def test_another_table_is_no_comparison(tmp_path):
    import pandas

    path = tmp_path / "x.parquet"
    pandas.DataFrame({"a": [1]}).to_parquet(path)
    with pytest.raises(bridle.InputError, match="it has no column key, so it is not a comparison of this version"):
        Comparison.load(path)


def test_objects_are_compared_by_what_they_were_made_with():
    ball = bridle.Ball(3)
    given = bridle.compare(
        bridle.problem("halfspaces", horizon=1, dim=3),
        [bridle.policy("anytime", ball), bridle.policy("sinha2024", ball, horizon=40, lipschitz=1.0, preset="practice")],
        40,
        1,
    )
    named = bridle.compare("halfspaces:dim=3", ["anytime", "sinha2024:horizon=40:lipschitz=1:preset=practice"], 40, 1)
    assert [(row["label"], row["ccv"], row["key"]) for row in given] == [(row["label"], row["ccv"], row["key"]) for row in named]


SMALL = bridle.problem("fixed", horizon=9, dim=2)


@pytest.mark.parametrize(
    ("problems", "policies", "message"),
    [
        ("fixed", bridle.policy("anytime", bridle.Ball(3)), r"policy\('anytime', Ball\(3\)\) is for another domain .* which is Ball\(10\)"),
        ("fixed", bridle.policy("anytime", bridle.Ball(2), V=[1.0, 2.0]), r"policies\[0\] stands for 2 runs: give its lists as sweep"),
        ("fixed", bridle.policy("anytime", bridle.Ball(2), rules=2), r"policies\[0\] is played through rules"),
        ("fixed", ["ogd", bridle.OGD(bridle.Ball(2), 0.1)], r"policies\[1\] must be the name of a policy or what bridle.policy gives"),
        (replace(SMALL, name="mine"), "ogd", r"problems\[0\] must be a problem that has a name"),
        ([3], "ogd", r"problems\[0\] must be the name of a problem, a file or a problem, not 3"),
        (3, "ogd", "problems must be names or a list of them, not 3"),
    ],
)
def test_what_a_comparison_cannot_write_down_is_one_error(problems, policies, message):
    with pytest.raises(bridle.InputError, match=message):
        bridle.compare(problems, policies, horizons=9, seeds=1)


def test_the_frames_hold_what_the_rows_hold():
    pandas, polars = ROWS.to_frame("pandas"), ROWS.to_frame("polars")
    assert list(pandas.columns) == polars.columns == list(ROWS[0])
    assert pandas["ccv"].tolist() == pytest.approx([row["ccv"] if row["ccv"] is not None else float("nan") for row in ROWS], nan_ok=True)
    assert polars["ccv"].to_list() == [row["ccv"] for row in ROWS]
    assert len(ROWS.to_frame(of="ranking")) == len(ROWS.ranking())


def test_a_frame_takes_what_is_installed_or_says_what_to_install(monkeypatch):
    there = {"polars"}
    monkeypatch.setattr(frames, "find_spec", lambda name: name if name in there else None)
    assert type(ROWS.to_frame()).__module__.startswith("polars")
    with pytest.raises(bridle.InputError, match="kind='pandas' needs the package pandas: pip install pandas"):
        ROWS.to_frame("pandas")
    there.clear()
    with pytest.raises(bridle.InputError, match="a frame needs pandas or polars"):
        ROWS.to_frame()
    with pytest.raises(bridle.InputError, match="unknown kind 'excel'; known: pandas, polars"):
        ROWS.to_frame("excel")
    with pytest.raises(bridle.InputError, match="of must be one of games, ranking"):
        ROWS.to_frame(of="seeds")


def cells_of(line: str) -> int:
    """How many columns a line of a tabular fills."""
    spans = [int(many) - 1 for many in re.findall(r"\\multicolumn\{(\d+)\}", line)]
    return 1 + len(re.findall(r"(?<!\\)&", line)) + sum(spans)


def test_the_table_for_latex_is_well_formed(tmp_path):
    text = ROWS.to_latex(tmp_path / "t.tex", label="tab:one")
    assert (tmp_path / "t.tex").read_text() == text
    assert text.count(r"\begin{") == text.count(r"\end{") == 2
    assert len(re.findall(r"(?<!\\)\{", text)) == len(re.findall(r"(?<!\\)\}", text))
    body = text.split(r"\toprule")[1].split(r"\bottomrule")[0]
    lines = [line for line in body.strip().splitlines() if line != r"\midrule"]
    assert all(line.endswith(r" \\") for line in lines)
    assert {cells_of(line) for line in lines} == {6}
    assert r"\label{tab:one}" in text
    assert body.count(r"\midrule") == len({(row["problem_label"], row["horizon"]) for row in ROWS.ranking()})


def row(label, regret, ccv, **more):
    return {"problem": "p_1", "policy": label, "horizon": 100, "cost": 0.0, "regret": regret, "ccv": ccv, "seed": 0, **more}


def test_the_best_is_bold_and_a_regret_below_zero_wins_nothing():
    games = Comparison([row("wise & co", 5.0, 2.0), row("shy_50%", 8.0, 0.0), row("bold", -50.0, 300.0), row("worse", -80.0, 400.0)])
    lines = {line.split(" & ")[0]: line for line in games.to_latex().splitlines() if " & " in line}
    assert r"\textbf{$-$50}" in lines["bold"]  # on the front: none has less regret, as far as that counts
    assert r"\textbf{$-$80}" not in lines["worse"]  # beaten by bold in both, so that its regret is no merit
    assert r"\textbf{0}" in lines[r"shy\_50\%"]
    assert r"p\_1, T = 100" in games.to_latex()
    assert "**0**" in next(line for line in games.to_markdown().splitlines() if "shy_50%" in line)


def test_every_special_letter_is_set_as_it_is():
    nasty = "\\{}$&#%_^~<>|"
    set_letters = escape_latex(nasty)
    assert not re.search(r"(?<!\\)[$&#%_^~<>|]", set_letters)
    assert "a\\|b" in Comparison([row("a|b", 1.0, 1.0)]).to_markdown()


def test_markdown_has_one_width():
    widths = {len(re.findall(r"(?<!\\)\|", line)) for line in ROWS.to_markdown().strip().splitlines()}
    assert widths == {9}


def test_it_shows_itself_in_a_few_lines():
    lines = repr(ROWS).splitlines()
    assert lines[0].startswith(f"Comparison: {len(ROWS)} games of ")
    assert len(lines) <= 2 + comparison.SHOWN_PLACES
    assert repr(Comparison([])) == "Comparison: no games"
    tree = ElementTree.fromstring(ROWS._repr_html_())
    assert len(list(tree.iter("tr"))) == 1 + len(ROWS.ranking())
    assert "no games" in Comparison([])._repr_html_()


def test_the_report_is_a_page(tmp_path):
    path = ROWS.report(tmp_path / "report.html", title="mine & yours")
    assert "mine &amp; yours" in Path(path).read_text()[:20000]
