"""Problems from files: a Python file that defines a Problem, or arrays in an .npz; what is wrong with one is said in one line."""

from __future__ import annotations

import io
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bridle
from bridle import cli, records
from bridle.core import InputError
from bridle.functions import AffineFunction, AffineRows, QuadraticForm, RoundQuadratic
from bridle.problems import from_arrays, problem_facts
from bridle.solvers import hindsight

VARIABLE = '''
"""Stay near the origin.

x is a point of the plane, f(x) = -x_1 and g(x) = x_1 - 0.5.
"""
import bridle
from bridle.adversaries import Fixed

domain = bridle.Ball(dim=2)
round = bridle.Round(bridle.Affine([-1.0, 0.0]), (bridle.Affine([1.0, 0.0], -0.5),))
problem = bridle.Problem(domain, Fixed(round), {"lipschitz": 1.0, "bound": 1.5, "feasible": domain.center(), "time_varying": False})
'''

FUNCTION = '''
"""Says something else."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import bridle
from bridle.core import Round
from bridle.functions import AffineFunction


@dataclass
class Settings:
    width: float


class Noise(NamedTuple):
    scale: Any
    a: Any

    @property
    def oblivious(self):
        return True

    def init(self):
        return ()

    def deal(self, rng, rounds):
        return self.scale * rng.standard_normal((rounds, len(self.a)))

    def answer(self, state, x, draw):
        return state, Round(AffineFunction(draw, 0.0), (AffineFunction(self.a, -0.25),))


def problem(horizon, seed, width=1.0):
    """Random costs, one halfspace.

    x is a point of a box, f a random linear cost and g a halfspace.
    """
    rng = np.random.default_rng(seed)
    a = rng.standard_normal(3)
    box = bridle.Box(-Settings(width).width, width, dim=3)
    return bridle.Problem(box, Noise(0.1, a / np.linalg.norm(a)), {"lipschitz": 1.0, "feasible": np.zeros(3), "bound": 0.25 + 2 * width})
'''


@pytest.fixture
def write(tmp_path):
    def as_file(text: str, name: str = "mine.py") -> str:
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return as_file


@pytest.fixture
def save(tmp_path):
    def as_file(name: str = "mine.npz", **given: Any) -> str:
        path = tmp_path / name
        np.savez(path, **given)
        return str(path)

    return as_file


def refusal(path: Any, **given: Any) -> str:
    with pytest.raises(InputError) as caught:
        bridle.problem(path, **given)
    text = str(caught.value)
    assert "\n" not in text
    assert str(path) in text
    return text.replace(str(path), "FILE")


# --- Python files ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("as_path", [str, Path])
def test_a_variable_is_a_problem(write, as_path):
    path = write(VARIABLE)
    problem = bridle.problem(as_path(path), horizon=50)
    assert (problem.name, problem.horizon, problem.constants["diameter"], problem.constants["constraints"]) == (path, 50, 2.0, 1)
    trace = bridle.play(bridle.policy_for("sinha2024", problem), problem)
    assert trace.rounds == 50
    assert bridle.regret(trace) == pytest.approx(float(trace.totals.cost) + 25.0, abs=1e-6)
    again = bridle.play(bridle.policy_for("sinha2024", problem), path, horizon=50)
    assert bridle.ccv(again) == bridle.ccv(trace)
    facts = problem_facts(path)
    assert facts.summary == "Stay near the origin."
    assert facts.about == "x is a point of the plane, f(x) = -x_1 and g(x) = x_1 - 0.5."
    assert [(p.name, p.required) for p in facts.parameters] == [("horizon", False), ("seed", False)]


def test_the_only_problem_of_a_file_needs_no_name(write):
    path = write(VARIABLE.replace("problem = ", "mine = "))
    assert bridle.problem(path, horizon=10).domain.dim == 2
    two = write(VARIABLE.replace("problem = ", "mine = ") + "other = bridle.Problem(domain, Fixed(round))\n", "two.py")
    assert "FILE defines no problem" in refusal(two, horizon=10)


