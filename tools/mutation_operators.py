"""Small changes to the source of a function, one at a time: what a test of its formulas must notice.

A mutant is a place in a module's syntax tree and what stands there instead. It is known by its function and by the statement before and
after, as Python writes them out, so that neither layout nor the lines around it matter. Texts, annotations, defaults, decorators and
what is raised stay as they are: their wording is no formula.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

MODULE_LEVEL = "<module>"
Place = tuple[ast.AST, str, int | None]
"""A node, the name of one of its fields, and the index there where the field is a list."""

SWAPPED_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
DROPPED_OPERANDS: dict[type[ast.operator], tuple[str, ...]] = {
    ast.Add: ("left", "right"), ast.Sub: ("left",), ast.Mult: ("left", "right"), ast.Div: ("left",), ast.Pow: ("left",),
}  # fmt: skip
COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
}  # fmt: skip
_PAIRS = (("min", "max"), ("minimum", "maximum"), ("argmin", "argmax"), ("any", "all"), ("floor", "ceil"), ("nanmin", "nanmax"))
SWAPPED_CALLS = dict(_PAIRS) | {there: here for here, there in _PAIRS}
EXTREMES = {"min", "max", "minimum", "maximum"}
REMOVED_CALLS = {"sqrt", "abs", "fabs", "exp", "log", "expm1", "log1p", "absolute", "square"}
ROUNDING = 1e-10
"""Numbers below this are there for rounding: they, and 1 plus or minus one of them as a factor, stay."""
FIRST_ALONE = {"ratio", "clip", "hypot"}
"""Functions whose first argument can stand for their result."""


@dataclass(frozen=True)
class Mutant:
    """One change: where it is, and the statement before and after it."""

    module: str
    function: str
    before: str
    after: str
    nth: int
    first_line: int
    last_line: int
    place: Place
    instead: ast.AST

    @property
    def name(self) -> str:
        """What the mutant is known by from one version of the source to the next."""
        again = f" #{self.nth}" if self.nth > 1 else ""
        return f"{self.module}:{self.function}: {self.before} => {self.after}{again}"

    def diff(self) -> str:
        """The change as lines to read."""
        return f"{self.module}:{self.first_line} {self.function}\n  - {self.before}\n  + {self.after}"


class Source:
    """A module's syntax tree, its mutants, and its code with one of them in place."""

    def __init__(self, module: str, path: Path) -> None:
        self.module, self.path, self.text = module, path, path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.text)
        self.plain = code_by_function(compile(self.tree, str(path), "exec", dont_inherit=True))

    def mutants(self) -> list[Mutant]:
        """Every mutant of every function and of every number that has a name of its own, in the order of the source."""
        found: list[Mutant] = []
        seen: dict[tuple[str, str, str], int] = {}
        for function, statement in statements(self.tree):
            before = described(statement)
            here: set[str] = set()
            for place, instead in changes(statement, at_module_level=function == MODULE_LEVEL):
                with changed(place, instead):
                    after = described(statement)
                if after == before or after in here:
                    continue
                here.add(after)
                nth = seen[function, before, after] = seen.get((function, before, after), 0) + 1
                last = header_end(statement)
                found.append(Mutant(self.module, function, before, after, nth, statement.lineno, last, place, instead))
        return found

    def written(self, function: str, before: str, after: str) -> Mutant | None:
        """The mutant that puts one statement in the place of another, both written out; None where the function has no such statement."""
        for name, statement in statements(self.tree):
            if name == function and described(statement) == before:
                for holder in ast.walk(self.tree):
                    for field, value in ast.iter_fields(holder):
                        if isinstance(value, list) and any(part is statement for part in value):
                            index = next(i for i, part in enumerate(value) if part is statement)
                            instead = ast.copy_location(ast.parse(after).body[0], statement)
                            place: Place = (holder, field, index)
                            return Mutant(self.module, function, before, after, 1, statement.lineno, header_end(statement), place, instead)
        return None

    def code_with(self, mutant: Mutant) -> dict[tuple[str, int, int], CodeType]:
        """The code of the functions that differ from the plain ones."""
        with changed(mutant.place, mutant.instead):
            ast.fix_missing_locations(self.tree)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a mutant need not be good style
                code = code_by_function(compile(self.tree, str(self.path), "exec", dont_inherit=True))
        return {key: new for key, new in code.items() if new != self.plain.get(key)}

    def value_with(self, mutant: Mutant, names: dict[str, object]) -> tuple[str, object]:
        """The name at module level that a mutant changes, and the value that it gets."""
        statement = next(node for node in self.tree.body if node.lineno == mutant.first_line)
        with changed(mutant.place, mutant.instead):
            value = compile(ast.fix_missing_locations(ast.Expression(statement.value)), str(self.path), "eval", dont_inherit=True)
        return assigned(statement), eval(value, names)

    def lines_with(self, name: str) -> set[int]:
        """The lines on which a name is read."""
        return {node.lineno for node in ast.walk(self.tree) if isinstance(node, ast.Name) and node.id == name}


