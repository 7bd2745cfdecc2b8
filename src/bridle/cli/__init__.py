"""The command line: `bridle advise`, `policies`, `problems`, `play`, `compare`, `fraud`, `demo`, `data`."""

from __future__ import annotations

import sys
import warnings
from typing import Annotated, Any

import typer

from bridle.cli import output
from bridle.cli.advise import advise
from bridle.cli.compare import compare
from bridle.cli.fraud import fraud
from bridle.cli.output import Json
from bridle.cli.output import show as _show
from bridle.core import BridleWarning, InputError, Interrupted
from bridle.game.summary import summary

app = typer.Typer(
    add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None,
    help="Decisions made online under constraints that are revealed too late.",
)  # fmt: skip

USAGE_ERROR: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
"""What every complaint about usage is, both where typer depends on click and where it carries its own copy."""


def _say_version(asked: bool) -> None:
    if asked:
        from bridle import __version__

        typer.echo(f"bridle {__version__}")
        raise typer.Exit


@app.callback()
def everything(
    version: Annotated[bool, typer.Option("--version", help="Say which version this is.", callback=_say_version, is_eager=True)] = False,
) -> None:
    """Decisions made online under constraints that are revealed too late."""


@app.command()
def policies(json_file: Json = None) -> None:
    """List the policies: assumptions, parameters, bounds, cost per round, reference."""
    from bridle.compare import tables

    rows = tables.all_policies()
    _show(tables.policies_table(rows), [], rows, json_file)


@app.command()
def problems(json_file: Json = None) -> None:
    """List the problems and their parameters."""
    from bridle.compare import tables

    rows = tables.all_problems()
    _show(tables.problems_table(rows), [], rows, json_file)


@app.command()
def play(
    problem: Annotated[str, typer.Argument(help="A name from `bridle problems`, or a file that ends in .py or .npz.")],
    policy: Annotated[str, typer.Option(help="A name from `bridle policies`.")] = "anytime",
    horizon: Annotated[int | None, typer.Option(help="T, how many rounds; 1000, or as many as a file has, unless given.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the instance and its stream.")] = 0,
    engine: Annotated[str, typer.Option(help="python, or jax for long horizons.")] = "python",
    dim: Annotated[int | None, typer.Option(help="d, coordinates of a decision.")] = None,
    modulus: Annotated[float | None, typer.Option(help="Above 0: quadratic costs with this strong convexity.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the policy or the problem; may be repeated.")
    ] = None,
    memory: Annotated[str | None, typer.Option(metavar="SIZE", help="About how much memory the game may take, such as 500MB.")] = None,
    json_file: Json = None,
) -> None:
    """Play one game: regret, CCV, the bounds and whether they hold, microseconds a round.

    What the policy must know (lipschitz, modulus, ...) is taken from the problem unless --set gives it.
    """
    from bridle import validate
    from bridle.compare import tables
    from bridle.game.play import play as run

    told = dict(validate.named_value("--set", text) for text in settings or [])
    made, chosen = arrange(problem, policy, horizon, seed, {"dim": dim, "modulus": modulus}, told)
    facts = _with_progress(lambda progress: summary(run(chosen, made, engine=engine, memory=memory, progress=progress)))
    _show(tables.game_table(facts), tables.game_notes(facts), facts, json_file)


app.command()(compare)
app.command()(fraud)
app.command()(advise)


data = typer.Typer(rich_markup_mode=None, help="The real data sets: what there is, and getting it.")
app.add_typer(data, name="data")


@data.command("list")
def data_list(json_file: Json = None) -> None:
    """List the data sets: what each is, where it comes from, whether the cache holds it."""
    from bridle.cli.data import table
    from bridle.data import facts, names

    rows = [facts(name) for name in names()]
    _show(table(rows), [], rows, json_file)


@data.command("fetch")
def data_fetch(
    name: Annotated[str, typer.Argument(help="A name from `bridle data list`.")],
    path: Annotated[
        str | None, typer.Option("--data", metavar="PATH", help="Take the raw file from PATH instead of downloading it.")
    ] = None,
    json_file: Json = None,
) -> None:
    """Get a data set: its raw file, verified, into the cache ($BRIDLE_DATA, else the user's cache folder)."""
    from bridle.cli.data import table
    from bridle.data import facts, fetch

    _with_progress(lambda progress: fetch(name, path, progress), "fetching")
    known = facts(name)
    _show(table([known]), [f"{known['path']}: {known['bytes']:,} bytes, SHA-256 {known['sha256']}"], known, json_file)