@pytest.mark.compiles
def test_a_function_makes_a_problem(write):
    path = write(FUNCTION)
    problem = bridle.problem(path, horizon=40, seed=2, width=2.0)
    assert problem.parameters == {"horizon": 40, "seed": 2, "width": 2.0}
    assert problem.domain.high.tolist() == [2.0, 2.0, 2.0]
    facts = problem_facts(path)
    assert facts.summary == "Random costs, one halfspace."
    assert [(p.name, p.required, p.default) for p in facts.parameters] == [
        ("horizon", True, None), ("seed", True, None), ("width", False, 1.0),
    ]  # fmt: skip
    policy = bridle.policy_for("sinha2024", problem)
    traces = [bridle.play(policy, problem, engine=engine, keep="rounds") for engine in ("python", "jax")]
    np.testing.assert_allclose(traces[0].values, traces[1].values, atol=1e-12)
    runs = bridle.play(policy, problem, seed=[2, 5], keep="rounds")
    np.testing.assert_allclose(runs.values[:, 0], traces[0].values, atol=1e-12)
    np.testing.assert_allclose(runs.values[:, 1], bridle.play(policy, problem, seed=5, keep="rounds").values, atol=1e-12)
    assert not np.allclose(runs.values[:, 0], runs.values[:, 1])


def test_a_function_may_take_parameters_of_any_name(write, capsys):
    path = write(FUNCTION.replace("width=1.0):", "**more):\n    width = more.get('width', 1.0)"))
    assert bridle.problem(path, horizon=10, seed=0, width=3.0).domain.high[0] == 3.0
    assert status("play", path, "--set", "width=3", "--horizon", "10") == 0
    capsys.readouterr()


def test_a_file_is_run_once_until_it_changes(write, capsys):
    path = write(FUNCTION + "print('running')\n")
    one, two = bridle.problem(path, horizon=10, seed=0), bridle.problem(path, horizon=10, seed=1)
    assert capsys.readouterr() == ("", "running\n")
    assert type(one.adversary) is type(two.adversary)
    assert isinstance(pickle.loads(pickle.dumps(one.adversary)), type(one.adversary))
    write(FUNCTION + "print('running again')\n")
    bridle.problem(path, horizon=10, seed=0)
    assert capsys.readouterr() == ("", "running again\n")


def test_a_file_may_import_its_neighbours(write):
    write("WIDTH = 5.0\n", "its_neighbour.py")
    path = write(
        FUNCTION.replace("import bridle\n", "import bridle\nfrom its_neighbour import WIDTH\n", 1).replace("width=1.0", "width=WIDTH")
    )
    assert bridle.problem(path, horizon=10, seed=0).domain.high[0] == 5.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n", "FILE defines no problem: it needs a variable `problem` that is a bridle.Problem, or a function that makes one"),
        ("problem = 3\n", "FILE defines no problem"),
        ("", "FILE defines no problem"),
        ("import nowhere_to_be_found\n", "FILE, line 1: ModuleNotFoundError: No module named 'nowhere_to_be_found'"),
        ("\n\nraise RuntimeError('no\\nluck')\n", "FILE, line 3: RuntimeError: no luck"),
        ("def problem(:\n", "FILE, line 1: SyntaxError: "),
        ("import sys\nsys.exit(3)\n", "FILE, line 2: SystemExit: 3"),
        ("def problem(seed):\n    pass\n", "FILE: the function problem() must have a parameter horizon"),
        ("def problem(horizon):\n    pass\n", "FILE: the function problem() must have a parameter seed"),
        ("def problem(horizon, seed):\n    return 7\n", "FILE: the function problem() must return a bridle.Problem, not 7"),
        ("def problem(horizon, seed):\n    return 1 / 0\n", "FILE, line 2: ZeroDivisionError: division by zero"),
        (
            "import bridle\nproblem = bridle.Problem(3, 4)\n",
            "FILE: the problem's domain must be a domain such as bridle.Ball(dim=2), not 3",
        ),
        ("import bridle\nproblem = bridle.Problem(bridle.Ball(2), 4)\n", "FILE: the problem's adversary must have a method `init`; 4 has"),
        (VARIABLE.replace("[1.0, 0.0], -0.5", "[1.0, 0.0, 0.0], -0.5"), "FILE: the adversary's first round: ValueError: "),
        (
            VARIABLE.replace('"bound"', '"constraints": 2, "bound"'),
            "FILE: the problem's constants say 2 constraints, its first round has 1",
        ),
    ],
)
def test_what_is_wrong_with_a_python_file_is_said_in_one_line(write, text, message):
    assert message in refusal(write(text), horizon=10)


