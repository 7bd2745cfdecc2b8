"""Policies from files and modules of a user's own: found, named, loaded again when edited, and refused in one line where they are none."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import bridle
from bridle import cli, policies
from bridle.checks import check_policy
from bridle.core import InputError
from bridle.policies import own, registry
from helpers.own_policy_files import FUNCTION, ONE, SMALL, TWO


@pytest.fixture(autouse=True)
def nothing_stays_known(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "_LOADED", {})
    monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))
    monkeypatch.chdir(tmp_path)


def written(text: str, name: str = "mine.py") -> Path:
    path = Path(name)
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(text)
    return path


def failure(capsys, *words: str) -> str:
    with pytest.raises(SystemExit) as stop:
        cli.main(list(words))
    assert stop.value.code == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    (line,) = shown.err.splitlines()
    return line.removeprefix("bridle: ")


TYPED = [
    ("./mine.py", ("./mine.py", None, ""), True),
    ("./mine.py:shy", ("./mine.py", "shy", ""), True),
    ("./mine.py:step=0.1", ("./mine.py", None, "step=0.1"), True),
    ("./mine.py:shy:step=0.1:price=2", ("./mine.py", "shy", "step=0.1:price=2"), True),
    ("C:\\some where\\mine.py:shy", ("C:\\some where\\mine.py", "shy", ""), True),
    ("/a.b/my.pyx/mine.py", ("/a.b/my.pyx/mine.py", None, ""), True),
    ("rivals.greedy:shy:step=1", ("rivals.greedy", "shy", "step=1"), True),
    ("ogd", ("ogd", None, ""), False),
    ("ogd:step=0.1", ("ogd", None, "step=0.1"), False),
    ("ogd:shy", ("ogd", "shy", ""), False),  # registered names go first, so that this is a complaint about a setting
    ("nobody", ("nobody", None, ""), False),
]


@pytest.mark.parametrize(("text", "parts", "mine"), TYPED)
def test_what_is_typed_is_taken_apart_in_one_way(text, parts, mine):
    typed = own.split(text)
    assert (tuple(typed), typed.own) == (parts, mine)


def test_a_file_gives_its_policies_by_name():
    written(TWO)
    assert [policy.name for policy in own.load("./mine.py")] == ["shy", "bold"]
    assert [policy.name for policy in own.load("./mine.py:bold")] == ["bold"]
    assert [policy.name for policy in own.load("./mine.py:ENTRY")] == ["shy"]  # also by its variable
    assert [policy.name for policy in own.load("mine:shy")] == ["shy"]  # a module of the current folder; an entry's function is the entry
    assert policies.entry("shy").title == "a shy one"
    with pytest.raises(InputError, match=r"defines several policies \(shy, bold\): name one, as in ./mine.py:shy"):
        own.load_one("./mine.py")
    assert not {"shy", "bold"} & set(policies.names())  # they are known, and not listed


def test_a_function_alone_is_a_policy_too():
    written(FUNCTION)
    (mine,) = own.load("./mine.py")
    assert mine.name == "mine"
    assert policies.entry("mine").title == "Steps with a price"
    assert {p.name: p.help for p in policies.parameters("mine")}["price"] == "What a unit of violation costs"
    (mine,) = own.load("./mine.py:bold")
    assert mine.name == "bold"


def test_a_module_of_a_package_finds_its_neighbours(monkeypatch):
    written("PRICE = 7.0\n", "rivals/prices.py")
    written("", "rivals/__init__.py")
    written(f"from .prices import PRICE\n{SMALL}\ndef dear(domain):\n    return shy(domain, price=PRICE)\n", "rivals/greedy.py")
    own.load("rivals.greedy:dear")
    assert policies.policy("dear", bridle.Ball(2)).record.price == 7.0
    assert str(Path.cwd()) not in sys.path
    for name in ("rivals", "rivals.prices"):
        monkeypatch.delitem(sys.modules, name)


def test_an_edited_file_is_another_policy():
    path = written(ONE)
    (before,) = own.load("./mine.py")
    first = policies.entry("shy")
    assert own.load("./mine.py")[0] == before
    assert policies.entry("shy") is first  # of one text there is one entry, and one record type to compile
    path.write_text(ONE.replace("price=5.0", "price=9.0"))
    (after,) = own.load("./mine.py")
    assert after.hash != before.hash
    assert policies.policy("shy", bridle.Ball(2)).record.price == 9.0
    before.use()  # a worker may be sent either
    assert policies.policy("shy", bridle.Ball(2)).record.price == 5.0


def test_a_file_may_register_its_policy_itself():
    path = written(ONE + "import bridle\nbridle.register(ENTRY)\n")
    own.load("./mine.py")
    path.write_text(path.read_text().replace("price=5.0", "price=9.0"))
    own.load("./mine.py")
    assert policies.policy("shy", bridle.Ball(2)).record.price == 9.0
    with pytest.raises(InputError, match="a policy called 'ogd' is registered already"):
        bridle.register(policies.entry("ogd"))
    other = written(path.read_text(), "other.py")
    with pytest.raises(InputError, match=f"{other}.*a policy called 'shy' is registered already"):
        own.load("./other.py")


REFUSED = [
    ("./nowhere.py", None, "there is no file ./nowhere.py"),
    ("./mine.py", "def f(:\n", "./mine.py, line 1: SyntaxError: invalid syntax"),
    ("./mine.py", "import bridle\nx = 1 / 0\n", "./mine.py, line 2: ZeroDivisionError: division by zero"),
    ("./mine.py", "raise SystemExit('no')\n", "./mine.py, line 1: SystemExit: no"),
    ("./mine.py", "x = 1\n", "./mine.py defines no policy: it needs a bridle.policies.Entry, or a function policy(domain) that makes one"),
    ("./mine.py:timid", TWO, "./mine.py defines no policy 'timid'; it has shy, bold"),
    ("./mine.py", ONE.replace('"shy"', '"anytime"'), "./mine.py: a policy called 'anytime' is registered already: give yours another name"),
    ("./mine.py", ONE.replace('"shy"', '"a,b"'), "./mine.py: a policy's name has letters, digits and . _ + - in it, and begins with one"),
    ("./mine.py", ONE.replace("shy, ", "3, "), "./mine.py: the factory of policy shy must be a function, not 3"),
    ("./mine.py", SMALL + "def policy():\n    pass\n", "./mine.py: the first parameter of mine must be the domain"),
    ("nowhere:shy", None, "unknown policy 'nowhere:shy': no policy is registered as nowhere, and there is no module of that name"),
    ("json.nowhere:shy", None, "unknown policy 'json.nowhere:shy': no policy is registered as json.nowhere, and there is no module of"),
    ("sys:path", None, "sys:path: the module sys is not a Python file"),
    ("./mine.py", SMALL + "def policy(domain):\n    return domain.radius\n", "mine.py, line 40: policy: AttributeError:"),
    ("./mine.py", SMALL + "def policy(domain):\n    return [1.0]\n", "policy mine: a policy must be a NamedTuple, not [1.0]"),
    ("./mine.py", ONE.replace("def decide", "def decline"), "policy shy: a policy must have the method `decide`"),
    ("./mine.py", ONE.replace("self.domain.project", ""), "policy shy: a decision must be in the domain, and"),
    ("./mine.py", ONE.replace("dg = worst(", "dg = best("), "policy shy: mine.py, line 22: NameError: name 'best' is not defined"),
    ("./mine.py:steps=3", ONE, "unknown parameter of policy shy 'steps'; did you mean step?"),
    ("./mine.py:", ONE, "a policy's settings follow its name as in ./mine.py:step=0.1, not './mine.py:'"),
]


@pytest.mark.parametrize(("typed", "text", "message"), REFUSED)
def test_what_is_no_policy_is_refused_before_anything_is_played(capsys, typed, text, message):
    if text is not None:
        written(text)
    said = failure(
        capsys, "compare", "capacity:data=nothing" if text is None else "minimax:domain=box", "--policies", f"ogd,{typed}", "--out", "o"
    )
    assert said.startswith(message)
    assert not Path("o").exists()


def test_two_files_cannot_give_one_name(capsys):
    written(ONE)
    written(ONE.replace("price=5.0", "price=9.0"), "other/mine.py")
    said = failure(capsys, "compare", "fixed", "--policies", "./mine.py,other/mine.py", "--out", "o")
    assert (
        said == f"{Path('mine.py').resolve()} and {Path('other/mine.py').resolve()} both define a policy shy: give one of them another name"
    )


def test_one_game_of_a_file_and_what_is_told_of_it(capsys):
    written(TWO)
    cli.app(["play", "fixed", "--policy", "./mine.py:shy:price=2.5", "--horizon", "50", "--json", "-"], standalone_mode=False)
    facts = json.loads(capsys.readouterr().out)
    assert facts["policy"] == "shy"
    problem = bridle.problem("fixed", 50)
    again = bridle.play(bridle.policy_for("shy", problem, price=2.5), problem)
    assert facts["ccv"] == bridle.ccv(again) != bridle.ccv(bridle.play(bridle.policy_for("shy", problem), problem))
    cli.app(["policies", "./mine.py:shy", "--json", "-"], standalone_mode=False)
    shown = json.loads(capsys.readouterr().out)
    assert (shown["name"], shown["title"]) == ("shy", "a shy one")
    assert [p["name"] for p in shown["parameters"]] == ["step", "price"]
    cli.app(["policies", "./mine.py", "--json", "-"], standalone_mode=False)
    assert [one["name"] for one in json.loads(capsys.readouterr().out)] == ["shy", "bold"]


def test_settings_go_with_registered_names_in_play_too(capsys):
    cli.app(["play", "fixed", "--policy", "ogd:step=0.5", "--horizon", "50", "--json", "-"], standalone_mode=False)
    problem = bridle.problem("fixed", 50)
    assert json.loads(capsys.readouterr().out)["ccv"] == bridle.ccv(bridle.play(bridle.policy_for("ogd", problem, step=0.5), problem))
    assert failure(capsys, "play", "fixed", "--policy", "ogd:steps=0.5") == "unknown parameter of policy ogd 'steps'; did you mean step?"
    written(TWO)
    assert failure(capsys, "play", "fixed", "--policy", "./mine.py").startswith("./mine.py defines several policies (shy, bold)")


LATE = ONE.replace("g, dg =", "calls.append(0); assert len(calls) < 99, 'too late'\n        g, dg =") + "calls = []\n"


def test_an_error_in_the_middle_of_a_game_names_the_line(capsys):
    written(LATE)
    said = failure(capsys, "play", "halfspaces", "--policy", "./mine.py", "--horizon", "500", "--seed", "3")
    assert said == "mine.py, line 22: AssertionError: too late"


def test_services_and_files_never_load_a_policy():
    """Only who types a path runs its code: a name that is sent or stored must be registered."""
    written(ONE + "open('ran', 'w').close()\n")
    for name in ("./mine.py", "mine:shy", str(Path("mine.py").resolve())):
        with pytest.raises(InputError, match="unknown policy"):
            bridle.policy(name, bridle.Ball(2))
    assert not Path("ran").exists()


@pytest.mark.compiles
def test_a_file_can_be_checked():
    written(ONE)
    done = check_policy("./mine.py", {"disk": bridle.Ball(2)}, constraints=[2])
    assert done[0].startswith("disk, k = 2: decisions")
    assert "engines" in done[-1]
    written(
        ONE.replace("state[0] - ", "np.random.default_rng().normal() + state[0] - ").replace(
            "from bridle import", "import numpy as np\nfrom bridle import", 1
        )
    )
    with pytest.raises(AssertionError, match="the same inputs must give the same decisions"):
        check_policy("./mine.py", {"disk": bridle.Ball(2)}, constraints=[2])


def test_a_session_plays_and_keeps_it(tmp_path):
    written(ONE)
    own.load("./mine.py")
    session = bridle.Session(bridle.policy("shy", bridle.Ball(2)))
    session.decide()
    session.observe(f=0.0, df=[1.0, 0.0], g=1.0, dg=[0.0, 1.0])
    session.save("kept.npz")
    assert np.array_equal(bridle.Session.load("kept.npz").decide(), session.decide())
