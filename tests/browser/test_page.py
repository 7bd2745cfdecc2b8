"""The report page in a real browser: Chromium, from a file, as a reader opens it."""

from __future__ import annotations

import json
import re
import shutil
import time
from math import log10
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from bridle.comparisons import analysis, charts, html_report
from bridle.showing import marks, scales
from browser.chromium import bring_into_view, errors, start
from helpers import comparison_rows

NASTY = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1> \"q\" 'a' & %{x} $t$ ü≤😀 <b>bold</b>"


def nasty_rows() -> list[dict[str, Any]]:
    """Games of a policy and a problem whose names are out to break the page, beside an honest one; one seed, no bounds."""
    rows = [row for row in comparison_rows.grid() if row["problem"] == "fixed" and row["horizon"] == 100 and row["seed"] == 0]
    rows = [row for row in rows if row["policy"] in ("sinha2024", "ogd")]
    for row in rows:
        row |= {"problem": NASTY, "problem_label": NASTY, "curve_regret_bound": None, "curve_ccv_bound": None, "regret_bound": None}
    rows[-1] |= {"policy": NASTY, "label": NASTY, "warnings": [NASTY], "bound_why": NASTY, "regret_why": NASTY}
    return rows


ROWS = comparison_rows.grid() + nasty_rows()


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> str:
    path = html_report.write_report(ROWS, tmp_path_factory.mktemp("report") / "report.html", command=f"bridle compare {NASTY}")
    return path.as_uri()


@pytest.fixture(scope="module")
def desk():
    driver = start()
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def phone():
    driver = start(390, 844, touch=True)
    yield driver
    driver.quit()


@pytest.fixture
def browser(desk, address):
    """The page as a first visitor sees it."""
    fresh(desk, address)
    return desk


def until_stored(driver: Any, address: str, arrived: Any) -> None:
    """Open the page until `arrived`: what a page opened from the disk stores may reach the next one a moment too late."""

    def opened(_: Any) -> bool:
        driver.get(address)
        return bool(arrived())

    WebDriverWait(driver, 20).until(opened)


def fresh(driver: Any, address: str) -> None:
    until_stored(driver, address, lambda: not driver.execute_script("const n = localStorage.length; localStorage.clear(); return n"))


def plots(driver: Any) -> dict[int, list[dict[str, Any]]]:
    """The marks of every chart on display, by the chart's number: whose they are, whether they show, and their numbers."""
    found = driver.execute_script("""
        const numbers = (text) => (text ?? '').split(',').map((part) => (part === '' ? null : Number(part)));
        const shown = (mark) => getComputedStyle(mark).display !== 'none';
        const colour = (mark, name) => getComputedStyle(mark)[name];
        return [...document.querySelectorAll('.plot')].filter((box) => box.offsetParent).map((box) => [Number(box.id.slice(5)), [
          ...[...box.querySelectorAll('g[data-y]')].flatMap((line) => {
            const area = line.closest('.area'), own = (name) => numbers(line.dataset[name] ?? area.dataset[name]);
            return ['main', 'bound'].filter((part) => line.querySelector('.' + part)).map((part) => ({
              part, policy: Number(line.dataset.policy), visible: shown(line) && shown(line.querySelector('.' + part)),
              colour: colour(line.querySelector('.' + part), 'stroke'), x: own('x'), values: own(part === 'main' ? 'y' : 'bound'),
            }));
          }),
          ...[...box.querySelectorAll('[data-rank]')].map((mark) => ({
            part: 'main', policy: Number(mark.dataset.policy), visible: shown(mark), colour: colour(mark.querySelector('circle'), 'fill'),
            values: numbers(mark.dataset.values), rank: Number(mark.dataset.rank),
          })),
          ...[...box.querySelectorAll('.bar')].map((bar) => ({
            part: 'main', policy: Number(bar.dataset.policy), visible: shown(bar), values: numbers(bar.dataset.value),
            colour: colour(bar.querySelector('i'), 'backgroundColor'),
          })),
        ]]);
    """)
    return dict(found)


