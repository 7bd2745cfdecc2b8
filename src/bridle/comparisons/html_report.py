"""The report of a comparison: one page that needs no network, with its charts, for a phone as well as for a desk.

Tables and sentences are plain HTML, charts are SVG (`showing.svg`), and a script of a few kilobytes answers the pointer. All of it can be
read without scripts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from html import escape
from pathlib import Path

from bridle.comparisons import analysis, charts, tables
from bridle.comparisons.html_page import DRAWN_BY_SCRIPT, fact_list, figure, formatted, read_template, render_page, section, write_page
from bridle.comparisons.rows import (
    BOUND_OF_METRIC,
    GameRow,
    RankedRow,
    breaks_bound,
    grouped,
    horizon_of,
    label_engines,
    label_of,
    number_of,
    problem_of,
    reason_of,
)
from bridle.comparisons.tables import merged
from bridle.core import InputError
from bridle.problems import problem_facts
from bridle.showing import count, listing, number, seed_range, svg
from bridle.showing.marks import Chart
from bridle.showing.tables import Cell, page_row, page_table
from bridle.storage import StrPath


def write_report(
    rows: Iterable[GameRow], path: StrPath, title: str | None = None, *, command: str | None = None, date: str | None = None
) -> Path:
    """Write the report of these games to `path`: the whole new page, or the old one stays.

    `command` is shown as what was typed to get the rows; `date` is today's unless given.
    """
    games = label_engines(rows)
    if not games:
        raise InputError("rows must hold at least one game for a report, not none")
    return write_page(path, render_report(games, title, command, date or datetime.now(UTC).date().isoformat()))


def render_report(rows: list[GameRow], title: str | None, command: str | None, date: str) -> str:
    """The page as text."""
    places, ranked = charts.legend(rows), analysis.ranking(rows)
    figures = charts.all_charts(rows, ranked)
    numbered = list(enumerate(figures))
    problems = grouped(rows, problem_of)
    sections = [_what_was_run(rows, command, date)]
    if len(problems) > 1:
        sections.append(_at_a_glance(ranked, places))
    for i, (problem, games) in enumerate(problems.items()):
        own = [(n, chart) for n, chart in numbered if chart.problem == problem]
        sections.append(_problem_section(i, problem, games, [row for row in ranked if problem_of(row) == problem], own, places))
    sections.append(
        read_template("reading.html").substitute(ranking=escape(analysis.RANKING), low=f"{analysis.LOW:.0%}", high=f"{analysis.HIGH:.0%}")
    )
    return render_page(
        "comparison",
        title or _title(list(problems), len(places)),
        _lead(rows),
        svg.definitions() + "\n".join(sections),
        date=date,
        allowed=DRAWN_BY_SCRIPT,
        head='<script>document.documentElement.classList.add("js");</script>\n',
        nav=read_template("comparison_nav.html").substitute(chips="".join(_chip(label, i) for label, i in places.items())),
        scripts=read_template("comparison_scripts.html").substitute(
            script=read_template("shared.js").template + read_template("report.js").template
        ),
    )


_shown = partial(number, style="page")


# --- sections -------------------------------------------------------------------------------------------------------------------------


def _title(problems: list[str], policies: int) -> str:
    several = f"{count(policies, 'policy', 'policies')} on {len(problems):,} problems"
    return f"Policies compared on {listing(problems)}" if len(problems) <= 3 else several


def _lead(rows: list[GameRow]) -> str:
    problems, policies = grouped(rows, problem_of), grouped(rows, label_of)
    horizons = sorted(grouped(rows, horizon_of))
    seeds = {len({row["seed"] for row in games}) for games in grouped(rows, problem_of).values()}
    each = f"{'up to ' if len(seeds) > 1 else ''}{count(max(seeds), 'seed')} each"
    until = f"T = {horizons[0]:,}" if len(horizons) == 1 else f"horizons from {horizons[0]:,} to {horizons[-1]:,} rounds"
    return (
        f"{count(len(policies), 'policy', 'policies')} on {count(len(problems), 'problem')}, {until}, "
        f"{each}: regret and constraint violation, and what the theorems allow."
    )


def _what_was_run(rows: list[GameRow], command: str | None, date: str) -> str:
    played = [row for row in rows if not row.get("does_not_apply")]
    seconds = sum(number_of(row, "seconds") or 0.0 for row in played)
    seeds = sorted({int(row["seed"]) for row in rows})
    links = (f'<a href="#problem-{i}">{escape(problem)}</a>' for i, problem in enumerate(grouped(rows, problem_of)))
    wide = {"Problems": ", ".join(links), "Policies": escape(", ".join(grouped(rows, label_of)))}
    facts = {
        "Horizons": ", ".join(f"{horizon:,}" for horizon in sorted(grouped(rows, horizon_of))),
        "Seeds": seed_range(seeds),
        "Games": f"{len(played):,} played" + (f", {len(rows) - len(played):,} do not apply" if len(played) < len(rows) else ""),
        "Time in play": f"{seconds:,.1f} s" if seconds < 600 else f"{seconds / 60:,.0f} min",
        "Engine": ", ".join(sorted({str(row["engine"]) for row in played if row.get("engine")})) or "-",
        "Version": ", ".join(sorted({f"bridle {row['bridle_version']}" for row in rows if row.get("bridle_version")})) or "-",
        "Date": date,
    }
    return section("run", "What was run", fact_list(facts, wide, command))


def _at_a_glance(ranked: list[RankedRow], places: dict[str, int]) -> str:
    """Ranks of every policy on every problem, at the problem's longest horizon."""
    columns = {}
    for problem, rows in grouped(ranked, problem_of).items():
        longest = max(map(horizon_of, rows))
        columns[f"{problem}\nT = {longest:,}"] = {row["label"]: row["rank"] for row in rows if horizon_of(row) == longest}
    lines = []
    for label, place in places.items():
        ranks = [column.get(label) for column in columns.values()]
        known = [rank for rank in ranks if rank is not None]
        mean = sum(known) / len(known) if known else None
        cells = [Cell("-", "dim") if rank is None else Cell(str(rank), *["best"] * (rank == 1)) for rank in ranks]
        drawn = _policy_row(label, place, ["-" if mean is None else f"{mean:.1f}", *cells], 1 + len(cells))
        lines.append((mean is None, -len(known), mean or 0.0, place, drawn))
    return section(
        "glance",
        "At a glance",
        '<p class="about">Ranks on each problem at its longest horizon; 1 is best, - where it does not apply. Policies that apply to most '
        "problems come first, then those with the lowest mean rank.</p>",
        page_table("Ranks on every problem", ("policy", "mean rank", *columns), (line[-1] for line in sorted(lines))),
    )


