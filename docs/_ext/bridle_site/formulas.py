"""Formulas as MathML, written at build time: browsers draw it themselves, without a script, a font or a network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util.math import get_node_equation_number

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.writers.html5 import HTML5Translator


def inline(self: HTML5Translator, node: nodes.math) -> None:
    """A formula inside a sentence."""
    self.body.append(convert(node.astext()))
    raise nodes.SkipNode


def displayed(self: HTML5Translator, node: nodes.math_block) -> None:
    """A formula on lines of its own; where it is wider than the page it scrolls in its own box, which the keyboard reaches too."""
    number = f' <span class="eqno">({get_node_equation_number(self, node)})</span>' if node.get("number") else ""
    source = node.astext()
    if "\\\\" in source and "\\begin" not in source:
        source = f"\\begin{{split}}{source}\\end{{split}}"
    box = '<div class="formula" tabindex="0" role="group" aria-label="Formula">'
    self.body.append(f"{box}{convert(source, display='block')}{number}</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Register the renderer under its name and choose it."""
    app.add_html_math_renderer("mathml", (inline, None), (displayed, None))
    app.config.html_math_renderer = "mathml"