def test_parameters_of_a_file_are_checked_as_others_are(write, tmp_path):
    path = write(FUNCTION)
    assert "unknown parameter of problem FILE 'widht'; did you mean width?" in refusal(path, horizon=10, widht=2.0)
    again = pickle.loads(pickle.dumps(bridle.problem(path, horizon=10, seed=1, width=2.0).factory))
    assert again(horizon=10, seed=1, width=2.0).domain.high[0] == 2.0
    assert "horizon must be given: problem FILE does not say how many rounds it has" in refusal(path)
    assert "unknown parameter of problem FILE 'dim'" in refusal(write(VARIABLE, "other.py"), horizon=10, dim=3)
    assert refusal(tmp_path / "gone.py") == "there is no file FILE"
    (tmp_path / "folder.npz").mkdir()
    assert refusal(tmp_path / "folder.npz") == "FILE is not a file"


# --- arrays ---------------------------------------------------------------------------------------------------------------------------


def recorded(name: str, horizon: int = 200, **given: Any) -> tuple[bridle.Problem, Any]:
    """A registered problem, and its stream as one sequence."""
    problem = bridle.problem(name, horizon=horizon, **given)
    return problem, records.join(list(bridle.play(bridle.policy_for("ogd", problem), problem).blocks()))


BALL = {"domain": "ball", "radius": 1.0}


@pytest.mark.compiles
def test_recorded_rounds_play_as_the_problem_they_were_recorded_from(save):
    problem, stream = recorded("halfspaces", dim=4, constraints=3)
    (limits,) = stream.constraints
    path = save(**BALL, cost_linear=stream.cost.a, constraint_linear=limits.A, constraint_offset=limits.b)
    made = bridle.problem(path)
    assert (made.horizon, made.constants["rounds"], made.constants["constraints"]) == (200, 200, 3)
    policy = bridle.policy_for("sinha2024", problem)
    for engine in ("python", "jax"):
        one, two = (bridle.play(policy, source, engine=engine, keep="rounds") for source in (problem, made))
        np.testing.assert_array_equal(one.costs, two.costs)
        np.testing.assert_array_equal(one.values, two.values)
    known = made.constants
    assert known["lipschitz"] == pytest.approx(1.0)
    assert known["diameter"] == 2.0
    assert known["bound"] == pytest.approx((np.linalg.norm(limits.A, axis=-1) + abs(limits.b)).max())
    assert (known["modulus"], known["convex"], known["affine"], known["time_varying"]) == (0.0, True, True, True)
    _, g = hindsight.values_at(lambda: [stream], known["feasible"])
    assert -g.max() == pytest.approx(known["slater"])
    assert known["slater"] >= problem.constants["slater"] - 1e-4 * known["bound"]


def everything(rng: np.random.Generator, T: int = 20, d: int = 3, k: int = 2) -> dict[str, Any]:
    root = rng.standard_normal((T, d, d))
    bends = rng.standard_normal((T, k, d, d))
    return {
        "cost_linear": rng.standard_normal((T, d)), "cost_offset": rng.standard_normal(T),
        "cost_curvature": root @ root.swapaxes(-1, -2) + 0.1 * np.eye(d), "cost_center": rng.standard_normal((T, d)),
        "constraint_linear": rng.standard_normal((T, k, d)), "constraint_offset": rng.standard_normal((T, k)) - 60.0,
        "constraint_curvature": bends @ bends.swapaxes(-1, -2), "constraint_center": rng.standard_normal((T, k, d)),
    }  # fmt: skip


