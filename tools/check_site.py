"""Check the site that `make docs` has built: links and anchors inside lead somewhere, nothing is loaded from elsewhere, no page is far.

Addresses outside the site are checked for their form alone, since nothing is asked over a network: `make linkcheck` does that.

python tools/check_site.py build/docs
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import deque
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

CLICKS = 2
"""How many clicks away from the first page a page may be."""

LOADED = {"script": "src", "img": "src", "source": "src", "link": "href", "iframe": "src", "video": "src"}
"""What a browser fetches by itself, and where it says from where."""


class Site:
    """What is wrong with a site, and what was counted."""

    def __init__(self, pages: int) -> None:
        self.pages = pages
        self.links = 0
        self.outside: set[str] = set()
        self.faults: list[str] = []


class Page(HTMLParser):
    """The anchors, the links and the loaded files of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = {key: value or "" for key, value in attrs}
        self.anchors |= {told[key] for key in ("id", "name") if key in told}
        if tag == "a" and "href" in told:
            self.links.append(told["href"])
        if tag == "form" and "action" in told:
            self.links.append(told["action"])
        fetched = tag != "link" or told.get("rel") in ("stylesheet", "icon", "preload")
        if fetched and LOADED.get(tag, "") in told:
            self.loaded.append(told[LOADED[tag]])


def check(folder: Path, first: str = "index.html", clicks: int = CLICKS) -> Site:
    """Everything that is wrong with the site in a folder."""
    paths = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*.html")) if "_static" not in path.parts}
    pages = {name: Page(path.read_text(encoding="utf-8")) for name, path in paths.items()}
    site = Site(pages=len(pages))
    leads = {name: _check_page(folder, name, pages, site) for name in pages}
    for name, distance in distances(leads, first).items():
        if distance is None:
            site.faults.append(f"{name}: no link leads to it from {first}")
        elif distance > clicks:
            site.faults.append(f"{name}: {distance} clicks from {first}, at most {clicks} are allowed")
    return site


def _check_page(folder: Path, name: str, pages: dict[str, Page], site: Site) -> set[str]:
    """Note what is wrong on a page, and give the pages to which it leads."""
    leads = set()
    for address in pages[name].loaded:
        if is_outside(address):
            site.faults.append(f"{name}: loads {address}, and would not look the same without a network")
        elif not address.startswith("data:") and target(folder, name, address) is None:
            site.faults.append(f"{name}: loads {address}, which is not there")
    for address in pages[name].links:
        site.links += 1
        if is_outside(address):
            site.outside.add(address)
            if not well_formed(address):
                site.faults.append(f"{name}: {address!r} is not an address")
            continue
        found = target(folder, name, address)
        if found is None:
            site.faults.append(f"{name}: links to {address}, which is not there")
            continue
        anchor = unquote(urlsplit(address).fragment)
        if found in pages:
            leads.add(found)
            if anchor and anchor not in pages[found].anchors:
                site.faults.append(f"{name}: links to {address}, and {found} has no such anchor")
    return leads


def is_outside(address: str) -> bool:
    """Whether an address leaves the site."""
    return bool(urlsplit(address).scheme) or address.startswith("//")


def well_formed(address: str) -> bool:
    """Whether an address outside has the form of one.

    >>> well_formed("https://arxiv.org/abs/2310.18955"), well_formed("https://arxiv"), well_formed("htps://arxiv.org")
    (True, False, False)
    """
    parts = urlsplit(address)
    if parts.scheme == "mailto":
        return bool(re.fullmatch(r"[^@\s]+@[^@\s]+\.[a-z]+", parts.path))
    host = parts.hostname or ""
    local = host in ("localhost", "127.0.0.1")
    return parts.scheme in ("http", "https") and not re.search(r"\s", address) and (local or bool(re.fullmatch(r"[\w-]+(\.[\w-]+)+", host)))


def target(folder: Path, name: str, address: str) -> str | None:
    """The file of the site to which a page's link leads; None where there is none."""
    path = unquote(urlsplit(address).path)
    found = (folder / name) if not path else (folder / name).parent / path
    found = found / "index.html" if found.is_dir() else found
    try:
        return found.resolve().relative_to(folder.resolve()).as_posix() if found.exists() else None
    except ValueError:
        return None


def distances(leads: dict[str, set[str]], first: str) -> dict[str, int | None]:
    """How many clicks every page is away from the first; None where none leads there.

    >>> distances({"a": {"b"}, "b": {"c"}, "c": set(), "d": {"a"}}, "a")
    {'a': 0, 'b': 1, 'c': 2, 'd': None}
    """
    found: dict[str, int | None] = dict.fromkeys(leads)
    found[first] = 0
    ahead = deque([first])
    while ahead:
        page = ahead.popleft()
        for other in sorted(leads[page]):
            if found[other] is None:
                found[other] = (found[page] or 0) + 1
                ahead.append(other)
    return found


def main() -> int:
    """Check the site, say what is wrong, and give the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    site = check(folder)
    for fault in site.faults:
        print(fault, file=sys.stderr)
    print(
        f"{site.pages} pages, {site.links} links; {len(site.outside)} addresses outside were checked for their form only", file=sys.stderr
    )
    return 1 if site.faults else 0


if __name__ == "__main__":
    sys.exit(main())
