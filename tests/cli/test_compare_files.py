"""`bridle compare --figures --pdf --width --latex`: which files there are, and what is refused before anything is played."""

from __future__ import annotations

import re

import pytest

import bridle

GAME = ["compare", "fixed", "--policies", "ogd", "--horizons", 20, "--seeds", 1, "--jobs", 1, "--out", "here"]
KINDS = ["fixed-T20-curves", "fixed-T20-pace", "fixed-T20-tradeoff"]


@pytest.mark.slow
def test_the_table_and_the_figures_are_written_and_named(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, err = run(*GAME, "--pdf", "--width", "column", "--latex", "table.tex")
    assert (status, err) == (0, "")
    assert "figures: 3 files in here/figures\ntable: table.tex\nreport: here/report.html\n" in out
    assert sorted(path.name for path in (tmp_path / "here" / "figures").iterdir()) == [f"{kind}.pdf" for kind in KINDS]
    for path in (tmp_path / "here" / "figures").iterdir():
        data = path.read_bytes()
        assert data.startswith(b"%PDF")
        assert b"/Type3" not in data
        width = float(re.search(rb"/MediaBox \[ 0 0 ([\d.]+)", data).group(1))
        assert width == pytest.approx(72 * 3.35, abs=1.0)
    assert (tmp_path / "table.tex").read_text() == bridle.Comparison.load("here").to_latex()


@pytest.mark.slow
def test_pictures_and_pdf_can_be_asked_for_together(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(*GAME, "--figures", "--pdf")[0] == 0
    names = sorted(path.name for path in (tmp_path / "here" / "figures").iterdir())
    assert names == sorted(f"{kind}.{suffix}" for kind in KINDS for suffix in ("pdf", "png", "svg"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--width", "page"], "--width is for figures: give --figures or --pdf too"),
        (["--pdf", "--width", "wall"], "unknown --width 'wall'; known: column, page"),
        (["--latex", " "], "--latex must name a file, not an empty text"),
    ],
)
def test_what_makes_no_sense_is_one_line_and_plays_nothing(run, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    status, out, err = run(*GAME, *options)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert message in err
    assert list(tmp_path.iterdir()) == []


def test_a_table_that_cannot_be_written_is_one_line(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, _, err = run(*GAME, "--latex", "nowhere/table.tex")
    assert (status, err.count("\n")) == (2, 1)
    assert "nowhere/table.tex" in err
