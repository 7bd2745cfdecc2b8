"""How large the package is: syntax nodes, code lines, classes and files of each room.

Lines can be made longer; nodes cannot. A node is one of Python's syntax tree, without the marks for loading and storing. Code lines
hold something besides comments and docstrings.

    python tools/size.py            the rooms, largest first, and the sum
    python tools/size.py FOLDER     of another folder
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter, defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "bridle"
EMPTY = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def sizes(source: str) -> Counter[str]:
    """The counts of one file."""
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    filled = {
        line
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type not in EMPTY
        for line in range(token.start[0], token.end[0] + 1)
    }
    for node in nodes:
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(node) is not None:
            filled -= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return Counter(
        nodes=sum(not isinstance(node, ast.expr_context) for node in nodes),
        lines=len(filled),
        classes=sum(isinstance(node, ast.ClassDef) for node in nodes),
        files=1,
    )


def main(folder: Path) -> None:
    """Print the table."""
    rooms: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for path in sorted(folder.rglob("*.py*")):
        if path.suffix in (".py", ".pyi"):
            room = "stubs (.pyi)" if path.suffix == ".pyi" else path.relative_to(folder).parts[0]
            rooms[room] += sizes(path.read_text(encoding="utf-8"))
    print(f"{'':20}{'nodes':>9}{'code lines':>12}{'classes':>9}{'files':>7}")
    for name, counts in [*sorted(rooms.items(), key=lambda item: -item[1]["nodes"]), ("all", sum(rooms.values(), Counter()))]:
        print(f"{name:20}{counts['nodes']:>9,}{counts['lines']:>12,}{counts['classes']:>9,}{counts['files']:>7,}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PACKAGE)