def on_display(problem: str, figures: list[marks.Chart]) -> dict[int, marks.Chart]:
    """The charts of a problem that are open: those of its longest horizon, and those against the horizon."""
    longest = max(chart.horizon for chart in figures if chart.problem == problem and chart.horizon)
    return {i: chart for i, chart in enumerate(figures) if chart.problem == problem and chart.horizon in (None, longest)}


def drawn_marks(driver: Any) -> dict[str, int]:
    """How many lines, bars and circles each chart's picture really shows: those that take room."""
    return driver.execute_script("""
        const there = (mark) => mark.getBoundingClientRect().width > 0;
        const boxes = [...document.querySelectorAll('.plot')].filter((box) => box.offsetParent && box.children.length);
        return Object.fromEntries(boxes.map((box) => [
          box.id, [...box.querySelectorAll('.stretch .main, [data-rank] circle, .bar i')].filter(there).length]));
    """)


# --- loading --------------------------------------------------------------------------------------------------------------------------


def test_it_loads_from_a_file_without_an_error_or_a_request(browser, address):
    browser.get_log("performance")
    browser.get_log("browser")
    browser.get(address)
    assert errors(browser) == []
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    assert address in asked
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    assert len([url for url in asked if url.startswith("file:")]) == 1


def test_it_opens_at_once(desk, address):
    """Under a megabyte, nothing to draw first: the whole page is there as soon as it is read."""
    assert Path(address.removeprefix("file://")).stat().st_size < 1_000_000
    desk.get(address)
    boxes = "return [...document.querySelectorAll('.plot')].filter((box) => box.children.length).length"
    assert desk.execute_script(boxes) == sum(bool(chart.marks) for chart in charts.all_charts(ROWS))


def test_every_chart_holds_the_numbers_of_the_rows(browser):
    figures, found = charts.all_charts(ROWS), plots(browser)
    ranked = {(row["problem_label"], row["horizon"], row["label"]): row for row in analysis.ranking(ROWS)}
    checked = 0
    for problem in {chart.problem for chart in figures}:
        for i, chart in on_display(problem, figures).items():
            labels = {place: label for label, place in charts.legend(ROWS).items()}
            main = {labels[t["policy"]]: t for t in found[i] if t["part"] == "main"} if chart.marks else {}
            for label, trace in main.items():
                own = [row for row in ROWS if (row["problem_label"], row["label"]) == (problem, label)]
                at = [row for row in own if row["horizon"] == chart.horizon]
                if chart.kind in ("regret", "ccv"):
                    band = analysis.band(at, chart.kind)
                    assert trace["x"] == band.rounds
                    assert trace["values"] == pytest.approx(band.median, rel=1e-5)
                    bounds = [t["values"] for t in found[i] if labels.get(t["policy"]) == label and t["part"] == "bound"]
                    expected = analysis.band(at, f"{chart.kind}_bound")
                    assert len(bounds) == bool(expected.runs)
                    assert all(values == pytest.approx(expected.median, rel=1e-5) for values in bounds)
                elif chart.kind.startswith("growth-"):
                    name = chart.kind.removeprefix("growth-")
                    horizons = sorted({row["horizon"] for row in own})
                    assert trace["x"] == horizons
                    assert trace["values"] == pytest.approx([ranked[problem, T, label][name] for T in horizons], rel=1e-5)
                else:
                    row = ranked[problem, chart.horizon, label]
                    assert trace["values"] == ([row["ccv"], row["regret"]] if chart.kind == "tradeoff" else [row["us_per_round"]])
                    assert trace.get("rank", row["rank"]) == row["rank"]
                checked += 1
            played = {row["label"] for row in ROWS if row["problem_label"] == problem and not row["does_not_apply"]}
            assert set(main) == played
    assert checked >= 6 * 2 * 6 + 4 * 2


