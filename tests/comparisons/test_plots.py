"""Figures of a comparison: what is drawn, with which fonts, and nothing else changed."""

from __future__ import annotations

import json
import re
import sys
import zlib

import matplotlib
import matplotlib.figure
import numpy as np
import pytest

import bridle
from bridle.comparisons import Comparison, plots
from bridle.showing import figures
from helpers import comparison_rows

ROWS = Comparison(comparison_rows.grid())
PLACES = list(dict.fromkeys(row["problem_label"] for row in ROWS))


def swept() -> Comparison:
    """Two policies with a parameter, and one without; two seeds each."""
    rows = []
    for value in (0.1, 1.0, 10.0):
        for seed in (0, 1):
            for policy, settings in (("sinha2024", {"V": value}), ("ogd", {})):
                ccv = 10.0 * value + seed if settings else 7.0
                facts = {"regret": 100.0 / value, "ccv": ccv, "regret_bound": 1000.0, "ccv_bound": 2000.0 * value, "seed": seed}
                label = " ".join([policy, *(f"{key}={each}" for key, each in settings.items())])
                rows.append(ROWS[0] | facts | {"policy": policy, "label": label, "settings": json.dumps(settings), "horizon": 100})
    return Comparison([{**row, "problem": "fixed", "problem_label": "fixed", "problem_settings": "{}"} for row in rows])


def test_a_figure_has_two_panels_for_each_problem():
    figure = ROWS.plot()
    assert isinstance(figure, matplotlib.figure.Figure)
    assert [panel.get_ylabel().split()[0] for panel in figure.axes] == ["regret", "CCV"] * len(PLACES)
    alone = ROWS.plot("ccv", problem=PLACES[0])
    assert [panel.get_title(loc="left") for panel in alone.axes] == ["CCV against t"]
    growth = ROWS.plot(problem=PLACES[0], against="horizon")
    assert [panel.get_xlabel() for panel in growth.axes] == ["horizon T (rounds)"] * 2


def test_what_is_drawn_is_what_was_measured():
    own = [row for row in ROWS if row["problem_label"] == "halfspaces" and row["horizon"] == 300 and row["label"] == "ogd"]
    panel = Comparison(own).plot("ccv").axes[0]
    lines = {line.get_marker(): line for line in panel.lines}
    drawn = lines["o"]
    assert drawn.get_xdata().tolist() == own[0]["curve_rounds"]
    np.testing.assert_allclose(drawn.get_ydata(), np.median([row["curve_ccv"] for row in own], axis=0))


def test_a_sweep_is_drawn_against_its_parameter():
    panels = swept().plot_sweep("V").axes
    assert [panel.get_xlabel() for panel in panels] == ["V", "V"]
    assert panels[0].get_xscale() == "log"
    lines = {line.get_marker(): line for line in panels[1].lines if line.get_marker() in "os"}
    assert lines["o"].get_xdata().tolist() == [0.1, 1.0, 10.0]
    assert lines["o"].get_ydata().tolist() == pytest.approx([1.5, 10.5, 100.5])
    assert lines["s"].get_ydata().tolist() == [7.0] * 3, "a policy without the parameter is a level line"
    bounds = [line.get_ydata().tolist() for line in panels[1].lines if line.get_linestyle() == "--" and line.get_marker() == "None"]
    assert [200.0, 2000.0, 20000.0] in bounds


def test_a_parameter_of_the_problem_is_swept_too_its_default_included():
    rows = [
        {**row, "problem_settings": "{}" if dim == 10 else json.dumps({"dim": dim}), "ccv": float(dim), "settings": "{}", "label": "ogd"}
        for dim in (5, 10, 20) for row in swept()[:1]
    ]  # fmt: skip
    panel = Comparison(rows).plot_sweep("dim", "ccv").axes[0]
    assert panel.lines[1].get_xdata().tolist() == panel.lines[1].get_ydata().tolist() == [5.0, 10.0, 20.0]


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: ROWS.plot("cost"), "what must be one or both of regret, ccv, not 'cost'"),
        (lambda: ROWS.plot([]), "what must be one or both of regret, ccv"),
        (lambda: ROWS.plot(problem="nowhere"), "problem must be one of .* not 'nowhere'"),
        (lambda: ROWS.plot(horizon=7), "horizon must be one of .* not 7"),
        (lambda: ROWS.plot(against="time"), "unknown against 'time'; known: horizon, round"),
        (lambda: swept().plot(against="horizon"), "against='horizon' needs games of several horizons"),
        (lambda: ROWS.plot(width="wall"), "width must be one of column, page, not 'wall'"),
        (lambda: ROWS.plot(ax=3), "ax must be .* axes of matplotlib"),
        (lambda: swept().plot_sweep("W"), r"parameter must be one that was swept \(V\), not 'W'"),
        (lambda: Comparison([]).plot(), "there are no games to draw"),
    ],
)
def test_what_cannot_be_drawn_is_one_error(draw, message):
    with pytest.raises(bridle.InputError, match=message):
        draw()


