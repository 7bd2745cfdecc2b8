"""A trace as a figure: what is drawn is what was measured, beside what was proved."""

from __future__ import annotations

import numpy as np
import pytest

import bridle
from bridle.game.play import unplayed
from bridle.game.summary import bound_curves

SOURCE = bridle.problem("fixed", horizon=80, dim=2)
TRACE = bridle.play(bridle.policy_for("anytime", SOURCE), SOURCE)


def drawn(panel):
    """The line with markers, and the dashed one without."""
    line = next(each for each in panel.lines if each.get_marker() == "o")
    bound = next(each for each in panel.lines if each.get_marker() == "None" and each.get_alpha() == 0.75)
    return line, bound


def test_regret_and_ccv_are_drawn_with_their_bounds():
    regret, ccv = TRACE.plot().axes
    line, bound = drawn(regret)
    np.testing.assert_array_equal(line.get_xdata(), TRACE.curve.rounds)
    np.testing.assert_allclose(line.get_ydata(), bridle.regret_curve(TRACE)[1])
    expected = bound_curves(TRACE, bridle.regret_curve(TRACE)[1])
    np.testing.assert_allclose(bound.get_ydata().astype(float), np.array(expected[0], dtype=float))
    line, bound = drawn(ccv)
    np.testing.assert_allclose(line.get_ydata(), bridle.ccv_curve(TRACE)[1])
    np.testing.assert_allclose(bound.get_ydata().astype(float), np.array(expected[1], dtype=float))
    assert [panel.get_xlabel() for panel in (regret, ccv)] == ["round t"] * 2
    assert [panel.get_ylabel() for panel in (regret, ccv)] == ["regret (units of total cost)", "CCV (units of total violation)"]
    assert TRACE.plot().get_suptitle() == "anytime on fixed, T = 80"


def test_a_few_runs_have_a_line_each_and_many_a_band():
    few = bridle.play(bridle.policy_for("sinha2024", SOURCE, V=[0.1, 1.0]), SOURCE)
    texts = [text.get_text() for text in few.plot("ccv").legends[0].get_texts()]
    assert texts == ["V=0.1", "V=1.0"]
    wide = bridle.play(bridle.policy_for("sinha2024", SOURCE, V=np.geomspace(0.1, 10.0, 8).tolist()), SOURCE)
    panel = wide.plot("ccv").axes[0]
    line = next(each for each in panel.lines if each.get_marker() == "o")
    np.testing.assert_allclose(line.get_ydata(), np.median(bridle.ccv_curve(wide)[1], axis=1))
    assert len(panel.collections) == 1  # the band


def test_no_feasible_action_is_said_where_regret_would_be():
    source = bridle.problem("contradiction", horizon=60)
    trace = bridle.play(bridle.policy("anytime", source.domain), source)
    with pytest.raises(bridle.NoComparator):
        bridle.regret(trace)
    regret, ccv = trace.plot().axes
    assert regret.texts[0].get_text().startswith("There is no regret to draw: ")
    assert ccv.lines
    assert "There is no regret to draw" in trace._repr_html_()


def test_bad_input_is_one_error():
    with pytest.raises(bridle.InputError, match="what must be one or both of regret, ccv, not 'cost'"):
        TRACE.plot("cost")
    with pytest.raises(bridle.InputError, match="ax must be 2 axes of matplotlib, for Regret against t, CCV against t"):
        TRACE.plot(ax=TRACE.plot().axes[:1])
    with pytest.raises(bridle.InputError, match="trace must be of a game that was played"):
        unplayed(SOURCE).plot()
