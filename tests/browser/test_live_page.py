"""The live page in a real browser: a service of its own, sessions that go on while somebody looks."""

from __future__ import annotations

import json
import signal
import socket
import threading
import time
from typing import Any

import httpx
import numpy as np
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

import bridle
from browser.chromium import errors, start
from helpers.serving import ServerProcess, new_key, serving

NASTY = "<img src=x onerror=window.hacked=1>"
RULES = ["mean", "same slot", "everything"]


class Shop:
    """Sessions of a service, fed by a client of its own until they are told to rest."""

    def __init__(self, url: str, key: str) -> None:
        self.client = bridle.Client(url, key=key)
        box = bridle.Box(0.0, 40.0, dim=1)
        parameters = {"at_most": 0.05, "safe": [40.0]}
        self.rate = self.client.create(
            "shop-17", "rate", box, parameters=parameters, rules=RULES, names=[NASTY], gates={"march": {"budget": 500.0}}
        )
        self.soft = self.client.create("pricing", "soft", bridle.Ball(3), names=["latency", "spend"])
        self.broken = self.client.create("broken", "anytime", bridle.Box(-1.0, 1.0, dim=1))
        self.rng, self.over, self.lock = np.random.default_rng(0), threading.Event(), threading.Lock()
        self.rate.pay("march", 120.5)
        for t in range(40):
            self.broken.observe(f=0.0, df=[0.0], g=0.5, dg=[1.0 if t % 2 else -1.0])
        self.tickets = [self.soft.ask() for _ in range(3)]
        for _ in range(30):
            self.turn()
        with pytest.raises(bridle.InputError):
            self.soft.observe(f=1.0, df=[1.0])
        self.thread = threading.Thread(target=self.trade, daemon=True)

    def turn(self) -> None:
        need = 20.0 + 5.0 * self.rng.standard_normal()
        x = self.rate.decide(rules=[[18.0], [27.0], [40.0]])
        self.rate.observe(f=x[0], df=[1.0], g=need - x[0], dg=[-1.0])
        c, y = self.rng.normal(size=3), self.soft.decide()
        self.soft.observe(f=float(c @ y), df=c, g=[float(y[0]) + 0.1 * self.rng.normal(), float(y[1]) - 0.3], dg=np.eye(3)[:2])

    def trade(self) -> None:
        while not self.over.is_set():
            with self.lock:
                self.turn()
            time.sleep(0.05)


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    db = f"sqlite:///{tmp_path_factory.mktemp('live') / 'live.db'}"
    admin, read, decide = new_key(db, "admin"), new_key(db, "read"), new_key(db, "decide")
    with serving(db, insecure=False) as server:
        shop = Shop(server.url, admin)
        shop.thread.start()
        try:
            yield {"url": server.url, "admin": admin, "read": read, "decide": decide, "shop": shop}
        finally:
            shop.over.set()
            shop.thread.join()
            shop.client.close()


@pytest.fixture(scope="module")
def desk():
    driver = start()
    yield driver
    driver.quit()


@pytest.fixture
def page(desk, service):
    """The page as somebody with a key to read sees it."""
    return signed_in(desk, service, "read")


def signed_in(driver: Any, service: dict[str, Any], scope: str, name: str = "") -> Any:
    driver.get("about:blank")
    driver.get(service["url"] + "/")
    driver.execute_script("sessionStorage.setItem('bridle-key', arguments[0]); localStorage.clear()", service[scope])
    driver.get("about:blank")
    driver.get(service["url"] + (f"/#/{name}" if name else "/"))
    wait(driver, lambda: shown(driver, "#one .charts" if name else "#all table"))
    driver.get_log("browser")
    return driver


def wait(driver: Any, condition: Any) -> Any:
    return WebDriverWait(driver, 30, 0.1).until(lambda _: condition())


def shown(driver: Any, selector: str) -> list[Any]:
    return [element for element in driver.find_elements(By.CSS_SELECTOR, selector) if element.is_displayed()]


def text(driver: Any, selector: str) -> str:
    """The text of an element, in one go: the page is drawn again every second."""
    return driver.execute_script("return document.querySelector(arguments[0])?.textContent ?? ''", selector)


def table(driver: Any, selector: str) -> list[list[str]]:
    script = (
        "return [...document.querySelectorAll(arguments[0] + ' tbody tr')].map((row) => [...row.children].map((cell) => cell.textContent))"
    )
    return driver.execute_script(script, selector)


def figures(driver: Any) -> dict[str, str]:
    script = """
        const boxes = [...document.querySelectorAll('#one .figures > div')];
        return boxes.map((box) => [box.querySelector('dt').textContent, box.querySelector('dd').firstChild.textContent]);
    """
    return dict(driver.execute_script(script))


# --- the door ---------------------------------------------------------------------------------------------------------------------------


