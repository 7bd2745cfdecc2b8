"""Mutation testing: change one thing in a formula at a time, and see whether a test notices.

    python tools/mutants.py                                 every group; exit status 1 where one falls short of its goal
    python tools/mutants.py --group learners                one group
    python tools/mutants.py --only bridle.learners.adagrad  one module; after a colon, the functions whose names begin so
    python tools/mutants.py --named                         the mutants that have a name, because they once survived
    python tools/mutants.py --sample 200 --seed 1           some of each group, by chance
    python tools/mutants.py --record                        every group, and put the figures into docs/mutants.md
    python tools/mutants.py --page                          put the reasons of mutants.toml into docs/mutants.md

What is mutated and by which tests is in `mutants.toml`, with the mutants that may survive and why. A test process that has imported and
collected everything is forked for each mutant; the fork gets the mutated function's code in place of the old, wherever that function is
held, and runs the tests that pass through the changed line, fastest first, until one fails or takes too long. Which tests these are is
recorded once. Results are kept in `.mutants/` and used again while the module and the tests in question are as they were.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import random
import shutil
import sys
import time
from pathlib import Path
from typing import TypedDict

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from mutation_operators import Mutant, Source  # noqa: E402
from mutation_plan import Group, Plan, named_mutants  # noqa: E402
from mutation_trials import Result, Store, run_group, write_json  # noqa: E402


class Figures(TypedDict):
    """What became of the mutants of a group, as it is kept for the documentation: how many there are, were tried, killed, accepted."""

    there: int
    tried: int
    killed: int
    accepted: int
    seconds: float


def counted(plan: Plan, chosen: list[tuple[Source, Mutant]], results: dict[str, Result]) -> tuple[Figures, list[Mutant]]:
    """The figures of some mutants, and the survivors that nobody has accepted."""
    alive = [mutant for _, mutant in chosen if results[mutant.name].status != "killed"]
    unknown = [mutant for mutant in alive if mutant.name not in plan.accepted]
    tried = len(chosen)
    return Figures(there=tried, tried=tried, killed=tried - len(alive), accepted=len(alive) - len(unknown), seconds=0.0), unknown


def share(figures: Figures) -> float:
    """The share of mutants that were killed."""
    return figures["killed"] / figures["tried"]


def told(group: Group, figures: Figures) -> str:
    """One line about a group."""
    alive = figures["tried"] - figures["killed"]
    return (
        f"{group.name}: {figures['killed']} of {figures['tried']} killed, {share(figures):.1%} (goal {group.goal:.0%}); "
        f"{alive} survive, {alive - figures['accepted']} of them without a reason; {figures['seconds']:.0f} s"
    )


def page(plan: Plan, figures: dict[str, Figures]) -> str:
    """The table of shares and the list of survivors, for the documentation."""
    head = ("group", "what", "mutants", "tried", "killed", "share", "goal", "survivors with a reason below", "without")
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for group in plan.groups:
        if group.name in figures:
            of = figures[group.name]
            without = of["tried"] - of["killed"] - of["accepted"]
            numbers = (of["there"], of["tried"], of["killed"], f"{share(of):.1%}", f"{group.goal:.0%}", of["accepted"], without)
            lines.append(f"| {group.name} | {group.what} | " + " | ".join(map(str, numbers)) + " |")
    lines += ["", "### Survivors, and why they may"]
    module = ""
    for part in plan.reasons:
        here, _, function = part["where"].partition(":")
        if here != module:
            module = here
            lines += ["", f"**`{module}`**", ""]
        lines.append(f"- `{function}`: {part['reason']}")
        lines += [f"    - `{mutant}`" for mutant in part["mutants"]]
    return "\n".join(lines) + "\n"


def write_page(plan: Plan, figures: dict[str, Figures]) -> None:
    """Put the figures and the survivors into the documentation, after its heading for them."""
    before, heading, _ = plan.page.read_text(encoding="utf-8").partition("\n## What survives\n")
    if not heading:
        raise SystemExit(f"{plan.page} has no heading '## What survives' to put the figures under")
    plan.page.write_text(f"{before}{heading}\n{page(plan, figures)}", encoding="utf-8")


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
    parser.add_argument("--record", action="store_true", help="put the figures of this run into the documentation")
    parser.add_argument(
        "--page", action="store_true", help="put the figures of the last record and the reasons into the documentation, and try none"
    )
    parser.add_argument("--survivors", type=Path, help="write the survivors to this file, too")
    given = parser.parse_args()
    plan = Plan.read(given.plan)
    if unknown := set(given.group) - {group.name for group in plan.groups}:
        parser.error(f"no group {', '.join(sorted(unknown))}; there are {', '.join(group.name for group in plan.groups)}")
    kept: dict[str, Figures] = json.loads(plan.figures.read_text(encoding="utf-8")) if plan.figures.exists() else {}
    if given.page:
        write_page(plan, kept)
        return 0
    if given.record and (given.only or given.named):
        parser.error("--record is for whole groups, or samples of them")
    if given.fresh:
        shutil.rmtree(plan.store, ignore_errors=True)
    names = {f"{facts['where']}: {facts['mutant']}": facts["name"] for facts in plan.named} if given.named else {}
    found = named_mutants(plan) if given.named else {group: selected(plan, group, given.only) for group in plan.groups}
    work = {group: chosen for group, chosen in found.items() if not given.group or group.name in given.group}
    there = {group.name: len(chosen) for group, chosen in work.items()}
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
        figures, unknown = counted(plan, chosen, results)
        figures["there"], figures["seconds"] = there[group.name], round(time.monotonic() - began)
        lines.append(told(group, figures))
        alive += [(mutant, results[mutant.name].status) for mutant in unknown]
        fine = fine and (share(figures) >= group.goal if not given.named else not unknown)
        kept[group.name] = figures
    if given.record:
        write_json(plan.figures, kept)
        write_page(plan, kept)
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
