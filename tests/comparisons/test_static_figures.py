"""Static figures: one file for each, the same every time, whatever the labels hold."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ElementTree

import matplotlib.image
import pytest

import bridle
from bridle.comparisons import charts, plots
from bridle.showing import figures
from helpers import comparison_rows

ROWS = [row for row in comparison_rows.grid() if row["problem"] == "halfspaces"]
NASTY = "_<&>\"' $x^2_ ../../etc \\frac ü≤😀"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return plots.write_figures(ROWS, tmp_path_factory.mktemp("figures") / "new" / "folder")


@pytest.mark.slow
def test_there_is_a_file_of_each_kind_for_each_figure(written):
    names = [f"halfspaces-T{T}-{kind}" for T in (100, 300) for kind in ("curves", "tradeoff", "pace")] + ["halfspaces-growth"]
    assert [path.name for path in written] == [f"{name}.{kind}" for name in names for kind in ("png", "svg")]
    assert sorted(path.name for path in written[0].parent.iterdir()) == sorted(path.name for path in written)


@pytest.mark.slow
def test_they_are_pictures(written):
    for path in written:
        if path.suffix == ".png":
            pixels = matplotlib.image.imread(path)
            assert pixels.shape[0] > 300
            assert pixels.shape[1] > 900
            assert pixels.std() > 0.02
        else:
            assert ElementTree.parse(path).getroot().tag == "{http://www.w3.org/2000/svg}svg"


def test_they_are_the_same_every_time(written, tmp_path):
    """Also after others were drawn, and in another folder."""
    again = plots.write_figures([row for row in ROWS if row["horizon"] == 300], tmp_path)
    same = {path.name: path for path in written}
    assert len(again) == 6
    for path in again:
        assert path.read_bytes() == same[path.name].read_bytes()


def test_the_curves_are_those_of_the_charts():
    """What matplotlib was given: medians, bounds, the fitted line, and axes with titles and units."""
    parts = charts.all_charts(ROWS)[:2]
    sheet = figures.sheet(parts)
    assert [panel.get_title(loc="left") for panel in sheet.axes] == ["Regret against t", "CCV against t"]
    assert [panel.get_ylabel() for panel in sheet.axes] == ["regret (units of total cost)", "CCV (units of total violation)"]
    assert [panel.get_xlabel() for panel in sheet.axes] == ["round t"] * 2
    for panel, chart in zip(sheet.axes, parts, strict=True):
        drawn = [(list(line.get_xdata()), list(line.get_ydata())) for line in panel.get_lines()]
        assert panel.get_yscale() == chart.y.scale
        for line in chart.marks:
            assert (line.x, line.y) in drawn
            assert None in line.bound or (line.x, line.bound) in drawn
            assert line.law is None or any(y[-1] == pytest.approx(line.law.at(line.law.last)) for _, y in drawn)
    (legend,) = sheet.legends
    texts = [text.get_text() for text in legend.get_texts()]
    for line in parts[1].marks:
        (text,) = (text for text in texts if re.match(rf"{re.escape(line.label)}(:|$)", text))
        assert line.law is None or f"CCV t^{line.law.exponent:.2f}" in text
    assert "what the theorem allows" in texts


@pytest.mark.slow
def test_labels_are_shown_as_they_are_and_file_names_are_safe(tmp_path):
    rows = [
        row | {"problem": NASTY, "problem_label": NASTY, "label": NASTY} for row in ROWS if row["label"] == "ogd" and row["horizon"] == 100
    ]
    rows += [row | {"problem_label": NASTY + "!"} for row in rows]
    paths = plots.write_figures(rows, tmp_path)
    assert len(set(paths)) == len(paths) == 12
    assert {path.parent for path in paths} == {tmp_path}
    assert all(re.fullmatch(r"[a-zA-Z0-9=._-]+", path.name) for path in paths)
    sheet = figures.sheet(charts.all_charts(rows)[:2])
    assert sheet.legends[0].get_texts()[0].get_text().startswith(NASTY[:33])


def test_a_figure_without_numbers_says_so():
    rows = [row | {"regret": None, "curve_regret": None} for row in ROWS if row["horizon"] == 100]
    sheet = figures.sheet(charts.all_charts(rows)[:2])
    assert "There is no regret to draw here." in sheet.axes[0].texts[0].get_text()


@pytest.mark.slow
def test_policies_that_never_violate_make_figures(tmp_path):
    rows = [row | {"ccv": 1e-14, "curve_ccv": [1e-16] * len(row["curve_rounds"])} for row in ROWS if row["label"] == "guo2022"]
    rows = [row | {"ccv_bound": None, "curve_ccv_bound": None} for row in rows]
    assert len(plots.write_figures(rows, tmp_path)) == 14


def test_no_rows_and_no_folder_are_refused(tmp_path):
    with pytest.raises(bridle.InputError, match="rows must hold at least one game"):
        plots.write_figures([], tmp_path / "none")
    assert not (tmp_path / "none").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(bridle.InputError, match=r"cannot write to folder .*file: File exists"):
        plots.write_figures(ROWS, tmp_path / "file")


def test_without_matplotlib_it_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(bridle.InputError, match=re.escape("need the package matplotlib: pip install 'bridle-oco[report]'")):
        plots.write_figures(ROWS, tmp_path)