def test_markers_are_drawn_where_their_numbers_are(browser):
    """Each marker's place in the picture is that of its horizon and value on the axes, read from the ticks, to a pixel."""
    figures, ranked = charts.all_charts(ROWS), analysis.ranking(ROWS)
    (i,) = (i for i, chart in on_display("halfspaces", figures).items() if chart.kind == "growth-ccv")
    ticks, drawn = browser.execute_script(f"""
        const box = document.getElementById('plot-{i}'), frame = box.querySelector('.picture').getBoundingClientRect();
        const middle = (mark) => {{
          const own = mark.getBoundingClientRect();
          return [own.left + own.width / 2 - frame.left, own.top + own.height / 2 - frame.top];
        }};
        const long = [frame.width, frame.height];
        const place = (text, k) => parseFloat(text.getAttribute('xy'[k])) / 100 * long[k];
        const value = (text) => Number(text.textContent.replace(/,/g, ''));
        return [['xtick', 'ytick'].map((name, k) => [...box.querySelectorAll('.' + name)].map((text) => [value(text), place(text, k)])),
          [...box.querySelectorAll('.markers use')].map(middle)];
    """)
    assert all(len(some) >= 2 for some in ticks)

    def at(value: float, marks: list[list[float]]) -> float:
        (a, p), (b, q) = marks[0], marks[-1]
        return p + (q - p) * log10(value / a) / log10(b / a)

    expected = [
        (at(row["horizon"], ticks[0]), at(row["ccv"], ticks[1]))
        for row in ranked if row["problem"] == "halfspaces" and row["ccv"] is not None
    ]  # fmt: skip
    assert len(drawn) == len(expected) == 12
    for point in expected:
        assert min(abs(point[0] - x) + abs(point[1] - y) for x, y in drawn) < 2.0


def test_lines_end_where_their_last_markers_are(browser):
    """The stretched drawing of lines and the markers, which are not stretched, agree: on every chart of lines."""
    apart = browser.execute_script("""
        const far = [];
        for (const line of document.querySelectorAll('.area g[data-y]')) {
          const main = line.querySelector('.main'), area = line.closest('.area');
          if (!area.offsetParent || !main.getAttribute('d')) continue;
          const end = main.getPointAtLength(main.getTotalLength()), frame = area.querySelector('.picture').getBoundingClientRect();
          const marks = [...area.querySelectorAll(`.markers[data-policy="${line.dataset.policy}"] use`)];
          const last = marks.sort((a, b) => Number(b.dataset.i) - Number(a.dataset.i))[0]?.getBoundingClientRect();
          if (!last) continue;
          const right = frame.left + frame.width * end.x / 1000 - last.left - last.width / 2;
          far.push(Math.hypot(right, frame.top + frame.height * end.y / 1000 - last.top - last.height / 2));
        }
        return far;
    """)
    assert len(apart) > 30
    assert max(apart) < 2.0


def test_the_best_lies_lower_left_and_no_circle_hides_another(browser):
    for width in (1400, 360):
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        )
        try:
            charts_of = browser.execute_script("""
                return [...document.querySelectorAll('[data-kind=points]')].filter((area) => area.offsetParent).map((area) => {
                  const frame = area.querySelector('.picture').getBoundingClientRect();
                  return [...area.querySelectorAll('[data-rank]')].map((mark) => {
                    const circle = mark.querySelector('circle').getBoundingClientRect();
                    const [x, y] = [circle.left + circle.width / 2 - frame.left, circle.top + circle.height / 2 - frame.top];
                    const inside = x >= -11 && x <= frame.width + 11 && y >= -11 && y <= frame.height + 11;
                    return [Number(mark.dataset.rank), x, y, inside, mark.querySelector('text').textContent];
                  });
                });
            """)
        finally:
            browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        assert len(charts_of) == 3
        for circles in charts_of:
            assert all(inside and str(rank) == text for rank, _, _, inside, text in circles)
            for k, (_, x, y, _, _) in enumerate(circles):
                assert all(abs(x - a) > 15.0 or abs(y - b) > 15.0 for _, a, b, _, _ in circles[:k])
            best = min(circles)
            worst = max(circles)
            assert best[1] < worst[1] + 12.0 or best[2] > worst[2] - 12.0


# --- switches -------------------------------------------------------------------------------------------------------------------------


