"""The page results.md, written from results.json alone: the goals and whether they are met, then every table."""

from __future__ import annotations

from typing import Any, NamedTuple

BY_HAND, FAST, BARE = "numba loop by hand", "numba loop by hand, sums reordered", "NumPy loop by hand"
SESSIONS = {
    "with certificates": ("Session", "Session, engine compiled"),
    "certify=False": ("Session, certify=False", "Session, engine compiled, certify=False"),
}
RIVER = "river LogisticRegression, learn_one"
LINEAR = 1.15
"""An exponent above this is not linear growth; one below it may be, where calls still cost more than arithmetic."""


class Goal(NamedTuple):
    """What was aimed at, what was measured, and whether that is enough (None: not measured here)."""

    what: str
    goal: str
    measured: str
    met: bool | None


def us(part: dict[str, Any], name: str) -> float:
    """Microseconds per run and round of one side."""
    return float(next(row["us"] for row in part["rows"] if row["name"] == name))


def sessions(part: dict[str, Any]) -> dict[str, str]:
    """With certificates and without them, the fastest kind of session that was timed."""
    there = {row["name"] for row in part["rows"]}
    known = {how: [name for name in names if name in there] for how, names in SESSIONS.items()}
    return {how: min(names, key=lambda name: us(part, name)) for how, names in known.items() if names}


def goals(found: dict[str, Any]) -> list[Goal]:
    """The table of goals, of the parts that were measured."""
    listed: list[Goal] = []
    if "algorithm1" in found:
        one = found["algorithm1"]
        engine = us(one, "play, engine compiled")
        ratio = engine / us(one, BY_HAND)
        measured = f"{ratio:.2f} times ({engine / us(one, FAST):.1f} times the loop whose sums may be reordered)"
        listed.append(
            Goal("compiled engine, Algorithm 1, whole horizon", "at most 3 times a loop fused by hand; better 2", measured, ratio <= 3.0)
        )
        for name in ("compiled", "JAX"):
            runs, more = f"play, engine {name.lower()}, {one['runs']} runs", ""
            many = us(one, runs) / us(one, BY_HAND)
            if "sweeps" in found:
                more = f"; with all cores {us(found['sweeps'], runs) / us(found['sweeps'], BY_HAND):.2f} times"
            what = f"{name} engine, {one['runs']} runs, per run and round"
            listed.append(Goal(what, "at most half of the fused single run", f"{many:.2f} times{more}", many <= 0.5))
        limit = "at most 2 times a bare NumPy loop, every check included; better 1.5"
        for how, best in sessions(one).items():
            ratio = us(one, best) / us(one, BARE)
            listed.append(Goal(f"`Session` round, {how}", limit, f"{ratio:.2f} times ({best})", ratio <= 2.0))
    if "logistic" in found and any(row["name"] == RIVER for row in found["logistic"]["rows"]):
        part = found["logistic"]
        for how, best in sessions(part).items():
            ratio = us(part, best) / us(part, RIVER)
            what = f"`Session` round, logistic task, {how}"
            listed.append(Goal(what, "faster than river's `learn_one`", f"{ratio:.2f} times as long ({best}, with a limit)", ratio < 1.0))
    if found.get("fraud"):
        ratio = found["fraud"]["ratio"]
        spread = f"({found['fraud']['ratio_low']:,.0f} to {found['fraud']['ratio_high']:,.0f})"
        listed.append(Goal(
            f"fraud network, {found['fraud']['lambdas']} lambdas x {found['fraud']['rounds']:,} rounds, two cores",
            "at least 500 times the PyTorch loop, one row at a time", f"{ratio:,.0f} times {spread}", ratio >= 500.0,
        ))  # fmt: skip
    if found.get("solvers", {}).get("rows"):
        part = found["solvers"]
        each = {
            engine: us(part, "guo2022, cvxpy, parameters") / us(part, f"sinha2024, engine {engine}")
            for engine in ("compiled", "jax", "python")
        }
        anew = us(part, "guo2022, cvxpy, built anew") / us(part, "sinha2024, engine python")
        text = f"{each['compiled']:,.0f} times (engine compiled), {each['jax']:,.0f} (jax), {each['python']:,.0f} (python)"
        text += f"; where cvxpy builds the program anew, {anew:,.0f} (python)"
        listed.append(
            Goal("sinha2024 against guo2022 through cvxpy (parameters)", "at least 500 times faster", text, each["compiled"] >= 500.0)
        )
    if "starting" in found:
        part = found["starting"]
        listed.append(
            Goal(
                "`import bridle` and what `play` loads, beyond `import numpy`",
                "at most 0.2 s",
                f"{part['more_s']:.2f} s ({part['more_processor_s']:.2f} s of the processor)",
                part["more_s"] <= 0.2,
            )
        )
        listed.append(
            Goal(
                "`bridle --help`",
                "under 0.6 s",
                f"{part['help_s']:.2f} s ({part['help_processor_s']:.2f} s of the processor)",
                part["help_s"] < 0.6,
            )
        )
    if "growth" in found:
        curves = [curve for size in ("T", "d", "k") for curve in found["growth"][size]]
        text = "; ".join(
            f"{size}: " + ", ".join(f"{c['engine']} {c['exponent']:.2f}" for c in found["growth"][size]) for size in ("T", "d", "k")
        )
        listed.append(
            Goal("cost against T, d and k", "linear at most: exponents near 1 or below", text, all(c["exponent"] <= LINEAR for c in curves))
        )
    return listed


