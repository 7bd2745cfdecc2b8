"""Policies of the user's own, from a Python file or a module: found by what is typed, known by their text, made known to any process.

What is typed is a file, ``./mine.py``, or a module and a name in it, ``package.module:name``; a file that holds several may be followed by
the name of one, ``./mine.py:name``. A name is that of an `Entry`, of a variable that is one, or of a function that makes the policy.
Settings come last, each after a colon, as for registered policies: ``./mine.py:name:step=0.1``. A part with "=" is a setting, and a part
without is a name.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from functools import wraps
from hashlib import sha256
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from inspect import Parameter as Argument
from inspect import signature
from threading import RLock
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

from bridle import validate
from bridle.core import InputError, Unavailable
from bridle.policies import registry
from bridle.policies.entry import Entry, title_of

Made = TypeVar("Made")

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
"""What a policy may be called: no comma, colon or "=", which mean something where policies are listed."""


class Typed(NamedTuple):
    """A policy as it is typed: where it comes from, which of those there (None: whichever there is), and its settings.

    >>> split("./mine.py:step=0.1"), split("rivals.greedy:careful:step=0.1:clip=1")
    (Typed(origin='./mine.py', name=None, settings='step=0.1'), Typed(origin='rivals.greedy', name='careful', settings='step=0.1:clip=1'))
    """

    origin: str
    name: str | None
    settings: str

    @property
    def own(self) -> bool:
        """Whether this is of the user's own: a file, or a name in a module. Registered names go first."""
        return self.origin not in registry.names() and (self.origin.endswith(".py") or self.name is not None)

    @property
    def source(self) -> str:
        """What is typed, without the settings."""
        return self.origin if self.name is None else f"{self.origin}:{self.name}"


def split(text: str) -> Typed:
    """The parts of what is typed for a policy."""
    file = re.fullmatch(r"(.+?\.py)(?::(.*))?", text, re.DOTALL)
    origin, rest = (file[1], file[2] or "") if file else text.partition(":")[::2]
    first, _, more = rest.partition(":")
    return Typed(origin, first, more) if first and "=" not in first else Typed(origin, None, rest)


@dataclass(frozen=True)
class OwnPolicy:
    """A policy of the user's own: its name, the file it comes from, and the text of it, so that workers elsewhere need no copy.

    `chosen` is what was asked for in the file, None for its only policy; `package` is the one that the file is part of, where it is.
    """

    name: str
    path: str
    chosen: str | None
    package: str | None
    text: bytes

    @property
    def hash(self) -> str:
        """The SHA-256 of the text: what stored results of the policy are found by."""
        return sha256(self.text).hexdigest()

    def use(self) -> Entry:
        """Make the policy known to this process under its name, in the place of an earlier one from a file."""
        key = (self.path, self.package, self.name, self.hash)
        if key not in _USED:
            _USED.setdefault(key, _guarded(self.path, _entries(self.path, self.text, self.package, self.chosen)[self.name]))
        registry.know(_USED[key])
        _KNOWN[self.name] = self
        return _USED[key]

    def broken(self, error: BaseException, doing: str = "") -> BrokenFile:
        """The error of its file, which says where in it, on one line."""
        return BrokenFile(f"{doing}{blame(os.path.relpath(self.path), error)}")


@contextmanager
def blaming(policy: OwnPolicy | None) -> Iterator[None]:
    """Do something with a policy; where it is of the user's own, its file is blamed for errors that are not about input."""
    try:
        yield
    except (InputError, ArithmeticError, MemoryError):
        raise
    except Exception as error:
        if policy is None:
            raise
        raise policy.broken(error) from error


_USED: dict[tuple[str, str | None, str, str], Entry] = {}
"""The entries of policies that were used: of one text there is one entry."""

_KNOWN: dict[str, OwnPolicy] = {}
"""The policies that this process knows, by name."""


def known(name: str) -> OwnPolicy | None:
    """The user's own policy that this process knows by a name."""
    return _KNOWN.get(name) if registry.loaded(name) is not None else None


