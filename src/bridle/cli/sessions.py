"""The commands `bridle sessions list`, `show`, `replay`, `verify`, `export`, `trim` and `import`: durable sessions from the shell."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bridle.cli import output
from bridle.cli.databases import DbOption, opened
from bridle.storage import Facts

if TYPE_CHECKING:
    from bridle.database.store import EventStore
    from bridle.durable.replay import ReplayedSession
    from bridle.showing.tables import TextTable

app = typer.Typer(
    rich_markup_mode=None,
    invoke_without_command=True,
    help="Look at durable sessions in a database. What there is, and what happened to each.",
)

NameArgument = Annotated[str, typer.Argument(help="The name of a session.")]

ROWS_AT_A_TIME = 10_000
"""Rounds that are written to a Parquet file at a time."""


@app.callback()
def everything(context: typer.Context, db: DbOption = None) -> None:
    """Show the sessions of a database, unless a command follows."""
    context.obj = db
    if context.invoked_subcommand is None:
        list_sessions(context, db)


@app.command("list")
def list_sessions(context: typer.Context, db: DbOption = None, json_file: output.JsonOption = None) -> None:
    """List the sessions.

    Each with its policy, how many events it has, and who owns it.
    """
    from bridle.durable import inspection
    from bridle.showing.tables import TextTable

    with opened(context, db) as store:
        rows = [inspection.kept(store, name) for name in store.names()]
    lines = []
    for row in rows:
        last = f"{row['snapshots'][0]:,}" if row["snapshots"] else ""
        lines.append([row["name"], row["policy"], str(row["dimension"]), row["engine"], f"{row['events']:,}", last, row["owner"] or ""])
    columns = ("name", "policy", "dimension", "engine", "events", "last snapshot", "owner")
    output.show(
        TextTable(columns, lines, "sessions"),
        [] if rows else ["no sessions: bridle.Session.open makes one, and so does the service"],
        rows,
        json_file,
    )


@app.command()
def show(context: typer.Context, name: NameArgument, db: DbOption = None, json_file: output.JsonOption = None) -> None:
    """Show where a session stands.

    Its totals, what is proved, alarms, rounds that wait, budgets, and what was changed.
    """
    from bridle.durable import inspection

    with opened(context, db) as store, output.quiet():
        core = inspection.reader(store, name)
        core.rebuild()
        facts = {**inspection.kept(store, name), **_standing(core)}
        session = core.session
        try:
            text = session.report()
            facts["certificate"] = json.loads(session.certificate().json())
        except ValueError:  # it keeps no certificates
            text, facts["certificate"] = "This session keeps no certificates.", None
    output.show(_table(facts), [text], facts, json_file)


@app.command()
def replay(
    context: typer.Context,
    name: NameArgument,
    to: Annotated[int | None, typer.Option("--to", metavar="ROUND", help="Stop after this many rounds; all of them unless told.")] = None,
    db: DbOption = None,
    json_file: output.JsonOption = None,
) -> None:
    """Replay a session to a round, and show it.

    It starts from the beginning, and every event must lead where it did.
    """
    from bridle import validate
    from bridle.durable import inspection

    round = None if to is None else validate.whole("--to", to, 0)
    with opened(context, db) as store, output.quiet():
        core = inspection.at_round(store, name, round)
        facts = {"name": name, **_standing(core)}
    output.show(_table(facts), [f"{facts['events']:,} events were replayed, and each led where it did"], facts, json_file)


@app.command()
def verify(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(help="The name of a session; all of them unless told.")] = None,
    db: DbOption = None,
    json_file: output.JsonOption = None,
) -> None:
    """Check a session, or all of them.

    Every event is replayed, every digest and snapshot compared, and the database itself is checked.
    """
    from bridle.core import InputError
    from bridle.durable import inspection
    from bridle.showing import count
    from bridle.showing.tables import TextTable

    with opened(context, db) as store, output.quiet():
        found = [inspection.verify(store, each) for each in ([name] if name is not None else store.names())]
        damage = store.check()
    lines = [[each.name, f"{each.events:,}", str(each.snapshots), "; ".join(each.wrong) or "nothing"] for each in found]
    table = TextTable(("name", "events", "snapshots", "wrong"), lines, "verified")
    rounded = sum(each.rounded for each in found)
    facts = {"sessions": [vars(each) for each in found], "database": damage}
    output.show(
        table,
        [f"the database is damaged: {text}" for text in damage]
        or [
            "the database itself is whole",
            *([] if not rounded else [f"{count(rounded, 'event')} from another machine: the same but for rounding"]),
        ],
        facts,
        json_file,
    )
    wrong = [f"session {each.name!r}: {text}" for each in found for text in each.wrong] + damage
    if wrong:
        raise InputError(wrong[0] + (f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""))


@app.command()
def export(
    context: typer.Context,
    name: NameArgument,
    file: Annotated[str, typer.Argument(help="A .npz save file for Session.load, or a .parquet of all rounds.", callback=output.writable)],
    db: DbOption = None,
) -> None:
    """Write a session to a file.

    To a save file as it stands, or all its rounds to a Parquet file.
    """
    from bridle.core import InputError
    from bridle.durable import inspection

    if not file.endswith((".npz", ".parquet")):
        raise InputError(f"FILE must end in .npz or .parquet, not {file!r}")
    with opened(context, db) as store, output.quiet():
        if file.endswith(".npz"):
            core = inspection.reader(store, name)
            core.rebuild()
            core.session.save(file)
            text = f"session {name} after {core.session.rounds:,} rounds"
        else:
            text = f"{_write_rounds(store, name, file):,} rounds of session {name}"
    typer.echo(f"{text} written to {file}")


@app.command()
def trim(
    context: typer.Context,
    name: NameArgument,
    before: Annotated[int | None, typer.Option(help="The number of a snapshot; the older of the two that are kept unless told.")] = None,
    db: DbOption = None,
) -> None:
    """Drop the events before a snapshot, once every digest fits: they cannot be replayed, exported or asked for again then."""
    from bridle.durable import inspection

    with opened(context, db, readonly=False) as store, output.quiet():
        first, was = inspection.trim(store, name, before)
    dropped = f"events {was:,} to {first - 1:,} are dropped" if first > was else "nothing is dropped"
    typer.echo(f"session {name}: {dropped}; its journal begins with event {first:,}")


@app.command("import")
def import_session(
    context: typer.Context,
    file: Annotated[str, typer.Argument(help="A save file of a session whose policy is registered.")],
    name: Annotated[str, typer.Argument(help="The name that it is to have in the database.")],
    db: DbOption = None,
) -> None:
    """Make a session of a save file.

    It goes on from there, and its journal begins.
    """
    from bridle.durable.journal import made_from
    from bridle.session.session import Session

    with output.quiet():
        session = Session.load(file)
    with opened(context, db, readonly=False) as store:
        store.create(name, session.read(lambda plan, state: made_from(plan, state, None, None, imported=True)))
    typer.echo(f"session {name} begins after {session.rounds:,} rounds")


# --- what the commands share --------------------------------------------------------------------------------------------------------------


def _standing(core: ReplayedSession) -> Facts:
    from bridle.session.step import standing
    from bridle.session.tried_points import as_asked

    session = core.session
    stands = session.read(standing)
    return {
        "events": core.seq,
        "rounds": session.rounds,
        "decision": (as_asked(stands) if session.plan.tries else stands).tolist(),
        "cost": session.cost,
        "ccv": session.ccv,
        "violations": session.violations.tolist(),
        "pending": session.pending,
        "dropped": session.dropped,
        "budgets": core.budgets.facts(),
        "changes": list(session.changes),
        "digest": core.sealed()[1].hex(),
    }


def _table(facts: Facts) -> TextTable:
    from bridle.showing import number
    from bridle.showing.tables import TextTable

    rows = []
    for key in ("policy", "engine", "owner", "events", "rounds", "cost", "ccv", "pending", "digest"):
        if key in facts:
            value = facts[key]
            rows.append([key, value if isinstance(value, str) else "" if value is None else number(value)])
    points = facts["decision"] if isinstance(facts["decision"][0], list) else [facts["decision"]]  # several of a policy that tries them
    shown = (", ".join(f"{value:.6g}" for value in x[:8]) + (" ..." if len(x) > 8 else "") for x in points)
    rows.append(["decision", "; ".join(shown)])
    for name, budget in facts["budgets"].items():
        gate = budget["facts"].get("gate", budget["facts"])
        rows.append([f"budget {name}", f"{gate['spent'] * gate['unit']:.6g} spent of {gate['budget'] * gate['unit']:.6g}"])
    for change in facts["changes"]:
        rows.append([f"changed after round {change['round']}", json.dumps({k: v for k, v in change.items() if k != "round"})])
    return TextTable(("quantity", "measured"), rows, f"session {facts['name']}", numeric=1)


def _write_rounds(store: EventStore, name: str, file: str) -> int:
    """Write what `history` was told of every round to a Parquet file."""
    from bridle import storage, validate
    from bridle.durable import inspection

    validate.require_package("pyarrow", "report")
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    numbers = pa.list_(pa.float64())
    schema = pa.schema(
        [
            ("round", pa.int64()), ("x", numbers), ("f", pa.float64()), ("g", numbers), ("violation", numbers), ("cost", pa.float64()),
            ("ccv", pa.float64()), ("ticket", pa.int64()),
        ]
    )  # fmt: skip
    rows: list[dict[str, Any]] = []
    written = 0
    with storage.replacing(file) as target, parquet.ParquetWriter(target, schema) as writer:

        def flush() -> None:
            nonlocal written
            writer.write_table(pa.Table.from_pylist(rows, schema=schema))
            written += len(rows)
            rows.clear()

        def put(entry: Any) -> None:
            rows.append({key: value.reshape(-1).tolist() if isinstance(value, np.ndarray) else value for key, value in entry.items()})
            if len(rows) == ROWS_AT_A_TIME:
                flush()

        inspection.rounds(store, name, put)
        flush()
    return written