def test_a_parameter_that_is_no_number_is_no_axis():
    rows = Comparison([{**row, "settings": json.dumps({"preset": "tight"})} for row in swept()])
    with pytest.raises(bridle.InputError, match="parameter must have numbers as values to be an axis; preset is 'tight' in a game"):
        rows.plot_sweep("preset")


def test_axes_of_ones_own_are_drawn_on_and_nothing_else_changes():
    settings = dict(matplotlib.rcParams)
    figure = matplotlib.figure.Figure()
    panels = figure.subplots(1, 2)
    assert swept().plot_sweep("V", ax=panels) is figure
    assert all(panel.lines and panel.get_legend() for panel in panels)
    assert dict(matplotlib.rcParams) == settings
    assert "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()


def fonts_of(pdf: bytes) -> set[str]:
    """The kinds of fonts in a PDF, also in its compressed streams."""
    streams = re.findall(rb"stream\r?\n(.*?)endstream", pdf, flags=re.S)
    plain = [pdf]
    for stream in streams:
        try:
            plain.append(zlib.decompress(stream.strip(b"\r\n")))
        except zlib.error:
            continue
    return {kind.decode() for part in plain for kind in re.findall(rb"/Subtype\s*/(Type0|Type1|Type3|TrueType|CIDFontType\d)", part)}


def test_the_test_for_fonts_can_fail(tmp_path):
    plain = matplotlib.figure.Figure()
    plain.text(0.5, 0.5, "x")
    with matplotlib.rc_context({"pdf.fonttype": 3}):
        plain.savefig(tmp_path / "x.pdf")
    assert "Type3" in fonts_of((tmp_path / "x.pdf").read_bytes())


@pytest.mark.slow
@pytest.mark.parametrize("width", [None, "column", "page"])
def test_a_pdf_has_fonts_that_journals_take(tmp_path, width):
    figure = swept().plot_sweep("V", "ccv", width=width)
    figure.savefig(tmp_path / "own.pdf")
    assert fonts_of((tmp_path / "own.pdf").read_bytes()) == {"Type0", "CIDFontType2"}
    if width is not None:
        assert figure.get_figwidth() == figures.WIDTHS[width]


@pytest.mark.slow
def test_all_figures_as_pdf_have_such_fonts_and_are_the_same_every_time(tmp_path):
    rows = Comparison([row for row in swept() if row["policy"] == "ogd"])
    first, second = (plots.write_figures(rows, tmp_path / name, ("pdf",)) for name in "ab")
    assert [path.name for path in first] == [f"fixed-T100-{kind}.pdf" for kind in ("curves", "tradeoff", "pace")]
    assert all(fonts_of(path.read_bytes()) == {"Type0", "CIDFontType2"} for path in first)
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_a_figure_shows_itself_in_a_notebook_without_pyplot():
    html = swept().plot_sweep("V")._repr_html_()
    assert html.startswith('<img alt="fixed, T = 100: Final regret against V, Final CCV against V"')
    assert "data:image/png;base64,iVBOR" in html


def test_lines_on_each_other_are_all_seen():
    """Markers take turns along long lines; on short ones those below are larger."""
    same = Comparison([row for row in swept() if row["policy"] == "ogd"])
    twice = Comparison([*same, *({**row, "label": "ogd again"} for row in same)])
    sizes = [line.get_markersize() for line in twice.plot("ccv").axes[0].lines if line.get_marker() in ("o", "s")]
    assert (
        len(set(sizes)) == 2
        or len({line.get_markevery() for line in twice.plot("ccv").axes[0].lines if line.get_marker() in ("o", "s")}) == 2
    )


def test_matplotlib_is_asked_for_by_name(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(bridle.InputError, match="figures need the package matplotlib: pip install"):
        ROWS.plot()


def test_a_setting_is_the_games_own(tmp_path):
    assert plots.setting_of(swept()[0], "V") == 0.1
    assert plots.setting_of(swept()[1], "V") is None