def limits(rows: list[dict[str, Any]]) -> list[str]:
    """Many seeds under limits on memory."""
    return [
        "The same for 2,000 rounds of many seeds, each a stream of its own (d = 30), where `play` is told how much memory it may take; the",
        "runs are then played in groups.", "",
        *table(
            ["engine", "runs", "memory", "MiB more", "groups"],
            [[row["engine"], f"{row['runs']:,}", row["limit"], f"{row['grown_mib']:.1f}", str(row["groups"])] for row in rows],
        ),
    ]  # fmt: skip


SHOWN = {
    BARE: "NumPy loop, inlined by hand, no checks, no totals",
    BY_HAND: "numba loop, fused by hand, no totals",
    "play, engine python": "`play`, engine python",
    "play, engine jax": "`play`, engine jax",
    "play, engine compiled": "`play`, engine compiled",
    "play, engine jax, 256 runs": "`play`, engine jax, 256 runs at once",
    "play, engine compiled, 256 runs": "`play`, engine compiled, 256 runs at once",
    "Session": "`Session.decide` + `observe`, every check on the input, certificates",
    "Session, certify=False": "the same without certificates (`certify=False`)",
    "Session, engine compiled": '`Session` compiled (`engine="compiled"`), every check, certificates',
    "Session, engine compiled, certify=False": "the same without certificates",
    "PyTorch autograd loop": "PyTorch autograd loop",
    "optax, one jitted call a round": "optax, one jitted call a round, no totals",
    "Cooper, roll": "Cooper (its own algorithm: other decisions)",
}
"""The sides that docs/speed.md shows, and how it calls them."""

FIRST = {
    BARE: ("NumPy loop, by hand", "the update alone: no checks, no totals"),
    "play, engine python": ("bridle, `play`", "a game: regret, CCV, bounds"),
    "play, engine compiled": ("bridle, `play`, compiled", "the same game"),
    "Session, engine compiled": ("bridle, `Session`, compiled", "one round at a time, every number checked, certificates"),
    "Session": ("bridle, `Session` in Python", "the same"),
    "optax, one jitted call a round": ("optax", "the same update as one jitted call: no checks, no totals"),
    "PyTorch autograd loop": ("PyTorch", "the same update by autograd: no checks, no totals"),
    "Cooper, roll": ("Cooper", "its own algorithm, so other decisions"),
}
"""The sides that README.md shows: their names there, and what each does."""


