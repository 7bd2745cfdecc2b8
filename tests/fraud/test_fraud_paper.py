"""`bridle fraud --protocol paper`: the update against a loop written apart, rates and areas, files, resuming, refusals, the real data."""

from __future__ import annotations

import csv
import importlib
import json
import os
import signal
import subprocess
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

import bridle
from bridle.comparisons.analysis import power_law
from bridle.engines import runs
from bridle.fraud import PROTOCOLS, page, paper, paper_model
from bridle.networks import score
from helpers.instances import PROGRAM, real
from helpers.scripts import script
from helpers.transactions import invented

ROOT = Path(__file__).parents[2]


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(paper, "load", lambda name, path=None: invented())


def loop(rows: paper_model.PaperRows, start: np.ndarray, lam: float, D: float, S: float, beta: float, radius: float) -> np.ndarray:
    """The released code's update in plain NumPy, from its description alone: nothing of the library is used."""
    x, Q, decisions = start.copy(), 0.0, []
    n, H = rows.features.shape[1], 10
    for a, y in zip(rows.features, rows.fraud, strict=True):
        decisions.append(x)
        W, b, v, c = x[: H * n].reshape(H, n), x[H * n : H * n + H], x[H * n + H : -1], x[-1]
        h = 1.0 / (1.0 + np.exp(-(W @ a + b)))
        raw = 1.0 / (1.0 + np.exp(-(v @ h + c)))
        p = min(max(raw, 1e-7), 1.0 - 1e-7)
        Q += beta * (-y * np.log(p))  # before the weight is computed
        weight = lam * np.exp(lam * Q)
        slope = (1.0 - y) / (1.0 - p) - weight * y / p
        slope *= beta * (raw * (1.0 - raw) if p == raw else 0.0)
        hidden = slope * v * h * (1.0 - h)
        grad = np.concatenate([np.outer(hidden, a).ravel(), hidden, slope * h, [slope]])
        S += grad @ grad
        x = x - D / np.sqrt(2.0 * S) * grad if S else x
        x = x * min(1.0, radius / np.linalg.norm(x))
    return np.array(decisions)


@pytest.mark.parametrize("engine", ["python", "jax", "compiled"])
@pytest.mark.parametrize("variant", ["code", "text"])
def test_the_library_plays_the_update_of_the_released_code(variant, engine):
    lambdas = [0.01, 0.3, 2.0]
    rows = paper_model.rows_of(invented(), variant)
    problem, start = paper_model.arrange(rows, variant, seed=3)
    policy = paper_model.policy_of(problem, variant, lambdas)
    trace = bridle.play(policy, problem, engine=engine, x1=start, keep="decisions")
    table = problem.adversary.table
    played = paper_model.PaperRows(table.a, table.label)
    if variant == "code":
        settings = {"D": 10.0, "S": 0.001, "beta": 1.0, "radius": 100.0}
    else:
        settings = {"D": 2.0, "S": 0.0, "beta": 1.0 / (2.0 * problem.constants["lipschitz"] * 2.0), "radius": 1.0}
    for run, lam in enumerate(lambdas):
        np.testing.assert_allclose(trace.decisions[:, run], loop(played, start, lam, **settings), rtol=1e-7, atol=1e-9)
    # The rates, read off the losses, are the means of the network's outputs.
    for run, point in enumerate(paper_model.points_of(trace, lambdas, table.label, 3)):
        outputs = np.array([score(a, x) for a, x in zip(table.a, trace.decisions[:, run], strict=True)])
        assert point["fpr"] == pytest.approx(outputs[table.label == 0.0].mean(), rel=1e-9)
        assert point["tpr"] == pytest.approx(outputs[table.label == 1.0].mean(), rel=1e-9)
        assert point["ccv"] == pytest.approx(-np.log(outputs[table.label == 1.0]).sum(), rel=1e-9)
        assert point["cost"] == pytest.approx(-np.log1p(-outputs[table.label == 0.0]).sum(), rel=1e-9)
        running = np.cumsum(np.where(table.label == 1.0, -np.log(outputs), 0.0))
        np.testing.assert_allclose(point["curve"], running[paper_model.curve_rounds(len(outputs)) - 1], rtol=1e-9)
        assert point["norm"] == pytest.approx(np.linalg.norm(policy.decide(trace.state)[run]))


