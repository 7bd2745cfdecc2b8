"""The loops' Python as LLVM's language: the same operations in the same order, so that machine code gives the bits that Python gives.

Nothing is left to the compiler's mind: no operation is reordered, contracted or taken from a vector library. What the loops call is
compiled from its own Python too; only `math`, `np.floor` and a few names of one element have a translation here.

>>> print(module("def run(memory):\\n    memory[0] = memory[1] * 2.0\\n    return 0\\n", {"memory": (0,)}).text)
define i64 @run(ptr noalias %memory) nounwind {
entry:
  %t1 = getelementptr inbounds double, ptr %memory, i64 1
  %t2 = load double, ptr %t1
  %t3 = fmul double %t2, 0x4000000000000000
  store double %t3, ptr %memory
  ret i64 0
after4:
  ret i64 0
}
<BLANKLINE>
"""

from __future__ import annotations

import ast
import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from bridle.engines.round import CannotCompile

SIDE_BY_SIDE = 8
"""Runs go side by side in multiples of this, as a processor's instructions take them."""

C_LIBRARY = ("log", "log1p", "expm1", "tanh", "sin", "cos", "atan2", "pow")
"""What machine code calls."""

_TYPE = {"f": "double", "i": "i64", "b": "i1"}
_IN_MEMORY = {"f": "double", "i": "i64", "b": "i8"}
_WIDER = "bif"
_DTYPES = {"np.float64": "f", "np.int64": "i", "np.bool_": "b"}
_CONSTANTS = {"np.inf": math.inf, "np.nan": math.nan}
_INSTRUCTIONS = {"math.sqrt": "llvm.sqrt.f64", "np.floor": "llvm.floor.f64", "np.ceil": "llvm.ceil.f64", "abs": "llvm.fabs.f64"}
_LIBRARY = {f"math.{name}": name for name in C_LIBRARY}
_ARITHMETIC = {"Add": "add", "Sub": "sub", "Mult": "mul", "Div": "div"}
_BITWISE = {"BitAnd": "and", "BitOr": "or", "BitXor": "xor", "LShift": "shl", "RShift": "ashr"}
_TESTS = {
    "Eq": ("oeq", "eq"), "NotEq": ("une", "ne"), "Lt": ("olt", "slt"), "LtE": ("ole", "sle"), "Gt": ("ogt", "sgt"), "GtE": ("oge", "sge")
}  # fmt: skip


_ONCE = '!{!"llvm.loop.unroll.disable"}'


class Module(NamedTuple):
    """A module of LLVM's language, and how many numbers of scratch memory its function `run` wants."""

    text: str
    scratch: int


class Number(NamedTuple):
    """A number: LLVM's name for it, or its text; of kind "f", "i" or "b"."""

    text: str
    kind: str


class Array(NamedTuple):
    """Elements in memory: where the first one is, their kind, and along each axis how many there are and how far they are apart."""

    pointer: str
    kind: str
    shape: tuple[str, ...]
    strides: tuple[str, ...]


def untranslated(what: str) -> CannotCompile:
    """The error that says what has no translation."""
    return CannotCompile(f"the compiled engine has no translation of {' '.join(what.split())}; use engine 'python'")


def module(text: str, arrays: Mapping[str, tuple[int | str, ...]], wide: int = 1) -> Module:
    """The function `run` of this Python and what it calls; `arrays` and `wide` are those of its `PythonSource`."""
    functions = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    return _Module(functions, arrays, wide).module()


