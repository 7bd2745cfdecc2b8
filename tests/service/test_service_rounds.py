"""Sessions over HTTP: the same numbers as in Python, identities, refusals that change nothing, batches, budgets, what can be looked at."""

from __future__ import annotations

import json
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import bridle
from bridle import database
from bridle.core import ChangeLimit, InputError, Observation
from bridle.durable.journal import open_journal
from bridle.service import commands
from bridle.service.bodies import BatchBody, reader
from bridle.service.hosted import Hosted
from helpers.serving import ANYTIME, BOX, ROUND, create, serving, state_of

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::bridle.core.BridleWarning")]  # the twins' alarms


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving(f"sqlite:///{tmp_path_factory.mktemp('service')}/run.db") as server:
        yield server


@pytest.fixture
def client(server):
    with server.client() as client:
        yield client


@pytest.fixture
def name(request):
    return request.node.name.replace("[", "-").replace("]", "")[:90].strip("-")


def records(n, seed=0, dim=2, k=1):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        yield {
            "f": rng.normal(),
            "df": rng.normal(size=dim).tolist(),
            "g": rng.normal(size=k).tolist(),
            "dg": rng.normal(size=(k, dim)).tolist(),
        }


def post(client, name, verb, body, status=200, **headers):
    answer = client.post(f"/v1/sessions/{name}/{verb}", json=body, headers=headers)
    assert answer.status_code == status, answer.text
    return answer.json()


def test_rounds_are_those_of_a_session_in_python_bit_for_bit(client, name):
    create(client, name, names=["latency"])
    twin = bridle.Session(bridle.policy("anytime", bridle.Box(-1.0, 1.0, dim=2)), names=["latency"], most_constraints=1000)
    assert post(client, name, "decide", {})["x"] == twin.decide().tolist()
    for i, record in enumerate(records(200), 1):
        twin.observe(**record)
        assert post(client, name, "observe", record) == {"round": i, "next": twin.decide().tolist()}
    certificate = client.get(f"/v1/sessions/{name}/certificate")
    assert certificate.json() == json.loads(twin.certificate().json())
    assert client.get(f"/v1/sessions/{name}/report").json()["text"] == twin.report()
    facts = client.get(f"/v1/sessions/{name}").json()
    assert (facts["round"], facts["cost"], facts["ccv"], facts["names"]) == (200, twin.cost, twin.ccv, ["latency"])


def test_the_same_key_is_played_once_and_answered_as_at_first(client, name):
    create(client, name)
    first = post(client, name, "observe", ROUND, **{"Idempotency-Key": "order-1"})
    second = post(client, name, "observe", ROUND | {"key": "order-2"})
    assert post(client, name, "observe", ROUND, **{"Idempotency-Key": "order-1"}) == first
    assert post(client, name, "observe", ROUND | {"key": "order-2"}) == second
    assert client.get(f"/v1/sessions/{name}").json()["round"] == 2
    refused = post(client, name, "observe", ROUND | {"f": 0.4, "key": "order-1"}, 409)
    assert "order-1" in refused["error"]
    assert client.get(f"/v1/sessions/{name}").json()["round"] == 2


def test_a_decision_with_a_key_is_that_of_the_round_it_was_asked_in(client, name):
    create(client, name)
    first = post(client, name, "decide", {"key": "monday"})
    assert post(client, name, "observe", ROUND)["next"] != first["x"]
    assert post(client, name, "decide", {"key": "monday"}) == first
    assert post(client, name, "decide", {}, **{"Idempotency-Key": "monday"}) == first
    assert post(client, name, "decide", {})["round"] == 1
    assert "other numbers" in post(client, name, "decide", {"key": "monday", "known": {"A": [[1.0, 0.0]], "b": [0.5]}}, 409)["error"]