def load(text: str) -> list[OwnPolicy]:
    """The policies that ``./mine.py``, ``./mine.py:name`` or ``module:name`` stands for, made known to this process under their names.

    Of a file without a name these are all that it defines. What is wrong with the file, or with its policies, is an InputError.
    """
    origin, chosen, settings = split(text)
    if settings:
        raise InputError(f"a policy's file is loaded without settings, not as {text!r}")
    path, package = (origin, None) if origin.endswith(".py") else _module_file(origin, text)
    contents = read(path)
    found = _entries(path, contents, package, chosen)
    policies = [OwnPolicy(name, os.path.abspath(path), chosen, package, contents) for name in found]
    for policy in policies:
        policy.use()
    return policies


def load_one(text: str) -> OwnPolicy:
    """The policy that the text stands for, which must be one."""
    found = load(text)
    if len(found) != 1:
        some = ", ".join(policy.name for policy in found)
        raise InputError(f"{text} defines several policies ({some}): name one, as in {text}:{found[0].name}")
    return found[0]


def _module_file(module: str, text: str) -> tuple[str, str]:
    """The file of a module, and the package that it is part of. Modules of the current folder are found, too."""
    folder = os.getcwd()
    sys.path.append(folder)
    try:
        spec = find_spec(module)
    except (Exception, SystemExit) as error:  # the packages that it is in are imported
        if not (isinstance(error, ModuleNotFoundError) and error.name and f"{module}.".startswith(f"{error.name}.")):
            raise InputError(f"{text}: cannot import {module}: {type(error).__name__}: {' '.join(str(error).split())}") from error
        spec = None
    finally:
        sys.path.remove(folder)
    if spec is None:
        raise InputError(f"unknown policy {text!r}: no policy is registered as {module}, and there is no module of that name")
    if spec.origin is None or not spec.origin.endswith(".py"):
        raise InputError(f"{text}: the module {module} is not a Python file")
    return spec.origin, (spec.parent or "")


def _entries(path: str, text: bytes, package: str | None, chosen: str | None) -> dict[str, Entry]:
    """The entries that a file's text defines, or the chosen one, by their names, which no registered policy may have."""
    module = run(path, text, package)
    own = {item.name: item for item in _defined(module) if registry.listed(item.name) is not item or _registers_itself(item, path)}
    if chosen is not None:
        value = getattr(module, chosen, None)
        found = own.get(chosen) or next((item for item in own.values() if item.factory is value), None) or _as_entry(value, chosen, path)
        if found is None:
            raise InputError(f"{path} defines no policy {chosen!r}; it has {', '.join(own) or 'none'}")
        own = {found.name: found}
    elif not own:
        found = _as_entry(getattr(module, "policy", None), os.path.basename(path).removesuffix(".py"), path)
        if found is None:
            raise InputError(f"{path} defines no policy: it needs a bridle.policies.Entry, or a function policy(domain) that makes one")
        own = {found.name: found}
    for item in own.values():
        if not (isinstance(item.name, str) and NAME.fullmatch(item.name)):
            raise InputError(
                f"{path}: a policy's name has letters, digits and . _ + - in it, and begins with one of the first; not {item.name!r}"
            )
        there = registry.listed(item.name)
        if there is not None and there is not item:
            raise InputError(f"{path}: a policy called {item.name!r} is registered already: give yours another name")
        if not callable(item.factory):
            raise validate.refused(f"{path}: the factory of policy {item.name} must be a function", item.factory)
    return own


def _defined(module: ModuleType) -> list[Entry]:
    """Every entry that a variable of the module is, or holds in a tuple or list."""
    values = [value for name, value in vars(module).items() if not name.startswith("__")]
    held = [item for value in values if isinstance(value, (tuple, list)) and not hasattr(value, "_fields") for item in value]
    return [item for item in (*values, *held) if isinstance(item, Entry)]


def _registers_itself(item: Entry, path: str) -> bool:
    """Whether the file has called `bridle.register`, as one may that is also imported."""
    return registry.source_of(item) == os.path.abspath(path)


def _as_entry(value: object, name: str, path: str) -> Entry | None:
    """An entry as it is, or the one of a function that makes a policy of a domain."""
    if isinstance(value, Entry):
        return value
    if not callable(value):
        return None
    try:
        parameters = list(signature(value).parameters.values())
    except (TypeError, ValueError):
        raise InputError(f"{path}: {name} must be a function of a domain that makes a policy") from None
    others = parameters[1:]
    if not parameters or parameters[0].kind not in (Argument.POSITIONAL_ONLY, Argument.POSITIONAL_OR_KEYWORD):
        raise InputError(f"{path}: the first parameter of {name} must be the domain")
    needs = tuple(other.name for other in others if other.default is other.empty)
    title = title_of(value) or f"a policy of {os.path.basename(path)}"
    return Entry(name, value, title, os.path.basename(path), regret="-", violation="-", needs=needs)