class _Module:
    """The functions that were made so far, and what they need."""

    def __init__(self, functions: dict[str, ast.FunctionDef], arrays: Mapping[str, tuple[int | str, ...]], wide: int) -> None:
        self.functions, self.arrays, self.wide = functions, arrays, wide
        self.made: dict[str, tuple[str, str, bool]] = {}  # by name: the text, what it returns, and whether it calls the C library
        self.declared: dict[str, None] = {}
        self.notes: list[str] = []
        self.tables: list[str] = []

    def module(self) -> Module:
        """`run` as the world sees it: of one memory, or of tables of pointers, each of which it promises to be alone."""
        run = self.functions["run"]
        parameters = [each.arg for each in run.args.args]
        body = _Function(self, run)
        if parameters == ["memory"]:
            body.arrays["memory"] = body.given("memory", self.arrays["memory"])
            main = body.text("i64", "run", ["ptr noalias %memory"], public=True)
            return Module(self.joined(main), 0)
        body.names["rounds"] = Number("%rounds", "i")
        body.names["lanes"] = Number("%lanes", "i")
        body.arrays["marks"] = Array("%marks", "i", ("0",), ("1",))
        body.scratch = 0
        shift = SIDE_BY_SIDE.bit_length() - 1  # said in a way that the compiler knows it: nothing is left over of a vector
        body.lines += [f"  %eighth = lshr i64 %several, {shift}", f"  %lanes = shl nuw nsw i64 %eighth, {shift}"]
        outside, inside, arguments = list[str](), list[str](), list[str]()
        for text, shape in self.arrays.items():
            table, n = text.rstrip("]").split("[")
            name = f"{table}.{n}"
            body.arrays[text] = body.given(name, shape)
            inside.append(f"ptr noalias %{name}")
            arguments.append(f"ptr %{name}")
            outside += [f"  %p.{name} = getelementptr ptr, ptr %{table}, i64 {n}", f"  %{name} = load ptr, ptr %p.{name}"]
        plain = ["i64 %rounds", "i64 %several", "ptr noalias %marks", "ptr noalias align 64 %scratch"]
        main = body.text("void", "rounds", [*plain, *inside])
        call = ", ".join(["i64 %rounds", "i64 %lanes", "ptr %marks", "ptr %scratch", *arguments])
        lines = ["define void @run(i64 %rounds, i64 %lanes, ptr %marks, ptr %scratch, ptr %inputs, ptr %outputs) nounwind {", *outside]
        return Module(self.joined(main, *lines, f"  call void @rounds({call})", "  ret void", "}"), body.scratch)

    def joined(self, *parts: str) -> str:
        """The text of everything."""
        return "\n".join([*self.declared, *self.tables, *(text for text, _, _ in self.made.values()), *parts, *self.notes]) + "\n"

    def called(self, name: str, kinds: str) -> tuple[str, str, bool]:
        """A function for numbers of these kinds, made where it was not yet: its name, its result's kind, whether it calls the C library."""
        full = f"{name}.{kinds}"
        if name not in self.functions:
            raise untranslated(f"the function {name}")
        if full not in self.made:
            node = self.functions[name]
            body = _Function(self, node)
            parameters = []
            for each, kind in zip(node.args.args, kinds, strict=True):
                body.store_name(each.arg, Number(f"%given.{each.arg}", kind))
                parameters.append(f"{_TYPE[kind]} %given.{each.arg}")
            text = body.text("", full, parameters)
            self.made[full] = text, body.returned, body.calls > 0
        return full, *self.made[full][1:]

    def note(self, *entries: str) -> int:
        """The number of a note: of a loop, which says these things of it, or without entries of a group of accesses."""
        number = len(self.notes)
        own = [f"!{number}", *(f"!{number + 1 + n}" for n in range(len(entries)))] if entries else []
        self.notes += [f"!{number} = distinct !{{{', '.join(own)}}}"]
        self.notes += [f"!{number + 1 + n} = {entry}" for n, entry in enumerate(entries)]
        return number

    def declare(self, name: str, operands: int) -> str:
        """A function from outside, of floats, which the compiler is to call and not to know better."""
        what = "" if name.startswith("llvm.") else " nobuiltin nounwind memory(none)"
        self.declared[f"declare double @{name}({', '.join(['double'] * operands)}){what}"] = None
        return name


