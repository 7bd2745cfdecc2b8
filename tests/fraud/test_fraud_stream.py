"""`bridle fraud --protocol stream`: figures against scikit-learn's, scores against decisions, no look ahead, files, resuming, real rows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

import bridle
from bridle import records
from bridle.core import Unavailable
from bridle.fraud import baselines, stream_model
from bridle.fraud import scores as measures
from helpers.instances import real
from helpers.scripts import script

RESULT = Path(__file__).parents[2] / "benchmarks" / "fraud-stream.json"


def invented(rounds: int = 1500, seed: int = 0) -> stream_model.StreamRows:
    """Rows like the real ones: time, then columns in which frauds differ."""
    rng = np.random.default_rng(seed)
    fraud = 1.0 * (rng.random(rounds) < 0.05)
    columns = 3.0 + 2.0 * rng.standard_normal((rounds, 5)) + fraud[:, None] * np.array([3.0, -3.0, 2.0, 0.0, 1.0])
    return stream_model.StreamRows(np.column_stack([np.arange(rounds), columns]), fraud)


@given(st.lists(st.tuples(st.booleans(), st.integers(-5, 5)), min_size=2, max_size=40))
def test_the_areas_are_those_of_scikit_learn(rows):
    fraud, scores = np.array([a for a, _ in rows], dtype=float), np.array([b for _, b in rows], dtype=float)
    if fraud.min() == fraud.max():
        return
    assert measures.roc_auc(fraud, scores) == pytest.approx(roc_auc_score(fraud, scores))
    assert measures.average_precision(fraud, scores) == pytest.approx(average_precision_score(fraud, scores))


@pytest.mark.parametrize("engine", ["python", "jax", "compiled"])
@pytest.mark.parametrize("model", ["logistic", "network"])
def test_scores_are_those_of_the_decisions_before_the_label(model, engine):
    rows = invented(300)
    problem = getattr(stream_model, model)(rows, 0.1)
    policy = bridle.policy_for("anytime", problem, **stream_model.SETTING.contestant("").parameters)
    x1 = stream_model.begin(problem, 0) if model == "network" else None
    trace = bridle.play(policy, problem, engine=engine, keep="decisions", x1=x1)
    table = problem.adversary.table
    if model == "logistic":
        expected = np.einsum("td,td->t", table.cost.a, trace.decisions)
    else:
        outputs = np.array([bridle.networks.score(a, x) for a, x in zip(table.a, trace.decisions, strict=True)])
        expected = np.log(outputs / (1.0 - outputs))
    np.testing.assert_allclose(stream_model.scores(trace, rows.fraud), expected, rtol=1e-8, atol=1e-8)


def test_the_constraint_is_about_frauds_alone():
    rows = invented(50)
    problem = stream_model.logistic(rows, 0.1)
    x = np.linspace(-0.3, 0.3, problem.domain.dim)
    for t, now in enumerate(records.unstack(problem.adversary.replay(0, 50), 50)):
        loss, g = now.cost.value(x), now.constraints[0].value(x)
        assert g == pytest.approx(loss - 0.1 if rows.fraud[t] else -0.1)


def test_no_row_knows_of_a_later_one():
    """Rows changed from some round on leave every earlier score as it was, bit for bit."""
    rows = invented(400)
    other = stream_model.StreamRows(rows.raw.copy(), rows.fraud.copy())
    other.raw[300:] *= -7.0
    other.fraud[300:] = 1.0 - other.fraud[300:]
    for who in stream_model.contestants(stream_model.SETTING):
        if who.policy == "sinha2024":
            continue  # it is told the longest row of the whole stream in advance, as its name says
        a, b = (stream_model.scores(stream_model.play_contestant(each, who, "python"), each.fraud) for each in (rows, other))
        np.testing.assert_array_equal(a[:300], b[:300])
        assert (a[300:] != b[300:]).any()
    for score in (baselines.river_scores, baselines.sklearn_scores):
        a, b = score(rows.raw, rows.fraud, "plain"), score(other.raw, other.fraud, "plain")
        np.testing.assert_array_equal(a[:300], b[:300])


@pytest.mark.compiles
def test_the_grid_finds_a_setting_that_beats_a_bad_one():
    rows = invented()
    tried = list(stream_model.select(rows))
    assert len(tried) == np.prod([len(values) for values in stream_model.GRID])
    best = max(tried, key=lambda each: stream_model.merit(*each[1:]))
    alone = stream_model.play_contestant(rows, best[0].contestant("best"), "python")
    assert measures.roc_auc(rows.fraud, stream_model.scores(alone, rows.fraud)) == pytest.approx(best[1], abs=1e-9)
    assert stream_model.merit(*best[1:]) > min(stream_model.merit(*each[1:]) for each in tried)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(stream_model, "load", lambda path=None: invented())


@pytest.mark.slow
def test_the_command_writes_everything_and_keeps_who_is_done(run, small, tmp_path, monkeypatch):
    asked = ("fraud", "--protocol", "stream", "--out", str(tmp_path), "--engine", "python", "--json", "-")
    status, out, err = run(*asked)
    assert status == 0, err
    facts = json.loads(out)
    assert {"auc", "average_precision", "setting", "contestants"} <= set(facts)
    assert len(facts["contestants"]) == len(stream_model.contestants(stream_model.SETTING)) + 11
    for name in ("metrics.json", "report.html", "areas.png", "alerts.svg"):
        assert (tmp_path / name).stat().st_size > 0
    page = (tmp_path / "report.html").read_text()
    assert "river, under-sampled, without Time" in page
    assert "no weights bring the loss of every fraud below the tolerance" in page
    monkeypatch.setattr(stream_model, "play_contestant", None)  # nothing is played again
    monkeypatch.setattr(baselines, "river_scores", None)
    assert json.loads(run(*asked)[1])["contestants"] == facts["contestants"]


def test_an_interruption_keeps_who_is_done(run, small, tmp_path, monkeypatch):
    def stopped(*_args, **_more):
        raise KeyboardInterrupt

    monkeypatch.setattr(baselines, "river_scores", stopped)
    status, out, err = run("fraud", "--protocol", "stream", "--out", str(tmp_path), "--engine", "python")
    assert (status, out) == (130, "")
    assert f"11 of 22 contestants are done and kept in {tmp_path}" in err


@pytest.mark.slow
def test_without_a_library_its_variants_are_left_out_and_said_so(run, small, tmp_path, monkeypatch):
    def missing(*_args, **_more):
        raise Unavailable("the baselines of river need the package river: pip install 'bridle-oco[river]'")

    monkeypatch.setattr(baselines, "river_scores", missing)
    facts = json.loads(run("fraud", "--protocol", "stream", "--out", str(tmp_path), "--engine", "python", "--json", "-")[1])
    assert len(facts["missing"]) == 9
    assert "pip install 'bridle-oco[river]'" in facts["missing"][0]


@pytest.mark.compiles
def test_the_published_figures_are_those_of_the_real_stream():
    """The chosen setting, played again on all rows, has the areas that docs and results name, above every river variant's."""
    rows = stream_model.rows_of(real("creditcard"))
    trace = stream_model.play_contestant(rows, stream_model.SETTING.contestant("chosen"), "compiled")
    scores = stream_model.scores(trace, rows.fraud)
    told = json.loads(RESULT.read_text())
    auc, precision = measures.roc_auc(rows.fraud, scores), measures.average_precision(rows.fraud, scores)
    assert auc == pytest.approx(told["auc"], abs=1e-6)
    assert precision == pytest.approx(told["average_precision"], abs=1e-6)
    river = [line for line in told["contestants"] if line["name"].startswith("river")]
    assert len(river) == 9
    assert all(auc > line["auc"] and precision > line["average_precision"] for line in river)


def test_the_setting_is_the_best_of_those_tried_on_the_first_fifth():
    told = json.loads(RESULT.read_text())
    best = max(told["tried"], key=lambda each: each["merit"])
    assert {name: best[name] for name in stream_model.Setting._fields} == pytest.approx(stream_model.SETTING._asdict())
    assert told["setting"] == pytest.approx(stream_model.SETTING._asdict())


def test_the_page_has_the_table_of_the_results():
    benchmark = script("benchmarks/fraud_stream.py")
    text = (RESULT.parent.parent / "docs" / "fraud.md").read_text()
    assert benchmark.BEGIN + benchmark.markdown(json.loads(RESULT.read_text())) + benchmark.END in text, "run benchmarks/fraud_stream.py"


@pytest.mark.slow
def test_seeds_that_change_nothing_are_said_to(run, small, tmp_path):
    asked = ("fraud", "--protocol", "stream", "--out", str(tmp_path), "--engine", "python", "--no-baselines")
    assert "--seeds changes nothing here" in run(*asked, "--seeds", "2")[1]
    assert "--seeds" not in run(*asked)[1]