def _guarded(path: str, item: Entry) -> Entry:
    """The entry, whose functions blame the file for what they raise, unless they refuse what they were given."""

    def guarded(function: Callable[..., Made]) -> Callable[..., Made]:
        @wraps(function)
        def call(*given: Any, **named: Any) -> Made:
            try:
                return function(*given, **named)
            except InputError:
                raise
            except Exception as error:
                raise BrokenFile(blame(os.path.relpath(path), error, f"{function.__name__}: ")) from error

        return call

    return replace(item, factory=guarded(item.factory), bound=guarded(item.bound), paper=guarded(item.paper))


# --- files --------------------------------------------------------------------------------------------------------------------------
#
# Problems and policies come from Python files. Each is run once for each text that it has had, and blamed for what goes wrong in it: who
# edits a file gets what it says now, and engines compile the record types of a file that has not changed only once.


class BrokenFile(Unavailable):
    """A file of the user's own raised an error of its own. No problem and no setting is to blame for it."""


_MODULES: dict[str, ModuleType] = {}
"""Files that were run, by the names of their modules, which are made of their paths and texts."""

_RUNNING = RLock()
"""One file is run at a time: two threads that need the same one must get the same record types."""


def require(path: str) -> str:
    """The path of a file that must be there."""
    if not os.path.isfile(path):
        raise InputError(f"there is no file {path}" if not os.path.exists(path) else f"{path} is not a file")
    return path


def read(path: str) -> bytes:
    """The text of a file that must be there."""
    try:
        with open(require(path), "rb") as file:
            return file.read()
    except OSError as error:
        raise Unavailable(f"cannot read {path}: {error.strerror}") from None


def run(path: str, text: bytes | None = None, package: str | None = None) -> ModuleType:
    """The module that a Python file is; `text` is what stands in it, where that is known, and `package` the one that it is part of."""
    text = read(path) if text is None else text
    full = os.path.abspath(path)
    name = "bridle_own_" + sha256(full.encode() + text).hexdigest()[:24]
    name = f"{package}.{name}" if package else name  # so `from . import neighbour` works
    with _RUNNING:
        if name not in _MODULES:
            spec = spec_from_file_location(name, full)
            if spec is None:
                raise InputError(f"{path} cannot be read as Python")
            module = module_from_spec(spec)
            sys.modules[name] = module  # where dataclasses and pickle look for what the file defines
            try:
                with blamed(path):
                    exec(compile(text, full, "exec", dont_inherit=True), module.__dict__)
            except InputError:
                del sys.modules[name]
                raise
            _MODULES[name] = module
        return _MODULES[name]


@contextmanager
def blamed(path: str, doing: str = "") -> Iterator[None]:
    """Run a file's code, which may import its neighbours; whatever it raises is an InputError that says where.

    What it prints goes to standard error: standard output is for results.
    """
    folder = os.path.dirname(os.path.abspath(path))
    sys.path.insert(0, folder)
    try:
        with redirect_stdout(sys.stderr):
            yield
    except (Exception, SystemExit) as error:
        raise InputError(blame(path, error, doing)) from error
    finally:
        if folder in sys.path:
            sys.path.remove(folder)


def blame(path: str, error: BaseException, doing: str = "") -> str:
    """What went wrong in a file and on which of its lines, on one line."""
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{path}{_line(path, error)}: {doing}{type(error).__name__}: {' '.join(text.split())}"


def _line(path: str, error: BaseException) -> str:
    """The last line of the file that the error passed through."""
    if isinstance(error, SyntaxError):
        return f", line {error.lineno}" if error.lineno and os.path.abspath(str(error.filename)) == os.path.abspath(path) else ""
    step, line = error.__traceback__, 0
    while step is not None:
        if os.path.abspath(step.tb_frame.f_code.co_filename) == os.path.abspath(path):
            line = step.tb_lineno
        step = step.tb_next
    return f", line {line}" if line else ""
