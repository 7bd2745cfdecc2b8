"""The commands `bridle play` and `bridle demo`: one game, and the paper's algorithms on four problems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bridle.cli import output
from bridle.engines import AUTO

if TYPE_CHECKING:
    from bridle.policies import Configured
    from bridle.policies.own import OwnPolicy
    from bridle.problems import Problem


def play(
    problem: Annotated[str, typer.Argument(help="A name from `bridle problems`, or a file that ends in .py or .npz.")],
    policy: Annotated[
        str, typer.Option(help="A name from `bridle policies`, a file as in ./mine.py or ./mine.py:name, or module:name.")
    ] = "anytime",
    horizon: Annotated[int | None, typer.Option(help="T, how many rounds; 1000, or as many as a file has, unless given.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the instance and its stream.")] = 0,
    engine: output.EngineOption = AUTO,
    dim: Annotated[int | None, typer.Option(help="d, coordinates of a decision.")] = None,
    modulus: Annotated[float | None, typer.Option(help="Above 0: quadratic costs with this strong convexity.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the policy or the problem; may be repeated.")
    ] = None,
    memory: Annotated[str | None, typer.Option(metavar="SIZE", help="About how much memory the game may take, such as 500MB.")] = None,
    json_file: output.JsonOption = None,
) -> None:
    """Play one game, and measure it.

    It shows regret, CCV, the bounds and whether they hold, and microseconds a round. What the policy must know (lipschitz, modulus, ...)
    is taken from the problem unless --set gives it.
    """
    from bridle import game, validate
    from bridle.checks.policy import check_first_rounds
    from bridle.comparisons import tables
    from bridle.game.summary import summary
    from bridle.policies.own import blaming

    values = dict(validate.named_value("--set", text) for text in settings or [])
    mine, name, of_its_own = _own_policy(policy)
    source, configured = problem_and_policy(problem, name, horizon, seed, {"dim": dim, "modulus": modulus}, values, of_its_own)
    if mine is not None:
        check_first_rounds(configured, source)
    with output.quiet_progress("playing") as progress, blaming(mine):
        keep = "totals" if source.measures is None else "decisions"
        facts = summary(game.play(configured, source, engine=engine, keep=keep, memory=memory, progress=progress))
    output.show(tables.game_table(facts), tables.game_notes(facts), facts, json_file)


def demo(
    horizon: Annotated[int, typer.Option(help="T, how many rounds each game has.")] = 2000,
    seed: Annotated[int, typer.Option(help="Seed of the instances.")] = 0,
    engine: output.EngineOption = AUTO,
    json_file: output.JsonOption = None,
) -> None:
    """Play the paper's algorithms on four problems.

    The results stand beside the theorems' bounds.
    """
    from bridle.comparisons import tables
    from bridle.policies._sinha2024 import theorem3

    with output.quiet_progress("playing") as progress:
        rows = demo_rows(horizon, seed, engine, progress)
    notes = [
        "bound: the sharpest proved form for the parameters used; paper: the printed theorem, its proof's constants; -: nothing is said.",
        "sinha2024-strong plays with quadratic costs (modulus 1), the others with linear ones. sinha2024-ocs ignores costs.",
        "'practice' sets constants that react at realistic horizons: its own bounds are proved, the printed theorem is for 'theory'.",
        f"lower-bound: no policy keeps both regret and CCV below sqrt(T)/4 = {theorem3(horizon):.4g} on average (Theorem 3).",
    ]
    title = f"The paper's algorithms, T = {horizon:,}, seed {seed}, engine {engine}"
    output.show(tables.comparison_table(rows, title), [*tables.comparison_notes(rows), *notes], rows, json_file)


DEMO_PROBLEMS = ("lower-bound", "minimax", "fixed", "halfspaces")
DEMO_POLICIES: tuple[tuple[str, str, dict[str, object]], ...] = (
    ("sinha2024", "sinha2024", {}),
    ("sinha2024", "sinha2024 practice", {"preset": "practice"}),
    ("sinha2024-strong", "sinha2024-strong", {}),
    ("sinha2024-ocs", "sinha2024-ocs", {}),
)
"""Name, label and settings of the policies of the demonstration."""


def demo_rows(horizon: int, seed: int, engine: str, progress: output.Tell | None = None) -> list[Mapping[str, object]]:
    """The games of the demonstration, as facts; a policy that does not apply says why."""
    from bridle import game
    from bridle.game.summary import summary

    rows: list[Mapping[str, object]] = []
    for name in DEMO_PROBLEMS:
        for policy, label, settings in DEMO_POLICIES:
            curved = policy == "sinha2024-strong"
            row: Mapping[str, object]
            if curved and name == "lower-bound":
                row = {"problem": name, "policy": policy, "does_not_apply": "its costs are absolute values, which are not strongly convex"}
            else:
                source, configured = problem_and_policy(name, policy, horizon, seed, {"modulus": 1.0 if curved else None}, settings)
                row = summary(game.play(configured, source, engine=engine))
            rows.append({**row, "label": label})
            if progress is not None:
                progress(len(rows), len(DEMO_POLICIES) * len(DEMO_PROBLEMS))
    return rows


ROUNDS = 1000
"""How many rounds are played where neither the caller nor the problem says."""


def problem_and_policy(
    problem: str,
    policy: str,
    horizon: int | None,
    seed: int,
    options: Mapping[str, object],
    settings: Mapping[str, object],
    of_its_own: Mapping[str, object] | None = None,
) -> tuple[Problem, Configured]:
    """The problem, and the policy told what the problem's constants say.

    `options` are the problem's, `of_its_own` the policy's; each of the `settings` goes to whichever of the two has that parameter.
    """
    from bridle import policies, validate
    from bridle.game.play import policy_for
    from bridle.problems import needs, problem_facts, takes
    from bridle.problems import problem as make_problem

    of_policy = {p.name for p in policies.parameters(policy)}
    of_problem = {p.name for p in problem_facts(problem).parameters} | {name for name in settings if takes(problem, name)}
    for name in of_its_own or {}:
        validate.one_of(f"parameter of policy {policy}", name, of_policy)
    for name in settings:
        validate.one_of(f"parameter of policy {policy} or problem {problem}", name, of_policy | of_problem)
    # --set horizon and --set seed are the policy's own where it has them; the game's come from --horizon and --seed.
    taken = of_policy & {"horizon", "seed"}
    for_problem: dict[str, Any] = {"horizon": horizon, "seed": seed} | {k: v for k, v in settings.items() if k in of_problem - taken}
    for_problem |= {k: v for k, v in options.items() if v is not None}
    if for_problem["horizon"] is None and needs(problem, "horizon"):
        for_problem["horizon"] = ROUNDS
    source = make_problem(problem, **for_problem)
    if source.horizon is None:
        source = make_problem(problem, **for_problem | {"horizon": ROUNDS})
    return source, policy_for(policy, source, **{k: v for k, v in settings.items() if k in of_policy} | dict(of_its_own or {}))


def _own_policy(text: str) -> tuple[OwnPolicy | None, str, dict[str, object]]:
    """The user's own policy that is meant, if it is one; its name; and the settings that are typed with it."""
    from bridle import validate
    from bridle.policies import own

    typed = own.split(text)
    mine = own.load_one(typed.source) if typed.own else None
    origin, _, rest = text.partition(":")
    name, settings = (origin, rest) if mine is None else (mine.name, typed.settings)
    return mine, name, dict(validate.named_value("a setting", part) for part in settings.split(":") if settings)
