"""Small charts and cards: whole, safe, readable without a script."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

import bridle
from bridle.showing import cards, svg
from bridle.showing.marks import Axis, Chart, line
from bridle.showing.scales import reaching
from bridle.showing.tables import TextTable

SVG = "{http://www.w3.org/2000/svg}"
EVIL = '<script>alert("x")</script> & \'"'


def chart(values, bound=None, scale="log", label="anytime"):
    x = list(range(1, len(values) + 1))
    return Chart("ccv", "p", len(x), "CCV against t", Axis("round t"), Axis("CCV", scale, 0.1), [line(0, label, x, values, bound=bound)])


def drawn(chart):
    """The stretched paths of a chart on a card, each as its pieces of points."""
    tree = ElementTree.fromstring(svg.card_chart(chart))
    (area,) = (each for each in tree.iter(f"{SVG}svg") if each.attrib.get("preserveAspectRatio") == "none")
    paths = [re.findall(r"M([^M]*)", path.attrib["d"].replace("h0", "")) for path in area.iter(f"{SVG}path")]
    return [[[tuple(map(float, point)) for point in re.findall(r"([\d.-]+) ([\d.-]+)", piece)] for piece in path] for path in paths]


@pytest.mark.parametrize("scale", ["log", "linear", "symlog"])
def test_higher_values_are_drawn_higher_and_inside(scale):
    (bound,), (line,) = drawn(chart([0.5, 2.0, 8.0, 30.0], [1.0, 4.0, 16.0, 64.0], scale))
    heights = [y for _, y in line]
    assert heights == sorted(heights, reverse=True)
    assert [x for x, _ in line] == sorted(x for x, _ in line)
    assert all(above < below for (_, above), (_, below) in zip(bound, line, strict=True))
    assert all(0 <= x <= 1000 and 0 <= y <= 1000 for x, y in line + bound)


def test_a_logarithmic_axis_is_one():
    scale = reaching([1.0, 10000.0], "log")
    places = [scale.at(10.0**k) for k in range(5)]
    assert np.allclose(np.diff(places), places[1] - places[0])
    assert 0.0 < places[0] < 0.0625 < 0.9375 < places[-1] < 1.0
    ticks = scale.ticks(4)
    assert [tick.text for tick in ticks] == ["1", "100", "10,000"]
    assert [tick.at for tick in ticks] == pytest.approx(places[::2])


def test_a_line_is_broken_where_nothing_is_known_and_a_lone_value_is_a_dot():
    broken = chart([1.0, 2.0, None, 3.0, 4.0, None, 9.0])
    ((first, second, lone),) = drawn(broken)
    assert [len(piece) for piece in (first, second, lone)] == [2, 2, 1]
    assert len(re.findall("h0", svg.card_chart(broken))) == 1


def test_it_says_in_words_what_it_shows():
    tree = ElementTree.fromstring(svg.card_chart(chart([1.0, 2.0], [5.0, 6.0])))
    assert tree.attrib["role"] == "img"
    assert tree.find(f"{SVG}title").text == "CCV against t: p"
    assert tree.find(f"{SVG}desc").text == "anytime ends at 2, of at most 6"


def test_on_a_card_nothing_waits_for_a_style_sheet():
    whole = svg.card_chart(chart([1.0, 2.0], [5.0, 6.0])) + svg.without_style_sheet(svg.swatch(9))
    assert not re.search(r"class=|var\(|<use|data-", whole)
    assert "CCV</text>" in whole


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return np.dot([0.2126, 0.7152, 0.0722], [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts])


@pytest.mark.parametrize("ground", ["#ffffff", "#1e1e1e"])
def test_lines_can_be_seen_on_light_and_on_dark(ground):
    for colour in svg.COLOURS:
        low, high = sorted((luminance(colour), luminance(ground)))
        assert (high + 0.05) / (low + 0.05) >= 3.0, (colour, ground)


def test_names_are_escaped_and_nothing_is_loaded():
    names = ["a", EVIL]
    session = bridle.Session(bridle.policy("anytime", bridle.Ball(2)), names=names)
    session.observe(f=0.5, df=[1.0, 0.0], g=[0.25, 0.1], dg=np.eye(2))
    problem = bridle.Problem(bridle.Ball(2), bridle.problem("fixed", horizon=9).adversary, name=EVIL)
    drawn = cards.card(EVIL, {EVIL: EVIL}, [chart([1.0, 2.0], label=EVIL)], [EVIL], TextTable([EVIL], [[EVIL]]))
    for html in (session._repr_html_(), problem._repr_html_(), drawn):
        assert "<script" not in html
        assert "&lt;script&gt;" in html
        assert not re.search(r"(src|href)=", html)
        ElementTree.fromstring(html)


def everything():
    source = bridle.problem("halfspaces", horizon=60, dim=3)
    trace = bridle.play(bridle.policy_for("anytime", source), source)
    log: list[object] = []
    session = bridle.Session(bridle.policy("anytime", bridle.Ball(2)), history=log.append)
    for _ in range(20):
        session.observe(f=0.5, df=[1.0, 0.0], g=0.25, dg=[0.0, 1.0])
    return {
        "policy": bridle.policy_for("sinha2024", source),
        "problem": source,
        "trace": trace,
        "session": session,
        "certificate": session.certificate(),
    }


@pytest.mark.parametrize(("name", "charts"), [("policy", 2), ("problem", 2), ("trace", 2), ("session", 1), ("certificate", 1)])
def test_every_card_is_whole_and_has_its_charts(name, charts):
    tree = ElementTree.fromstring(everything()[name]._repr_html_())
    assert len([each for each in tree.iter(f"{SVG}svg") if each.attrib.get("role") == "img"]) == charts
    assert all(each.find(f"{SVG}title").text for each in tree.iter(f"{SVG}svg") if "role" in each.attrib)


def test_a_card_of_a_long_game_does_not_search_for_the_best_action(monkeypatch):
    source = bridle.problem("halfspaces", horizon=40, dim=2)
    trace = bridle.play(bridle.policy_for("anytime", source), source)
    from bridle.game import pictures

    monkeypatch.setattr(pictures, "QUICK_ROUNDS", 39)
    monkeypatch.setattr(pictures.metrics, "regret_curve", lambda trace: pytest.fail("searched"))
    html = trace._repr_html_()
    assert "CCV against t" in html
    assert "bridle.regret(trace)" in html
