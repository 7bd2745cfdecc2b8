"""Pages of source lead back to the reference, where the reference has the name under that module."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

BACK = re.compile(r'<a class="viewcode-back" href="([^"#]+)#([^"]+)">\[docs\]</a>')


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors of a page."""
    return frozenset(re.findall(r'id="([^"]+)"', page.read_text(encoding="utf-8"))) if page.exists() else frozenset()


def prune(app: Sphinx, trouble: Exception | None) -> None:
    """Take out links back that lead nowhere: an imported name is documented under the module that offers it, not the one that defines it."""
    if trouble is not None or app.builder.name != "html":
        return
    for path in (Path(app.outdir) / "_modules").rglob("*.html"):
        text = path.read_text(encoding="utf-8")

        def kept(found: re.Match[str], folder: Path = path.parent) -> str:
            return found.group(0) if found.group(2) in anchors((folder / found.group(1)).resolve()) else ""

        pruned = BACK.sub(kept, text)
        if pruned != text:
            path.write_text(pruned, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Register the hook."""
    app.connect("build-finished", prune)