class _Function:
    """One function: its lines so far, where its names are, and the arrays it knows."""

    def __init__(self, module: _Module, node: ast.FunctionDef) -> None:
        self.module, self.node = module, node
        self.lines: list[str] = []
        self.entry: list[str] = []
        self.places: dict[str, Number] = {}  # where a variable is kept, and its kind
        self.names: dict[str, Number] = {}  # what never changes
        self.arrays: dict[str, Array] = {}
        self.ends: list[str] = []  # where `break` goes, innermost last
        self.group: int | None = None  # of the accesses in a loop over runs
        self.returned = ""
        self.scratch: int | None = None  # how much of the caller's memory is used; None where arrays are on the stack
        self.calls = 0  # of the C library, which no vector can make
        self.count = 0

    def text(self, result: str, name: str, parameters: Sequence[str], public: bool = False) -> str:
        """The whole function."""
        self.body(self.node.body)
        result = result or _TYPE[self.returned]
        last = "ret void" if result == "void" else f"ret {result} {'0.0' if result == 'double' else '0'}"
        kind = "" if public else "internal "
        how = "nounwind" if public else "noinline nounwind" if result == "void" else "alwaysinline nounwind"
        head = f"define {kind}{result} @{name}({', '.join(parameters)}) {how} {{\nentry:"
        return "\n".join([head, *self.entry, *self.lines, f"  {last}", "}"])

    # Lines

    def fresh(self, what: str = "%t") -> str:
        self.count += 1
        return f"{what}{self.count}"

    def line(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def let(self, instruction: str, kind: str) -> Number:
        """The result of an instruction."""
        name = self.fresh()
        self.line(f"{name} = {instruction}")
        return Number(name, kind)

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def reach(self, name: str) -> None:
        """Go on at a label."""
        self.line(f"br label %{name}")
        self.label(name)

    def access(self) -> str:
        """What is said of a load or store: that the turns of a loop over runs touch nothing of each other's."""
        return "" if self.group is None else f", !llvm.access.group !{self.group}"

    # Numbers

    def number(self, node: ast.expr) -> Number:
        """An expression's value."""
        match node:
            case ast.Constant(bool() | int() | float() as value):
                return _constant(value)
            case ast.Attribute():
                return _constant(_CONSTANTS[ast.unparse(node)])
            case ast.Name(name):
                return self.names.get(name) or self.load_name(name)
            case ast.Subscript():
                return self.load(self.view(node))
            case ast.UnaryOp(op, operand):
                return self.unary(op, self.number(operand))
            case ast.BinOp(left, op, right):
                return self.binary(type(op).__name__, self.number(left), self.number(right))
            case ast.Compare(left, [op], [right]):
                return self.compared(type(op).__name__, self.number(left), self.number(right))
            case ast.BoolOp(op, values):
                return self.chain("and" if isinstance(op, ast.And) else "or", [self.flag(self.number(each)) for each in values])
            case ast.IfExp(test, body, other):
                return self.select(self.number(test), self.number(body), self.number(other))
            case ast.Call(ast.Name("len"), [array]):
                return Number(self.view(array).shape[0], "i")
            case ast.Call(function, arguments):
                return self.call(ast.unparse(function), [self.number(each) for each in arguments])
        raise untranslated(ast.unparse(node))

    def cast(self, number: Number, kind: str) -> str:
        """A number as one of another kind, as Python's `float`, `int` and `bool` have it."""
        text, before = number
        if before == kind:
            return text
        if kind == "f":
            if text.lstrip("-").isdigit():
                return _constant(float(text)).text
            return self.let(f"{'sitofp i64' if before == 'i' else 'uitofp i1'} {text} to double", "f").text
        if kind == "i":
            return self.let(f"zext i1 {text} to i64" if before == "b" else f"fptosi double {text} to i64", "i").text
        return self.let(f"icmp ne i64 {text}, 0" if before == "i" else f"fcmp une double {text}, 0.0", "b").text

    def flag(self, number: Number) -> str:
        return self.cast(number, "b")

    def alike(self, *numbers: Number) -> tuple[str, list[str]]:
        """The widest kind of these numbers, and all of them as that."""
        kind = max((number.kind for number in numbers), key=_WIDER.index)
        return kind, [self.cast(number, kind) for number in numbers]

    def select(self, test: Number, one: Number, other: Number) -> Number:
        flag = self.flag(test)
        kind, (a, b) = self.alike(one, other)
        return self.let(f"select i1 {flag}, {_TYPE[kind]} {a}, {_TYPE[kind]} {b}", kind)

    def chain(self, word: str, flags: list[str]) -> Number:
        result, *rest = flags
        for each in rest:
            result = self.let(f"{word} i1 {result}, {each}", "b").text
        return Number(result, "b")

    def unary(self, op: ast.unaryop, number: Number) -> Number:
        if isinstance(op, ast.Not):
            return self.let(f"xor i1 {self.flag(number)}, true", "b")
        if isinstance(op, ast.Invert):
            return self.let(f"xor {_TYPE[number.kind]} {number.text}, {'true' if number.kind == 'b' else '-1'}", number.kind)
        if number.kind == "f":
            return self.let(f"fneg double {number.text}", "f")
        return self.binary("Sub", Number("0", "i"), number)

    def binary(self, name: str, one: Number, two: Number) -> Number:
        kind, (a, b) = self.alike(one, two)
        if name in _BITWISE:
            return self.let(f"{_BITWISE[name]} {_TYPE[kind]} {a}, {b}", kind)
        if kind == "f" or name == "Div":
            a, b = self.cast(one, "f"), self.cast(two, "f")
            return self.remainder(a, b) if name == "Mod" else self.let(f"f{_ARITHMETIC[name]} double {a}, {b}", "f")
        a, b = self.cast(one, "i"), self.cast(two, "i")
        if name in _ARITHMETIC:
            return Number(self.whole(_ARITHMETIC[name], a, b), "i")
        quotient, rest = (self.let(f"{word} i64 {a}, {b}", "i").text for word in ("sdiv", "srem"))  # Python rounds down, and they to 0
        signs = self.let(f"icmp slt i64 {self.let(f'xor i64 {rest}, {b}', 'i').text}, 0", "b").text
        below = self.chain("and", [signs, self.let(f"icmp ne i64 {rest}, 0", "b").text]).text
        answer = quotient if name == "FloorDiv" else rest
        moved = self.let(f"sub i64 {answer}, 1" if name == "FloorDiv" else f"add i64 {answer}, {b}", "i").text
        return self.let(f"select i1 {below}, i64 {moved}, i64 {answer}", "i")

    def remainder(self, a: str, b: str) -> Number:
        """Python's `%` of floats, which has the divisor's sign."""
        rest = self.let(f"frem double {a}, {b}", "f").text
        self.calls += 1
        signs = [self.let(f"fcmp olt double {each}, 0.0", "b").text for each in (rest, b)]
        apart = self.let(f"xor i1 {signs[0]}, {signs[1]}", "b").text
        test = self.chain("and", [apart, self.let(f"fcmp une double {rest}, 0.0", "b").text])
        return self.select(test, self.let(f"fadd double {rest}, {b}", "f"), Number(rest, "f"))

    def whole(self, word: str, a: str, b: str) -> str:
        """Arithmetic of whole numbers; done here where both are known."""
        if a.lstrip("-").isdigit() and b.lstrip("-").isdigit():
            return str({"add": int(a) + int(b), "sub": int(a) - int(b), "mul": int(a) * int(b)}[word])
        if (word in ("add", "sub") and b == "0") or (word == "mul" and b == "1"):
            return a
        if (word == "add" and a == "0") or (word == "mul" and a == "1"):
            return b
        if word == "mul" and "0" in (a, b):
            return "0"
        return self.let(f"{word} nsw i64 {a}, {b}", "i").text

    def compared(self, name: str, one: Number, two: Number) -> Number:
        kind, (a, b) = self.alike(one, two)
        if kind == "f":
            return self.let(f"fcmp {_TESTS[name][0]} double {a}, {b}", "b")
        a, b = self.cast(one, "i"), self.cast(two, "i")
        return self.let(f"icmp {_TESTS[name][1]} i64 {a}, {b}", "b")

    def call(self, name: str, numbers: list[Number]) -> Number:
        if name == "abs" and numbers[0].kind == "i":
            name = "_max"
            numbers = [numbers[0], self.unary(ast.USub(), numbers[0])]
        if name in ("float", "int", "bool"):
            return Number(self.cast(numbers[0], name[0]), name[0])
        if name == "_bits":
            return self.let(f"bitcast double {self.cast(numbers[0], 'f')} to i64", "i")
        if name == "_float":
            return self.let(f"bitcast i64 {self.cast(numbers[0], 'i')} to double", "f")
        if name == "math.isfinite":
            size = self.call("abs", numbers)
            return self.let(f"fcmp olt double {size.text}, {_constant(math.inf).text}", "b")
        outside = _INSTRUCTIONS.get(name) or _LIBRARY.get(name)
        if outside is not None:
            operands = ", ".join(f"double {self.cast(each, 'f')}" for each in numbers)
            how = "" if name in _INSTRUCTIONS else " nobuiltin"
            self.calls += name in _LIBRARY
            return self.let(f"call double @{self.module.declare(outside, len(numbers))}({operands}){how}", "f")
        full, kind, calls = self.module.called(name, "".join(each.kind for each in numbers))
        self.calls += calls
        return self.let(f"call {_TYPE[kind]} @{full}({', '.join(f'{_TYPE[each.kind]} {each.text}' for each in numbers)})", kind)

    # Variables

    def load_name(self, name: str) -> Number:
        place, kind = self.places[name]
        return self.let(f"load {_TYPE[kind]}, ptr {place}", kind)

    def store_name(self, name: str, number: Number) -> None:
        """A variable takes a value; it has the kind of its first one."""
        if name not in self.places:
            self.places[name] = Number(self.fresh(f"%{name}."), number.kind)
            self.entry.append(f"  {self.places[name].text} = alloca {_TYPE[number.kind]}")
        place, kind = self.places[name]
        if _WIDER.index(kind) < _WIDER.index(number.kind):
            raise untranslated(f"{name}, which takes a number of kind {number.kind} after one of kind {kind}")
        self.line(f"store {_TYPE[kind]} {self.cast(number, kind)}, ptr {place}")

    # Arrays

    def given(self, name: str, shape: Sequence[int | str]) -> Array:
        """An array of floats that the caller has laid out, row by row."""
        sizes = tuple("%lanes" if size == "lanes" else str(size) for size in shape)
        return Array(f"%{name}", "f", sizes, self.strides(sizes))

    def strides(self, shape: Sequence[str]) -> tuple[str, ...]:
        """How far neighbours along each axis are apart, row by row."""
        strides = ["1"]
        for size in reversed(shape[1:]):
            strides.append(self.whole("mul", strides[-1], size))
        return tuple(reversed(strides[: len(shape)]))

    def room(self, kind: str, shape: tuple[str, ...]) -> Array:
        """Memory for a new array; one over runs has room for as many as there may be."""
        size = math.prod(self.module.wide if each == "%lanes" else int(each) for each in shape)
        words = -(-(size if kind != "b" else -(-size // 8)) // 8) * 8
        if self.scratch is None or words <= SIDE_BY_SIDE:  # what is small is to become registers
            pointer = self.fresh("%room")
            self.entry.append(f"  {pointer} = alloca [{max(1, words)} x double], align 64")
        else:
            pointer = self.let(f"getelementptr inbounds double, ptr %scratch, i64 {self.scratch}", "i").text if self.scratch else "%scratch"
            self.scratch += words
        return Array(pointer, kind, shape, self.strides(shape))

    def table(self, values: object) -> Array:
        """A constant array."""
        array = np.array(values)
        kind = {"f": "f", "i": "i", "b": "b"}[array.dtype.kind]
        name = f"@table{len(self.module.tables)}"
        elements = ", ".join(f"{_IN_MEMORY[kind]} {_constant(each).text if kind != 'b' else int(each)}" for each in array.ravel().tolist())
        text = f"[{elements}]" if array.size else "zeroinitializer"
        self.module.tables.append(f"{name} = private unnamed_addr constant [{array.size} x {_IN_MEMORY[kind]}] {text}, align 64")
        shape = tuple(map(str, array.shape))
        return Array(name, kind, shape, self.strides(shape))

    def view(self, node: ast.expr) -> Array:
        """An array, a part of one, or one element, which has no axes."""
        if isinstance(node, ast.Name):
            return self.arrays[node.id]
        if isinstance(node, ast.Subscript):
            if isinstance(node.value, ast.Name) and node.value.id in ("inputs", "outputs"):
                return self.arrays[ast.unparse(node)]
            return self.part(self.view(node.value), node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice])
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name == "np.empty":
                kind = _DTYPES[ast.unparse(node.args[1])] if len(node.args) > 1 else "f"
                return self.room(kind, self.shape(node.args[0]))
            if name == "np.array":
                return self.table(eval(ast.unparse(node.args[0]), {"inf": math.inf, "nan": math.nan}))
            if isinstance(node.func, ast.Attribute) and node.func.attr == "reshape":
                inner, shape = self.view(node.func.value), self.shape(node.args[0])
                return Array(inner.pointer, inner.kind, shape, self.strides(shape))
            if isinstance(node.func, ast.Attribute) and node.func.attr == "copy":
                inner = self.view(node.func.value)
                copy = self.room(inner.kind, inner.shape)
                self.copy(copy, inner)
                return copy
        raise untranslated(ast.unparse(node))

    def shape(self, node: ast.expr) -> tuple[str, ...]:
        """The lengths in a tuple, or the one length."""
        return tuple(self.number(each).text for each in (node.elts if isinstance(node, ast.Tuple) else [node]))

    def part(self, array: Array, index: Sequence[ast.expr]) -> Array:
        """What an index picks of an array."""
        offset, shape, strides = "0", list[str](), list[str]()
        index = [each for each in index if not (isinstance(each, ast.Constant) and each.value is ...)]
        for each, size, stride in zip(index, array.shape, array.strides, strict=False):
            if isinstance(each, ast.Slice):
                begin = "0" if each.lower is None else self.cast(self.number(each.lower), "i")
                end = size if each.upper is None else self.cast(self.number(each.upper), "i")
                shape.append(self.whole("sub", end, begin))
                strides.append(stride)
            else:
                begin = self.cast(self.number(each), "i")
            offset = self.whole("add", offset, self.whole("mul", begin, stride))
        pointer = array.pointer
        if offset != "0":
            pointer = self.let(f"getelementptr inbounds {_IN_MEMORY[array.kind]}, ptr {pointer}, i64 {offset}", "i").text
        return Array(pointer, array.kind, (*shape, *array.shape[len(index) :]), (*strides, *array.strides[len(index) :]))

    def load(self, element: Array) -> Number:
        number = self.let(f"load {_IN_MEMORY[element.kind]}, ptr {element.pointer}{self.access()}", element.kind)
        return self.let(f"trunc i8 {number.text} to i1", "b") if element.kind == "b" else number

    def store(self, element: Array, number: Number) -> None:
        text = self.cast(number, element.kind)
        if element.kind == "b":
            text = self.let(f"zext i1 {text} to i8", "i").text
        self.line(f"store {_IN_MEMORY[element.kind]} {text}, ptr {element.pointer}{self.access()}")

    def copy(self, target: Array, source: Array) -> None:
        """Every element of one array goes to its place in another."""
        places = [target.pointer, source.pointer]

        def along(axes: int) -> None:
            if axes == len(target.shape):
                self.store(Array(places[0], target.kind, (), ()), self.load(Array(places[1], source.kind, (), ())))
                return
            with self.loop("0", target.shape[axes]) as turn:
                outer = places[:]
                for n, array in enumerate((target, source)):
                    step = self.whole("mul", turn, array.strides[axes])
                    kind = _IN_MEMORY[array.kind]
                    places[n] = self.let(f"getelementptr inbounds {kind}, ptr {outer[n]}, i64 {step}", "i").text
                along(axes + 1)
                places[:] = outer

        along(0)

    # Statements

    def body(self, statements: Sequence[ast.stmt]) -> None:
        for node in statements:
            self.statement(node)

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign([target], value):
                self.assign(target, value)
            case ast.AugAssign(ast.Name(name), op, value):
                self.store_name(name, self.binary(type(op).__name__, self.load_name(name), self.number(value)))
            case ast.For(ast.Name(name), ast.Call(_, bounds), body):
                low, high = [self.cast(self.number(each), "i") for each in ([ast.Constant(0), *bounds] if len(bounds) == 1 else bounds)]
                self.repeat(name, low, high, body)
            case ast.While(_, body):
                again, after = self.fresh("again"), self.fresh("after")
                self.reach(again)
                self.ends.append(after)
                self.body(body)
                self.ends.pop()
                self.line(f"br label %{again}")
                self.label(after)
            case ast.If(test, body, other):
                self.branch(test, body, other)
            case ast.Break():
                self.line(f"br label %{self.ends[-1]}")
                self.label(self.fresh("after"))
            case ast.Return(value):
                assert value is not None
                number = self.number(value)
                self.returned = number.kind
                self.line(f"ret {_TYPE[number.kind]} {number.text}")
                self.label(self.fresh("after"))
            case ast.Expr(ast.Call(ast.Name(name), arguments)):
                self.procedure(self.module.functions[name], [self.view(each) for each in arguments])
            case ast.Pass():
                pass
            case _:
                raise untranslated(ast.unparse(node))

    def procedure(self, node: ast.FunctionDef, arrays: list[Array]) -> None:
        """What a function of arrays does, here and with names of its own."""
        outer = self.places, self.arrays
        self.places, self.arrays = {}, dict(zip((each.arg for each in node.args.args), arrays, strict=True))
        self.body(node.body)
        self.places, self.arrays = outer

    def branch(self, test: ast.expr, body: Sequence[ast.stmt], other: Sequence[ast.stmt]) -> None:
        yes, no, after = self.fresh("yes"), self.fresh("no"), self.fresh("after")
        self.line(f"br i1 {self.flag(self.number(test))}, label %{yes}, label %{no}")
        for name, statements in ((yes, body), (no, other)):
            self.label(name)
            self.body(statements)
            self.line(f"br label %{after}")
        self.label(after)

    def repeat(self, name: str, low: str, high: str, body: Sequence[ast.stmt]) -> None:
        """A loop; the compiler hears which ones go over runs, whose turns have nothing to do with each other."""
        outer, before, over_runs = self.group, self.calls, high == "%lanes" and low == "0"
        if over_runs:
            self.group = self.module.note()
        with self.loop(low, high) as turn:
            self.store_name(name, Number(turn, "i"))
            self.body(body)
        if over_runs:
            straight = self.calls == before and not any(isinstance(each, ast.For | ast.While) for one in body for each in ast.walk(one))
            wide = [f'!{{!"llvm.loop.vectorize.width", i32 {SIDE_BY_SIDE}}}'] if straight else []
            note = self.module.note(f'!{{!"llvm.loop.parallel_accesses", !{self.group}}}', *wide, '!{!"llvm.loop.interleave.count", i32 1}')
            self.lines[-2] += f", !llvm.loop !{note}"
        elif any(ast.unparse(each.iter) == "range(lanes)" for one in body for each in ast.walk(one) if isinstance(each, ast.For)):
            self.lines[-2] += f", !llvm.loop !{self.module.note(_ONCE)}"
        self.group = outer

    @contextmanager
    def loop(self, low: str, high: str) -> Iterator[str]:
        """Inside a loop, and the number of its turn. The line before the last leads back to its head."""
        counter, head, inside, after = self.fresh("%c"), self.fresh("head"), self.fresh("turn"), self.fresh("after")
        self.entry.append(f"  {counter} = alloca i64")
        self.line(f"store i64 {low}, ptr {counter}")
        self.reach(head)
        turn = self.let(f"load i64, ptr {counter}", "i").text
        self.line(f"br i1 {self.let(f'icmp slt i64 {turn}, {high}', 'b').text}, label %{inside}, label %{after}")
        self.label(inside)
        self.ends.append(after)
        yield turn
        self.ends.pop()
        self.line(f"store i64 {self.let(f'add nsw i64 {turn}, 1', 'i').text}, ptr {counter}")
        self.line(f"br label %{head}")
        self.label(after)

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        array = self.array(value)
        if isinstance(target, ast.Name):
            if array is None:
                self.store_name(target.id, self.number(value))
            elif not array.shape:
                self.store_name(target.id, self.load(array))
            else:
                self.arrays[target.id] = array
        elif array is None:
            number = self.number(value)
            self.store(self.view(target), number)
        else:
            self.copy(self.view(target), array)

    def array(self, node: ast.expr) -> Array | None:
        """What an expression stands for where that is a whole array; None for a number."""
        match node:
            case ast.Name(name):
                return self.arrays.get(name)
            case ast.Subscript(ast.Name("inputs" | "outputs")):
                return self.view(node)
            case ast.Subscript(_, index):
                parts = index.elts if isinstance(index, ast.Tuple) else [index]
                return self.view(node) if any(isinstance(each, ast.Slice) for each in parts) or self.rows(node) else None
            case ast.Call(ast.Attribute(attr="empty" | "array" | "reshape" | "copy")):
                return self.view(node)
        return None

    def rows(self, node: ast.Subscript) -> bool:
        """Whether an index leaves axes over, as one row of a table does."""
        return isinstance(node.value, ast.Name) and node.value.id == "table"


def _constant(value: float) -> Number:
    """A number as it is written."""
    if isinstance(value, bool):
        return Number("true" if value else "false", "b")
    if isinstance(value, int):
        return Number(str(value), "i")
    return Number(f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}", "f")
