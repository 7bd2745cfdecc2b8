"""Mutation testing: change one thing in a formula at a time, and see whether a test notices.

    python tools/mutants.py                                 every group; exit status 1 where one falls short of its goal
    python tools/mutants.py --group learners                one group
    python tools/mutants.py --only bridle.learners.adagrad  one module; after a colon, the functions whose names begin so
    python tools/mutants.py --named                         the mutants that have a name, because they once survived
    python tools/mutants.py --sample 200 --seed 1           some of each group, by chance

What is mutated and by which tests is in `mutants.toml`, with the mutants that may survive and why. A test process that has imported and
collected everything is forked for each mutant; the fork gets the mutated function's code in place of the old, wherever that function is
held, and runs the tests that pass through the changed line, fastest first, until one fails or takes too long. Which tests these are is
recorded once. Results are kept in `.mutants/` and used again while the module and the tests in question are as they were.
"""

from __future__ import annotations

import argparse
import fnmatch
import gc
import hashlib
import importlib
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
import tomllib
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from mutation_operators import MODULE_LEVEL, Mutant, Source  # noqa: E402

AT_MOST = 10.0
"""Seconds of tests, as recorded, that are tried on one mutant: those of the group's `first` files, then the fastest."""
SLOWER = 8.0
"""A test that takes this many times its recorded time, and `GRACE` seconds more, has noticed."""
GRACE = 5.0
"""The `grace` of a plan that says nothing of it."""
MEMORY = 4 << 30
"""Bytes that a mutant may take more than the process it comes from."""


@dataclass(frozen=True, eq=False)
class Group:
    """Modules and functions that are mutated together, the tests that must notice, and the share that must be killed."""

    name: str
    goal: float
    modules: list[str]
    tests: list[str]
    functions: str = ""
    but_not: str = ""
    first: list[str] = field(default_factory=list)

    def has(self, function: str) -> bool:
        """Whether a function of its modules belongs to it."""
        return re.search(self.functions, function) is not None and not (self.but_not and re.search(self.but_not, function))


@dataclass(frozen=True)
class Plan:
    """What `mutants.toml` says: where everything is, the groups, the mutants with a name, and those that may survive."""

    root: Path
    source: Path
    store: Path
    grace: float
    options: list[str]
    groups: list[Group]
    named: list[dict[str, str]]
    accepted: dict[str, str]

    @classmethod
    def read(cls, path: Path) -> Plan:
        """The plan in a file."""
        facts = tomllib.loads(path.read_text(encoding="utf-8"))
        root = (path.parent / facts["root"]).resolve()
        accepted = {f"{part['where']}: {mutant}": part["reason"] for part in facts.get("accepted", []) for mutant in part["mutants"]}
        groups = [Group(name, **group) for name, group in facts["groups"].items()]
        source = root / facts["source"]
        return cls(
            root, source, root / ".mutants", facts.get("grace", GRACE), facts.get("options", []), groups, facts.get("named", []), accepted
        )

    def sources(self, group: Group) -> list[Source]:
        """The modules of a group."""
        paths = sorted(path for pattern in group.modules for path in self.source.glob(pattern))
        return [Source(self.module(path), path) for path in paths]

    def module(self, path: Path) -> str:
        """The dotted name of a module."""
        return ".".join(path.relative_to(self.source).with_suffix("").parts).removesuffix(".__init__")

    def mutants(self, group: Group) -> list[tuple[Source, Mutant]]:
        """Every mutant of a group."""
        return [(source, mutant) for source in self.sources(group) for mutant in source.mutants() if group.has(mutant.function)]


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

    def through(self, path: Path, lines: set[int], first: tuple[str, ...]) -> list[str]:
        """The tests that pass through any of these lines, as many as fit into `AT_MOST` seconds: of files `first`, then fastest first."""
        found = [name for name, files in self.lines.items() if not lines.isdisjoint(files.get(str(path), ()))]
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
        for source, mutant in self.chosen:
            lines = set(range(mutant.first_line, mutant.last_line + 1))
            if mutant.function == MODULE_LEVEL:
                lines = source.lines_with(mutant.before.partition("=")[0].partition(":")[0].strip())
            names = recording.through(source.path, lines, tuple(self.group.first))
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
            elif result.status == "broken":
                self.wrong.append(f"{mutant.name}: {result.by}")
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

    def inside(frame: FrameType, event: str, _: object) -> Any:
        if event == "line":
            hit[frame.f_code.co_filename].add(frame.f_lineno)
        return inside

    def entered(frame: FrameType, event: str, _: object) -> Any:
        name = frame.f_code.co_filename
        if name not in files:
            return None
        hit.setdefault(name, set()).add(frame.f_lineno)
        return inside

    for item, following in zip(items, [*items[1:], None], strict=True):
        hit = {}
        began = time.process_time()
        threading.settrace(entered)
        sys.settrace(entered)
        failure = run_item(item, following, reports)
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]
        found.seconds[item.nodeid] = round(time.process_time() - began, 4)
        found.lines[item.nodeid] = hit
        if failure is not None:
            found.failed += [item.nodeid, failure]
    found.modules = sorted(name for name in set(sys.modules) - before if not name.startswith(("test_", "conftest", "helpers", "jax", "__")))
    answer.write_text(json.dumps(found.to_json()), encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def named_mutants(plan: Plan) -> dict[Group, list[tuple[Source, Mutant]]]:
    """The mutants that have a name of their own, found again in the source, by the first group that has their module."""
    homes = {source.module: (group, source) for group in reversed(plan.groups) for source in plan.sources(group)}
    found: dict[Group, list[tuple[Source, Mutant]]] = defaultdict(list)
    for facts in plan.named:
        module, _, function = facts["where"].partition(":")
        before, _, after = facts["mutant"].partition(" => ")
        group, source = homes.get(module, (None, None))
        mutant = None if source is None else source.written(function, before, after)
        if group is None or source is None or mutant is None:
            raise SystemExit(f"the source has no mutant {facts['where']}: {facts['mutant']}")
        found[group].append((source, mutant))
    return found


def run_group(plan: Plan, group: Group, chosen: list[tuple[Source, Mutant]], workers: int) -> list[str]:
    """Try the chosen mutants of a group in a process of their own; what went wrong."""
    import pytest

    plan.store.mkdir(exist_ok=True)
    log = plan.store / "pytest.log"
    child = fork()
    if child == 0:
        show = aside(log)
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(plan.source), os.environ.get("PYTHONPATH")]))
        sys.path.insert(0, str(plan.source))
        os.chdir(plan.root)
        laboratory = Laboratory(plan, group, chosen, workers, Store(plan.store), show)
        arguments = ["-p", "no:cacheprovider", "-p", "no:xdist", "-s", f"--rootdir={plan.root}", *plan.options, *group.tests]
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