def test_toggling_a_policy_changes_every_chart_and_back(browser):
    before, pictures = plots(browser), drawn_marks(browser)
    chips = browser.find_elements(By.CSS_SELECTOR, ".chip")
    assert [chip.get_attribute("aria-pressed") for chip in chips] == ["true"] * len(charts.legend(ROWS))
    chips[0].click()
    assert chips[0].get_attribute("aria-pressed") == "false"
    after = plots(browser)
    changed = drawn_marks(browser)
    for i, traces in before.items():
        own = [trace for trace in traces if trace["policy"] == 0]
        assert own
        assert all(trace["visible"] for trace in own)
        assert [trace["visible"] for trace in after[i] if trace["policy"] == 0] == [False] * len(own)
        assert all(trace["visible"] for trace in after[i] if trace["policy"] not in (0, None))
        assert changed[f"plot-{i}"] < pictures[f"plot-{i}"]
    dimmed = browser.find_elements(By.CSS_SELECTOR, "tr.off")
    assert dimmed
    assert {row.get_attribute("data-policy") for row in dimmed} == {"0"}
    chips[0].click()
    assert plots(browser) == before
    assert drawn_marks(browser) == pictures
    assert errors(browser) == []


def test_none_hides_all_and_all_brings_them_back(browser):
    before = drawn_marks(browser)
    browser.find_element(By.ID, "none").click()
    assert not any(trace["visible"] for traces in plots(browser).values() for trace in traces)
    assert set(drawn_marks(browser).values()) == {0}
    browser.find_element(By.ID, "all").click()
    assert drawn_marks(browser) == before
    assert errors(browser) == []


def test_the_bounds_switch_hides_bounds_alone(browser):
    switch = browser.find_element(By.ID, "bounds")
    switch.click()
    assert switch.get_attribute("aria-checked") == "false"
    parts = {(trace["part"], trace["visible"]) for traces in plots(browser).values() for trace in traces}
    assert ("bound", False) in parts
    assert ("bound", True) not in parts
    assert ("main", False) not in parts


def test_dark_changes_colours_and_is_remembered(browser, address):
    def paint() -> tuple[str, dict[int, set[str]]]:
        paper = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        return paper, {i: {str(trace["colour"]) for trace in traces if trace["part"] == "main"} for i, traces in plots(browser).items()}

    light_paper, light = paint()
    switch = browser.find_element(By.ID, "dark")
    switch.click()
    assert switch.get_attribute("aria-checked") == "true"
    dark_paper, dark = paint()
    assert light_paper == "rgb(251, 251, 249)"
    assert dark_paper == "rgb(16, 19, 23)"
    assert all(dark[i].isdisjoint(colours) for i, colours in light.items())
    until_stored(browser, address, lambda: paint()[0] == dark_paper)
    assert errors(browser) == []


def test_the_readers_preference_for_dark_is_followed(desk, address):
    fresh(desk, address)
    desk.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]})
    try:
        desk.get(address)
        assert desk.find_element(By.ID, "dark").get_attribute("aria-checked") == "true"
        assert desk.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(16, 19, 23)"
    finally:
        desk.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_it_works_where_storage_is_forbidden(desk, address):
    script = "Object.defineProperty(window, 'localStorage', {get() { throw new DOMException('denied', 'SecurityError'); }});"
    handle = desk.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": script})["identifier"]
    try:
        desk.get(address)
        desk.get_log("browser")
        desk.find_element(By.ID, "dark").click()
        assert desk.execute_script("return document.documentElement.dataset.theme") == "dark"
        assert errors(desk) == []
    finally:
        desk.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", {"identifier": handle})


def test_a_horizon_can_be_chosen(browser):
    section = browser.find_element(By.ID, "problem-0")
    parts = section.find_elements(By.CSS_SELECTOR, ".horizon")
    assert [(part.get_attribute("data-horizon"), part.is_displayed()) for part in parts] == [("100", False), ("300", True)]
    section.find_element(By.CSS_SELECTOR, ".tabs button[data-horizon='100']").click()
    assert [part.is_displayed() for part in parts] == [True, False]
    figures = charts.all_charts(ROWS)
    found = plots(browser)
    assert {figures[i].horizon for i in found if figures[i].problem == "halfspaces"} == {100, None}
    assert errors(browser) == []


