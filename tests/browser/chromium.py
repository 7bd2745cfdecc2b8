"""Chromium, as tests start it."""

from __future__ import annotations

import shutil
from typing import Any

from selenium import webdriver


def start(width: int = 1440, height: int = 1000, touch: bool = False, scripts: bool = True) -> Any:
    """A browser with a window of this size."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars", f"--window-size={width},{height}"):
        options.add_argument(argument)
    if touch:
        metrics = {"width": width, "height": height, "pixelRatio": 2, "touch": True}
        options.add_experimental_option("mobileEmulation", {"deviceMetrics": metrics})
    if not scripts:
        options.add_experimental_option("prefs", {"profile.managed_default_content_settings.javascript": 2})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    driver.set_script_timeout(60)
    return driver


def errors(driver: Any) -> list[Any]:
    """What the browser has complained of since it was last asked."""
    return [entry for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]


def bring_into_view(driver: Any, element: Any) -> None:
    """Scroll to an element, and wait until the page has heard of it: a scroll that is heard later hides what the pointer shows."""
    driver.execute_async_script(
        "arguments[0].scrollIntoView({block: 'center'}); requestAnimationFrame(() => requestAnimationFrame(arguments[1]))", element
    )
