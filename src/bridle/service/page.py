"""The live page's files: one frame, one style sheet (that of the reports, and a little more), one script, all from this server.

The frame and the files hold nothing of any session, so that they need no key; what they show comes from ``/v1/events``, which does.
"""

from __future__ import annotations

from functools import cache
from html import escape
from importlib.resources import files as resources
from string import Template
from typing import NamedTuple

from bridle import __version__
from bridle.compare.html_page import read_template, style_sheet


class PageFile(NamedTuple):
    """A file as it is sent."""

    content: bytes
    kind: str


def _own(name: str) -> str:
    return (resources("bridle.service") / "templates" / name).read_text(encoding="utf-8")


@cache
def frame() -> PageFile:
    """The page at /."""
    return PageFile(Template(_own("live.html")).substitute(version=escape(__version__)).encode(), "text/html; charset=utf-8")


@cache
def page_files() -> dict[str, PageFile]:
    """What the frame asks for, by name, under /page/."""
    script = read_template("shared.js").template + _own("drawing.js") + _own("live.js")
    return {
        "live.css": PageFile((style_sheet() + _own("live.css")).encode(), "text/css; charset=utf-8"),
        "live.js": PageFile(script.encode(), "text/javascript; charset=utf-8"),
        "icon.svg": PageFile(_own("icon.svg").encode(), "image/svg+xml"),
    }