def test_the_axis_can_be_changed_and_shows_what_is_below_zero(browser):
    """On each scale the ends of the lines are where the ticks say that their values are; back again, all is as it was."""
    figures = charts.all_charts(ROWS)
    (i,) = (i for i, chart in on_display("halfspaces", figures).items() if chart.kind == "regret")
    lowest = min(value for mark in figures[i].marks for value in mark.y)
    assert lowest < 0.0
    menu = Select(browser.find_element(By.CSS_SELECTOR, f"select[data-chart='{i}']"))
    assert menu.first_selected_option.get_attribute("value") == "symlog"

    def picture() -> Any:
        return browser.execute_script(f"""
            const box = document.getElementById('plot-{i}');
            const all = (name, facts) => [...box.querySelectorAll(name)].map(facts);
            const scale = box.querySelector('.area').dataset.scale;
            return [scale, all('.ytick', (text) => [text.textContent, parseFloat(text.getAttribute('y'))]),
              all('.stretch path', (path) => path.getAttribute('d')), all('.markers use', (mark) => mark.getAttribute('y'))];
        """)

    def value(text: str) -> float:
        return float(text.replace("−", "-").replace(",", ""))  # noqa: RUF001

    before = picture()
    assert any(value(text) < 0.0 for text, _ in before[1])
    threshold = figures[i].y.threshold
    for kind in ("linear", "log", "symlog"):
        menu.select_by_value(kind)
        scale, ticks, paths, _ = picture()
        assert scale == kind
        assert len(ticks) >= 2
        place = {"linear": lambda v: v, "log": log10, "symlog": lambda v: scales.placed(v, "symlog", threshold)}[kind]
        (a, p), (b, q) = [(place(value(text)), at) for text, at in (ticks[0], ticks[-1])]
        ends = [mark.y[-1] for mark in figures[i].marks if kind != "log" or mark.y[-1] > 0.0]
        heights = [float(re.findall(r"[\d.-]+", path)[-1]) / 10.0 for path in paths if path]
        for end in ends:
            expected = p + (q - p) * (place(end) - a) / (b - a)
            assert min(abs(expected - height) for height in heights) < 0.5
    after = picture()
    assert after[1] == before[1]
    for one, other in zip(before[2], after[2], strict=True):
        assert [float(x) for x in re.findall(r"[\d.-]+", other)] == pytest.approx([float(x) for x in re.findall(r"[\d.-]+", one)], abs=1.01)
    assert errors(browser) == []


def test_a_chart_can_be_enlarged(browser):
    figure = browser.find_element(By.CSS_SELECTOR, "#problem-0 .horizon:not([hidden]) figure")
    before = browser.execute_script("return arguments[0].querySelector('.picture').getBoundingClientRect()", figure)
    button = figure.find_element(By.CSS_SELECTOR, ".enlarge")
    bring_into_view(browser, button)
    button.click()
    after = browser.execute_script("return arguments[0].querySelector('.picture').getBoundingClientRect()", figure)
    assert after["width"] > 1.5 * before["width"]
    assert after["height"] > 1.2 * before["height"]
    assert button.get_attribute("aria-pressed") == "true"
    button.click()
    assert (
        browser.execute_script("return arguments[0].querySelector('.picture').getBoundingClientRect()", figure)["width"] == before["width"]
    )


def test_switches_work_from_the_keyboard(browser):
    chip = browser.find_element(By.CSS_SELECTOR, ".chip")
    browser.execute_script("arguments[0].focus()", chip)
    ActionChains(browser).send_keys(Keys.SPACE).perform()
    assert chip.get_attribute("aria-pressed") == "false"
    ActionChains(browser).send_keys(Keys.TAB, Keys.ENTER).perform()
    assert browser.find_elements(By.CSS_SELECTOR, ".chip")[1].get_attribute("aria-pressed") == "false"
    outline = browser.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"