@pytest.mark.parametrize("engine", ["python", "compiled"])
def test_plain_batches_are_what_single_rounds_are(client, name, engine):
    create(client, name, engine=engine)
    create(client, f"{name}-single", engine=engine)
    many = list(records(150, k=2))
    whole = post(client, name, "batch", {"events": [{"kind": "observe", **record} for record in many]})
    single = [post(client, f"{name}-single", "observe", record) for record in many]
    assert whole == {"answers": single, "refused": 0, "round": 150, "next": single[-1]["next"]}
    shown = [client.get(f"/v1/sessions/{each}/rounds?last=150").json()["rounds"] for each in (name, f"{name}-single")]
    assert shown[0] == shown[1]
    facts = client.get(f"/v1/sessions/{name}").json()
    assert (shown[0][-1]["cost"], shown[0][-1]["ccv"]) == (facts["cost"], facts["ccv"])
    ragged = {**many[0], "dg": [[1.0, 2.0], [3.0]]}
    mixed = post(client, name, "batch", {"events": [{"kind": "observe", **each} for each in (ragged, many[0])]})
    assert [sorted(each) for each in mixed["answers"]] == [["error"], ["next", "round"]]
    assert (mixed["refused"], mixed["round"]) == (1, 151)


ODD = [
    {"dg": [[1.0, 0.0], [1.0]]},
    {"dg": [[1.0, 0.0]]},
    {"g": [], "dg": []},
    {"g": [0.1], "dg": [[0.0, 1.0]]},
    {"df": [1.0, 0.0, 0.0]},
    {"df": []},
    {"g": [0.1, 1e300]},
    {"f": 1e300},
]