@app.command()
def demo(
    horizon: Annotated[int, typer.Option(help="T, how many rounds each game has.")] = 2000,
    seed: Annotated[int, typer.Option(help="Seed of the instances.")] = 0,
    engine: Annotated[str, typer.Option(help="python or jax.")] = "python",
    json_file: Json = None,
) -> None:
    """Play the paper's three algorithms on the four problems, beside the theorems' bounds."""
    from bridle.compare import tables
    from bridle.policies.sinha2024 import theorem3

    rows = _with_progress(lambda progress: demo_rows(horizon, seed, engine, progress))
    notes = [
        "bound: the sharpest proved form for the parameters used; paper: the printed theorem, its proof's constants; -: nothing is said.",
        "sinha2024-strong plays with quadratic costs (modulus 1), the others with linear ones. sinha2024-ocs ignores costs.",
        "'practice' sets constants that react at realistic horizons: its own bounds are proved, the printed theorem is for 'theory'.",
    ]
    notes.append(f"lower-bound: no policy keeps both regret and CCV below sqrt(T)/4 = {theorem3(horizon):.4g} on average (Theorem 3).")
    title = f"The paper's algorithms, T = {horizon:,}, seed {seed}, engine {engine}"
    _show(tables.comparison_table(rows, title), [*tables.comparison_notes(rows), *notes], rows, json_file)


DEMO_PROBLEMS = ("lower-bound", "minimax", "fixed", "halfspaces")
DEMO: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("sinha2024", "sinha2024", {}),
    ("sinha2024", "sinha2024 practice", {"preset": "practice"}),
    ("sinha2024-strong", "sinha2024-strong", {}),
    ("sinha2024-ocs", "sinha2024-ocs", {}),
)


def demo_rows(horizon: int, seed: int, engine: str, progress: Any = None) -> list[dict[str, Any]]:
    """The games of the demonstration, as facts; a policy that does not apply says why."""
    from bridle.game.play import play as run

    rows: list[dict[str, Any]] = []
    for name in DEMO_PROBLEMS:
        for policy, label, given in DEMO:
            curved = policy == "sinha2024-strong"
            if curved and name == "lower-bound":
                row = {"problem": name, "policy": policy, "does_not_apply": "its costs are absolute values, which are not strongly convex"}
            else:
                made, chosen = arrange(name, policy, horizon, seed, {"modulus": 1.0 if curved else None}, dict(given))
                row = summary(run(chosen, made, engine=engine))
            rows.append({**row, "label": label})
            if progress is not None:
                progress(len(rows), len(DEMO) * len(DEMO_PROBLEMS))
    return rows


ROUNDS = 1000
"""How many rounds are played where neither the caller nor the problem says."""


def arrange(
    problem: str, policy: str, horizon: int | None, seed: int, options: dict[str, Any], settings: dict[str, Any]
) -> tuple[Any, Any]:
    """The problem, and the policy told what the problem's constants say; a setting goes to whichever of the two has that parameter."""
    from bridle import policies, validate
    from bridle.game.play import policy_for
    from bridle.problems import needs, problem_facts, takes
    from bridle.problems import problem as make_problem

    of_policy = {p.name for p in policies.parameters(policy)}
    of_problem = {p["name"] for p in problem_facts(problem)["parameters"]} | {name for name in settings if takes(problem, name)}
    for name in settings:
        if name not in of_policy | of_problem:
            raise validate.unknown(f"parameter of policy {policy} or problem {problem}", name, of_policy | of_problem)
    # --set horizon and --set seed are the policy's own where it has them; the game's come from --horizon and --seed.
    taken = of_policy & {"horizon", "seed"}
    for_problem = {"horizon": horizon, "seed": seed} | {k: v for k, v in settings.items() if k in of_problem - taken}
    for_problem |= {k: v for k, v in options.items() if v is not None}
    if for_problem["horizon"] is None and needs(problem, "horizon"):
        for_problem["horizon"] = ROUNDS
    made = make_problem(problem, **for_problem)
    if made.horizon is None:
        made = make_problem(problem, **for_problem | {"horizon": ROUNDS})
    return made, policy_for(policy, made, **{k: v for k, v in settings.items() if k in of_policy})


def _with_progress(work: Any, doing: str = "playing") -> Any:
    """Run `work` with a progress bar on standard error where that is a terminal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BridleWarning)  # the results carry them
        warnings.simplefilter("ignore", RuntimeWarning)  # and say what is not finite
        if not sys.stderr.isatty():
            return work(None)
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(doing, total=None)
            return work(lambda done, total: bar.update(task, completed=done, total=total))


def main(arguments: list[str] | None = None) -> None:
    """Run the command line: bad usage or bad input is one line on standard error and exit status 2."""
    given = sys.argv[1:] if arguments is None else arguments
    output.typed[:] = given
    stopped = "interrupted; nothing was written"
    try:
        status = app(args=given or ["--help"], prog_name="bridle", standalone_mode=False)
    except USAGE_ERROR as wrong:
        status = _fail(wrong.format_message())
    except InputError as wrong:
        status = _fail(str(wrong))
    except (MemoryError, ArithmeticError) as wrong:
        status = _fail(f"too large or too small to compute: {wrong}")
    except Interrupted as kept:
        status, stopped = 130, str(kept)
    except (KeyboardInterrupt, typer.Abort):
        status = 130
    except BrokenPipeError:
        sys.stderr.close()
        status = 141
    if status == 130:
        _fail(stopped)
    sys.exit(status if isinstance(status, int) else 0)


def _fail(message: str) -> int:
    sys.stderr.write("bridle: " + " ".join(message.split()) + "\n")
    return 2