# --- looking closer -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["regret", "ccv", "tradeoff", "pace", "growth-ccv"])
def test_hovering_shows_values(browser, kind):
    figures = charts.all_charts(ROWS)
    (i,) = (i for i, chart in on_display("halfspaces", figures).items() if chart.kind == kind)
    mark = figures[i].marks[-1]
    box = browser.find_element(By.ID, f"plot-{i}")
    bring_into_view(browser, box)
    place = {"tradeoff": f"[data-rank][data-policy='{mark.policy}'] circle", "pace": f".bar[data-policy='{mark.policy}'] i"}
    x, y = browser.execute_script(f"""
        const frame = document.querySelector("#plot-{i} {place.get(kind, ".picture")}").getBoundingClientRect();
        return [frame.left + {0.5 if kind in place else 0.985} * frame.width, frame.top + frame.height / 2];
    """)
    ActionChains(browser).move_by_offset(0, 0).perform()
    browser.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x, "y": y})
    tip = browser.find_element(By.CSS_SELECTOR, ".tip")
    WebDriverWait(browser, 10).until(lambda _: tip.is_displayed() and tip.text)
    shown = tip.text.replace("−", "-").replace(",", "")  # noqa: RUF001
    near = [other for other in figures[i].marks if other.label in shown]
    assert mark in near, shown
    for other in near if kind not in place else [mark]:
        final = other.value if kind == "pace" else other.y if kind == "tradeoff" else other.y[-1]
        longer = tuple(f"{mark.label} " for mark in figures[i].marks if mark.label.startswith(f"{other.label} "))
        lines = (line for line in shown.splitlines() if line.startswith(f"{other.label} ") and not line.startswith(longer))
        line = shown if kind in place else next(lines)
        values = [float(value) for value in re.findall(r"(?<![\w=])-?\d+(?:\.\d+)?(?:e[+-]\d+)?", line.replace(other.label, " "))]
        assert any(abs(value - final) <= 1e-3 * abs(final) + 1e-9 for value in values), line
    frame = tip.rect
    assert frame["x"] >= 0


def test_arrow_keys_show_values_round_by_round(browser):
    area = browser.find_element(By.CSS_SELECTOR, "#problem-0 .horizon:not([hidden]) .area[data-kind=lines]")
    bring_into_view(browser, area)
    browser.execute_script("arguments[0].focus()", area)
    rounds = [int(text) for text in area.get_attribute("data-x").split(",")]
    tip = browser.find_element(By.CSS_SELECTOR, ".tip")
    seen = []
    for key in (Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_LEFT):
        ActionChains(browser).send_keys(key).perform()
        seen.append(int(tip.text.splitlines()[0].removeprefix("t = ").replace(",", "")))
    assert seen == [rounds[0], rounds[1], rounds[2], rounds[1]]
    ActionChains(browser).send_keys(Keys.ESCAPE).perform()
    assert not tip.is_displayed()


@pytest.mark.parametrize("width", [320, 390, 768, 1440])
def test_it_fits(desk, address, width):
    desk.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": False})
    try:
        fresh(desk, address)
        for button in desk.find_elements(By.CSS_SELECTOR, ".tabs button"):
            desk.execute_script("arguments[0].click()", button)
            assert desk.execute_script("return innerWidth") == width
            assert desk.execute_script("return document.documentElement.scrollWidth") <= width
        outside = """
            const boxes = [...document.querySelectorAll('.plot')].filter((box) => box.offsetParent && box.children.length);
            const out = (frame) => frame.width > 0 && (frame.left < -0.5 || frame.right > innerWidth + 0.5);
            const parts = (box) => [box, ...box.querySelectorAll('.picture, text, .bar')];
            return [boxes.length > 0, boxes.filter((box) => parts(box).some((part) => out(part.getBoundingClientRect()))).length];
        """
        assert desk.execute_script(outside) == [True, 0]
    finally:
        desk.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_it_follows_when_a_phone_is_turned(desk, address):
    fresh(desk, address)
    desk.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": False})
    try:
        wide = """
            const pictures = [...document.querySelectorAll('.picture')].map((svg) => svg.getBoundingClientRect().width);
            return Math.max(document.documentElement.scrollWidth, ...pictures);
        """
        WebDriverWait(desk, 10).until(lambda driver: driver.execute_script(wide) <= 390)
    finally:
        desk.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("part", ["middle", "axis"])