def speeds(found: dict[str, Any]) -> str:
    """The table of docs/speed.md."""
    rows = {row["name"]: row for row in found["algorithm1"]["rows"]}
    lines = [f"| {name} | {short(rows[side]['us'])} | {short(rows[side]['ratio'])} |" for side, name in SHOWN.items() if side in rows]
    return "\n".join(["| path | us | ratio |", "|---|---:|---:|", *lines])


def excerpt(found: dict[str, Any]) -> str:
    """The table of README.md: fewer sides, and what each does."""
    rows = {row["name"]: row for row in found["algorithm1"]["rows"]}
    lines = [f"| {name} | {short(rows[side]['us'])} | {does} |" for side, (name, does) in FIRST.items() if side in rows]
    return "\n".join(["| | us a round | what it does |", "|---|---:|---|", *lines])


def short(number: float) -> str:
    """Two digits, or the whole number where it has more."""
    return f"{number:.0f}" if number >= 100.0 else f"{number:.2g}"


def table(head: list[str], lines: list[list[str]]) -> list[str]:
    """A table; all columns but the first and the last are numbers."""
    marks = ["---" if i in (0, len(head) - 1) else "---:" for i in range(len(head))]
    return ["| " + " | ".join(head) + " |", "|" + "|".join(marks) + "|", *("| " + " | ".join(line) + " |" for line in lines), ""]


def sides(part: dict[str, Any], base: str) -> list[str]:
    """The sides of a part, and what was skipped."""
    lines = [
        [row["name"], f"{row['us']:.3g}", f"{row['ratio']:.3g}", f"{row['ratio_low']:.3g} to {row['ratio_high']:.3g}", row["note"]]
        for row in part["rows"]
    ]
    notes = [f"Skipped: {note}." for note in part.get("skipped", [])]
    return [*table(["side", "us", f"ratio to {base}", "smallest to largest", "note"], lines), *([*notes, ""] if notes else [])]


def curve(rows: list[dict[str, Any]], size: str, slope: str) -> list[str]:
    """Microseconds a round against a size; an engine that was not played at a size has a dash there."""
    sizes = sorted({at for row in rows for at in row["sizes"]})
    lines = []
    for row in rows:
        known = dict(zip(row["sizes"], row["us"], strict=True))
        lines.append(
            [
                row["engine"],
                *(f"{known[at]:.3g}" if at in known else "-" for at in sizes),
                f"{row['exponent']:.2f}",
                f"{row['slope_us']:.3g} us a {slope}",
            ]
        )
    return table([f"us a round, {size} =", *(f"{at:,}" for at in sizes), "exponent", "slope"], lines)


def pieces(title: str, part: dict[str, Any], top: list[dict[str, Any]]) -> list[str]:
    """Where a round's time goes."""
    lines = [[name, f"{spent:.2f}", f"{100 * spent / part['us']:.0f} %"] for name, spent in part["parts"].items()]
    ranked = ", ".join(f"`{row['function']}` {100 * row['share']:.0f} %" for row in top)
    return [
        f"{title}, {part['us']:.1f} us:",
        "",
        *table(["piece", "us", "share"], lines),
        f"Most time of their own, by the profiler: {ranked}.",
        "",
    ]