def code_by_function(code: CodeType) -> dict[tuple[str, int, int], CodeType]:
    """The code of every function inside, by qualified name, first line, and which of its kind on that line it is."""
    found: dict[tuple[str, int, int], CodeType] = {}

    def walk(outer: CodeType) -> None:
        for const in outer.co_consts:
            if isinstance(const, CodeType):
                nth = sum(1 for name, line, _ in found if (name, line) == (const.co_qualname, const.co_firstlineno))
                found[const.co_qualname, const.co_firstlineno, nth] = const
                walk(const)

    walk(code)
    return found


@contextmanager
def changed(place: Place, instead: ast.AST) -> Iterator[None]:
    """The tree with something else at one place, for as long as this lasts."""
    node, field, index = place
    if index is None:
        was = getattr(node, field)
        setattr(node, field, instead)
    else:
        was = getattr(node, field)[index]
        getattr(node, field)[index] = instead
    try:
        yield
    finally:
        if index is None:
            setattr(node, field, was)
        else:
            getattr(node, field)[index] = was


def statements(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """Every statement that may be changed, after the qualified name of its function."""

    def inside(node: ast.AST, name: str, in_function: bool) -> Iterator[tuple[str, ast.stmt]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                inner = f"{name}.{child.name}" if name else child.name
                for statement in child.body:
                    yield from one(statement, inner)
            elif isinstance(child, ast.ClassDef):
                yield from inside(child, f"{name}.{child.name}" if name else child.name, in_function)

    def one(statement: ast.stmt, function: str) -> Iterator[tuple[str, ast.stmt]]:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for part in statement.body:
                yield from one(part, f"{function}.<locals>.{statement.name}")
            return
        yield function, statement
        for field in ("body", "orelse", "finalbody"):
            for part in getattr(statement, field, []):
                yield from one(part, function)
        for handler in getattr(statement, "handlers", []):
            for part in handler.body:
                yield from one(part, function)

    for statement in tree.body:  # numbers that have a name
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and assigned(statement) and is_number(statement.value):
            yield MODULE_LEVEL, statement
    yield from inside(tree, "", False)


def assigned(statement: ast.Assign | ast.AnnAssign) -> str:
    """The name that an assignment gives a value to; empty where it is no name."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
    return target.id if isinstance(target, ast.Name) else ""


def is_number(node: ast.expr | None) -> bool:
    """Whether an expression is a number, or arithmetic on numbers."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float)) and not isinstance(node.value, bool)
    if isinstance(node, ast.BinOp):
        return is_number(node.left) and is_number(node.right)
    return isinstance(node, ast.UnaryOp) and is_number(node.operand)


def described(statement: ast.stmt) -> str:
    """A statement in one line, as Python writes it out; of one with a body, its head."""
    if isinstance(statement, (ast.If, ast.While)):
        return f"{'if' if isinstance(statement, ast.If) else 'while'} {ast.unparse(statement.test)}"
    if isinstance(statement, ast.For):
        return f"for {ast.unparse(statement.target)} in {ast.unparse(statement.iter)}"
    if isinstance(statement, ast.With):
        return f"with {', '.join(map(ast.unparse, statement.items))}"
    return " ".join(ast.unparse(statement).split())


def header_end(statement: ast.stmt) -> int:
    """The last line of a statement; of one with a body, of its head."""
    if isinstance(statement, (ast.If, ast.While)):
        return statement.test.end_lineno or statement.lineno
    if isinstance(statement, ast.For):
        return statement.iter.end_lineno or statement.lineno
    if isinstance(statement, ast.With):
        return statement.items[-1].context_expr.end_lineno or statement.lineno
    return statement.end_lineno or statement.lineno


def changes(statement: ast.stmt, *, at_module_level: bool = False) -> Iterator[tuple[Place, ast.AST]]:
    """What may stand where in a statement, without the statements in its body."""
    if isinstance(
        statement, (ast.Raise, ast.Assert, ast.Import, ast.ImportFrom, ast.Try, ast.ClassDef, ast.Global, ast.Nonlocal, ast.Delete)
    ):
        return
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return  # a docstring
    if not at_module_level:
        yield from whole(statement)
    skipped = {"body", "orelse", "finalbody", "annotation", "type_comment"}
    targets = {"target", "targets"} if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.For)) else set()
    for field, value in ast.iter_fields(statement):
        if field in skipped or field in targets:
            continue
        for index, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(node, ast.expr):
                yield from expressions((statement, field, index), node)
            elif isinstance(node, ast.withitem):
                yield from expressions((node, "context_expr", None), node.context_expr)


