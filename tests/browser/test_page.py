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

from bridle.compare import analysis, charts, html_report
from browser.chromium import errors, start
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
    """The page as a first visitor sees it, every chart of the chosen horizons drawn."""
    fresh(desk, address)
    return desk


def fresh(driver: Any, address: str) -> None:
    driver.get(address)
    if driver.execute_script("const kept = localStorage.length; localStorage.clear(); return kept"):
        driver.get(address)
    see_everything(driver)


def see_everything(driver: Any) -> None:
    """Scroll through the page, as a reader does: charts are drawn as they come into sight."""
    height = driver.execute_script("return document.documentElement.scrollHeight")
    for top in range(0, height + 1, 700):
        driver.execute_script(f"window.scrollTo(0, {top})")
        time.sleep(0.05)
    waiting = "return [...document.querySelectorAll('.plot:not(.empty)')].filter((box) => box.offsetParent && !box.dataset.drawn).length"
    WebDriverWait(driver, 20).until(lambda d: d.execute_script(waiting) == 0)
    driver.execute_script("window.scrollTo(0, 0)")


def settled(driver: Any) -> None:
    """Charts out of sight follow a switch a moment later."""
    WebDriverWait(driver, 20).until(lambda d: d.execute_script("return !document.documentElement.dataset.busy"))


def plots(driver: Any) -> dict[int, list[dict[str, Any]]]:
    """The traces of every drawn chart on display, by the chart's number: what they are, whether they show, and their numbers."""
    settled(driver)
    found = driver.execute_script("""
        return [...document.querySelectorAll('.plot')].filter((box) => box.data && box.offsetParent).map((box) => [
          Number(box.id.slice(5)), box.data.map((trace) => ({
            policy: trace.meta.policy, part: trace.meta.part, visible: trace.visible !== false, colour: (trace.marker ?? trace.line).color,
            x: [...trace.x], y: [...trace.y], values: trace.customdata ? [...trace.customdata] : null, type: trace.type,
          })),
        ]);
    """)
    return dict(found)


def on_display(problem: str, figures: list[charts.Chart]) -> dict[int, charts.Chart]:
    """The charts of a problem that are open: those of its longest horizon, and those against the horizon."""
    longest = max(chart.horizon for chart in figures if chart.problem == problem and chart.horizon)
    return {i: chart for i, chart in enumerate(figures) if chart.problem == problem and chart.horizon in (None, longest)}


def drawn_marks(driver: Any) -> dict[str, int]:
    """How many lines, bars and points each chart's picture really has."""
    settled(driver)
    return driver.execute_script("""
        return Object.fromEntries([...document.querySelectorAll('.plot')].filter((box) => box.data && box.offsetParent).map((box) => [
          box.id, box.querySelectorAll('.scatterlayer .trace, .barlayer .trace').length]));
    """)


# --- loading --------------------------------------------------------------------------------------------------------------------------


def test_it_loads_from_a_file_without_an_error_or_a_request(browser, address):
    browser.get_log("performance")
    browser.get_log("browser")
    browser.get(address)
    see_everything(browser)
    assert errors(browser) == []
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    assert address in asked
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    assert len([url for url in asked if url.startswith("file:")]) == 1


def test_charts_out_of_sight_wait(desk, address):
    desk.get(address)
    desk.execute_script("window.scrollTo(0, 0)")
    counting = "return [...document.querySelectorAll('.plot')].filter((box) => box.dataset.drawn).length"
    before = desk.execute_script(counting)
    see_everything(desk)
    assert before < desk.execute_script(counting)


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
                    assert (trace["x"], trace["values"]) == (band.rounds, band.median)
                    bounds = [t["values"] for t in found[i] if labels.get(t["policy"]) == label and t["part"] == "bound"]
                    expected = analysis.band(at, f"{chart.kind}_bound")
                    assert bounds == ([expected.median] if expected.runs else [])
                elif chart.kind.startswith("growth-"):
                    name = chart.kind.removeprefix("growth-")
                    horizons = sorted({row["horizon"] for row in own})
                    assert (trace["x"], trace["values"]) == (horizons, [ranked[problem, T, label][name] for T in horizons])
                else:
                    row = ranked[problem, chart.horizon, label]
                    assert trace["values"] == ([[row["ccv"], row["regret"]]] if chart.kind == "tradeoff" else [row["us_per_round"]])
                checked += 1
            played = {row["label"] for row in ROWS if row["problem_label"] == problem and not row["does_not_apply"]}
            assert set(main) == played
    assert checked >= 6 * 2 * 6 + 4 * 2


