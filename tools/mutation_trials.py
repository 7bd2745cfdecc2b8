"""Trying mutants: a pytest process that has collected everything is forked for each, and runs the tests that pass through its line."""

from __future__ import annotations

import gc
import hashlib
import importlib
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

from mutation_operators import MODULE_LEVEL, Mutant, Source
from mutation_plan import Group, Plan

AT_MOST = 10.0
"""Seconds of tests, as recorded, that are tried on one mutant: those of the group's `first` files, then the fastest."""
SLOWER = 8.0
"""A test that takes this many times its recorded time, and `GRACE` seconds more, has noticed."""
CALLS = 500
"""Calls of one function in one test that are followed line by line; the later ones seldom take another way."""
MEMORY = 4 << 30
"""Bytes that a mutant may take more than the process it comes from."""


@dataclass
class Result:
    """What became of a mutant: killed by a test or by taking too long, or survived; "unseen" where no test passes through the line."""

    status: str
    by: str = ""
    seconds: float = 0.0
    proof: str = ""


@dataclass
class Recording:
    """For each test: how long it takes, and which lines of which file it passes through."""

    seconds: dict[str, float] = field(default_factory=dict)
    lines: dict[str, dict[str, set[int]]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    modules: list[str] = field(default_factory=list)

    def through(self, places: dict[str, set[int]], first: tuple[str, ...]) -> list[str]:
        """The tests that pass through any of these lines of these files, as many as fit into `AT_MOST` seconds: of files `first`, then
        fastest first.
        """
        found = [
            name for name, files in self.lines.items() if any(not lines.isdisjoint(files.get(path, ())) for path, lines in places.items())
        ]
        chosen, total = [], 0.0
        for name in sorted(found, key=lambda name: (not name.startswith(first), self.seconds[name], name)):
            total += self.seconds[name]
            if chosen and total > AT_MOST:
                break
            chosen.append(name)
        return chosen

    def to_json(self) -> dict[str, Any]:
        lines = {name: {path: sorted(seen) for path, seen in files.items()} for name, files in self.lines.items()}
        return {"seconds": self.seconds, "lines": lines, "failed": self.failed, "modules": self.modules}

    @classmethod
    def from_json(cls, facts: dict[str, Any]) -> Recording:
        lines = {name: {path: set(seen) for path, seen in files.items()} for name, files in facts["lines"].items()}
        return cls(facts["seconds"], lines, facts["failed"], facts["modules"])


class Store:
    """Results by mutant, kept from run to run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "results.json"
        folder.mkdir(exist_ok=True)
        (folder / ".gitignore").write_text("*\n", encoding="utf-8")
        self.results: dict[str, Result] = {}
        if self.path.exists():
            self.results = {name: Result(**facts) for name, facts in json.loads(self.path.read_text(encoding="utf-8")).items()}

    def save(self) -> None:
        """Write all of it, whole or not at all."""
        write_json(self.path, {name: vars(result) for name, result in sorted(self.results.items())})


def write_json(path: Path, facts: object) -> None:
    """A JSON file that is written whole or not at all."""
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(facts, indent=0), encoding="utf-8")
    beside.replace(path)


def digest(*parts: str | bytes | Path) -> str:
    """A short name for what these texts and files hold."""
    found = hashlib.sha256()
    for part in parts:
        data = part.read_bytes() if isinstance(part, Path) else part.encode() if isinstance(part, str) else part
        found.update(len(data).to_bytes(8, "big") + data)
    return found.hexdigest()[:16]


class Surgeon:
    """Puts a mutant's code into the functions of this process."""

    def __init__(self, sources: list[Source]) -> None:
        self.sources = {source.module: source for source in sources}
        files = {str(source.path) for source in sources}
        self.held: dict[tuple[str, str, int], list[FunctionType]] = defaultdict(list)
        gc.unfreeze()  # what was frozen after the tests were collected is not among the objects
        for thing in gc.get_objects():
            if type(thing) is FunctionType and thing.__code__.co_filename in files:
                self.held[thing.__code__.co_filename, thing.__code__.co_qualname, thing.__code__.co_firstlineno].append(thing)

    def operate(self, mutant: Mutant) -> None:
        """Make this process behave as if the mutant stood in the source."""
        source = self.sources[mutant.module]
        if mutant.function == MODULE_LEVEL:
            self.rename(source, mutant)
            return
        code = source.code_with(mutant)
        if not code:
            raise SystemExit(f"{mutant.name}: the compiler makes the same of it")
        replaced = 0
        for (name, line, nth), new in code.items():
            replaced += self.replace(self.held[str(source.path), name, line], source.plain.get((name, line, nth)), new)
        if not replaced:
            raise SystemExit(f"{mutant.name}: nothing holds this function")

    @staticmethod
    def replace(functions: list[FunctionType], old: CodeType | None, new: CodeType) -> int:
        """Give new code to those functions that have the old; how many these are."""
        replaced = 0
        for function in functions:
            if function.__code__ == old and len(function.__code__.co_freevars) == len(new.co_freevars):
                function.__code__ = new
                replaced += 1
        return replaced

    @staticmethod
    def rename(source: Source, mutant: Mutant) -> None:
        """Give another value to a name at module level, here and wherever it was imported."""
        home = sys.modules[mutant.module].__dict__
        name, value = source.value_with(mutant, dict(home))
        was, package = home[name], mutant.module.partition(".")[0]
        for key, module in list(sys.modules.items()):
            if key.partition(".")[0] == package and module.__dict__.get(name) is was:
                module.__dict__[name] = value


class Laboratory:
    """A pytest plugin that takes over when all tests are collected: it records them, and then tries them on the mutants."""

    def __init__(
        self, plan: Plan, group: Group, chosen: list[tuple[Source, Mutant]], workers: int, store: Store, show: Callable[[str], None]
    ):
        self.plan, self.group, self.chosen, self.workers, self.store, self.show = plan, group, chosen, workers, store, show
        self.wrong = ["the tests cannot be collected"]  # until they are
        self.kills: dict[str, Counter[str]] = defaultdict(Counter)
        self.reports = Reports()

    def pytest_runtestloop(self, session: Any) -> bool:
        """In place of running the tests once."""
        if session.testsfailed:
            return True
        self.wrong = []
        self.items = {item.nodeid: item for item in session.items}
        for item in session.items:
            calm(item)
        sources = list({source.module: source for source, _ in self.chosen}.values())
        for source in sources:
            importlib.import_module(source.module)
        recording = self.recorded(session, sources)
        if recording.failed:
            self.wrong = ["these fail without any mutant:", *recording.failed]
            return True
        for name in recording.modules:  # what the tests will import, so that no fork has to
            try:
                importlib.import_module(name)
            except Exception:
                continue
        self.surgeon = Surgeon(sources)
        self.try_all(recording)
        return True

    # Recording

    def recorded(self, session: Any, sources: list[Source]) -> Recording:
        """Which test passes where; from the store if nothing has changed."""
        everything = self.plan.sources(self.group)
        tests = sorted({Path(item.fspath) for item in session.items})
        key = digest(*sorted(self.items), *tests, *(source.path for source in everything))
        path = self.store.folder / f"recording-{self.group.name}.json"
        if path.exists():
            facts = json.loads(path.read_text(encoding="utf-8"))
            if facts.pop("key") == key:
                return Recording.from_json(facts)
        self.show(f"{self.group.name}: recording {len(self.items)} tests")
        with tempfile.NamedTemporaryFile() as file:
            child = fork()
            if child == 0:
                record(list(self.items.values()), {str(source.path) for source in everything}, self.reports, Path(file.name))
            os.waitpid(child, 0)
            facts = json.loads(Path(file.name).read_text(encoding="utf-8") or "null")
        if facts is None:
            return Recording(failed=["the process that records the tests died"])
        if not facts["failed"]:
            write_json(path, {"key": key, **facts})
        return Recording.from_json(facts)

    # Trying

    def proof(self, source: Source, names: list[str]) -> str:
        """What a result depends on: the module and the files of the tests."""
        return digest(source.path, *sorted({Path(self.items[name].fspath) for name in names}))

    def still_true(self, source: Source, result: Result, names: list[str]) -> bool:
        """Whether a stored result holds for the source and the tests of today."""
        if result.status == "killed":
            return result.by in self.items and result.proof == self.proof(source, [result.by])
        return result.proof == self.proof(source, names)

    def try_all(self, recording: Recording) -> None:
        """Run every chosen mutant that has no valid result."""
        tasks = []
        everything = self.plan.sources(self.group)
        for source, mutant in self.chosen:
            places = {str(source.path): set(range(mutant.first_line, mutant.last_line + 1))}
            if mutant.function == MODULE_LEVEL:  # wherever the group's modules use the name
                name = mutant.before.partition("=")[0].partition(":")[0].strip()
                places = {str(each.path): each.lines_with(name) for each in everything}
            names = recording.through(places, tuple(self.group.first))
            known = self.store.results.get(mutant.name)
            if known is None or not self.still_true(source, known, names):
                tasks.append((source, mutant, names))
        known = len(self.chosen) - len(tasks)
        self.show(f"{self.group.name}: {len(self.chosen)} mutants" + (f", {known} known from before" if known else ""))
        gc.collect()
        gc.freeze()
        running: dict[int, tuple[Source, Mutant, list[str], float, Path]] = {}
        waiting, done, survivors, start = list(reversed(tasks)), 0, 0, time.monotonic()
        while waiting or running:
            while waiting and len(running) < self.workers:
                source, mutant, names = waiting.pop()
                if not names:
                    self.store.results[mutant.name] = Result("unseen", proof=self.proof(source, names))
                    done, survivors = done + 1, survivors + 1
                    continue
                before = self.kills[mutant.function]
                order = sorted(names, key=lambda name: -before[name])  # stable: the fastest first among equals
                child, folder = self.launch(mutant, order, recording)
                running[child] = (source, mutant, names, time.monotonic(), folder)
            if not running:
                continue
            child, _ = os.wait()
            if child not in running:
                continue
            source, mutant, names, began, folder = running.pop(child)
            result = verdict(folder / "answer", time.monotonic() - began)
            shutil.rmtree(folder, ignore_errors=True)
            if result.status == "killed":
                self.kills[mutant.function][result.by] += 1
            elif result.status == "broken":  # not kept: it says nothing of the tests, and would pass for a survivor the next time
                self.wrong.append(f"{mutant.name}: {result.by}")
                self.store.results.pop(mutant.name, None)
                continue
            result.proof = self.proof(source, [result.by] if result.status == "killed" else names)
            self.store.results[mutant.name] = result
            done, survivors = done + 1, survivors + (result.status == "survived")
            if done % 20 == 0:
                rate = done / (time.monotonic() - start) * 60.0
                self.show(f"{self.group.name}: {done} of {len(tasks)}, {survivors} survive, {rate:.0f} a minute")
                self.store.save()
        self.store.save()

    def launch(self, mutant: Mutant, order: list[str], recording: Recording) -> tuple[int, Path]:
        """Start a process with the mutant in place; its number, and the folder in which it answers."""
        folder = Path(tempfile.mkdtemp(prefix="mutant-"))
        child = fork()
        if child:
            return child, folder
        answer = folder / "answer"
        try:
            quiet(folder)
            self.surgeon.operate(mutant)
            limits = {name: self.plan.grace + SLOWER * recording.seconds[name] for name in order}
            answer.write_text(attempt([self.items[name] for name in order], limits, self.reports, answer), encoding="utf-8")
        except BaseException as wrong:
            answer.write_text(f"broken\n{wrong!r}", encoding="utf-8")
        os._exit(0)


def fork() -> int:
    """A copy of this process; libraries that warn of threads are not running any."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return os.fork()


def quiet(folder: Path) -> None:
    """No output, temporary files in one folder, and not all of the memory."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.environ["PYTEST_DEBUG_TEMPROOT"] = os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() if Path("/proc/self/statm").exists() else 0
    if size:
        resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, resource.RLIM_INFINITY))


