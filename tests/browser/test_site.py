"""The documentation site that `make docs` has built, opened from the disk: accessibility, search, phones, no network."""

from __future__ import annotations

import json
from pathlib import Path

import axe_core_python
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from browser.chromium import errors, start

SITE = Path(__file__).parents[2].joinpath("build", "docs")
AXE = (Path(axe_core_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
KINDS = [
    "index", "tutorials/operator", "guides/resume", "explanation/certificates", "reference/index", "reference/policies/sinha2024",
    "reference/problems/halfspaces", "reference/api/domains", "gallery/index", "gallery/plot_capacity", "glossary", "search",
    "_modules/index",
]  # fmt: skip
"""A page of each kind."""

WIDE = [
    "policies", "practice", "exponents", "adapters", "choosing", "reference/policies/index", "reference/http/index", "reference/cli/index",
    "reference/api/session", "reference/source/anytime", "project/results",
]  # fmt: skip
"""Pages whose tables, formulas or signatures are wider than a phone."""


@pytest.fixture(scope="module")
def site():
    assert (SITE / "index.html").exists(), "build the site first: make docs"
    driver = start(1400, 1000)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def phone():
    driver = start(400, 800, touch=True)
    yield driver
    driver.quit()


def address(page: str) -> str:
    return (SITE / f"{page}.html").as_uri()


def open_page(driver, page: str, theme: str = "light") -> None:
    """Open a page as somebody sees it whose system prefers this theme. (A choice in localStorage may reach the next page too late.)"""
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": theme}]})
    driver.get(address(page))
    assert driver.execute_script("return document.documentElement.dataset.theme") == theme


DARK = ["index", "tutorials/operator", "reference/policies/sinha2024", "reference/api/domains", "gallery/index", "gallery/plot_capacity"]
"""In the dark colours alone are different: pages that have all of them."""

LOOKED_AT = {"light": (KINDS, {}), "dark": (DARK, {"runOnly": ["color-contrast"]})}
"""The pages and the rules of axe-core, by theme."""


def violations(driver, options: dict[str, object]) -> list[dict]:
    """What axe-core finds on the page that is open."""
    driver.execute_script(AXE)
    run = "const done = arguments[1]; axe.run(document, {resultTypes: ['violations'], ...arguments[0]}).then(done)"
    answer = driver.execute_async_script(run, options)
    assert answer["passes"], "axe looked at nothing"
    return answer["violations"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_serious_stands_in_the_way_of_anybody(site, theme):
    """axe-core finds nothing that it calls serious or critical on a page of any kind."""
    found = {}
    pages, options = LOOKED_AT[theme]
    for page in pages:
        open_page(site, page, theme)
        grave = [each for each in violations(site, options) if each["impact"] in ("serious", "critical")]
        if grave:
            found[page] = [(each["id"], each["nodes"][0]["html"][:120]) for each in grave]
    assert found == {}


def test_axe_would_find_something(site):
    """The check above can fail: a picture without words, text in grey on grey."""
    open_page(site, "index")
    site.execute_script("document.querySelector('main').innerHTML = '<img src=x><p style=\"color: #777; background: #888\">faint</p>'")
    assert {"image-alt", "color-contrast"} <= {each["id"] for each in violations(site, {})}


def test_search_finds_a_policy_from_the_disk(site):
    """Typed into the search field of the first page, without a server; nothing fails, also after the results are there."""
    errors(site)
    open_page(site, "index")
    site.find_element(By.CSS_SELECTOR, "button.search-button").click()
    field = WebDriverWait(site, 20).until(lambda driver: next(e for e in driver.find_elements(By.NAME, "q") if e.is_displayed()))
    field.send_keys("hutchinson2025", Keys.ENTER)
    wanted = "#search-results li a[href*='reference/policies/hutchinson2025.html']"
    assert WebDriverWait(site, 30).until(lambda driver: driver.find_elements(By.CSS_SELECTOR, wanted))
    done = "return document.querySelector('#search-results .search-summary').textContent.includes('finished')"
    WebDriverWait(site, 30).until(lambda driver: driver.execute_script(done))
    assert errors(site) == []


def test_nothing_is_asked_of_a_network_and_nothing_fails(site):
    site.get_log("performance")
    errors(site)
    for page in KINDS:
        open_page(site, page)
    asked = [
        message["params"]["request"]["url"]
        for entry in site.get_log("performance")
        if (message := json.loads(entry["message"])["message"])["method"] == "Network.requestWillBeSent"
    ]
    assert asked
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    assert errors(site) == []


def test_no_page_is_wider_than_a_phone(phone):
    """Tables, formulas and code scroll inside themselves; the page does not."""
    too_wide = {}
    for page in [*KINDS, *WIDE]:
        phone.get(address(page))
        width = phone.execute_script("return document.documentElement.scrollWidth")
        if width > 400:
            too_wide[page] = width
    assert too_wide == {}


def test_a_formula_is_drawn_and_a_picture_is_there(site):
    open_page(site, "reference/policies/sinha2024")
    formula = site.find_element(By.CSS_SELECTOR, ".formula math")
    assert formula.size["height"] > 40  # three lines
    assert site.execute_script("const i = document.querySelector('figure img'); return i.complete && i.naturalWidth > 100")