def test_a_finger_on_a_chart_scrolls_the_page(phone, address, part):
    fresh(phone, address)
    box = next(box for box in phone.find_elements(By.CSS_SELECTOR, ".plot") if box.is_displayed())
    bring_into_view(phone, box)
    before = phone.execute_script("return scrollY")
    frame = phone.execute_script("const f = arguments[0].getBoundingClientRect(); return [f.left + f.width / 2, f.top, f.height]", box)
    x, y = frame[0], frame[1] + frame[2] * 0.5 if part == "middle" else frame[1] + frame[2] - 40
    phone.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
    for step in range(1, 21):
        phone.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [{"x": x, "y": y - 10 * step}]})
        time.sleep(0.01)
    phone.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    WebDriverWait(phone, 5).until(lambda _: phone.execute_script("return scrollY") > before + 100)
    assert phone.execute_script("return document.documentElement.scrollWidth") <= 390
    assert errors(phone) == []


def test_without_scripts_tables_and_charts_tell_everything(address):
    plain = start(scripts=False)
    try:
        plain.get(address)
        text = plain.find_element(By.TAG_NAME, "main").text
        tables = plain.find_elements(By.CSS_SELECTOR, ".problem table")
        assert len(tables) == 5
        assert all(table.is_displayed() for table in tables)
        assert not plain.find_element(By.CSS_SELECTOR, ".legend").is_displayed()
        assert not any(part.is_displayed() for part in plain.find_elements(By.CSS_SELECTOR, "select, .enlarge, .tabs"))
        pictures = plain.find_elements(By.CSS_SELECTOR, ".picture")
        assert len(pictures) == sum(bool(chart.marks) for chart in charts.all_charts(ROWS) if chart.kind != "pace")
        assert all(picture.is_displayed() and picture.rect["height"] > 200 for picture in pictures)
        for row in analysis.ranking(ROWS):
            assert row["label"] in text
        assert "does not apply" in text
        assert "How to read this page" in text
    finally:
        plain.quit()


def test_labels_are_shown_as_they_are(browser):
    assert browser.execute_script("return window.hacked") is None
    assert browser.find_elements(By.CSS_SELECTOR, "main img, nav img") == []
    chip = browser.find_elements(By.CSS_SELECTOR, ".chip")[-1]
    assert chip.find_element(By.TAG_NAME, "span").get_attribute("textContent") == NASTY
    section = browser.find_elements(By.CSS_SELECTOR, ".problem")[-1]
    assert section.find_element(By.TAG_NAME, "h2").get_attribute("textContent") == NASTY
    assert NASTY in [who.get_attribute("textContent") for who in section.find_elements(By.CSS_SELECTOR, ".who")]
    assert NASTY in browser.find_element(By.CSS_SELECTOR, "#run code").get_attribute("textContent")
    figures = charts.all_charts(ROWS)
    (i,) = (i for i, chart in on_display(NASTY, figures).items() if chart.kind == "pace")
    names = [name.get_attribute("textContent") for name in browser.find_elements(By.CSS_SELECTOR, f"#plot-{i} .who")]
    assert NASTY in names
    bar = browser.find_element(By.CSS_SELECTOR, f"#plot-{i} .bar[data-policy='{charts.legend(ROWS)[NASTY]}'] i")
    bring_into_view(browser, bar)
    ActionChains(browser).move_to_element(bar).perform()
    tip = browser.find_element(By.CSS_SELECTOR, ".tip")
    WebDriverWait(browser, 10).until(lambda _: tip.is_displayed())
    assert NASTY[:43] + "…" in tip.get_attribute("textContent")
    assert browser.execute_script("return window.hacked") is None
    assert errors(browser) == []


def test_the_page_can_be_saved_and_opened_from_anywhere(desk, address, tmp_path):
    copy = shutil.copy(Path(address.removeprefix("file://")), tmp_path / "copy of it.html")
    desk.get_log("browser")
    desk.get(Path(copy).as_uri())
    assert errors(desk) == []
    assert len(plots(desk)) > 0