def test_markers_are_drawn_where_their_numbers_are(browser):
    """Each marker's place in the picture is that of its horizon and value on the axes, to half a pixel."""
    figures, ranked = charts.all_charts(ROWS), analysis.ranking(ROWS)
    (i,) = (i for i, chart in on_display("halfspaces", figures).items() if chart.kind == "growth-ccv")
    axes, drawn = browser.execute_script(f"""
        const box = document.getElementById('plot-{i}'), layout = box._fullLayout;
        const place = (point) => point.getAttribute('transform').match(/-?[\\d.]+/g).map(Number);
        return [[layout.xaxis, layout.yaxis].map((axis) => [axis.type, ...axis.range, axis._length]),
          [...box.querySelectorAll('.scatterlayer path.point')].map(place)];
    """)
    (kind, left, right, width), (vertical, bottom, top, height) = axes
    assert (kind, vertical) == ("log", "log")
    expected = [
        (width * (log10(row["horizon"]) - left) / (right - left), height * (top - log10(row["ccv"])) / (top - bottom))
        for row in ranked if row["problem"] == "halfspaces" and row["ccv"] is not None
    ]  # fmt: skip
    assert len(drawn) == len(expected) == 12
    for point in expected:
        assert min(abs(point[0] - x) + abs(point[1] - y) for x, y in drawn) < 1.0


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
    browser.get(address)
    assert browser.execute_script("return getComputedStyle(document.body).backgroundColor") == dark_paper
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
        see_everything(desk)
        assert errors(desk) == []
    finally:
        desk.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", {"identifier": handle})


def test_a_horizon_can_be_chosen(browser):
    section = browser.find_element(By.ID, "problem-0")
    parts = section.find_elements(By.CSS_SELECTOR, ".horizon")
    assert [(part.get_attribute("data-horizon"), part.is_displayed()) for part in parts] == [("100", False), ("300", True)]
    section.find_element(By.CSS_SELECTOR, ".tabs button[data-horizon='100']").click()
    assert [part.is_displayed() for part in parts] == [True, False]
    see_everything(browser)
    figures = charts.all_charts(ROWS)
    found = plots(browser)
    assert {figures[i].horizon for i in found if figures[i].problem == "halfspaces"} == {100, None}
    assert errors(browser) == []