def _problem_section(
    i: int, problem: str, games: list[GameRow], ranked: list[RankedRow], figures: list[tuple[int, Chart]], places: dict[str, int]
) -> str:
    horizons = sorted(grouped(games, horizon_of))
    parts = [f'<section class="problem" id="problem-{i}"><h2>{escape(problem)}</h2>', _about(games)]
    parts.append(f'<p class="takeaway">{_takeaway([row for row in ranked if horizon_of(row) == horizons[-1]])}</p>')
    parts += [f'<p class="about">{escape(text)}.</p>' for text in analysis.cost_notes(ranked)]
    parts += [f'<p class="alarm">{escape(text)}</p>' for text in _alarms(ranked)]
    if len(horizons) > 1:
        buttons = "".join(
            f'<button type="button" data-horizon="{T}" aria-pressed="{str(horizons[-1] == T).lower()}">T = {T:,}</button>' for T in horizons
        )
        parts.append(f'<div class="tabs" role="group" aria-label="Horizon"><span>Horizon</span>{buttons}</div>')
    for T in horizons:
        own = [row for row in ranked if horizon_of(row) == T]
        parts.append(f'<div class="horizon" data-horizon="{T}"><h3>{escape(problem)}, T = {T:,}</h3>{_ranking(own, places)}')
        parts.append(f'<div class="charts">{"".join(_figure(n, chart) for n, chart in figures if chart.horizon == T)}</div></div>')
    growing = [_figure(n, chart) for n, chart in figures if chart.horizon is None]
    if growing:
        parts.append(f'<h3>As the horizon grows</h3><div class="charts">{"".join(growing)}</div>')
    notes = _notes(games)
    if notes:
        parts.append(f'<h3>Notes</h3><ul class="notes">{"".join(f"<li>{formatted(note)}</li>" for note in notes)}</ul>')
    return "\n".join([*parts, "</section>"])


def _about(games: list[GameRow]) -> str:
    """What the problem is, in the words of its own documentation where that can be found."""
    game = next((game for game in games if not game.get("does_not_apply")), games[0])
    try:
        facts = problem_facts(game["problem"])
        summary, about = facts.summary, facts.about
    except InputError:  # it came from a file that is not here, or from a program
        summary = about = ""
    dim, constraints = game.get("dim"), game.get("constraints")
    size = [f"d = {dim:,}"] if dim else []
    size += [count(constraints, "constraint a round", "constraints a round")] if constraints else []
    more = " ".join(part for part in (about, f"Here: {', '.join(size)}." if size else "") if part)
    return f'<p class="about">{formatted(summary)} <span class="more">{formatted(more)}</span></p>'


def _takeaway(ranked: list[RankedRow]) -> str:
    first = [row for row in ranked if row["rank"] == 1]
    if not first:
        return "No policy could be ranked here."
    best, horizon = first[0], f"T = {ranked[0]['horizon']:,}"
    if len(first) > 1 and len(first) == sum(row["rank"] is not None for row in ranked):
        return f"At {horizon} all policies do equally well here: regret {_shown(best['regret'])}, CCV {_shown(best['ccv'])}."
    names = listing([f"<strong>{escape(row['label'])}</strong>" for row in first])
    by = "dynamic regret" if best["ranked_by"] == "dynamic regret" else "regret"
    regret = best["dynamic_regret"] if by == "dynamic regret" else best["regret"]
    gained = f"{by} not known" if regret is None else f"{by} {_shown(regret)}"
    gained += " (below zero, which counts as zero)" if regret is not None and regret < 0.0 == best["regret_lost"] else ""
    others = [row["label"] for row in ranked if row["pareto"] and row["rank"] != 1]
    front = f" Also on the front of {best['ranked_by']} against CCV: {escape(listing(others))}." if others else ""
    verb = "ranks" if len(first) == 1 else "rank"
    return f"At {horizon} {names} {verb} first: median {gained}, CCV {_shown(best['ccv'])}.{front}"