def markdown(found: dict[str, Any]) -> str:
    """The whole page."""
    machine = found["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    loads = [value for part in found.values() if isinstance(part, dict) for value in part.get("load", [])]
    load = f"{min(loads):.1f} to {max(loads):.1f}" if loads else "not known"
    page = [
        "# How fast it is, beside what one would use instead",
        "",
        f"Written by `make bench` on {machine['date']}: {machine['cpu']}, {machine['cores']} cores, {machine['system']}, "
        f"Python {machine['python']}; load average {load} before and after the parts. {versions}.",
        "",
        "Times are medians of interleaved repeats, in microseconds per run and round. A ratio is taken within each repeat; the tables have",
        "its median, smallest and largest. One core unless said.",
        "",
        "## Goals",
        "",
        *table(
            ["what", "measured", "goal", "met"],
            [[g.what, g.measured, g.goal, {True: "yes", False: "**no**", None: "-"}[g.met]] for g in goals(found)],
        ),
    ]
    if "algorithm1" in found:
        part = found["algorithm1"]
        page += [
            "## Algorithm 1", "",
            f"d = {part['dim']}, L2 ball, preset practice, linear costs and one halfspace a round, recorded before the clock starts. Every "
            f"side that runs Algorithm 1 has the same decisions after {', '.join(f'{n:,}' for n in part['compared_at'])} rounds, as far "
            f"as it goes: {part['apart']:.0e} apart at most. Rounds timed: {part['rounds']['python']:,} in Python, "
            f"{part['rounds']['compiled']:,} compiled, {part['rounds']['rivals']:,} of the other libraries, {part['rounds']['runs']:,} of "
            f"many runs; {part['repeats']} repeats.", "",
            *sides(part, "NumPy"),
        ]  # fmt: skip
    if "sweeps" in found:
        page += ["### Many runs on all cores", "", *sides(found["sweeps"], "NumPy")]
    if "logistic" in found:
        part = found["logistic"]
        page += [
            "## Logistic regression, one row at a time", "",
            f"{part['features']} features, {part['rows_played']:,} rows. "
            f"Our sides run Algorithm 1 with a limit on the loss of positive rows, unless they say otherwise; "
            f"{part['compared']} of them end with the same weights, {part['apart']:.0e} apart at most. The peers run their own gradient "
            "descent without a limit.", "",
            *sides(part, "NumPy"),
        ]  # fmt: skip
    if "solvers" in found:
        part = found["solvers"]
        page += ["## A policy without a program against one through cvxpy", "", *sides(part, "cvxpy")]
    if found.get("fraud"):
        part = found["fraud"]
        page += [
            "## The fraud network", "",
            f"From `benchmarks/fraud.py` ({part['machine']}): the sweep {part['sweep_us']:.2f} us per run and round, the PyTorch loop "
            f"{part['torch_us']:.0f} us a row.", "",
        ]  # fmt: skip
    if "growth" in found:
        part = found["growth"]
        page += [
            "## Growth", "",
            "The exponent is that of a whole game for T (three largest sizes), of a round for d (last decade) and k (two largest).", "",
            *curve(part["T"], "T", "round"), *curve(part["d"], "d", "coordinate"), *curve(part["k"], "k", "constraint"),
            "Memory: by how much the process grows at its largest while it plays T rounds.", "",
            *table(
                ["engine", "T", "MiB before", "MiB more"],
                [
                    [row["engine"], f"{T:,}", f"{before:.0f}", f"{grown:.1f}"]
                    for row in part["memory"]
                    for T, before, grown in zip(row["sizes"], row["before_mib"], row["grown_mib"], strict=True)
                ],
            ),
            *(limits(part["limited"]) if "limited" in part else []),
        ]  # fmt: skip
    if "inside" in found:
        part = found["inside"]
        page += ["## Where a round's time goes", ""]
        page += pieces("A round of `play`, engine python", part["play"], part["play_top"])
        page += pieces("A round of a `Session`", part["session"], part["session_top"])
    if "starting" in found:
        part = found["starting"]
        lines = [
            [what, f"{part[f'{key}_s']:.3f}", f"{part[f'{key}_processor_s']:.3f}"]
            for what, key in (("`import numpy`", "numpy"), ("`import bridle` and what `play` loads", "bridle"), ("`bridle --help`", "help"))
        ]
        page += [
            "## Starting",
            "",
            f"Seconds of a fresh process, the best of {part['repeats']}.",
            "",
            *table(["what", "by the clock", "of the processor"], lines),
        ]
    for name, why in found.get("failed", {}).items():
        page += [f"The part `{name}` failed: {why}", ""]
    return "\n".join(page)
