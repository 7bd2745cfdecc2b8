"""Capacity for a demand of the user's own: what a file means, what a limit on how often comes to, and what is wrong with a file."""

from __future__ import annotations

import json

import numpy as np
import pytest

import bridle
from bridle import cli, compare, records
from bridle.core import InputError
from bridle.game.summary import summary


def demand(rounds: int = 400, seed: int = 0) -> np.ndarray:
    rng, t = np.random.default_rng(seed), np.arange(rounds)
    return np.column_stack([20.0 + 8.0 * np.sin(2.0 * np.pi * t / 48) + rng.gamma(2.0, 1.0, rounds), rng.gamma(2.0, 300.0, rounds)])


def written(folder, values, header="time,cores,requests"):
    path = folder / "demand.csv"
    rows = "\n".join(f"2026-01-01T{t},{','.join(map(repr, row))}" for t, row in enumerate(values.tolist()))
    path.write_text(f"{header}\n{rows}\n")
    return str(path)


def test_a_file_is_demand_over_what_is_installed(tmp_path):
    values = demand()
    problem = bridle.problem("capacity", horizon=400, data=written(tmp_path, values), installed=[64.0, 8000.0])
    known, stream = problem.constants, problem.adversary.replay(0, 400)
    np.testing.assert_array_equal(stream.constraints[0].b, values / [64.0, 8000.0])
    x = np.array([0.5, 0.25])
    for cost in records.unstack(stream.cost, 400):
        assert float(cost.value(x)) == pytest.approx(0.75)
    peak = values.max(axis=0) / [64.0, 8000.0]
    np.testing.assert_array_equal(known["optimum"], peak)
    assert known["optimal_cost"] == pytest.approx(400 * peak.sum())
    assert known["slater"] == pytest.approx((1.0 - peak).min())
    assert (known["safe"] == 1.0).all()
    assert (known["feasible"] == 1.0).all()
    assert known["constraints"] == 2


def test_without_a_word_twice_the_peak_is_installed_and_npz_reads_alike(tmp_path):
    values = demand()
    np.savez_compressed(tmp_path / "demand.npz", time=np.arange(400), cores=values[:, 0], requests=values[:, 1])
    one = bridle.problem("capacity", horizon=400, data=written(tmp_path, values))
    two = bridle.problem("capacity", horizon=400, data=str(tmp_path / "demand.npz"))
    for problem in (one, two):
        np.testing.assert_allclose(problem.constants["optimum"], 0.5)
        np.testing.assert_array_equal(problem.adversary.replay(0, 400).constraints[0].b, values / (2.0 * values.max(axis=0)))


def test_a_demand_that_is_never_there_is_no_division_by_zero(tmp_path):
    path = written(tmp_path, np.column_stack([np.ones(5), np.zeros(5)]))
    b = bridle.problem("capacity", horizon=5, data=path).adversary.replay(0, 5).constraints[0].b
    assert b.tolist() == [[0.5, 0.0]] * 5


def test_a_file_that_changes_is_read_again(tmp_path):
    path = written(tmp_path, demand(20))
    first = bridle.problem("capacity", horizon=20, data=path, installed=1e4).constants["optimum"]
    assert written(tmp_path, 2.0 * demand(20)) == path
    np.testing.assert_allclose(bridle.problem("capacity", horizon=20, data=path, installed=1e4).constants["optimum"], 2.0 * first)


def test_demand_above_what_is_installed_has_no_feasible_action(tmp_path):
    values = np.full((600, 1), 2.0)  # of 1 that there is
    problem = bridle.problem("capacity", horizon=600, data=written(tmp_path, values, "time,cores"), installed=1.0)
    assert problem.constants["feasible"] is None
    assert "optimum" not in problem.constants
    trace = bridle.play(bridle.policy_for("rate", problem, at_most=0.05), problem)
    found = bridle.violation_rates(trace)
    assert found.measured.tolist() == [1.0]
    assert found.proved.tolist() == [1.0]


