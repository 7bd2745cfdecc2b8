"""Mutation testing: change one thing in a formula at a time, and see whether a test notices.

    python tools/mutants.py                                 every group; exit status 1 where one falls short of its goal
    python tools/mutants.py --group learners                one group
    python tools/mutants.py --only bridle.learners.adagrad  one module; after a colon, the functions whose names begin so
    python tools/mutants.py --named                         the mutants that have a name, because they once survived
    python tools/mutants.py --sample 200 --seed 1           some of each group, by chance
    python tools/mutants.py --record                        every group, and keep the figures that docs/mutants.md shows
    python tools/mutants.py --page                          what docs/mutants.md must hold, from the figures and the plan

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
    """What became of the mutants of a group, as it is kept for the documentation."""

    mutants: int
    killed: int
    accepted: int
    seconds: float


def counted(plan: Plan, chosen: list[tuple[Source, Mutant]], results: dict[str, Result], seconds: float) -> tuple[Figures, list[Mutant]]:
    """The figures of a group, and the survivors that nobody has accepted."""
    alive = [mutant for _, mutant in chosen if results[mutant.name].status != "killed"]
    unknown = [mutant for mutant in alive if mutant.name not in plan.accepted]
    figures = Figures(mutants=len(chosen), killed=len(chosen) - len(alive), accepted=len(alive) - len(unknown), seconds=round(seconds))
    return figures, unknown


def share(figures: Figures) -> float:
    """The share of mutants that were killed."""
    return figures["killed"] / figures["mutants"]


def told(group: Group, figures: Figures) -> str:
    """One line about a group."""
    alive = figures["mutants"] - figures["killed"]
    return (
        f"{group.name}: {figures['killed']} of {figures['mutants']} killed, {share(figures):.1%} (goal {group.goal:.0%}); "
        f"{alive} survive, {alive - figures['accepted']} of them without a reason; {figures['seconds']:.0f} s"
    )


def page(plan: Plan, figures: dict[str, Figures]) -> str:
    """The table of shares and the list of survivors, for the documentation."""
    lines = ["| group | what | mutants | killed | share | goal |", "|---|---|---|---|---|---|"]
    for group in plan.groups:
        if group.name in figures:
            found = figures[group.name]
            numbers = f"{found['mutants']} | {found['killed']} | {share(found):.1%} | {group.goal:.0%}"
            lines.append(f"| {group.name} | {group.what} | {numbers} |")
    lines += ["", "### Survivors, and why they may"]
    module = ""
    for part in plan.reasons:
        here, _, function = part["where"].partition(":")
        if here != module:
            module = here
            lines += ["", f"**`{module}`**", ""]
        lines.append(f"- `{function}`: {part['reason']}")
        lines += [f"    - `{mutant}`" for mutant in part["mutants"]]
    return "\n".join(lines)


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
    parser.add_argument("--record", action="store_true", help="keep the figures of this run for the documentation")
    parser.add_argument("--page", action="store_true", help="show what the documentation must hold, and try none")
    parser.add_argument("--survivors", type=Path, help="write the survivors to this file, too")
    given = parser.parse_args()
    plan = Plan.read(given.plan)
    if unknown := set(given.group) - {group.name for group in plan.groups}:
        parser.error(f"no group {', '.join(sorted(unknown))}; there are {', '.join(group.name for group in plan.groups)}")
    kept: dict[str, Figures] = json.loads(plan.figures.read_text(encoding="utf-8")) if plan.figures.exists() else {}
    if given.page:
        print(page(plan, kept))
        return 0
    if given.record and (given.only or given.named or given.sample is not None):
        parser.error("--record is for whole groups")
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
        figures, unknown = counted(plan, chosen, results, time.monotonic() - began)
        lines.append(told(group, figures))
        alive += [(mutant, results[mutant.name].status) for mutant in unknown]
        fine = fine and (share(figures) >= group.goal if not given.named else not unknown)
        kept[group.name] = figures
    if given.record:
        write_json(plan.figures, kept)
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