DOMAINS: dict[str, dict[str, Any]] = {
    "ball": {"domain": "ball", "radius": 2.0, "center": np.array([0.1, 0.2, 0.3])},
    "l1": {"domain": "l1"},
    "box": {"domain": "box", "low": np.array([-1.0, 0.0, -2.0]), "high": 1.5},
    "simplex": {"domain": "simplex", "mass": 2.0},
    "polyhedron": {"domain": "polyhedron", "A": np.vstack([np.eye(3), -np.eye(3), np.ones((1, 3))]), "b": np.array([1.0] * 6 + [2.0])},
}


@pytest.mark.parametrize("where", DOMAINS)
@pytest.mark.parametrize("form", ["matrices", "numbers", "affine", "one constraint", "one matrix"])
def test_functions_and_constants_are_what_the_arrays_say(save, where, form):
    rng = np.random.default_rng(4)
    given = everything(rng)
    if form == "numbers":
        given |= {"cost_curvature": rng.uniform(0.2, 2.0, 20), "constraint_curvature": rng.uniform(0.0, 2.0, (20, 2))}
    if form == "affine":
        del given["cost_curvature"], given["constraint_curvature"], given["cost_center"], given["constraint_center"]
    if form == "one constraint":
        given |= {key: value[:, 0] for key, value in given.items() if key.startswith("constraint_")}
    if form == "one matrix":  # the same in every round
        given |= {key: value[:1] for key, value in given.items() if key.startswith("constraint_") or key == "cost_curvature"}
    path = save(**DOMAINS[where], **given)
    problem = bridle.problem(path)
    known, domain = problem.constants, problem.domain
    single = form == "one constraint"
    assert (known["constraints"], known["affine"], known["time_varying"]) == (1 if single else 2, form == "affine", form != "one matrix")

    def expected(kind: str, t: int, i: Any, x: np.ndarray) -> float:
        """The value by the documented formula."""

        def at(name: str, missing: Any) -> Any:
            value = given.get(f"{kind}_{name}")
            if value is None:
                return missing
            row = value[min(t, len(value) - 1)]
            return row if kind == "cost" or single else row[i]

        away = x - at("center", np.zeros(3))
        bent = at("curvature", 0.0) * np.eye(3) if np.ndim(at("curvature", 0.0)) == 0 else at("curvature", 0.0)
        return float(0.5 * away @ bent @ away + at("linear", np.zeros(3)) @ x + at("offset", 0.0))

    stream = records.widen(problem.adversary.table, 1)
    steepest = largest = 0.0
    outside = domain.project(domain.center() + 5.0 * rng.standard_normal((30, 3)))
    for x in (*outside, domain.center(), *(0.3 * outside + 0.7 * domain.center())):
        f = np.asarray(stream.cost.value(x)).reshape(-1)
        g = np.concatenate([np.asarray(limit.value(x)) for limit in stream.constraints], axis=1)
        for t in range(20):
            assert f[t] == pytest.approx(expected("cost", t, None, x), rel=1e-9, abs=1e-9)
            assert g[t] == pytest.approx([expected("constraint", t, i, x) for i in range(known["constraints"])], rel=1e-9, abs=1e-9)
        slopes = [np.linalg.norm(part.grad(x), axis=-1).max() for part in (stream.cost, *stream.constraints)]
        steepest, largest = max(steepest, *slopes), max(largest, float(abs(g).max()))
    assert 0.2 * known["lipschitz"] <= steepest <= known["lipschitz"] * (1.0 + 1e-12)
    assert 0.2 * known["bound"] <= largest <= known["bound"] * (1.0 + 1e-12)
    least = {"affine": 0.0, "numbers": given.get("cost_curvature", np.zeros(1)).min()}
    assert known["modulus"] == pytest.approx(
        least[form] if form in least else np.linalg.eigvalsh(given["cost_curvature"]).min(), abs=1e-9
    )  # fmt: skip
    assert domain.contains(known["feasible"])
    assert hindsight.values_at(lambda: [problem.adversary.table], known["feasible"])[1].max() <= -known["slater"] + 1e-9
    kinds = {"affine": (AffineFunction, AffineRows), "numbers": (RoundQuadratic, RoundQuadratic)}.get(form, (QuadraticForm, QuadraticForm))
    assert (type(problem.adversary.table.cost), type(problem.adversary.table.constraints[0])) == kinds
    if where == "ball":
        trace = bridle.play(bridle.policy_for("sinha2024", problem), problem)
        assert np.isfinite(bridle.regret(trace))


