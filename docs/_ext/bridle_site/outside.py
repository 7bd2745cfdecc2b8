"""Links between files of the repository, as links between pages of the site.

Pages and included files name each other by their places in the repository, so that the links work there too. A file outside docs/ that the
site shows has a page in docs/project/; any other file outside docs/ is offered as it is.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

DOCS = Path(__file__).parents[2]
PAGES = {
    "README.md": "docs/index.md",
    "CONTRIBUTING.md": "docs/project/contributing.md",
    "SECURITY.md": "docs/project/security.md",
    "CHANGELOG.md": "docs/project/changelog.md",
    "CODE_OF_CONDUCT.md": "docs/project/conduct.md",
    "benchmarks/results.md": "docs/project/results.md",
}
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)\s#]+)(#[^)\s]*)?\)")


def led_inside(text: str, folder: Path, docname: str) -> str:
    """A text that lies in `folder`, with its links as page `docname` must have them."""

    def link(found: re.Match[str]) -> str:
        target = Path(os.path.normpath(folder / found.group(1))).relative_to(DOCS.parent).as_posix()
        page = next((each for each in (PAGES.get(target, target), target) if (DOCS.parent / each).exists()), None)
        if page is None:
            return found.group(0)
        return f"]({os.path.relpath(DOCS.parent / page, (DOCS / docname).parent)}{found.group(2) or ''})"

    return LINK.sub(link, text)


def read(app: Sphinx, docname: str, content: list[str]) -> None:
    """Sphinx's hook for a page."""
    source = Path(app.env.doc2path(docname))
    if source.suffix == ".md":
        content[0] = led_inside(content[0], source.parent, docname)


def included(app: Sphinx, path: Path, docname: str, content: list[str]) -> None:
    """Sphinx's hook for a file that a page includes. MyST tells the last part of the page's name only, so the page is asked for."""
    content[0] = led_inside(content[0], (DOCS / path).resolve().parent, app.env.current_document.docname)


def setup(app: Sphinx) -> None:
    """Register the hooks."""
    app.connect("source-read", read)
    app.connect("include-read", included)