def test_the_variants_are_what_the_specification_says():
    data = invented()
    code, text = paper_model.rows_of(data, "code"), paper_model.rows_of(data, "text")
    assert (code.features.shape[1], text.features.shape[1]) == (29, 30)
    for rows in (code, text):
        np.testing.assert_allclose(rows.features.mean(axis=0), 0.0, atol=1e-12)
        np.testing.assert_allclose(rows.features.std(axis=0), 1.0, rtol=1e-12)
    problem, start = paper_model.arrange(code, "code", 0)
    assert problem.domain.dim == 311
    assert ((start >= 0.0) & (start < 1.0)).all()
    assert paper_model.arrange(text, "text", 0)[0].domain.dim == 321
    assert np.linalg.norm(paper_model.arrange(text, "text", 0)[1]) == pytest.approx(1.0)
    record = paper_model.policy_of(problem, "code", [0.1]).record
    assert (record.learner.diameter, record.learner.initial, record.beta, record.V) == (10.0, 0.001, 1.0, 1.0)
    assert record.domain.radius == 100.0
    assert len(paper_model.lambda_grid()) == 30
    assert paper_model.lambda_grid()[0] == pytest.approx(0.002)
    assert paper_model.lambda_grid()[-1] == pytest.approx(1.0)


def test_a_seed_has_its_own_order_and_start_and_always_the_same():
    rows = paper_model.rows_of(invented(), "code")
    (one, x), (again, x_again), (other, x_other) = (paper_model.arrange(rows, "code", seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.adversary.table.a, again.adversary.table.a)
    np.testing.assert_array_equal(x, x_again)
    assert (x != x_other).all()
    assert (one.adversary.table.a != other.adversary.table.a).any()
    np.testing.assert_array_equal(np.sort(one.adversary.table.a[:, 0]), np.sort(rows.features[:, 0]))
    in_order = paper_model.arrange(paper_model.rows_of(invented(), "text"), "text", 2)[0]
    np.testing.assert_array_equal(in_order.adversary.table.a, paper_model.rows_of(invented(), "text").features)


def test_the_declared_lipschitz_constant_holds():
    rows = paper_model.rows_of(invented(), "text")
    problem, start = paper_model.arrange(rows, "text", 0)
    trace = bridle.play(paper_model.policy_of(problem, "text", [1.0]), problem, x1=start, keep="decisions")
    table = problem.adversary.table
    longest = max(np.linalg.norm(bridle.Network(a, y).grad(x)) for a, y, x in zip(table.a, table.label, trace.decisions[:, 0], strict=True))
    assert longest <= problem.constants["lipschitz"]


def test_areas():
    assert paper_model.area([0.0, 0.0, 1.0], [0.0, 1.0, 1.0]) == 1.0
    assert paper_model.area([0.5], [0.5]) == 0.5
    assert paper_model.area([0.5], [0.5], corners=False) == 0.0
    assert paper_model.area([0.9, 0.1], [1.0, 0.8], corners=False) == pytest.approx(0.72)  # whatever the order of the points


def command(*more):
    return ("fraud", "--protocol", "paper", "--lambdas", "0.01,0.1,1", *more)


def test_the_command_writes_everything(run, small, tmp_path):
    out = tmp_path / "results"
    status, shown, err = run(*command("--seeds", 2, "--engine", "python", "--out", out, "--json", tmp_path / "facts.json"))
    assert (status, err) == (0, "")
    facts = json.loads((tmp_path / "facts.json").read_text())
    metrics = json.loads((out / "metrics.json").read_text())
    assert {name: metrics[name] for name in facts} == facts
    assert [(p["lambda"], p["seed"]) for p in facts["points"]] == [(lam, seed) for seed in (0, 1) for lam in (0.01, 0.1, 1.0)]
    assert {"lambda", "seed", "fpr", "tpr", "ccv", "cost", "norm"} <= facts["points"][0].keys()
    for area in facts["areas"]:
        own = [p for p in facts["points"] if p["seed"] == area["seed"]]
        assert area["auc"] == pytest.approx(paper_model.area([p["fpr"] for p in own], [p["tpr"] for p in own]))
    assert facts["auc"] == pytest.approx(np.mean([area["auc"] for area in facts["areas"]]))
    assert "not convex" in facts["bound_why"]
    with (out / "points.csv").open() as file:
        assert [float(line["tpr"]) for line in csv.DictReader(file)] == [p["tpr"] for p in facts["points"]]
    for curve in metrics["curves"]["each"]:
        point = next(p for p in facts["points"] if (p["lambda"], p["seed"]) == (curve["lambda"], curve["seed"]))
        assert curve["ccv"][-1] == pytest.approx(point["ccv"])
        law = power_law(metrics["curves"]["rounds"], curve["ccv"], since=300)
        assert point["ccv_exponent"] == pytest.approx(law.exponent)
    for name in ("roc", "ccv"):
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert ElementTree.parse(out / f"{name}.svg").getroot().tag.endswith("svg")
    page = (out / "report.html").read_text()
    assert page.count('class="picture"') == 2
    assert 'src="http' not in page
    assert f"{facts['auc']:.3f}" in page
    assert str(out / "report.html") in shown.replace("\n", "")


def test_what_is_kept_is_found_again_or_done_anew(tmp_path):
    """Whichever bit is flipped, and for whatever an earlier version kept."""
    path, facts = tmp_path / "seed.json", {"key": "k", "found": {"auc": 0.9375, "curve": [1, 2.5]}}
    page.keep(path, facts)
    assert page.kept(path) == facts
    whole = path.read_bytes()
    for bit in range(8 * len(whole)):
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        assert page.kept(path) in (None, facts)
    for other in ("", "[]", "[" * 100_000, json.dumps(facts)):
        path.write_text(other)
        assert page.kept(path) is None


@pytest.mark.slow
def test_a_seed_is_played_once(run, small, tmp_path, monkeypatch):
    given = command("--engine", "python", "--out", tmp_path, "--json", "-")
    first = json.loads(run(*given, "--seeds", 1)[1])
    played = []
    monkeypatch.setattr(paper_model, "play_seed", lambda *a, whole=paper_model.play_seed: played.append(a[3]) or whole(*a))
    again = json.loads(run(*given, "--seeds", 2)[1])
    assert played == [1]
    assert again["points"][:3] == first["points"]
    (kept,) = (tmp_path / "seeds").glob("code-0-*.json")
    kept.write_text("{")  # cut short by something else
    assert json.loads(run(*given, "--seeds", 2)[1])["points"] == again["points"]
    run(*given, "--seeds", 1, "--variant", "text")
    run(*given, "--seeds", 1)
    monkeypatch.setattr(paper, "load", lambda name, path=None: invented(seed=5))
    run(*given, "--seeds", 1)
    assert played == [1, 0, 0, 0]  # other rows, other results


@pytest.mark.parametrize("engine", ["jax", "compiled"])
def test_threads_and_one_batch_give_the_same_points(engine, monkeypatch):
    rows, lambdas = paper_model.rows_of(invented(), "code"), paper_model.lambda_grid(count=16)
    monkeypatch.setattr(runs, "cores", lambda: 2)
    two = paper_model.play_seed(rows, "code", lambdas, 0, engine)
    one = paper_model.play_seed(rows, "code", lambdas, 0, "python")
    assert [p["lambda"] for p in two["points"]] == lambdas
    for mine, theirs in zip(two["points"], one["points"], strict=True):
        assert mine == pytest.approx(theirs, rel=1e-7)


def test_an_interruption_keeps_the_seeds_that_are_done(run, small, tmp_path, monkeypatch):
    whole = paper_model.play_seed

    def stopped(rows, variant, lambdas, seed, *more):
        if seed == 1:
            raise KeyboardInterrupt
        return whole(rows, variant, lambdas, seed, *more)

    monkeypatch.setattr(paper_model, "play_seed", stopped)
    status, out, err = run(*command("--engine", "python", "--seeds", 3, "--out", tmp_path))
    assert (status, out) == (130, "")
    assert err.count("\n") == 1
    assert f"1 of 3 seeds are done and kept in {tmp_path}; to go on: bridle fraud" in err


@pytest.mark.compiles
def test_an_interruption_ends_every_thread(monkeypatch):
    monkeypatch.setattr(runs, "cores", lambda: 2)
    rows, heard = paper_model.rows_of(invented(20_000), "code"), []

    def told(at, total):
        heard.append(at)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        paper_model.play_seed(rows, "code", paper_model.lambda_grid(count=16), 0, "jax", told)
    assert len(heard) == 1  # all threads were stopped at their first block


def test_a_file_that_is_another_one_is_refused(run, tmp_path):
    mine = tmp_path / "mine.csv"
    mine.write_text("Time,V1\n1,2\n")
    status, _, err = run("fraud", "--out", tmp_path / "out", "--data", mine)
    assert status == 2
    assert "is not the file of data set creditcard" in err


def test_data_that_cannot_be_scaled_or_have_one_class_are_refused():
    flat = invented()
    flat.values[:, 5] = 1.0
    with pytest.raises(bridle.InputError, match="column V5 of the data has the same value"):
        paper_model.rows_of(flat, "code")
    honest = invented()
    honest.values[:, -1] = 0.0
    with pytest.raises(bridle.InputError, match="Class of the data must hold 0 and 1"):
        paper_model.rows_of(honest, "code")


def test_every_protocol_has_a_command():
    for module in PROTOCOLS.values():
        assert callable(importlib.import_module(module).command)


def test_the_documentation_shows_what_was_measured():
    benchmark = script("benchmarks/fraud.py")
    found = json.loads((ROOT / "benchmarks" / "fraud.json").read_text())
    text = (ROOT / "docs" / "fraud.md").read_text()
    assert benchmark.markdown(found) in text, "run benchmarks/fraud.py, and put its tables into docs/fraud.md"
    assert benchmark.speed(found) in text, "run benchmarks/fraud.py, and put its sentence into docs/fraud.md"
    assert found["lambdas"] == len(paper_model.lambda_grid())
    assert found["rounds"] == 284_807
    assert found["apart"] <= 1e-6
    assert len(found["code"]["auc"]) == benchmark.SEEDS
    assert all(0.91 <= area <= 0.93 for area in found["code"]["auc"])
    assert found["code"]["exponent_high"] < 0.75


@pytest.mark.compiles
def test_the_library_gives_the_iterates_of_the_pytorch_loop(monkeypatch):
    pytest.importorskip("torch")
    benchmark = script("benchmarks/fraud.py")
    monkeypatch.setattr(benchmark, "ROWS", 300)
    assert benchmark.check(paper_model.rows_of(invented(), "code")) <= 1e-6


# --- the real data ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.compiles
def test_the_real_transactions_give_the_papers_area_and_sublinear_violation():
    """A tenth of the lambdas' work of the whole experiment, on all rows: docs/fraud.md has the whole grid."""
    rows = paper_model.rows_of(real("creditcard"), "code")
    assert rows.features.shape == (284_807, 29)
    assert rows.fraud.sum() == 492
    found = paper_model.play_seed(rows, "code", paper_model.lambda_grid(count=8), 0, "jax")
    assert 0.89 <= found["auc"] <= 0.93  # a coarser grid cuts corners off the curve
    assert found["auc_without_corners"] < found["auc"]
    points = found["points"]
    assert all(p["ccv_exponent"] < 0.75 for p in points)
    assert all(p["norm"] < 100.0 for p in points)  # the projection never acts
    assert [p["ccv"] for p in points] == sorted((p["ccv"] for p in points), reverse=True)
    assert points[0]["fpr"] < 0.001 < 0.9 < points[-1]["fpr"]


@pytest.mark.slow
def test_ctrl_c_leaves_one_line_and_no_half_written_file(tmp_path):
    real("creditcard")
    process = subprocess.Popen(
        [*PROGRAM, "fraud", "--engine", "python", "--lambdas", "0.1", "--seeds", "1", "--out", str(tmp_path)],
        stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ},
    )  # fmt: skip
    deadline = time.monotonic() + 60.0
    while not (tmp_path / "seeds").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert out == ""
    assert err.startswith("bridle: interrupted")
    assert err.count("\n") == 1
    assert list((tmp_path / "seeds").iterdir()) == []
