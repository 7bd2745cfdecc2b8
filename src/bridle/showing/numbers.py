"""Numbers as people read them: in a table, on a page, beside an axis."""

from __future__ import annotations

from math import floor, log10
from typing import Literal, TypeAlias

NumberStyle: TypeAlias = Literal["table", "page", "axis"]
"""Where a number stands: in a table of the terminal, on a page, or beside an axis."""


def number(value: object, style: NumberStyle = "table", digits: int = 4) -> str:
    """A number in one of the styles, "-" for None; several, as a sweep has them, side by side.

    On a page `digits` are significant, a total of almost nothing is said to be that, and a minus sign is as wide as a digit. Beside an
    axis it is a power of ten where zeros would be many.

    >>> number(12345.678), number(0.012345), number(None), number(3e69)
    ('12,346', '0.01235', '-', '3e+69')
    >>> number(12345.678, "page"), number(1.5, "page"), number(1e-12, "page"), number(2.0, "page", digits=3)
    ('12,346', '1.500', '≈ 0', '2.00')
    >>> number(1000.0, "axis"), number(0.01, "axis"), number(1e6, "axis"), number(2e-5, "axis")
    ('1,000', '0.01', '10⁶', '2·10⁻⁵')
    """
    if value is None:
        return "-"
    if isinstance(value, list):
        return " ".join(number(item, style, digits) for item in value)
    real = float(value)  # type: ignore[arg-type]
    if style == "table":
        return f"{real:,.0f}" if 1000 <= abs(real) < 1e15 else f"{real:.4g}"  # beyond 1e15 most digits are noise
    size = _on_page(abs(real), digits) if style == "page" else _beside_axis(abs(real))
    return f"−{size}" if real < 0.0 and size != "≈ 0" else size  # noqa: RUF001  (a minus sign is as wide as a digit)


def _on_page(size: float, digits: int) -> str:
    if size < 1e-9:
        return "0" if size == 0.0 else "≈ 0"
    return f"{size:.3g}" if size >= 1e7 or size < 1e-3 else f"{size:,.0f}" if size >= 1000 else f"{size:#.{digits}g}".rstrip(".")


def _beside_axis(size: float) -> str:
    power = floor(log10(size) + 1e-9) if size else 0
    if -4 < power < 5:
        return f"{size:,.10g}"
    power_of_ten = "10" + "".join("⁻" if sign == "-" else "⁰¹²³⁴⁵⁶⁷⁸⁹"[int(sign)] for sign in str(power))
    factor = f"{round(size / 10.0**power, 6):g}"
    return power_of_ten if factor == "1" else f"{factor}·{power_of_ten}"
