"""The docstring of a policy's module, part by part.

Every one has the same order: a line that says what it is, the update, `Guarantee:`, `Reference:`, perhaps a proof, and an example. Indented
paragraphs are formulas.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from types import ModuleType

from bridle_site import notation, rst
from bridle_site.docstrings import plain_line


@dataclass(frozen=True)
class ModuleText:
    """The parts, as reStructuredText; the example as it is."""

    summary: str
    update: list[str]
    guarantee: list[str]
    reference: str
    proof: list[str]
    example: list[str]


def read(module: ModuleType) -> ModuleText:
    """The parts of a module's docstring."""
    text = inspect.cleandoc(module.__doc__ or "")
    text, _, example = text.partition("\n>>> ")
    start, _, rest = text.partition("\nGuarantee:")
    guarantee, _, rest = rest.partition("\nReference:")
    reference, _, proof = rest.partition("\n\n")
    summary, _, update = start.partition("\n\n")
    if not (guarantee and reference and example):
        raise ValueError(f"the docstring of {module.__name__} lacks a guarantee, a reference or an example")
    return ModuleText(
        plain_line(" ".join(summary.split())),
        paragraphs(update),
        paragraphs(_unhung(guarantee)),
        plain_line(" ".join(reference.split())),
        paragraphs(proof),
        f">>> {example}".rstrip().split("\n"),
    )


def _unhung(text: str) -> str:
    """A part whose later lines hang below its first: its sentences at the margin, its formulas indented."""
    first, *others = text.strip().split("\n\n")
    return "\n\n".join([_flat(first), *(other if is_formula(other.split("\n")) else _flat(other) for other in others)])


def _flat(text: str) -> str:
    return " ".join(text.split())


def is_formula(lines: list[str]) -> bool:
    """Whether an indented paragraph is mathematics: its lines have relations, and fewer words than symbols."""
    if not all(line.startswith("    ") for line in lines):
        return False
    text = " ".join(lines)
    words = [word for word in re.findall(r"[A-Za-z]{2,}", text) if not notation.is_symbol(word)]
    symbols = re.findall(r"[=<>+*/^_|()]", text)
    return bool(notation.RELATION.search(text)) and len(words) < len(symbols)


def paragraphs(text: str) -> list[str]:
    """Paragraphs as reStructuredText, with formulas set apart."""
    out: list[str] = []
    for part in text.strip("\n").split("\n\n"):
        lines = part.split("\n")
        if is_formula(lines):
            out += rst.directive("math", "", {"nowrap": ""}, [notation.block(lines)])
        elif any(re.match(r"\(\d+\) ", line) for line in lines):  # numbered steps of a proof
            for step in re.split(r"\n(?=\(\d+\) )", part):
                out += [plain_line(_flat(step)), ""]
        else:
            out += [plain_line(_flat(part)), ""]
    return out