@pytest.mark.parametrize("engine", ["python", "compiled"])
@pytest.mark.parametrize("offset", [0.0, 0.25])
def test_a_plain_batch_is_written_down_and_refused_as_its_rounds_would_be(tmp_path, engine, offset):
    """The same bytes in the journal, the same decisions and the same sentences as rounds that are observed one by one in Python."""
    store = database.open_store(f"sqlite:///{tmp_path / 'twins.db'}")
    policy = bridle.policy("anytime", bridle.Ball(2))
    batch, alone = (open_journal(store, name, policy, options={"engine": engine}) for name in ("batch", "alone"))
    if offset:
        for core in (batch, alone):
            store.append(core.lease, core.apply(ChangeLimit(0, offset)).rows)
    plain = [{"kind": "observe", **record} for record in records(70, k=2)]
    told = [each for i, record in enumerate(plain) for each in (record, record | ODD[i // 8 % len(ODD)])[: 2 if i % 8 == 3 else 1]]
    read = reader(BatchBody)(json.dumps({"events": told}).encode())
    hosted = SimpleNamespace(rounds=[], decided=None, waiting={})
    hosted.remember = partial(Hosted.remember, hosted)
    refused: dict[int, str] = {}
    answer, outcome = commands.in_order(batch, hosted, read.events, None, refused)
    rows, answers = [], []
    for event in told:
        try:
            rows += alone.apply(Observation(event["f"], event["df"], event["g"], event["dg"])).rows
        except bridle.InputError as wrong:
            answers.append({"error": str(wrong)})
        else:
            answers.append({"round": alone.session.rounds, "next": alone.session.decide().tolist()})
    assert [*outcome.rows] == rows
    assert json.loads(commands.encode(answer))["answers"] == answers
    assert len(refused) == sum("error" in answer for answer in answers) >= 6
    assert [each.round for each in hosted.rounds] == list(range(1, alone.session.rounds + 1))
    assert hosted.rounds[-1].cost == alone.session.cost
    assert np.array_equal(hosted.rounds[-1].violations, alone.session.violations)
    for core in (batch, alone):
        core.close()
    store.close()


def test_keys_in_header_and_body_must_agree(client, name):
    create(client, name)
    assert "must be the same" in post(client, name, "observe", ROUND | {"key": "a"}, 400, **{"Idempotency-Key": "b"})["error"]
    assert post(client, name, "observe", ROUND | {"key": "a"}, **{"Idempotency-Key": "a"})["round"] == 1
    post(client, name, "observe", ROUND | {"key": "k" * 129}, 400)
    post(client, name, "observe", ROUND | {"key": ""}, 400)


def test_late_feedback_comes_in_any_order(client, name):
    create(client, name)
    twin = bridle.Session(bridle.policy("anytime", bridle.Box(-1.0, 1.0, dim=2)), most_constraints=1000)
    tickets = [post(client, name, "ask", {"key": f"ask {i}"}) for i in range(3)]
    mine = [twin.ask() for _ in range(3)]
    assert [each["x"] for each in tickets] == [each.x.tolist() for each in mine]
    assert post(client, name, "ask", {"key": "ask 1"}) == tickets[1]
    record = next(records(1))
    post(client, name, "observe", record | {"ticket": tickets[2]["ticket"]})
    twin.observe(**record, ticket=mine[2])
    half = {"f": record["f"], "df": record["df"]}
    first = post(client, name, "observe", half | {"ticket": tickets[0]["ticket"]})
    assert post(client, name, "observe", half | {"ticket": tickets[0]["ticket"]}) == first, "a ticket is an identity"
    twin.observe(**half, ticket=mine[0])
    post(client, name, "forget", {"ticket": tickets[1]["ticket"]})
    post(client, name, "forget", {"ticket": tickets[1]["ticket"]})
    twin.forget(mine[1])
    facts = client.get(f"/v1/sessions/{name}").json()
    assert (facts["round"], facts["pending"], facts["dropped"]) == (twin.rounds, twin.pending, twin.dropped)
    assert facts["x"] == twin.decide().tolist()


def test_rules_features_and_known_limits(client, name):
    box = {"kind": "box", "low": 0.0, "high": 40.0, "dim": 1}
    create(client, name, domain=box, rules=["low", "middle", "high"])
    twin = bridle.Session(bridle.policy("anytime", bridle.Box(0.0, 40.0, dim=1), rules=["low", "middle", "high"]), most_constraints=1000)
    for seed in range(20):
        rules = np.sort(np.random.default_rng(seed).uniform(0.0, 40.0, (3, 1)), axis=0)
        said, mine = rules.tolist(), rules.copy()
        if seed % 3 == 0:
            said[1], mine[1] = None, np.nan
        x = twin.decide(rules=mine)
        assert post(client, name, "decide", {"rules": said})["x"] == x.tolist()
        record = {"f": float(x[0]), "df": [1.0], "g": 20.0 - float(x[0]), "dg": [-1.0]}
        twin.observe(**record)
        assert post(client, name, "observe", record) == {"round": seed + 1, "next": None}
    weights = client.get(f"/v1/sessions/{name}/weights").json()
    assert weights == {"rules": ["low", "middle", "high"], "weights": twin.weights.tolist()}

    create(client, f"{name}-known")
    twin = bridle.Session(bridle.policy("anytime", bridle.Box(-1.0, 1.0, dim=2)), most_constraints=1000)
    known = {"A": [[1.0, 1.0]], "b": [-0.5]}
    assert post(client, f"{name}-known", "decide", {"known": known})["x"] == twin.decide(known=(known["A"], known["b"])).tolist()
    assert "known" in post(client, f"{name}-known", "decide", {"known": {"A": [[1.0, 1.0]], "b": [-9.0]}}, 422)["error"]

    create(client, f"{name}-hint", policy="optimistic")
    twin = bridle.Session(bridle.policy("optimistic", bridle.Box(-1.0, 1.0, dim=2)), most_constraints=1000)
    for record in ({"f": 0.3, "df": [1.0, 0.0]}, {"f": 0.1, "df": [0.0, -1.0]}):
        post(client, f"{name}-hint", "observe", record)
        twin.observe(**record)
    for hint in ({"df": [0.5, -2.0]}, {"df": [1.0, 1.0], "g": [0.5], "dg": [[1.0, 0.0]], "x": [0.1, 0.2]}):
        assert post(client, f"{name}-hint", "decide", {"hint": hint})["x"] == twin.decide(hint=hint).tolist()
    assert "takes no predictions" in post(client, f"{name}-known", "decide", {"hint": {"df": [1.0, 0.0]}}, 422)["error"]

    create(client, f"{name}-features", policy="adagrad", features=2)
    twin = bridle.Session(bridle.policy("adagrad", bridle.Box(-1.0, 1.0, dim=2), features=2), most_constraints=1000)
    assert post(client, f"{name}-features", "decide", {"features": [0.5, 2.0]})["x"] == twin.decide(features=[0.5, 2.0]).tolist()
    for missing in ({}, {"features": [1.0]}):
        post(client, f"{name}-features", "decide", missing, 200 if not missing else 422)


REFUSED = [
    {"f": "x", "df": [1.0, 0.0]},
    {"f": 1.0},
    {"f": 1.0, "df": [1.0]},
    {"f": 1.0, "df": [1.0, "2"]},
    {"f": 1.0, "df": [1.0, True]},
    {"f": 1.0, "df": [1.0, None]},
    {"f": True, "df": [1.0, 0.0]},
    {"f": 1e300, "df": [1.0, 0.0]},
    {"f": 1.0, "df": [[1.0], [0.0]]},
    {"f": 1.0, "df": [1.0, 0.0], "g": [1.0]},
    {"f": 1.0, "df": [1.0, 0.0], "g": [1.0], "dg": [[1.0, 0.0], [1.0, 0.0]]},
    {"f": 1.0, "df": [1.0, 0.0], "g": [[1.0]], "dg": [[1.0, 0.0]]},
    {"f": 1.0, "df": [1.0, 0.0], "modulus": -1.0},
    {"f": 1.0, "df": [1.0, 0.0], "ticket": 12345},
    {"f": 1.0, "df": [1.0, 0.0], "played": [5.0, 5.0]},
    {"f": 1.0, "df": {"a": 1}},
    {"f": 1.0, "df": [], "g": []},
    {"f": 123456789012345678901234567890, "df": [1.0, 0.0], "g": 1},
]


@pytest.mark.parametrize("record", REFUSED, ids=range(len(REFUSED)))
def test_a_bad_record_is_refused_in_the_words_of_python_and_changes_nothing(client, name, record):
    create(client, name)
    post(client, name, "observe", ROUND)
    twin = bridle.Session(bridle.policy("anytime", bridle.Box(-1.0, 1.0, dim=2)), most_constraints=1000)
    twin.observe(**ROUND)
    before = state_of(client, name)
    with pytest.raises(InputError) as wrong:
        twin.observe(**record)
    assert post(client, name, "observe", record, 422)["error"] == str(wrong.value)
    assert state_of(client, name) == before
    kept = client.get(f"/v1/sessions/{name}/quarantine").json()
    assert kept["count"] == 1
    assert kept["quarantine"][0]["reason"] == str(wrong.value)
    assert json.loads(kept["quarantine"][0]["request"]) == record
    assert client.get("/v1/quarantine").json()["counts"][name] == 1


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"f": NaN}', b'{"f": 1e999}', b'{"g": 1} x', b'{"no": 1}', b"[" * 99_999, b'{"partial": 1}'],
    ids=range(11),
)  # fmt: skip
def test_what_is_no_json_of_the_right_form_is_400_and_changes_nothing(client, name, body):
    create(client, name)
    before = state_of(client, name)
    answer = client.post(f"/v1/sessions/{name}/observe", content=body)
    assert answer.status_code == 400
    assert answer.json()["request"] == answer.headers["x-request-id"]
    assert state_of(client, name) == before
    assert client.get(f"/v1/sessions/{name}/quarantine").json()["count"] == 1


def test_a_batch_is_played_as_if_its_events_came_alone(client, name):
    create(client, name)
    create(client, f"{name}-twin")
    found = list(records(30))
    events = [{"kind": "observe", **record} for record in found]
    events.insert(7, {"kind": "observe", "f": 1.0})
    events.insert(20, {"kind": "decide"})
    events.append({"kind": "ask"})
    answer = post(client, name, "batch", {"events": events, "key": "batch-1"})
    alone = [post(client, f"{name}-twin", "observe", record) for record in found]
    kept = [each for each in answer["answers"] if "next" in each]
    assert kept == alone
    assert answer["refused"] == 1
    assert "df must be given" in answer["answers"][7]["error"]
    assert (answer["round"], len(answer["answers"])) == (30, 33)
    assert client.get(f"/v1/sessions/{name}/quarantine").json()["count"] == 1
    again = post(client, name, "batch", {"events": events, "key": "batch-1"})
    assert [each for each in again["answers"] if "next" in each] == alone
    assert again["answers"][-1] == answer["answers"][-1]
    assert client.get(f"/v1/sessions/{name}").json()["round"] == 30


@pytest.mark.parametrize("rules", [None, 2])
def test_a_batch_that_comes_again_is_answered_as_at_first(client, name, rules):
    create(client, name, **({} if rules is None else {"rules": rules}))
    said = {} if rules is None else {"rules": [[0.5, 0.0], [0.0, 0.5]]}
    round = [{"kind": "decide", **said}, {"kind": "observe", **ROUND}]
    events = {"events": [*round, {"kind": "ask", **said}, *round], "key": "order 1"}
    first = client.post(f"/v1/sessions/{name}/batch", json=events).json()
    assert first["refused"] == 0
    before = state_of(client, name)
    assert client.post(f"/v1/sessions/{name}/batch", json=events).json() == first
    assert state_of(client, name) == before
    if rules is not None:  # what was said before is not said of the next round
        assert client.post(f"/v1/sessions/{name}/observe", json=ROUND).status_code == 422


def test_a_payment_that_comes_again_is_answered_as_at_first(client, name):
    create(client, name, gates={"march": {"budget": 10.0}, "ads": {"budget": 10.0, "rounds": 50}})
    for gate in ("march", "ads"):
        first = [
            client.post(f"/v1/sessions/{name}/pay", json={"gate": gate, "amount": amount, "key": f"{gate} {amount}"}).json()
            for amount in (1.0, 2.0)
        ]
        again = client.post(f"/v1/sessions/{name}/pay", json={"gate": gate, "amount": 1.0, "key": f"{gate} 1.0"}).json()
        assert again == first[0] != first[1]


@pytest.mark.parametrize("let_go", [False, True], ids=["at-once", "opened-again"])
def test_changes_and_rounds_given_up_that_come_again_are_answered_as_at_first(client, name, let_go):
    create(client, name, names=["latency"], gates={"march": {"budget": 10.0}})
    asked = [
        ("limits", {"limit": "latency", "offset": 0.5, "key": "tighter"}),
        ("budget", {"gate": "march", "budget": 12.0, "key": "more"}),
        ("forget", {"ticket": post(client, name, "ask", {})["ticket"]}),
    ]
    first = [post(client, name, *each) for each in asked]
    post(client, name, "decide", {})
    post(client, name, "observe", ROUND | {"pay": {"march": 1.0}})
    post(client, name, "limits", {"limit": "latency", "offset": 0.25, "key": "looser"})
    if let_go:
        client.delete(f"/v1/sessions/{name}").raise_for_status()
    before = state_of(client, name)
    assert [post(client, name, *each) for each in asked] == first
    assert first[1]["left"] == 12.0
    assert [first[0]["round"], first[2]["round"]] == [0, 0]
    assert state_of(client, name) == before
    assert before["facts"]["round"] == 1
    assert "was used before" in post(client, name, "limits", {"limit": "latency", "offset": 9.0, "key": "tighter"}, 409)["error"]
    post(client, name, "budget", {"gate": "march", "budget": 12.0, "key": "tighter"}, 409)
    notes = [each["what"] for each in client.get("/v1/audit").json()["audit"] if each["session"] == name]
    assert sum("asked again" in note for note in notes) == 2
    post(client, name, "decide", {})  # 0.25 still holds
    violated = client.get(f"/v1/sessions/{name}").json()["violations"][0]
    post(client, name, "observe", ROUND)
    assert client.get(f"/v1/sessions/{name}").json()["violations"] == [pytest.approx(violated + ROUND["g"][0] + 0.25)]


@pytest.mark.parametrize("last", ["observe", "decide"])
def test_a_batch_that_comes_again_ends_as_it_did(client, name, last):
    create(client, name, policy="optimistic")
    said = {"decide": {"kind": "decide", "hint": {"df": [0.1, 0.2]}}, "observe": {"kind": "observe", **ROUND}}
    body = {"events": [said["observe"], said[last]], "key": "both"}
    first = post(client, name, "batch", body)
    for t in range(3):
        post(client, name, "observe", ROUND | {"df": [0.1 * t, -1.0]})
    assert post(client, name, "batch", body) == first
    assert first["next"] is not None


@pytest.mark.parametrize("let_go", [False, True], ids=["at-once", "opened-again"])
def test_feedback_that_changes_a_decision_that_was_said_of_is_taken(client, name, let_go):
    create(client, name)
    post(client, name, "observe", ROUND)
    first, second = (post(client, name, "ask", {})["ticket"] for _ in range(2))
    known = {"known": {"A": [[1.0, 0.0]], "b": [0.2]}}
    post(client, name, "decide", known)
    told = [post(client, name, "observe", ROUND | {"ticket": first}) for _ in range(2)]
    assert told == [{"round": 2, "next": None}] * 2  # the copy that played it plays next, and was told of no limit
    if let_go:
        client.delete(f"/v1/sessions/{name}").raise_for_status()
    assert client.get(f"/v1/sessions/{name}").json()["x"] is None
    assert "must be given again" in post(client, name, "decide", {}, 422)["error"]
    assert post(client, name, "forget", {"ticket": second}) == {"round": 2, "next": None}
    assert post(client, name, "decide", known)["x"][0] <= 0.2 + 1e-9
    assert post(client, name, "observe", ROUND)["round"] == 3


def test_an_empty_batch_is_answered(client, name):
    create(client, name)
    assert post(client, name, "batch", {"events": []}) == {"answers": [], "refused": 0, "round": 0, "next": [0.0, 0.0]}


def test_budgets_are_paid_once_and_never_overspent(client, name):
    create(client, name, gates={"march": {"budget": 1.0}, "ads": {"budget": 100.0, "rounds": 1000}})
    assert post(client, name, "pay", {"gate": "march", "amount": 0.7, "key": "invoice-1"}) == {"counted": 0.7, "left": pytest.approx(0.3)}
    assert post(client, name, "pay", {"gate": "march", "amount": 0.7, "key": "invoice-1"})["counted"] == 0.7
    assert "what is left of the budget" in post(client, name, "pay", {"gate": "march", "amount": 0.7}, 422)["error"]
    post(client, name, "pay", {"gate": "april", "amount": 0.7}, 404)
    assert post(client, name, "budget", {"gate": "march", "budget": 2.0})["left"] == pytest.approx(1.3)
    pacer = bridle.Pacer(100.0, 1000)
    bid = post(client, name, "bid", {"gate": "ads", "value": 0.6})
    assert bid["bid"] == pacer.bid(0.6)
    paid = post(client, name, "pay", {"gate": "ads", "amount": 0.05})
    pacer.pay(0.05)
    assert (paid["left"], paid["price"]) == (pacer.left, pacer.price)
    post(client, name, "bid", {"gate": "march", "value": 0.6}, 422)
    gates = client.get(f"/v1/sessions/{name}").json()["gates"]
    assert (gates["march"]["kind"], gates["ads"]["kind"], gates["ads"]["played"]) == ("gate", "pacer", 1)


def test_a_payment_and_its_observation_happen_together_or_not_at_all(client, name):
    create(client, name, gates={"march": {"budget": 1.0}})
    assert post(client, name, "observe", ROUND | {"pay": {"march": 0.4}})["round"] == 1
    before = state_of(client, name)
    post(client, name, "observe", ROUND | {"pay": {"march": 0.7}}, 422)
    post(client, name, "observe", {"f": 1.0, "pay": {"march": 0.1}}, 422)
    assert state_of(client, name) == before
    assert before["facts"]["gates"]["march"]["left"] == pytest.approx(0.6)


def test_a_limit_that_is_changed_holds_from_then_on_and_is_in_the_audit(client, name):
    create(client, name, names=["latency"])
    post(client, name, "limits", {"limit": "latency", "offset": 0.5})
    post(client, name, "observe", ROUND)
    assert client.get(f"/v1/sessions/{name}").json()["violations"] == [pytest.approx(0.6)]
    post(client, name, "limits", {"limit": "price", "offset": 0.5}, 422)
    post(client, name, "limits", {}, 422)
    what = [each["what"] for each in client.get("/v1/audit").json()["audit"] if each["session"] == name]
    assert len(what) == 2
    assert what[0].startswith("changed limit latency")
    assert what[1].startswith("made it")


def test_rates_and_prices(client, name):
    create(client, name, policy="rate", parameters={"at_most": 0.05, "safe": [1.0, 1.0]})
    post(client, name, "observe", ROUND)
    assert client.get(f"/v1/sessions/{name}/rates").json()["rates"][0]["at_most"] == 0.05
    create(client, f"{name}-soft", policy="soft", names=["latency"])
    post(client, f"{name}-soft", "observe", ROUND)
    found = client.get(f"/v1/sessions/{name}-soft/prices").json()
    assert found["names"] == ["latency"]
    assert found["prices"][0] >= 0.0
    assert client.get(f"/v1/sessions/{name}/prices").status_code == 422


def test_making_a_session_again_is_no_mistake_unless_it_is_another(client, name):
    body = {"name": name, **ANYTIME, "names": ["a"], "gates": {"march": {"budget": 5.0}}}
    assert client.post("/v1/sessions", json=body).status_code == 201
    post(client, name, "observe", ROUND)
    assert client.post("/v1/sessions", json=body).status_code == 200
    assert client.get(f"/v1/sessions/{name}").json()["round"] == 1
    for more in ({"policy": "soft"}, {"names": ["b"]}, {"domain": BOX | {"high": 2.0}}, {"gates": {"march": {"budget": 6.0}}}):
        answer = client.post("/v1/sessions", json=body | more)
        assert answer.status_code == 409
        assert "made from something else" in answer.json()["error"]
    assert post(client, name, "observe", ROUND)["round"] == 2


def test_a_session_that_was_let_go_opens_again_where_it_was(client, name):
    create(client, name)
    post(client, name, "observe", ROUND)
    before = state_of(client, name)
    assert client.delete(f"/v1/sessions/{name}").json() == {"name": name}
    listed = {each["name"]: each for each in client.get("/v1/sessions").json()["sessions"]}
    assert listed[name] == {"name": name, "owner": None}
    assert state_of(client, name) == before


def test_what_is_not_there_is_404(client):
    for path in ("/v1/sessions/none", "/v1/sessions/none/report", "/v1/none", "/v1/sessions/%2e%2e/report", "/v1/sessions/a%00b"):
        assert client.get(path).status_code == 404
    assert client.post("/v1/sessions/none/observe", json=ROUND).status_code == 404
    assert client.put("/v1/sessions", json={}).status_code == 405


def test_the_last_rounds_can_be_seen(client, name):
    create(client, name)
    found = list(records(5))
    decided = [[0.0, 0.0]]
    for record in found:
        decided.append(post(client, name, "observe", record)["next"])
    shown = client.get(f"/v1/sessions/{name}/rounds?last=3").json()["rounds"]
    assert [(each["round"], each["x"], each["f"], each["g"]) for each in shown] == [
        (i + 1, decided[i], found[i]["f"], found[i]["g"]) for i in (2, 3, 4)
    ]
    assert shown[-1]["cost"] == pytest.approx(sum(record["f"] for record in found))
    assert client.get(f"/v1/sessions/{name}/rounds?last=x").status_code == 400
    assert client.get(f"/v1/sessions/{name}/rounds?last=501").status_code == 400


def test_metrics_count_what_happened(client, name):
    create(client, name, policy="soft", names=["latency"])
    for record in records(70):
        post(client, name, "observe", record | {"g": [-0.1]})
    post(client, name, "ask", {})
    post(client, name, "observe", {"f": 1.0}, 422)
    text = client.get("/metrics").text
    facts = client.get(f"/v1/sessions/{name}").json()
    lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert float(lines[f'bridle_rounds_total{{session="{name}"}}']) == 70
    assert float(lines[f'bridle_pending{{session="{name}"}}']) == 1
    assert float(lines[f'bridle_quarantined_total{{session="{name}"}}']) == 1
    assert float(lines[f'bridle_violation{{limit="latency",session="{name}"}}']) == pytest.approx(facts["violations"][0])
    assert f'bridle_price{{limit="latency",session="{name}"}}' in lines
    assert f'bridle_certified_regret{{session="{name}"}}' in lines
    assert float(lines['bridle_requests_total{route="/v1/sessions/{name}/observe",status="422"}']) >= 1
    assert float(lines['bridle_request_seconds_count{route="/v1/sessions/{name}/observe"}']) >= 71
    assert float(lines["bridle_commit_events_sum"]) >= 71


def test_sessions_of_the_configuration_are_there_when_the_server_is_ready(tmp_path):
    body = {"policy": "anytime", "domain": BOX, "names": ["latency"]}
    sessions = {"shop": body, "broken": {"policy": "none", "domain": BOX}}
    with serving(f"sqlite:///{tmp_path}/run.db", sessions=sessions) as server, server.client() as client:
        assert post(client, "shop", "observe", ROUND)["round"] == 1
        assert client.get("/v1/sessions/broken").status_code == 404
    with serving(f"sqlite:///{tmp_path}/run.db", sessions={"shop": body}) as server, server.client() as client:
        assert post(client, "shop", "observe", ROUND)["round"] == 2
