"""The site's own Sphinx extension: formulas as MathML, docstrings as reStructuredText, links that leave docs/."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bridle_site import docstrings, formulas, outside

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the parts."""
    for part in (formulas, docstrings, outside):
        part.setup(app)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
