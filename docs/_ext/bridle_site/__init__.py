"""The site's own Sphinx extension: formulas, docstrings, links that leave docs/, and the pages of the reference."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PARTS = ("formulas", "docstrings", "outside", "tidy")
PAGES = ("name_pages", "policy_pages", "problem_pages", "command_page", "routes_page")


def write_reference(app: Sphinx) -> None:
    """Write the pages of the reference before Sphinx looks for pages."""
    for pages in PAGES:
        import_module(f"bridle_site.{pages}").write(Path(app.srcdir) / "reference")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the parts."""
    for part in PARTS:
        import_module(f"bridle_site.{part}").setup(app)
    app.connect("builder-inited", write_reference)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