def whole(statement: ast.stmt) -> Iterator[tuple[Place, ast.AST]]:
    """Changes of a statement as a whole."""
    if isinstance(statement, ast.Return) and not (statement.value is None or isinstance(statement.value, ast.Constant)):
        yield (statement, "value", None), ast.Constant(None)
    elif isinstance(statement, ast.AugAssign):
        if type(statement.op) in SWAPPED_OPERATORS:
            yield (statement, "op", None), SWAPPED_OPERATORS[type(statement.op)]()
        yield (statement, "value", None), ast.Constant(1 if isinstance(statement.op, (ast.Mult, ast.Div, ast.Pow)) else 0)
    elif isinstance(statement, (ast.If, ast.While)) and not isinstance(
        statement.test, (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Constant)
    ):
        yield (statement, "test", None), ast.UnaryOp(ast.Not(), statement.test)
    elif isinstance(statement, ast.Assign) and all(isinstance(target, (ast.Attribute, ast.Subscript)) for target in statement.targets):
        target = statement.targets[0]
        kept = ast.Attribute(target.value, target.attr, ast.Load()) if isinstance(target, ast.Attribute) else None
        if kept is not None:  # the attribute stays what it was
            yield (statement, "value", None), kept
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        yield (statement, "value", None), ast.Constant(None)


def expressions(place: Place, node: ast.expr) -> Iterator[tuple[Place, ast.AST]]:
    """Changes of an expression, and of those inside it."""
    if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        return
    yield from at(place, node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("cast", "isinstance"):
        yield from expressions((node, "args", 1 if node.func.id == "cast" else 0), node.args[1 if node.func.id == "cast" else 0])
        return
    for field, value in ast.iter_fields(node):
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.expr):
                yield from expressions((node, field, index), child)
            elif isinstance(child, ast.keyword) and child.arg != "strict":  # which only says what is raised
                yield from expressions((child, "value", None), child.value)
            elif isinstance(child, ast.comprehension):
                yield from expressions((child, "iter", None), child.iter)
                for number, condition in enumerate(child.ifs):
                    yield (child, "ifs", number), ast.Constant(True)
                    yield from expressions((child, "ifs", number), condition)