def test_without_a_key_it_asks_for_one(desk, service):
    desk.get("about:blank")
    desk.get(service["url"] + "/")
    desk.execute_script("sessionStorage.clear()")
    desk.get("about:blank")
    desk.get(service["url"] + "/")
    wait(desk, lambda: shown(desk, "#login"))
    assert not shown(desk, "#all, #one, #refused")
    desk.find_element(By.ID, "key").send_keys("brk_wrong_key")
    desk.find_element(By.CSS_SELECTOR, "#login button").click()
    wait(desk, lambda: shown(desk, "#refused"))
    assert "wrong or revoked" in text(desk, "#refused")
    desk.find_element(By.ID, "key").send_keys(service["decide"])
    desk.find_element(By.CSS_SELECTOR, "#login button").click()
    wait(desk, lambda: "lacks the scope read" in text(desk, "#refused"))
    desk.find_element(By.ID, "key").send_keys(service["read"])
    desk.find_element(By.CSS_SELECTOR, "#login button").click()
    wait(desk, lambda: shown(desk, "#all table"))
    assert desk.find_element(By.ID, "key").get_attribute("value") == ""
    kept = desk.execute_script(
        "return [Object.values(localStorage).join(), document.cookie, location.href, document.body.innerHTML].join(' ')"
    )
    assert service["read"] not in kept
    desk.find_element(By.ID, "leave").click()
    wait(desk, lambda: shown(desk, "#login"))
    assert desk.execute_script("return sessionStorage.getItem('bridle-key')") is None


def test_what_is_sent_without_a_key_says_nothing_of_sessions(service):
    for path in ("/", "/page/live.js", "/page/live.css", "/page/icon.svg"):
        answer = httpx.get(service["url"] + path)
        assert answer.status_code == 200, path
        assert not any(name in answer.text for name in ("shop-17", "pricing", NASTY)), path
    assert httpx.get(service["url"] + "/page/../routes.py").status_code == 404
    assert httpx.get(service["url"] + "/v1/events").status_code == 401
    answer = httpx.get(service["url"] + "/v1/events", params={"session": "nobody"}, headers={"Authorization": f"Bearer {service['read']}"})
    assert (answer.status_code, "no session" in answer.json()["error"]) == (404, True)


def test_it_may_load_nothing_from_elsewhere(page, service):
    policy = httpx.get(service["url"] + "/").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    page.get_log("performance")
    page.get(service["url"] + "/#/pricing")
    wait(page, lambda: shown(page, "#one .charts"))
    messages = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    asked = {each["params"]["request"]["url"] for each in messages if each["method"] == "Network.requestWillBeSent"}
    assert all(url.startswith(service["url"]) for url in asked), asked
    page.execute_script(
        "const made = document.createElement('script'); made.textContent = 'window.inlined = 1'; document.body.append(made)"
    )
    assert page.execute_script("return window.inlined") is None


# --- what it shows ----------------------------------------------------------------------------------------------------------------------


def test_all_sessions_and_their_rounds_as_they_come(page, service):
    rows = {row[0]: row for row in table(page, "#all")}
    assert set(rows) == {"shop-17", "pricing", "broken"}
    assert rows["broken"][1] == "alarm"
    assert rows["broken"][5] == "1"
    assert rows["pricing"][7:9] == ["3", "1"]
    before = int(rows["shop-17"][2].replace(",", ""))
    wait(page, lambda: int({row[0]: row for row in table(page, "#all")}["shop-17"][2].replace(",", "")) > before + 5)
    wait(page, lambda: {row[0]: row for row in table(page, "#all")}["shop-17"][1] == "deciding")
    assert text(page, "#line") == "live"
    assert errors(page) == []


def test_a_session_that_nobody_has_is_listed_as_not_open(page, service):
    httpx.delete(service["url"] + "/v1/sessions/broken", headers={"Authorization": f"Bearer {service['admin']}"}).raise_for_status()
    wait(page, lambda: {row[0]: row[1] for row in table(page, "#all")}["broken"] == "not open")
    assert errors(page) == []
    httpx.get(service["url"] + "/v1/sessions/broken", headers={"Authorization": f"Bearer {service['admin']}"}).raise_for_status()
    wait(page, lambda: {row[0]: row[1] for row in table(page, "#all")}["broken"] == "alarm")


def test_a_session_shows_what_the_service_says_of_it(desk, service):
    shop = service["shop"]
    page = signed_in(desk, service, "read", "shop-17")
    with shop.lock:  # the figures stand still
        rounds, proof = shop.rate.rounds, shop.rate.certificate()
        wait(page, lambda: figures(page)["Rounds"] == f"{rounds:,}")
        assert f"in {proof.violated} round" in text(page, "#one .figures")
        (limit,) = table(page, "#limits")
        assert limit[0] == NASTY
        assert float(limit[1].replace(",", "")) == pytest.approx(proof.violations[0], rel=1e-3)
        (rate,) = table(page, "#rates")
        measured = 100.0 * proof.rates[0].violated / proof.rates[0].counted
        assert rate[0:2] == [NASTY, "5 %"]
        assert float(rate[2].removesuffix(" %")) == pytest.approx(measured, rel=1e-3)
        assert table(page, "#gates")[0][:5] == ["march", "gate", "500", "120.5", "379.5"]
        last = table(page, "#last")[0]
        played = shop.rate.last_rounds(1)[0]
        assert int(last[0].replace(",", "")) == rounds == played["round"]
        assert float(last[1].replace(",", "")) == pytest.approx(played["x"][0], rel=1e-3)
        bars = page.execute_script("return [...document.querySelectorAll('.bars .name')].map((each) => each.textContent)")
        assert set(RULES) <= set(bars)
        assert text(page, "#report pre") == shop.rate.report()
    assert page.execute_script("return window.hacked") is None
    assert page.find_elements(By.CSS_SELECTOR, "main img") == []
    assert errors(page) == []


