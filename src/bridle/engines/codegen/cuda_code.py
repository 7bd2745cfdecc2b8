"""The code of a kernel as data: text, and in it the variables and the elements of arrays that it names.

Where an array lives (in registers, in shared memory, in both) is known only when all statements are. So code is a list of parts until
then, and says which variables and elements it reads and writes; `Code.text` spells it at the very end.

>>> x = Code((Element("b1", code("i0 + 1")),))
>>> product = code("(", Var("v2"), " * ", x, ")")
>>> list(product.names()), [each.array for each in product.elements()]
(['v2'], ['b1'])
>>> product.text(lambda element: f"{element.array}[...]")
'(v2 * b1[...])'
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias


class Var(NamedTuple):
    """A variable, or an array whose place is fixed: a table, or a row of draws."""

    name: str


class Own(NamedTuple):
    """The element that the loop around is about, which the lane itself holds.

    `part` is "all" for an array that is spread over the lanes one element after the other; "grid" for the rows of a matrix, which are the
    first `size` elements, or "rest" for what comes after them.
    """

    part: str
    size: int = 0


class Element(NamedTuple):
    """An element of an array: at a place in memory, or the lane's own."""

    array: str
    place: Code | Own
    window: tuple[int, int] | None = None
    """The part of the array (begin, end) that the place is in, where it is known."""
    written: bool = False


Part: TypeAlias = str | Var | Element


@dataclass(frozen=True, slots=True)
class Code:
    """Text with the variables and elements in it. Two codes are equal where they are spelled alike."""

    parts: tuple[Part, ...]
    operation: str = field(default="", compare=False)
    """The traced operation that it is the result of, and `operands` what goes into that; empty where it is none or several."""
    operands: tuple[Code, ...] = field(default=(), compare=False)
    slow: bool = field(default=False, compare=False)
    """Whether an exponential, a logarithm or a power is in it."""
    number: float | None = field(default=None, compare=False)
    """The number that a literal stands for."""

    @property
    def variable(self) -> str:
        """The name of the one variable that this is; empty where it is anything else."""
        part = self.parts[0] if len(self.parts) == 1 else ""
        return part.name if isinstance(part, Var) else ""

    def names(self) -> Iterator[str]:
        """The variables it reads, in order, also those that say where an element is."""
        for part in self.parts:
            if isinstance(part, Var):
                yield part.name
            elif isinstance(part, Element) and isinstance(part.place, Code):
                yield from part.place.names()

    def elements(self) -> Iterator[Element]:
        """The elements of arrays that it reads or writes, also those that say where another one is."""
        for part in self.parts:
            if isinstance(part, Element):
                if isinstance(part.place, Code):
                    yield from part.place.elements()
                yield part

    def wrapped(self, names: set[str], function: str) -> Code:
        """The code with a function called on each of these variables."""
        parts = [code(function, "(", part, ")") if isinstance(part, Var) and part.name in names else code(part) for part in self.parts]
        return code(*parts)

    def text(self, spell: Callable[[Element], str]) -> str:
        """The text, where `spell` says how an element is spelled."""
        return "".join(part if isinstance(part, str) else part.name if isinstance(part, Var) else spell(part) for part in self.parts)


def code(*pieces: Part | Code | int) -> Code:
    """These pieces, one after the other.

    >>> code("a", 1, " + ", code("b")) == code("a1 + b")
    True
    """
    if len(pieces) == 1 and isinstance(pieces[0], Code):
        return pieces[0]
    parts: list[Part] = []
    slow = False
    for piece in pieces:
        if isinstance(piece, Code):
            slow = slow or piece.slow
        for part in piece.parts if isinstance(piece, Code) else (str(piece) if isinstance(piece, int) else piece,):
            if isinstance(part, str) and parts and isinstance(parts[-1], str):
                parts[-1] += part
            elif part != "":
                parts.append(part)
    return Code(tuple(parts), slow=slow)


def filled(template: str, *pieces: Part | Code | int) -> Code:
    """The template with pieces in place of its ``{}``.

    >>> filled("({} + {})", Var("v1"), 2).parts
    ('(', Var(name='v1'), ' + 2)')
    """
    first, *texts = template.split("{}")
    return code(first, *(part for pair in zip(pieces, texts, strict=True) for part in pair))


def written(target: Code) -> Code:
    """The code of an element or a variable as the target of an assignment."""
    first, *rest = target.parts
    return Code((first._replace(written=True), *rest)) if isinstance(first, Element) else target


def flat(shape: Sequence[int], at: Sequence[Code]) -> Code:
    """The place of an element in an array laid out row by row.

    >>> flat((4, 1, 3), [code(name) for name in ("i0", "0", "i2")]).parts
    ('i0 * 3 + i2',)
    """
    terms: list[Code] = []
    beyond = 1
    for size, index in zip(reversed(shape), reversed(at), strict=True):
        if size > 1 and index != ZERO:
            terms.insert(0, index if beyond == 1 else code(index, " * ", beyond))
        beyond *= size
    return summed(terms) if terms else ZERO


def summed(terms: Sequence[Code], sign: str = "+") -> Code:
    """Terms with a sign between any two."""
    return code(terms[0], *(part for term in terms[1:] for part in (f" {sign} ", term)))


ZERO = code("0")
TYPE = {"f": "double", "i": "long long", "b": "bool"}
"""The C type of each kind of number."""