def at(place: Place, node: ast.expr) -> Iterator[tuple[Place, ast.AST]]:
    """Changes of an expression itself."""
    if isinstance(node, ast.BinOp):
        if any(isinstance(side, ast.JoinedStr) or _is_text(side) for side in (node.left, node.right)):
            return
        factor = isinstance(node.op, (ast.Mult, ast.Div))
        if type(node.op) in SWAPPED_OPERATORS and not (
            _is_rounding(node.left) or _is_rounding(node.right) or (factor and _is_one(node.right))
        ):
            yield (node, "op", None), SWAPPED_OPERATORS[type(node.op)]()
        for side in DROPPED_OPERANDS.get(type(node.op), ()):
            other = node.right if side == "left" else node.left
            if not (_is_rounding(other) or (factor and _is_one(other))):
                yield place, getattr(node, side)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not)):
        if not (_in_slice(place) or _is_axis(place, node)):
            yield place, node.operand
    elif isinstance(node, ast.Constant):
        for value in other_values(node.value, in_slice=_in_slice(place)):
            yield place, ast.Constant(value)
    elif isinstance(node, ast.Compare):
        for index, op in enumerate(node.ops):
            for other in COMPARISONS[type(op)]:
                yield (node, "ops", index), other()
    elif isinstance(node, ast.BoolOp):
        for index in range(len(node.values)):
            rest = node.values[:index] + node.values[index + 1 :]
            yield place, rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
    elif isinstance(node, ast.IfExp):
        yield place, node.body
        yield place, node.orelse
    elif isinstance(node, ast.Slice):
        for field in ("lower", "upper"):
            if getattr(node, field) is not None:
                yield (node, field, None), None  # type: ignore[misc]
    elif isinstance(node, ast.Call):
        yield from calls(place, node)


def calls(place: Place, node: ast.Call) -> Iterator[tuple[Place, ast.AST]]:
    """Changes of a call: another function of its kind, or an argument in its place."""
    name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr if isinstance(node.func, ast.Attribute) else ""
    plain = [argument for argument in node.args if not isinstance(argument, ast.Starred)]
    if name in EXTREMES and len(plain) == 2 and len(node.args) == 2 and not node.keywords:
        yield place, plain[0]
        yield place, plain[1]
    elif name in SWAPPED_CALLS:
        if isinstance(node.func, ast.Name):
            yield (node.func, "id", None), SWAPPED_CALLS[name]  # type: ignore[misc]
        else:
            yield (node.func, "attr", None), SWAPPED_CALLS[name]  # type: ignore[misc]
    elif (name in REMOVED_CALLS and len(plain) == 1) or (name in FIRST_ALONE and plain):
        yield place, plain[0]
    elif name == "where" and len(plain) == 3:
        yield place, plain[1]
        yield place, plain[2]


def other_values(value: object, in_slice: bool) -> list[object]:
    """What a number or a truth value may be instead."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        if in_slice or value <= 1:
            return [value + 1]
        return [value + 1, value - 1] if value < 8 else [2 * value, value // 2]
    if isinstance(value, float):
        if value == 0.0:
            return [1.0]
        if abs(value) < ROUNDING:
            return []
        return [2.0 * value, value / 2.0] if 1e-4 <= abs(value) < 1e5 else [1000.0 * value, value / 1000.0]
    return []


def _in_slice(place: Place) -> bool:
    """Whether an expression is an index or a limit of a slice."""
    node, field, _ = place
    return isinstance(node, ast.Slice) or (isinstance(node, ast.Subscript) and field == "slice")


def _is_axis(place: Place, node: ast.UnaryOp) -> bool:
    """Whether an expression is an axis counted from the end, as in `max(-1)`: counted from the front it is mostly the same one."""
    return isinstance(place[0], (ast.Call, ast.keyword)) and isinstance(node.operand, ast.Constant) and type(node.operand.value) is int


def _is_rounding(node: ast.AST) -> bool:
    """Whether an expression is a number that is there for rounding, or 1 plus or minus one."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        return isinstance(node.left, ast.Constant) and node.left.value == 1.0 and _is_rounding(node.right)
    return isinstance(node, ast.Constant) and isinstance(node.value, float) and 0.0 < abs(node.value) < ROUNDING


def _is_one(node: ast.AST) -> bool:
    """Whether an expression is the number 1: as a factor it makes floats of truth values and whole numbers, and is no formula."""
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and node.value == 1


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