def calm(item: Any) -> None:
    """The same examples every time; a property that fails is not shrunk to its simplest case: that it fails is all we ask."""
    from hypothesis import Phase, settings

    function = getattr(item, "function", None)
    own = getattr(function, "_hypothesis_internal_use_settings", None)
    if own is not None:
        function._hypothesis_internal_use_settings = settings(own, phases=(Phase.explicit, Phase.generate), database=None, derandomize=True)


class Reports:
    """A pytest plugin that remembers how tests failed."""

    def __init__(self) -> None:
        self.failed: list[str] = []

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Called by pytest for each part of a test."""
        if report.failed:
            self.failed.append(str(report.longrepr))


def run_item(item: Any, following: Any, reports: Reports) -> str | None:
    """How a test fails, with all that pytest puts around it; None if it passes or is skipped."""
    reports.failed = []
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
    return reports.failed[0] if reports.failed else None


def attempt(items: list[Any], limits: dict[str, float], reports: Reports, answer: Path) -> str:
    """Run the tests until one fails; what to answer. The kernel ends a test that takes too long: what the answer holds then names it."""
    for item, following in zip(items, [*items[1:], None], strict=True):
        answer.write_text(f"ended\n{item.nodeid}", encoding="utf-8")
        signal.setitimer(signal.ITIMER_PROF, limits[item.nodeid])  # of work, so that a busy machine does not matter
        signal.setitimer(signal.ITIMER_REAL, 20.0 * limits[item.nodeid])  # for a test that waits
        if run_item(item, following, reports) is not None:
            return f"killed\n{item.nodeid}"
    return "survived\n"


def verdict(answer: Path, seconds: float) -> Result:
    """What a process answered; one that was ended in the middle of a test, by the kernel or by what it did, was killed by that test."""
    word, _, what = (answer.read_text(encoding="utf-8") if answer.exists() else "broken\nno answer").partition("\n")
    return Result("killed" if word in ("ended", "") else word, what, round(seconds, 2))


def record(items: list[Any], files: set[str], reports: Reports, answer: Path) -> None:
    """In a fork: run every test, follow it through these files, write what was seen, and end."""
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    os.dup2(1, 2)
    folder = tempfile.mkdtemp(prefix="recording-")
    os.environ["PYTEST_DEBUG_TEMPROOT"] = os.environ["TMPDIR"] = tempfile.tempdir = folder
    found, before = Recording(), set(sys.modules)
    hit: dict[str, set[int]] = {}
    calls: Counter[CodeType] = Counter()

    def inside(frame: FrameType, event: str, _: object) -> Any:
        if event == "line":
            hit[frame.f_code.co_filename].add(frame.f_lineno)
        return inside

    def entered(frame: FrameType, event: str, _: object) -> Any:
        name = frame.f_code.co_filename
        if name not in files:
            return None
        hit.setdefault(name, set()).add(frame.f_lineno)
        calls[frame.f_code] += 1
        return inside if calls[frame.f_code] <= CALLS else None

    for item, following in zip(items, [*items[1:], None], strict=True):
        hit, calls = {}, Counter()
        began = time.process_time()
        threading.settrace(entered)
        sys.settrace(entered)
        failure = run_item(item, following, reports)
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]
        found.seconds[item.nodeid] = round(time.process_time() - began, 4)
        found.lines[item.nodeid] = hit
        if failure is not None:  # a test that sets a trace of its own cannot be followed, and is not tried on mutants
            found.lines[item.nodeid] = {}
            if (failure := run_item(item, following, reports)) is not None:
                found.failed += [item.nodeid, failure]
    found.modules = sorted(name for name in set(sys.modules) - before if not name.startswith(("test_", "conftest", "helpers", "jax", "__")))
    answer.write_text(json.dumps(found.to_json()), encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def run_group(plan: Plan, group: Group, chosen: list[tuple[Source, Mutant]], workers: int) -> list[str]:
    """Try the chosen mutants of a group in a process of their own; what went wrong."""
    import pytest

    plan.store.mkdir(exist_ok=True)
    log, tests = plan.store / "pytest.log", plan.tests(group)
    child = fork()
    if child == 0:
        show = aside(log)
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(plan.source), os.environ.get("PYTHONPATH")]))
        sys.path.insert(0, str(plan.source))
        os.chdir(plan.root)
        laboratory = Laboratory(plan, group, chosen, workers, Store(plan.store), show)
        arguments = ["-p", "no:cacheprovider", "-p", "no:xdist", "-s", f"--rootdir={plan.root}", *plan.options, *tests]
        pytest.main(arguments, plugins=[laboratory, laboratory.reports])
        write_json(plan.store / "wrong.json", laboratory.wrong)
        os._exit(0)
    write_json(plan.store / "wrong.json", ["the process that runs the tests died"])
    os.waitpid(child, 0)
    wrong = list(json.loads((plan.store / "wrong.json").read_text(encoding="utf-8")))
    return [*wrong, log.read_text(encoding="utf-8", errors="replace")] if wrong else []


def aside(log: Path) -> Callable[[str], None]:
    """Send all that this process prints to a file; what is returned prints as before."""
    before = os.dup(1)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, 1)
    os.dup2(file, 2)
    return lambda text: (os.write(before, f"{text}\n".encode()), None)[1]
