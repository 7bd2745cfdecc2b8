"""Pieces of reStructuredText."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path


def heading(text: str, mark: str = "-") -> list[str]:
    """A heading."""
    return [text, mark * len(text), ""]


def indented(lines: Iterable[str], by: int = 3) -> list[str]:
    """Lines moved to the right."""
    return [" " * by + line if line else "" for line in lines]


def directive(name: str, argument: str = "", options: dict[str, str] | None = None, content: Iterable[str] = ()) -> list[str]:
    """A directive with its options and content."""
    head = [f".. {name}:: {argument}".rstrip(), *(f"   :{key}: {value}".rstrip() for key, value in (options or {}).items()), ""]
    return [*head, *indented(content), ""]


def table(head: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int], kind: str = "") -> list[str]:
    """A table whose cells are lines of reStructuredText."""
    options = {"header-rows": "1" if head else "0", "widths": " ".join(map(str, widths)), "class": f"wide-table {kind}".strip()}
    content = []
    for row in ([head] if head else []) + list(rows):
        content += [f"{'* ' if i == 0 else '  '}- {cell}".rstrip() for i, cell in enumerate(row)]
    return directive("list-table", "", options, content)


def doctest(lines: Sequence[str]) -> list[str]:
    """An example with its output."""
    return directive("code-block", "pycon", None, lines)


def write(path: Path, lines: Sequence[str]) -> None:
    """Write a page, unless it is there already as it is: what has not changed is not read again."""
    text = "\n".join(lines).rstrip() + "\n"
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
