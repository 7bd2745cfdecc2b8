r"""Docstrings are plain text that reads well in a terminal; here they become reStructuredText.

`names` in single backticks become links where the name is documented, and code elsewhere; |x|, \*args and trailing underscores are text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bridle_site import notation

if TYPE_CHECKING:
    from sphinx.application import Sphinx

SUBSCRIPTED = re.compile(r"(?<![\w.`])([A-Za-z]+)_(\{[^{}]+\}|[A-Za-z0-9])(?![\w`])(\^(?:\{[^{}]+\}|[+\w]))?")
CODE = re.compile(r"(``.+?``|:[\w:]+:`[^`]+`|`[^`]+`)")
NAME = re.compile(r"[A-Za-z_][\w.]*(\(\))?")


def with_formulas(text: str) -> str:
    """Plain text with formulas as mathematics, and with what means something in reStructuredText escaped."""
    out, done = "", 0
    spans = [(m.start(), m.end()) for m in SUBSCRIPTED.finditer(text) if notation.is_symbol(m.group(1))]
    for start, end in sorted([*notation.runs(text), *spans], key=lambda span: (span[0], -span[1])):
        if start >= done:
            before = escaped(text[done:start])
            joint = "\\ " if before and not before[-1].isspace() else ""  # so that the role is seen after a bar or a sign
            out += before + joint + f":math:`{notation.formula(text[start:end])}`\\ "
            done = end
    return out + escaped(text[done:])


def escaped(text: str) -> str:
    """Text that means nothing in reStructuredText."""
    return re.sub(r"([*|\\])|(?<=\w)(_)(?=\W|$)", lambda m: "\\" + m.group(0), text)


def plain_line(line: str) -> str:
    """One line of a paragraph as reStructuredText."""
    parts = CODE.split(line)
    for i, part in enumerate(parts):
        if i % 2 == 0:
            parts[i] = with_formulas(part)
        elif part.startswith("`") and not part.startswith("``") and not NAME.fullmatch(part[1:-1]):
            parts[i] = f"`{part}`"
    return "".join(parts)


def as_rst(lines: list[str]) -> list[str]:
    """A docstring's lines with indented blocks, examples and directives left alone.

    >>> as_rst(["The norm |x| of `x`, or any | or *, see `a + b`."])
    ['The norm :math:`|x|`\\\\  of `x`, or any \\\\| or \\\\*, see ``a + b``.']
    """
    out: list[str] = []
    literal: int | None = None  # the indentation that a literal block or a directive is deeper than
    example = False
    for line in lines:
        text, indent = line.strip(), len(line) - len(line.lstrip())
        if not text:
            example = False
            out.append(line)
            continue
        if literal is not None and indent > literal:
            out.append(line)
            continue
        literal = None
        if text.startswith(">>>"):
            example = True
        if example:
            out.append(line)
            continue
        if re.match(r"\.\. \w+::", text) or text.startswith(".. "):
            literal = indent
            out.append(line)
            continue
        if text.endswith("::"):
            literal = indent
        underline = len(set(text)) == 1 and text[0] in "-=~" and len(text) > 2
        out.append(line if underline else line[:indent] + plain_line(text))
    return out


def process(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Autodoc's hook; it runs before napoleon's."""
    lines[:] = as_rst(lines)


def setup(app: Sphinx) -> None:
    """Register the hook."""
    app.connect("autodoc-process-docstring", process, priority=100)