def test_arrays_without_a_feasible_action_say_so(save):
    problem, stream = recorded("p-constrained", horizon=60, dim=3, domain="box", P_T=4.0)
    linear = np.stack([limit.a for limit in stream.constraints], axis=1)
    offset = np.stack([limit.b for limit in stream.constraints], axis=1)
    box = {"domain": "box", "low": problem.domain.low, "high": problem.domain.high}
    made = bridle.problem(save(**box, cost_linear=stream.cost.a, constraint_linear=linear, constraint_offset=offset))
    assert made.constants["feasible"] is None
    assert "slater" not in made.constants
    assert made.constants["excess"] == pytest.approx(problem.constants["excess"], abs=1e-6)
    trace = bridle.play(bridle.policy_for("sinha2024-ocs", made), made)
    assert bridle.interval_violation(trace) <= trace.policy.bound(made.constants, 60).interval


def test_a_feasible_action_may_be_given_and_is_checked(save):
    problem, stream = recorded("halfspaces", dim=3)
    (limit,) = stream.constraints
    given = {**BALL, "cost_linear": stream.cost.a, "constraint_linear": limit.a, "constraint_offset": limit.b}
    made = bridle.problem(save(**given, feasible=problem.constants["feasible"]))
    np.testing.assert_array_equal(made.constants["feasible"], problem.constants["feasible"])
    assert made.constants["slater"] >= problem.constants["slater"] - 1e-12
    away = -problem.constants["feasible"] / np.linalg.norm(problem.constants["feasible"])
    assert re.search(r"FILE: feasible must satisfy every constraint; it violates constraint 0 by \S+ in round \d+", refusal(
        save("wrong.npz", **given, feasible=away))
    )  # fmt: skip
    assert "FILE: feasible must lie in the domain" in refusal(save("far.npz", **given, feasible=5.0 * away))
    assert "FILE: feasible must have shape (3,), not (2,)" in refusal(save("flat.npz", **given, feasible=np.zeros(2))).replace("  ", " ")


def test_a_seed_begins_at_another_row(save):
    _, stream = recorded("halfspaces", dim=3)
    (limit,) = stream.constraints
    path = save(**BALL, cost_linear=stream.cost.a, constraint_linear=limit.a, constraint_offset=limit.b, about="Made up.\n\nx is x.")
    one, two = bridle.problem(path, horizon=50), bridle.problem(path, horizon=50, seed=1)
    assert one.adversary.first == 0.0
    assert two.adversary.first > 0.0
    assert one.with_seed(1).adversary.first == two.adversary.first
    assert problem_facts(path)[:3] == (path, "Made up.", "x is x.")
    runs = bridle.play(bridle.policy_for("sinha2024", one), one, seed=[0, 1], keep="rounds")
    alone = bridle.play(bridle.policy_for("sinha2024", one), two, keep="rounds")
    np.testing.assert_allclose(runs.values[:, 1], alone.values, rtol=0.0, atol=1e-12)
    assert "FILE: horizon must be at most 200, the rounds it holds, not 201" in refusal(path, horizon=201)
    same = save("same.npz", **BALL, cost_linear=np.ones((1, 3)), constraint_linear=np.ones((1, 3)), constraint_offset=[-1.0], rounds=500)
    assert bridle.problem(same).horizon == 500


