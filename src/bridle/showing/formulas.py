"""Sentences with names of parameters and small formulas in them, as HTML: nothing of how they are typed stays visible."""

from __future__ import annotations

import re
from html import escape

_RULES: tuple[tuple[str, str], ...] = (
    (r"`([^`]+)`", r"<code>\1</code>"),
    (r"&lt;([^,;&]{1,12}), ([^,;&]{1,12})&gt;", "⟨\\1, \\2⟩"),
    (r"&lt;=", "≤"),
    (r"&gt;=", "≥"),
    (r"\bsqrt\((\w+)\)", r"√\1"),
    (r"\bsqrt\(([^()]+)\)", r"√(\1)"),
    (r"\^\(([^()]+)\)", r"<sup>\1</sup>"),
    (r"\^(\w+|\*)", r"<sup>\1</sup>"),
    (r"\b([A-Za-z])_([A-Za-z0-9]{1,2})\b", r"<var>\1</var><sub>\2</sub>"),
    (r"(?<=\w) \* (?=\w)", "·"),
)


def formatted(text: str) -> str:
    """Plain text as HTML: `names` as code, powers raised, indices lowered, roots and inner products as they are written.

    >>> formatted("f(x) = (modulus/2) |x - z|^2 plus <a, x>, with `slater` <= sqrt(T) and x_t")
    'f(x) = (modulus/2) |x - z|<sup>2</sup> plus ⟨a, x⟩, with <code>slater</code> ≤ √T and <var>x</var><sub>t</sub>'
    """
    html = escape(text, quote=False)
    for pattern, replacement in _RULES:
        html = re.sub(pattern, replacement, html)
    return html