def _alarms(ranked: list[RankedRow]) -> list[str]:
    broken = [
        f"{row['label']} at T = {row['horizon']:,} ({metric})"
        for row in ranked for metric, (_, bound) in BOUND_OF_METRIC.items() if breaks_bound(row, bound)
    ]  # fmt: skip
    return [f"Above the bound of its theorem, which must not happen: {'; '.join(broken)}."] if broken else []


def _notes(games: list[GameRow]) -> list[str]:
    """What a reader should be told in words: what does not apply, what is not known, warnings, games that are missing."""
    notes = merged(games, reason_of, "{who}: does not apply, {text}.", place=False)
    notes += merged(games, lambda row: row.get("regret_why"), "{who}: regret is not known, {text}.", place=False)
    notes += merged(games, lambda row: row.get("warnings"), "{who}: {text}.", place=False)
    notes += [f"{text}." for text in analysis.rate_notes(games)]
    notes += merged(games, lambda row: row.get("bound_why"), "{who}: about the bound, {text}.", place=False)
    runs = {
        (label, T): len({row["seed"] for row in own})
        for label, rows in grouped(games, label_of).items() for T, own in grouped(rows, horizon_of).items()
    }  # fmt: skip
    fewer = [f"{label} at T = {T:,} ({seeds})" for (label, T), seeds in runs.items() if seeds < max(runs.values())]
    return notes + ([f"Not every policy has all {max(runs.values())} seeds yet: {', '.join(fewer)}."] if fewer else [])


# --- parts ----------------------------------------------------------------------------------------------------------------------------


def _ranking(ranked: list[RankedRow], places: dict[str, int]) -> str:
    """The policies of one problem and horizon, best first."""
    moving = any(row.get("dynamic_regret") is not None for row in ranked)
    figures = [each for each in tables.PAGE_FIGURES if moving or each.fact != "dynamic_regret"]
    lines = []
    for _, rank, label, front, *cells in tables.ranking_table(ranked, figures, front="◆", style="page").rows:
        after = f'<span class="front" title="on the front of regret against CCV">{front}</span>' if front else ""
        lines.append(_policy_row(label, places[label], cells, len(figures), f'<span class="rank">{rank}</span>', after))
    runs = max(row["runs"] for row in ranked)
    seeds = f"Medians over {count(runs, 'seed')}, best first." if runs else ""
    lost = {"cost": "total cost above the lowest", "dynamic regret": "dynamic regret"}.get(str(ranked[0]["ranked_by"]), "regret")
    caption = (
        f"{seeds} The score is the larger of {lost} and CCV, in rounds of the worst kind. ◆: no other policy is as good in both and better "
        "in one; tinted, the least of the column among these. A slanted regret is below zero and counts as zero."
    )
    return page_table("Ranking", ("policy", *(each.heading for each in figures)), lines, caption + _path_sentence(ranked) * moving)


def _path_sentence(ranked: list[RankedRow]) -> str:
    """What dynamic regret is measured against."""
    known = [length for row in ranked if (length := row.get("path_length")) is not None]
    far = f", which moves by {_shown(max(known))} in all" if known else ""
    return f" Dynamic regret is measured against the best action of each round{far}."


def _policy_row(label: str, place: int, cells: Sequence[str], columns: int, before: str = "", after: str = "") -> str:
    name = f'{before}{svg.swatch(place)}<span class="who" title="{escape(label)}">{escape(label)}</span>{after}'
    return page_row(f'<div class="entry">{name}</div>', cells, columns, f' data-policy="{place}"')


def _chip(label: str, place: int) -> str:
    inside = f'{svg.swatch(place)}<span title="{escape(label)}">{escape(label)}</span>'
    return f'<button type="button" class="chip" aria-pressed="true" data-policy="{place}">{inside}</button>'


def _figure(n: int, chart: Chart) -> str:
    tools = ""
    if chart.marks and chart.kind != "pace":
        tools = '<button type="button" class="enlarge" aria-pressed="false">Enlarge</button>'
    if chart.marks and chart.kind not in ("tradeoff", "pace"):
        options = "".join(
            f'<option value="{key}"{" selected" * (key == chart.y.scale)}>{name}</option>' for key, name in svg.SCALES.items()
        )
        tools = f'<select data-chart="{n}" aria-label="Scale of the vertical axis">{options}</select>{tools}'
    return figure(chart, tools, n)
