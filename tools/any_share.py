"""How many annotations of the package are not checked because they contain `Any`, or a name that stands for a type with `Any` in it.

    python tools/any_share.py     the share of every room, and of all

An annotation is that of a parameter (but self and cls), of a result, or of a variable or field. A name that the package gives to a type
(``Row = dict[str, Any]``) counts as what it stands for, so that `Any` cannot be hidden behind one.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "bridle"


def names(node: ast.AST) -> set[str]:
    """Every name in an expression, also inside annotations written as text."""
    found: set[str] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            found.add(part.id)
        elif isinstance(part, ast.Attribute):
            found.add(part.attr)
        elif isinstance(part, ast.Constant) and isinstance(part.value, str):
            try:
                found |= names(ast.parse(part.value, mode="eval"))
            except SyntaxError:
                continue
    return found


def annotations(tree: ast.Module) -> Iterator[ast.expr]:
    """Every annotation of a module."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            given = node.args
            for argument in [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]:
                if argument is not None and argument.annotation is not None:
                    yield argument.annotation
            if node.returns is not None:
                yield node.returns
        elif isinstance(node, ast.AnnAssign) and "TypeAlias" not in names(node.annotation):
            yield node.annotation


def unchecked_names(trees: dict[Path, ast.Module]) -> set[str]:
    """`Any`, and every name at the top of a module for a type that contains one of these."""
    aliases: dict[str, set[str]] = {}
    for tree in trees.values():
        for node in tree.body:
            value = getattr(node, "value", None)
            if isinstance(node, ast.AnnAssign) and value is not None and "TypeAlias" in names(node.annotation):
                aliases[node.target.id] = names(value)  # type: ignore[union-attr]
            elif isinstance(node, ast.Assign) and isinstance(value, (ast.Subscript, ast.Name, ast.BinOp)):
                aliases |= {target.id: names(value) for target in node.targets if isinstance(target, ast.Name)}
    found = {"Any"}
    while more := {name for name, inside in aliases.items() if inside & found} - found:
        found |= more
    return found


def main() -> None:
    """Count and print."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}
    unchecked = unchecked_names(trees)
    total, bad = Counter[str](), Counter[str]()
    for path, tree in trees.items():
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        for annotation in annotations(tree):
            total[room] += 1
            bad[room] += bool(names(annotation) & unchecked)
    for room in sorted(total, key=lambda room: -bad[room]):
        print(f"{room:16} {bad[room]:5} of {total[room]:5}  {bad[room] / total[room]:6.1%}")
    share = bad.total() / total.total()
    print(f"{'all':16} {bad.total():5} of {total.total():5}  {share:6.1%}  (unchecked names: {', '.join(sorted(unchecked))})")


if __name__ == "__main__":
    main()