def test_rates_of_a_game_are_counted_asked_and_proved(tmp_path):
    problem = bridle.problem("capacity", horizon=400, data=written(tmp_path, demand()))
    policy = bridle.policy_for("rate", problem, at_most=[0.05, 0.2])
    assert policy.parameters["safe"] == (1.0, 1.0)
    trace = bridle.play(policy, problem, keep="rounds")
    found = bridle.violation_rates(trace)
    np.testing.assert_array_equal(found.asked, [0.05, 0.2])
    np.testing.assert_allclose(found.measured, (trace.values > 0.0).mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found.proved, [0.05 + 80.95 / 400, 0.2 + 80.8 / 400], rtol=1e-12)
    facts = summary(trace)
    assert facts["rates"] == found.measured.tolist()
    assert facts["rates_asked"] == [0.05, 0.2]
    assert facts["rates_proved"] == found.proved.tolist()
    session = bridle.Session(policy)
    for row in problem.adversary.replay(0, 400).constraints[0].b:
        x = session.decide()
        session.observe(f=float(x.sum()), df=np.ones(2), g=row - x, dg=-np.eye(2))
    assert [limit.measured for limit in session.rates] == pytest.approx(facts["rates"], abs=0.01)
    assert [limit.proved for limit in session.rates] == pytest.approx(facts["rates_proved"])


def test_several_runs_have_rates_each_and_other_policies_none(tmp_path):
    problem = bridle.problem("capacity", horizon=300, data=written(tmp_path, demand(300)))
    trace = bridle.play(bridle.policy_for("rate", problem, at_most=0.1), problem, seed=[0, 1], keep="rounds")
    found = bridle.violation_rates(trace)
    assert found.measured.shape == (2, 2)
    np.testing.assert_allclose(found.measured, (trace.values > 0.0).mean(axis=0), rtol=1e-12)
    assert (found.measured <= found.proved).all()
    any_limit = bridle.play(bridle.policy_for("rate", problem, at_most=0.1, form="any"), problem, keep="rounds")
    one = bridle.violation_rates(any_limit)
    assert one.measured.tolist() == pytest.approx([(any_limit.values > 0.0).any(axis=1).mean()])
    careless = bridle.play(bridle.policy_for("rate", problem, safe=None), problem)
    assert careless.policy.parameters.get("safe") is None
    assert np.isnan(bridle.violation_rates(careless).proved).all()
    other = bridle.play(bridle.policy_for("anytime", problem), problem)
    assert bridle.violation_rates(other) is None
    assert summary(other)["rates"] == []