def test_the_axis_can_be_changed_and_shows_what_is_below_zero(browser):
    figures = charts.all_charts(ROWS)
    (i,) = (i for i, chart in on_display("halfspaces", figures).items() if chart.kind == "regret")
    lowest = min(value for mark in figures[i].marks for value in mark.y)
    assert lowest < 0.0
    menu = Select(browser.find_element(By.CSS_SELECTOR, f"select[data-chart='{i}']"))
    assert menu.first_selected_option.get_attribute("value") == "symlog"
    reach = f"const axis = document.getElementById('plot-{i}').layout.yaxis; return [axis.type || 'linear', axis.range[0]]"
    kind, low = browser.execute_script(reach)
    assert (kind, low < -1.0) == ("linear", True)
    shown = [trace for trace in plots(browser)[i] if trace["part"] == "main"]
    threshold = figures[i].y.threshold
    for trace in shown:
        for at, value in zip(trace["y"], trace["values"], strict=True):
            back = at * threshold if abs(at) <= 1 else (1 if at > 0 else -1) * threshold * 10 ** (abs(at) - 1)
            assert back == pytest.approx(value, rel=1e-9)
    menu.select_by_value("linear")
    kind, low = browser.execute_script(reach)
    assert (kind, low <= lowest) == ("linear", True)
    assert [trace["y"] for trace in plots(browser)[i] if trace["part"] == "main"] == [trace["values"] for trace in shown]
    menu.select_by_value("log")
    assert browser.execute_script(reach)[0] == "log"
    assert errors(browser) == []


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
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", box)
    x, y = browser.execute_script(f"""
        const box = document.getElementById('plot-{i}'), layout = box._fullLayout, frame = box.getBoundingClientRect();
        const trace = box.data.find((trace) => trace.meta.part === 'main' && trace.meta.policy === {mark.policy});
        const last = trace.x.length - 1;
        const x = trace.type === 'bar' ? layout.xaxis.d2p(trace.x[0]) / 2 : layout.xaxis.d2p(trace.x[last]);
        return [layout._size.l + x - frame.width / 2, layout._size.t + layout.yaxis.d2p(trace.y[last]) - frame.height / 2];
    """)
    ActionChains(browser).move_to_element_with_offset(box, round(x), round(y)).perform()
    WebDriverWait(browser, 10).until(lambda _: box.find_element(By.CSS_SELECTOR, ".hoverlayer").text)
    shown = box.find_element(By.CSS_SELECTOR, ".hoverlayer").text.replace("−", "-").replace(",", "")  # noqa: RUF001
    near = [other for other in figures[i].marks if other.label in shown]
    assert near, shown
    for other in near:
        shown = shown.replace(other.label, " ")
    values = [float(value) for value in re.findall(r"-?\d+(?:\.\d+)?(?:e[+-]\d+)?", shown)]
    finals = [other.value if kind == "pace" else other.y if kind == "tradeoff" else other.y[-1] for other in near]
    assert any(abs(value - final) <= 1e-3 * abs(final) + 1e-9 for value in values for final in finals), shown


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
            const boxes = [...document.querySelectorAll('.plot')].filter((box) => box.offsetParent && box.dataset.drawn);
            const out = (frame) => frame.left < -0.5 || frame.right > innerWidth + 0.5;
            const wide = (box) => box.querySelector('.main-svg').getBoundingClientRect().width > box.clientWidth + 0.5;
            return [boxes.length > 0, boxes.filter((box) => out(box.getBoundingClientRect()) || wide(box)).length];
        """
        assert desk.execute_script(outside) == [True, 0]
    finally:
        desk.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_it_follows_when_a_phone_is_turned(desk, address):
    fresh(desk, address)
    desk.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": False})
    try:
        wide = """
            const pictures = [...document.querySelectorAll('.main-svg')].map((svg) => svg.getBoundingClientRect().width);
            return Math.max(document.documentElement.scrollWidth, ...pictures);
        """
        WebDriverWait(desk, 10).until(lambda driver: driver.execute_script(wide) <= 390)
    finally:
        desk.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("part", ["middle", "axis"])
def test_a_finger_on_a_chart_scrolls_the_page(phone, address, part):
    fresh(phone, address)
    box = next(box for box in phone.find_elements(By.CSS_SELECTOR, ".plot") if box.is_displayed())
    phone.execute_script("arguments[0].scrollIntoView({block: 'center'})", box)
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


def test_without_scripts_the_tables_tell_everything(address):
    plain = start(scripts=False)
    try:
        plain.get(address)
        text = plain.find_element(By.TAG_NAME, "main").text
        assert "Charts need JavaScript" in text
        tables = plain.find_elements(By.CSS_SELECTOR, ".problem table")
        assert len(tables) == 5
        assert all(table.is_displayed() for table in tables)
        assert not plain.find_element(By.CSS_SELECTOR, ".legend").is_displayed()
        assert not any(box.is_displayed() for box in plain.find_elements(By.CSS_SELECTOR, ".plot"))
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
    ticks = [tick.get_attribute("textContent") for tick in browser.find_elements(By.CSS_SELECTOR, f"#plot-{i} .ytick text")]
    assert NASTY[:33] + "…" in ticks
    box = browser.find_element(By.ID, f"plot-{i}")
    place = charts.legend(ROWS)[NASTY]
    browser.execute_script(f"""
        const box = document.getElementById('plot-{i}');
        Plotly.Fx.hover(box, [{{curveNumber: box.data.findIndex((trace) => trace.meta.policy === {place}), pointNumber: 0}}]);
    """)
    shown = WebDriverWait(browser, 10).until(lambda _: box.find_element(By.CSS_SELECTOR, ".hoverlayer").get_attribute("textContent"))
    assert NASTY[:43] + "…" in shown
    assert errors(browser) == []


def test_the_page_can_be_saved_and_opened_from_anywhere(desk, address, tmp_path):
    copy = shutil.copy(Path(address.removeprefix("file://")), tmp_path / "copy of it.html")
    desk.get_log("browser")
    desk.get(Path(copy).as_uri())
    see_everything(desk)
    assert errors(desk) == []
    assert len(plots(desk)) > 0