def summary(plan: Plan, group: Group, chosen: list[tuple[Source, Mutant]], results: dict[str, Result]) -> tuple[str, bool, list[Mutant]]:
    """One line about a group, whether it reaches its goal, and the survivors that nobody has accepted."""
    killed = [mutant for _, mutant in chosen if results[mutant.name].status == "killed"]
    alive = [mutant for _, mutant in chosen if results[mutant.name].status in ("survived", "unseen")]
    unknown = [mutant for mutant in alive if mutant.name not in plan.accepted]
    share = len(killed) / len(chosen) if chosen else 1.0
    line = f"{group.name}: {len(killed)} of {len(chosen)} killed, {share:.1%} (goal {group.goal:.0%}); "
    return line + f"{len(alive)} survive, {len(unknown)} of them without a reason", share >= group.goal, unknown


def selected(plan: Plan, group: Group, only: str) -> list[tuple[Source, Mutant]]:
    """The mutants of a group that ``MODULE`` or ``MODULE:FUNCTION`` names."""
    module, _, function = only.partition(":")
    return [
        (source, mutant)
        for source, mutant in plan.mutants(group)
        if (not only or fnmatch.fnmatch(mutant.module, module)) and mutant.function.startswith(function)
    ]


def main() -> int:
    """Try the mutants, and say what survived."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plan", type=Path, default=HERE / "mutants.toml", help="what is mutated; mutants.toml beside this file")
    parser.add_argument("--group", action="append", default=[], help="one of the groups of the plan; may be repeated")
    parser.add_argument("--only", default="", metavar="MODULE[:FUNCTION]", help="the mutants of this module, of functions that begin so")
    parser.add_argument("--named", action="store_true", help="the mutants that have a name alone; all must be killed")
    parser.add_argument("--workers", type=int, default=1, help="how many mutants at a time")
    parser.add_argument("--sample", type=int, help="at most so many of each group, drawn by chance")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--fresh", action="store_true", help="forget what earlier runs found")
    parser.add_argument("--list", action="store_true", help="show the mutants and try none")
    parser.add_argument("--survivors", type=Path, help="write the survivors to this file, too")
    given = parser.parse_args()
    plan = Plan.read(given.plan)
    if unknown := set(given.group) - {group.name for group in plan.groups}:
        parser.error(f"no group {', '.join(sorted(unknown))}; there are {', '.join(group.name for group in plan.groups)}")
    if given.fresh:
        shutil.rmtree(plan.store, ignore_errors=True)
    names = {f"{facts['where']}: {facts['mutant']}": facts["name"] for facts in plan.named} if given.named else {}
    found = named_mutants(plan) if given.named else {group: selected(plan, group, given.only) for group in plan.groups}
    work = {group: chosen for group, chosen in found.items() if not given.group or group.name in given.group}
    if given.sample is not None:
        work = {group: draw(chosen, given.sample, given.seed) for group, chosen in work.items()}
    work = {group: chosen for group, chosen in work.items() if chosen}
    if given.list:
        print("\n".join(mutant.diff() for chosen in work.values() for _, mutant in chosen))
        return 0
    fine, lines, alive = True, [], []
    for group, chosen in work.items():
        began = time.monotonic()
        if wrong := run_group(plan, group, chosen, given.workers):
            print("\n".join(wrong), file=sys.stderr)
            return 2
        results = Store(plan.store).results
        line, reached, unknown = summary(plan, group, chosen, results)
        lines.append(f"{line}; {time.monotonic() - began:.0f} s")
        alive += [(mutant, results[mutant.name].status) for mutant in unknown]
        fine = fine and (reached if not given.named else not unknown)
    text = "\n\n".join(
        names.get(mutant.name, mutant.diff()) + ("\n  no test runs it" if status == "unseen" else "") for mutant, status in alive
    )
    if given.survivors:
        given.survivors.write_text(text + "\n", encoding="utf-8")
    print("\n".join(filter(None, [text, "", *lines])))
    return 0 if fine else 1


def draw(chosen: list[tuple[Source, Mutant]], number: int, seed: int) -> list[tuple[Source, Mutant]]:
    """Some of the mutants, in their order."""
    picked = sorted(random.Random(seed).sample(range(len(chosen)), min(number, len(chosen))))
    return [chosen[i] for i in picked]


if __name__ == "__main__":
    sys.exit(main())
