"""The table of parameters that the pages of policies and of problems share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bridle_site import rst
from bridle_site.docstrings import plain_line


def parameter_table(parameters: Sequence[Mapping[str, Any]]) -> list[str]:
    """Parameters with their meaning, unit, range and default."""
    rows = [
        [f"``{p['name']}``", plain_line(p["help"]), plain_line(p["unit"]), plain_line(p["values"]), where_not_given(p)] for p in parameters
    ]
    if not rows:
        return ["It takes none of its own.", ""]
    return rst.table(("parameter", "meaning", "unit", "values", "where not given"), rows, (14, 34, 16, 20, 16))


def where_not_given(p: Mapping[str, Any]) -> str:
    """The default of a parameter, or what happens without it."""
    if p["required"]:
        return "must be given"
    return plain_line(p["absent"] or "nothing") if p["default"] is None else f"``{p['default']}``"