GOOD: dict[str, Any] = {**BALL, "cost_linear": np.ones((5, 2)), "constraint_linear": np.ones((5, 2)), "constraint_offset": -np.ones(5)}
HOLE = np.ones((5, 2))
HOLE[3, 1] = np.nan


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cost_linear": None}, "FILE: it needs cost_linear or cost_curvature"),
        ({"constraint_linear": None, "constraint_offset": None}, "FILE: it needs constraint_linear or constraint_curvature"),
        ({"domain": None}, "FILE: it needs domain, one of ball, l1, box, simplex, polyhedron"),
        ({"domain": "bal"}, "FILE: unknown domain 'bal'; did you mean ball"),
        ({"domain": 3.0}, "FILE: domain must be text, not an array of float64 and shape ()"),
        ({"low": 0.0}, "FILE: low is not for the domain ball, which has radius and center"),
        ({"domain": "box", "radius": None}, "FILE: the domain box needs low"),
        ({"domain": "box", "radius": None, "low": 2.0, "high": 1.0}, "FILE: the box is empty"),
        ({"radius": -1.0}, "FILE: radius must be above 0"),
        ({"center": np.zeros(3)}, "FILE: the domain has 3 dimensions, the functions have 2"),
        (
            {"domain": "simplex", "radius": None, "cost_linear": np.ones((5, 1)), "constraint_linear": np.ones((5, 1))},
            "more than one point",
        ),
        ({"cost_linear": HOLE}, "FILE: cost_linear must be finite, not nan at index 3, 1"),
        ({"cost_linear": np.full((5, 2), 1j)}, "FILE: cost_linear must be an array of numbers"),
        ({"cost_linear": np.array([["a", "b"]] * 5)}, "FILE: cost_linear must be an array of numbers"),
        ({"cost_linear": np.ones(5)}, "FILE: cost_linear must have shape (T, d)"),
        ({"cost_linear": np.ones((5, 3))}, "FILE: constraint_linear must have shape (T, 3) with T = 5 rounds (or 1), not (5, 2)"),
        ({"cost_linear": np.ones((4, 2))}, "FILE: cost_linear must have shape (T, 2) with T = 5 rounds (or 1), not (4, 2)"),
        ({"constraint_offset": np.ones((5, 1))}, "FILE: constraint_offset must have shape (T,) with T = 5 rounds (or 1), not (5, 1)"),
        ({"constraint_linear": np.ones((5, 3, 2))}, "FILE: constraint_offset must have shape (T, 3) with T = 5 rounds (or 1), not (5,)"),
        ({"cost_linear": np.ones((0, 2)), "constraint_linear": np.ones((0, 2)), "constraint_offset": None}, "FILE: it holds no rounds"),
        ({"cost_curvature": -np.ones(5)}, "FILE: cost_curvature must be positive semidefinite: round 1 is not"),
        ({"cost_curvature": np.array([[[1.0, 2.0], [0.0, 1.0]]])}, "FILE: cost_curvature must hold symmetric matrices"),
        ({"cost_curvature": np.array([[[1.0, 2.0], [2.0, 1.0]]])}, "FILE: cost_curvature must be positive semidefinite"),
        ({"cost_curvature": np.ones((5, 3, 3))}, "FILE: cost_curvature must have shape (T, 2, 2) with T = 5 rounds (or 1), not (5, 3, 3)"),
        ({"costs": np.ones((5, 2))}, "unknown array of FILE: 'costs'; did you mean cost_"),
        ({"cost_offset": np.array([{}] * 5, dtype=object)}, "FILE: cost_offset cannot be read as an array: Object arrays cannot be loaded"),
        ({"rounds": 2.5}, "FILE: rounds must be a whole number"),
    ],
)
def test_what_is_wrong_with_arrays_is_said_in_one_line(save, change, message):
    given = {key: value for key, value in {**GOOD, **change}.items() if value is not None}
    assert bridle.problem(save("good.npz", **GOOD)).horizon == 5
    assert message in refusal(save(**given))