def test_prices_certified_regret_and_pending_rounds_are_shown(desk, service):
    shop = service["shop"]
    page = signed_in(desk, service, "read", "pricing")
    with shop.lock:
        rounds, proof = shop.soft.rounds, shop.soft.certificate()
        wait(page, lambda: figures(page)["Rounds"] == f"{rounds:,}")
        shown_regret = float(figures(page)["Certified regret"].replace(",", "").replace("−", "-"))  # noqa: RUF001
        assert shown_regret == pytest.approx(proof.regret, rel=1e-3)
        assert (figures(page)["Pending"], figures(page)["Refused"]) == ("3", "1")
        assert [row[0] for row in table(page, "#limits")] == ["latency", "spend"]
    charts = page.execute_script("""
        const lines = (chart) => chart.querySelectorAll('.series').length;
        return [...document.querySelectorAll('.chart')].map((chart) => [chart.getAttribute('aria-label'), lines(chart)]);
    """)
    drawn = {"Cost of the last rounds", "Decisions of the last rounds", "Cumulative violation of each limit", "Prices of the limits"}
    assert {label for label, _ in charts} >= drawn
    assert dict(charts)["Decisions of the last rounds"] == 3
    assert dict(charts)["Cumulative violation of each limit"] == 2


def test_an_alarm_is_said_in_words(desk, service):
    page = signed_in(desk, service, "read", "broken")
    assert "InfeasibleWarning in round" in text(page, "#one p.alarm")
    assert errors(page) == []


def test_a_session_that_is_not_there_is_said_to_be_missing(desk, service):
    page = signed_in(desk, service, "read")
    page.get(service["url"] + "/#/nobody")
    wait(page, lambda: "no session" in text(page, "#one .alarm"))
    page.find_element(By.CSS_SELECTOR, "#one a").click()
    wait(page, lambda: shown(page, "#all table"))


# --- how it looks -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [320, 390, 768, 1440])
@pytest.mark.parametrize("name", ["", "shop-17", "pricing"])
def test_the_live_page_fits(desk, service, width, name):
    desk.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": False})
    try:
        signed_in(desk, service, "read", name)
        assert desk.execute_script("return innerWidth") == width
        assert desk.execute_script("return document.documentElement.scrollWidth") <= width
    finally:
        desk.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_the_live_page_can_be_dark_and_remembers_it(page, service):
    paper = "return getComputedStyle(document.body).backgroundColor"
    assert page.execute_script(paper) == "rgb(251, 251, 249)"
    page.find_element(By.ID, "dark").click()
    assert page.execute_script(paper) == "rgb(16, 19, 23)"
    page.refresh()
    wait(page, lambda: shown(page, "#all table"))
    assert page.execute_script(paper) == "rgb(16, 19, 23)"


def test_without_scripts_it_says_where_to_look(service):
    plain = start(scripts=False)
    try:
        plain.get(service["url"] + "/")
        assert "/v1/sessions" in plain.find_element(By.TAG_NAME, "noscript").text or "/v1/sessions" in plain.page_source
    finally:
        plain.quit()


# --- a server that comes and goes -------------------------------------------------------------------------------------------------------


def test_it_finds_a_server_that_was_started_again(desk, tmp_path):
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        port = place.getsockname()[1]
    server = ServerProcess(f"sqlite:///{tmp_path / 'again.db'}", tmp_path, port)
    try:
        server.start()
        with bridle.Client(server.url) as client:
            session = client.create("one", "anytime", bridle.Ball(2))
            session.observe(f=1.0, df=[1.0, 0.0])
            desk.get("about:blank")
            desk.get(server.url + "/")
            wait(desk, lambda: shown(desk, "#all table"))
            assert not shown(desk, "#leave, #login"), "no key is asked for"
            assert server.stop() in (0, -signal.SIGTERM), "it ends though a page is open"
            wait(desk, lambda: text(desk, "#line") == "reconnecting")
            server.start()
            session.observe(f=1.0, df=[1.0, 0.0])
            wait(desk, lambda: text(desk, "#line") == "live")
            wait(desk, lambda: table(desk, "#all")[0][2] == "2")
    finally:
        server.close()