def test_the_command_line_shows_the_rates(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    path = written(tmp_path, demand())
    with pytest.raises(SystemExit) as ended:
        cli.main(["play", "capacity", "--policy", "rate", "--horizon", "400", "--set", f"data={path}", "--set", "at_most=0.1"])
    shown = capsys.readouterr().out
    assert not ended.value.code
    assert "limit 0 violated, share of rounds" in shown
    assert "limit violated: at most 10 % of the rounds were asked for" in shown
    with pytest.raises(SystemExit):
        cli.main(["play", "capacity", "--policy", "rate", "--horizon", "400", "--set", f"data={path}", "--json", "-"])
    facts = json.loads(capsys.readouterr().out)
    assert facts["rates_asked"] == [0.05, 0.05]
    assert all(measured <= proved for measured, proved in zip(facts["rates"], facts["rates_proved"], strict=True))


def test_a_comparison_has_columns_and_notes_of_them(tmp_path):
    from bridle.comparisons import tables
    from bridle.comparisons.analysis import ranking
    from bridle.comparisons.html_report import write_report

    path = written(tmp_path, demand(100))
    rows = compare([f"capacity:data={path}"], ["rate:at_most=0.1", "ogd"], [100], seeds=2, out=str(tmp_path / "out"), jobs=1)
    rated = [row for row in rows if row["policy"] == "rate"]
    assert [row["rates_asked"] for row in rated] == [[0.1, 0.1]] * 2
    assert all(row["rates"] == [] for row in rows if row["policy"] == "ogd")
    middle = 100.0 * np.median([row["rates"][1] for row in rated])
    notes = [note for note in tables.ranking_notes(ranking(rows), rows) if note.startswith("how often: rate at_most=0.1 on")]
    assert len(notes) == 1
    assert f"limit 1 was violated in {middle:.3g} % of the rounds (10 % asked, at most 90.9 % whatever had come)" in notes[0]
    page = write_report(rows, tmp_path / "report.html").read_text()
    assert "limit 1 was violated in" in page


BAD = {
    "": "its first line must name the columns",
    "3.0,4.0\n1.0,2.0\n": "must name its columns in the first line, not begin with '3.0, 4.0'",
    "cores,cores\n1,2\n": "column 2 must have a name of its own, not 'cores'",
    "cores,\n1,2\n": "column 2 must have a name of its own, not ''",
    "cores\n": "has no rows under its names",
    "time\n12:00\n": "has no column of numbers",
    "time,cores\n12:00,1\n12:05,\n": "line 3: cores must be a finite number, not ''",
    "time,cores\n12:00,1\n\n12:05,nan\n": "line 4: cores must be a finite number, not 'nan'",
    "cores,disks\n1,2\n3\n": "line 3: 1 fields stand under 2 names",
    "cores\n1\n-2\n": "demand must be 0 or above, not -2 in row 2 of cores",
}


@pytest.mark.parametrize("text", BAD)
def test_a_bad_file_is_one_error_that_names_the_place(text, tmp_path):
    path = tmp_path / "demand.csv"
    path.write_text(text)
    with pytest.raises(InputError) as raised:
        bridle.problem("capacity", horizon=1, data=str(path))
    assert str(raised.value).startswith(f"data: {path}")
    assert BAD[text] in str(raised.value)
    assert "\n" not in str(raised.value)


def test_what_else_can_be_wrong_is_named(tmp_path):
    path = written(tmp_path, demand(20))
    (tmp_path / "text.npz").write_text("no archive")
    np.savez(tmp_path / "long.npz", a=np.ones(3), b=np.ones(4))
    np.savez(tmp_path / "wide.npz", a=np.ones((3, 2)))
    np.savez(tmp_path / "objects.npz", a=np.array([{}], dtype=object))
    (tmp_path / "latin.csv").write_bytes(b"cores\n\xff\xfe\n")
    for given, message in (
        ({"data": "nowhere.csv"}, "data: there is no file nowhere.csv"),
        ({"data": str(tmp_path / "text.npz")}, "is not an .npz file"),
        ({"data": str(tmp_path / "long.npz")}, "its arrays must be equally long, not 3, 4"),
        ({"data": str(tmp_path / "wide.npz")}, "a must have one axis, of rows, not the shape (3, 2)"),
        ({"data": str(tmp_path / "objects.npz")}, "cannot be read as an array"),
        ({"data": str(tmp_path / "latin.csv")}, "cannot be read as CSV"),
        ({"data": path, "installed": [1.0, 2.0, 3.0]}, "installed must be one number above 0, or one for each of the 2 columns of"),
        ({"data": path, "installed": 0.0}, "not 0.0"),
        ({"data": path, "horizon": 21}, "horizon must be at most 20, the rounds that problem capacity on"),
        ({"data": "nonsense"}, "data"),
    ):
        with pytest.raises(InputError) as raised:
            bridle.problem("capacity", **{"horizon": 10, **given})
        assert message in str(raised.value), given


def test_what_is_installed_is_known_of_the_named_sets():
    with pytest.raises(InputError, match=r"installed is for a file of your own: what google has is known, and cannot be 2\.0"):
        bridle.problem("capacity", horizon=10, data="google", installed=2.0)


def test_the_command_line_says_what_is_wrong_in_one_line(tmp_path, capsys):
    path = tmp_path / "demand.csv"
    path.write_text("cores\n1\nmuch\n")
    with pytest.raises(SystemExit) as ended:
        cli.main(["play", "capacity", "--policy", "rate", "--horizon", "2", "--set", f"data={path}"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"bridle: data: {path}, line 3: cores must be a finite number, not 'much'\n"


@pytest.mark.parametrize("as_problem", [False, True])
def test_a_flipped_bit_of_packed_arrays_is_one_error_or_none(tmp_path, as_problem):
    """Of a table, and of a problem given as arrays: whatever the flip makes of the archive."""
    path, hurt = tmp_path / "sound.npz", tmp_path / "hurt.npz"
    rng = np.random.default_rng(0)
    table = (
        {"cost_linear": rng.random((40, 2)), "low": np.zeros(2), "high": np.ones(2), "domain": "box"}
        if as_problem
        else {"cpu": rng.random(80)}
    )
    np.savez_compressed(path, **table)
    whole, refusals = path.read_bytes(), []
    for at in range(0, len(whole), 2):
        broken = bytearray(whole)
        broken[at] ^= 1 << at % 8
        hurt.write_bytes(broken)
        try:
            bridle.problem(str(hurt), horizon=10) if as_problem else bridle.problem("capacity", horizon=10, data=str(hurt))
        except InputError as error:
            refusals.append(str(error))
    assert len(refusals) > len(whole) // 4
    assert not any("\n" in refusal for refusal in refusals)