def test_files_that_are_no_arrays_are_refused_and_nothing_is_unpickled(tmp_path):
    fired = tmp_path / "fired"

    class Trap:
        def __reduce__(self) -> Any:
            return (open, (str(fired), "w"))

    texts = {"empty": b"", "text": b"hello", "pickle": pickle.dumps(Trap()), "cut": b"PK\x03\x04broken"}
    for name, content in texts.items():
        path = tmp_path / f"{name}.npz"
        path.write_bytes(content)
        assert refusal(path) == "FILE is not an .npz file, as numpy.savez writes"
    np.save(tmp_path / "one.npy", np.ones(3))
    (tmp_path / "one.npy").rename(tmp_path / "one.npz")
    assert refusal(tmp_path / "one.npz") == "FILE is not an .npz file, as numpy.savez writes"
    whole = io.BytesIO()
    np.savez(whole, **GOOD)
    (tmp_path / "hurt.npz").write_bytes(whole.getvalue().replace(b"NUMPY", b"numpy"))
    assert "cannot be read as an array" in refusal(tmp_path / "hurt.npz")
    np.savez(tmp_path / "trap.npz", **GOOD, feasible=np.array([Trap()], dtype=object))
    refusal(tmp_path / "trap.npz")
    assert not fired.exists()


# --- the command line -----------------------------------------------------------------------------------------------------------------


def status(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        cli.main(list(arguments))
    return int(ended.value.code or 0)


def test_the_command_line_plays_files(write, save, capsys, monkeypatch, tmp_path):
    write(VARIABLE), write(FUNCTION, "function.py"), save(**GOOD)
    monkeypatch.chdir(tmp_path)
    for name, rounds in (("./mine.py", "1,000"), ("./function.py", "1,000"), ("./mine.npz", "5")):
        assert status("play", name, "--policy", "sinha2024") == 0
        captured = capsys.readouterr()
        assert f"sinha2024 on {name}: T = {rounds}, " in captured.out
        assert captured.err == ""
    assert status("play", "./function.py", "--horizon", "30", "--set", "width=0.5", "--seed", "4", "--json", "-") == 0
    assert '"width": 0.5' in capsys.readouterr().out
    for name in ("gone.py", "gone.npz", "./mine.txt"):
        assert status("play", name) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert re.fullmatch(r"bridle: (there is no file gone\.\w+|unknown problem './mine.txt'; .*)\n", captured.err)


def test_every_key_is_documented():
    text = (Path(__file__).parents[2] / "docs" / "problems.md").read_text()
    for key, meaning in from_arrays.KEYS.items():
        assert f"| `{key}` | {meaning} |" in text, key


LOUD = """
import numpy as np
import bridle
print("what a file says goes to standard error")

def problem(horizon, seed, cost=1.0):
    print("and what its function says")
    round = bridle.Round(bridle.Affine([cost, 0.0]), CONSTRAINTS)
    return bridle.Problem(bridle.Ball(2), bridle.adversaries.Fixed(round), {"lipschitz": 1.0})
"""


def test_what_a_file_prints_does_not_mix_with_the_results(tmp_path, capsys):
    path = tmp_path / "loud.py"
    path.write_text("import bridle.adversaries\n" + LOUD.replace("CONSTRAINTS", "(bridle.Affine([0.0, 1.0]),)"))
    bridle.problem(path, horizon=5)
    said = capsys.readouterr()
    assert said.out == ""
    assert "standard error" in said.err


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ("()", "a bridle.Round with at least one constraint"),
        ("(bridle.functions.AffineFunction(np.array([0.0, np.nan]), 0.0),)", "a cost, a constraint or a gradient is not finite"),
    ],
)
def test_a_file_whose_rounds_cannot_be_played_is_named(tmp_path, constraints, message):
    path = tmp_path / "broken.py"
    path.write_text("import bridle.adversaries\n" + LOUD.replace("CONSTRAINTS", constraints))
    with pytest.raises(InputError, match=message) as wrong:
        bridle.problem(path, horizon=5)
    assert "broken.py" in str(wrong.value)
