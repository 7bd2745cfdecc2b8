"""How objects show themselves in one line: as a call that could be typed, cut short and never with an address; and numbers for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from math import floor, log10
from types import ModuleType
from typing import Literal, TypeAlias, TypeVar

import numpy as np

Kind = TypeVar("Kind", bound=type)

LISTED = 4
"""A list of at most so many values is written out."""

ROOM = 200
"""No value is longer than so many characters."""


def short(value: object) -> str:
    """A value in short: numbers to six digits, an array by its shape where it is long, a function by its name.

    >>> short(0.1 + 0.2), short(np.array([1.0, 2.0])), short(np.zeros((3, 200))), short(max)
    ('0.3', '[1.0, 2.0]', '<array 3 x 200>', 'max')
    """
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        value = value.item()
    if isinstance(value, float):
        exact = repr(value)
        return exact if len(exact) <= 8 else f"{value:.6g}"
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.size <= LISTED:
        return short(value.tolist())
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"<array {' x '.join(map(str, value.shape)) or 'of one number'}>"
    if type(value) in (list, tuple):
        return _listed(list(value), *("[]" if isinstance(value, list) else "()"))  # type: ignore[call-overload]
    if isinstance(value, Mapping):
        return (
            "{" + ", ".join(f"{short(key)}: {short(each)}" for key, each in value.items()) + "}" if len(value) <= LISTED else _many(value)
        )
    if callable(value) and hasattr(value, "__name__"):
        return str(value.__name__)
    return _cut(value)


def _listed(values: list[object], opening: str, closing: str) -> str:
    if len(values) <= LISTED:
        return opening + ", ".join(map(short, values)) + ("," if closing == ")" and len(values) == 1 else "") + closing
    return f"{opening}{', '.join(map(short, values[: LISTED - 1]))}, ... {len(values)} in all{closing}"


def _many(value: Mapping[object, object]) -> str:
    return f"{{{len(value)} entries}}"


def _cut(value: object) -> str:
    """What an object says of itself, on one line; its type where that is only where it lies in memory."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # somebody's own class
        text = " at 0x"
    if " at 0x" in text:
        return f"<{type(value).__name__}>"
    return text if len(text) <= ROOM else text[: ROOM - 4] + " ..."


class BareText(str):
    """A text that is shown as it is, without quotes."""

    def __repr__(self) -> str:
        return str(self)


def type_name(value: object) -> BareText:
    """The type of a value, in the place of the value."""
    return BareText(type(value).__name__)


def spread(value: object) -> str:
    """A figure for people; the least and the most of several.

    >>> spread(12345.678), spread(np.array([1.0, 2.5, 2.0]))
    ('12,346', '1 to 2.5')
    """
    values = np.asarray(value, dtype=float).ravel()
    low, high = (number(end) for end in (values.min(), values.max())) if values.size else ("-", "-")
    return low if low == high else f"{low} to {high}"


def count(many: int, one: str, several: str = "") -> str:
    """How many there are of something.

    >>> count(1, "round"), count(2000, "round")
    ('1 round', '2,000 rounds')
    """
    return f"{many:,} {one if many == 1 else several or one + 's'}"


def listing(names: Sequence[str]) -> str:
    """Names as a sentence lists them.

    >>> listing(["a", "b", "c"])
    'a, b and c'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else ""


def seed_range(seeds: Sequence[int]) -> str:
    """Seeds in words: from the first to the last where none is missing, else one by one.

    >>> seed_range([0, 1, 2, 3]), seed_range([0, 2])
    ('0 to 3', '0, 2')
    """
    whole = len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[-1] + 1))
    return f"{seeds[0]} to {seeds[-1]}" if whole else ", ".join(map(str, seeds))


def call(name: str, *given: object, **named: object) -> str:
    """The call of this name with these arguments, in short.

    >>> call("Ball", 2, radius=3.0)
    'Ball(2, radius=3.0)'
    """
    return f"{name}({', '.join([*map(short, given), *(f'{key}={short(value)}' for key, value in named.items())])})"


def shown(name: str, **renamed: str) -> Callable[[Kind], Kind]:
    """Class decorator: a record that shows itself as the call of its factory; `renamed` are fields that are called otherwise there.

    >>> from typing import NamedTuple
    >>> @shown("Line", a="slope")
    ... class LineRecord(NamedTuple):
    ...     a: float
    >>> LineRecord(2.0)
    Line(slope=2.0)
    """

    def decorate(kind: Kind) -> Kind:
        def represent(self: Iterable[object]) -> str:
            fields: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]
            return call(name, **{renamed.get(field, field): value for field, value in zip(fields, self, strict=True)})

        kind.__repr__ = represent  # type: ignore[assignment]
        return kind

    return decorate


def later(module: str) -> ModuleType:
    """The module that draws what lies below it: a class finds its picture by name, when somebody looks."""
    return import_module(module)


# --- numbers ------------------------------------------------------------------------------------------------------------------------

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
