"""Which policy for whom: questions, rules in order, and the answer with its guarantee and code that runs.

Rules and questions are data. What a policy promises, assumes and needs is read from the registry, and what a class promises from its
module's docstring, so that nothing is said twice.

>>> found = advise(limit="share", known="forecast")
>>> found.use, list(found.settings)
('rate', ['at_most', 'safe', 'rules'])
>>> print(advise(strongly_convex=True).guarantee)
Regret: O(sqrt(T)), O(log T) strongly convex. Violation: O(sqrt(T log T)), squared O(log T). The bridle developers, This library 2026.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import NamedTuple, TypeAlias

from bridle import policies, validate
from bridle.core import InputError

Answer: TypeAlias = str | bool | int | None
"""One of the choices of a question; of the horizon, a number of rounds or None."""

Setting: TypeAlias = float | str | list[float] | list[str]
"""What a policy is told."""


@dataclass(frozen=True)
class Answers:
    """What the user knows; the defaults promise nothing. `horizon` is a number of rounds, or None where it is not known.

    That there are no limits can be said as `limit` or as `constraints`.
    """

    limit: str = "safety"
    known: str = "nothing"
    rules: bool = False
    moving: bool = False
    constraints: str = "changing"
    costs: bool = True
    noise: bool = False
    slater: bool = False
    strongly_convex: bool = False
    linear: bool = False
    few: bool = False
    delay: bool = False
    horizon: int | None = None


class Question(NamedTuple):
    """A question about one field of the answers: how it is put, and what each answer means in words; `horizon` takes a number."""

    name: str
    text: str
    choices: Mapping[Answer, str]


QUESTIONS = {
    question.name: question
    for question in (
        Question("limit", "How often, and how hard, does a limit bind?", {
            "safety": "limits bind in every round, and every violation counts", "average": "limits must hold on average",
            "share": "limits may be violated in a share of the rounds", "budget": "a total must never be exceeded",
            "none": "there are no limits",
        }),
        Question("known", "What is known of a round before acting?", {
            "nothing": "nothing is known before acting", "limits": "the limits are known before acting",
            "features": "features of the round are known before acting", "forecast": "there is a forecast",
        }),
        Question("rules", "Do you have rules that decide already, such as an autoscaler or last week's value?", {
            True: "there are rules already", False: "there are no rules yet",
        }),
        Question("moving", "Does the world move, so that an action that is right today is wrong some day?", {
            True: "the world moves", False: "one action is right throughout",
        }),
        Question("constraints", "Do limits change?", {
            "fixed": "limits stay the same", "changing": "limits change from round to round", "none": "there are no limits",
        }),
        Question("costs", "Is there something to gain or to pay, besides the limits?", {
            True: "there are costs", False: "there are no costs",
        }),
        Question("noise", "Are the limits' values measured with errors?", {
            True: "limits are measured with errors", False: "limits are exact",
        }),
        Question("slater", "Do you know an action that keeps every limit with room to spare?", {
            True: "an action with room to spare is known", False: "no action with room to spare is known",
        }),
        Question("strongly_convex", "Are the costs strongly convex (such as squared errors)?", {
            True: "costs are strongly convex", False: "costs need not be strongly convex",
        }),
        Question("linear", "Are the limits linear in the action?", {True: "limits are linear", False: "limits need not be linear"}),
        Question("few", "Does an action have few coordinates (ten or so at most)?", {
            True: "actions have few coordinates", False: "actions may have many coordinates",
        }),
        Question("delay", "Does feedback come late?", {True: "feedback comes late", False: "feedback comes before the next round"}),
        Question("horizon", "How many rounds will there be?", {
            True: "the number of rounds is known", False: "the number of rounds is unknown",
        }),
    )
}  # fmt: skip

FIRST = ("limit", "known", "rules", "moving")
"""The questions that are put to everybody, but for totals, which the first one decides."""


class Rule(NamedTuple):
    """Where the answers are those of `when`, `use` a registered policy with `settings`, or a class of bridle. The first that fits holds.

    `note` is what else to know.
    """

    when: Mapping[str, Answer]
    use: str
    why: str
    settings: Mapping[str, Setting] = {}
    note: str = ""


WINDOW: Mapping[str, Setting] = {"window": "auto"}
WINDOW_NOTE = (
    'window="auto" mixes memories of several lengths; give a number of rounds where you know after how many the past may be forgotten'
)
HARD_RULES = "it mixes them under limits that bind in every round, and needs no horizon and no Lipschitz constant"

RULES = (
    Rule(
        {"limit": "budget", "costs": False}, "Gate",
        "it counts what is paid, and refuses what would exceed the total before anything is spent",
    ),
    Rule(
        {"limit": "budget"}, "Pacer",
        "what an opportunity is worth is seen before it is paid for; a gate stops what would exceed the budget",
    ),
    Rule(
        {"known": "limits", "moving": True}, "anytime",
        "told the limits with known= it keeps them in every round, and what it learned of costs expires", WINDOW, note=WINDOW_NOTE,
    ),
    Rule(
        {"known": "limits", "strongly_convex": True, "rules": False}, "anytime",
        "told the limits with known= it keeps them in every round, and uses the curvature of the costs", {"modulus": 1.0},
    ),
    Rule({"known": "limits"}, "adagrad", "told the limits with known= it keeps them in every round, and its bound stays as it is"),
    Rule(
        {"limit": "share"}, "rate",
        "it keeps the share that is asked for on every stream, whatever moves", {"at_most": 0.05, "safe": [0.0, 0.0]},
        note="safe= is an action that keeps the limits whatever comes; without one the count is exact all the same, and nothing bounds it",
    ),
    Rule({"limit": "none", "rules": True}, "mlpoly", "it mixes them, each with a scale of its own, so that an absurd one does no harm"),
    Rule({"limit": "none", "known": "forecast"}, "mlpoly", "a forecast with several margins is a set of rules, and it mixes them"),
    Rule({"limit": "none", "moving": True}, "anytime", "what it learned of costs expires, so that it follows", WINDOW, note=WINDOW_NOTE),
    Rule(
        {"limit": "none", "known": "features"}, "adagrad",
        "actions become affine functions of the features; it needs no horizon and no Lipschitz constant",
    ),
    Rule(
        {"limit": "none", "strongly_convex": True}, "anytime",
        "without limits its steps are those of gradient descent for strongly convex costs", {"modulus": 1.0},
    ),
    Rule({"limit": "none"}, "adagrad", "nothing but costs: it needs no horizon and no Lipschitz constant"),
    Rule(
        {"noise": True}, "soft",
        "no policy can keep hard limits on noisy values; this one adds them up, so that errors cancel, and keeps limits on average",
        {"noise": 0.5}, note="any noise above 0 will do: it says that single values prove nothing; no other number has to be known",
    ),
    Rule(
        {"limit": "average", "costs": False}, "sinha2024-ocs",
        "with no costs to mind, it keeps the sum of every limit low over every stretch of rounds",
    ),
    Rule(
        {"limit": "average"}, "soft",
        "rounds with room to spare make up for others, so that costs can be lower than with hard limits; it needs no constants",
    ),
    Rule({"moving": True}, "anytime", "limits that were seen expire, so that it follows what is allowed now", WINDOW, note=WINDOW_NOTE),
    Rule({"rules": True}, "anytime", HARD_RULES),
    Rule({"known": "forecast"}, "anytime", f"a forecast with several margins is a set of rules: {HARD_RULES}"),
    Rule(
        {"known": "features"}, "anytime",
        "actions become affine functions of the features, under limits that bind in every round; it needs no constants",
    ),
    Rule(
        {"costs": False, "linear": True, "few": True, "horizon": True}, "steiner",
        "with no costs to mind, the middle of what the limits leave is the safest place",
        note="from three coordinates on its points are sampled, at some cost, and no number is given as a bound",
    ),
    Rule({"costs": False}, "anytime", "with no costs to mind, each violated limit is met in the next round"),
    Rule(
        {"constraints": "fixed", "slater": True, "horizon": True}, "hutchinson2025",
        "a limit that stays the same, and a safe place to begin: then it is never violated",
        note="begin at the action with room to spare, bridle.Session(policy, x1=...), unless it is the domain's centre",
    ),
    Rule(
        {"linear": True, "few": True, "strongly_convex": False}, "vaze2025",
        "it keeps every limit seen so far, which is affordable for linear ones in few coordinates",
    ),
    Rule(
        {"linear": True, "few": True, "strongly_convex": True}, "vaze2025-strong",
        "it keeps every limit seen so far, and uses the curvature of the costs",
    ),
    Rule(
        {"strongly_convex": True}, "anytime",
        "it needs no horizon and no Lipschitz constant, and uses the curvature of the costs", {"modulus": 1.0},
    ),
    Rule({}, "anytime", "it needs no horizon and no Lipschitz constant, and meets a violated limit in the next round"),
)  # fmt: skip
"""In order: what cannot be helped comes first, what is merely better later, and what needs nothing last."""


@dataclass(frozen=True)
class Advice:
    """What to use and why, what it promises and must be told, and code that runs as it stands.

    Parameters
    ----------
    use : str
        The policy, or the tool, to use.
    why : str
        The reason.
    guarantee : str
        What is proved of it.
    assumes : list of str
        What the proof takes for granted.
    needs : dict of str to str
        What it must be told, and what that means.
    settings : dict
        Parameters that are set for these answers.
    notes : list of str
        What else to know.
    snippet : str
        Python code that runs as it stands.

    Examples
    --------
    >>> import bridle
    >>> advice = bridle.advise(limit="average")
    >>> advice.use, sorted(advice.facts())[:3]
    ('soft', ['assumes', 'guarantee', 'needs'])
    """

    use: str
    why: str
    guarantee: str
    assumes: list[str]
    needs: dict[str, str]
    settings: dict[str, Setting]
    notes: list[str]
    snippet: str

    def __repr__(self) -> str:
        told = [f"  it must be told {name}: {text}" for name, text in self.needs.items()]
        return "\n".join(
            [f"Advice: use {self.use}", f"  because {self.why}", f"  {self.guarantee}", *told, "  code that runs: print(advice.snippet)"]
        )

    def facts(self) -> dict[str, object]:
        """All of it as a dictionary, for JSON.

        Returns every field under its name.
        """
        return asdict(self)


def advise(**answers: Answer) -> Advice:
    """What to use for a task, by your answers to a few questions.

    What is not answered has the answer that assumes least. ``bridle advise`` asks the questions one by one.

    Returns what to use, why, what is proved of it, and code that runs.

    Parameters
    ----------
    **answers : str, bool or int
        By name. `limit`: "safety" (default), "average", "share", "budget" or "none", how often and how hard a limit binds. `known`:
        "nothing"
        (default), "limits", "features" or "forecast", what is known before acting. `constraints`: "fixed", "changing" (default) or "none".
        `horizon`: how many rounds there will be, where that is known. Yes or no: `rules` (do rules decide already), `moving` (does the
        world
        move), `costs` (is there something to gain or pay), `noise` (are limits measured with errors), `slater` (is an action known that
        keeps
        every limit with room to spare), `strongly_convex`, `linear`, `few` (coordinates), `delay` (does feedback come late).

    Examples
    --------
    >>> advise(limit="average", costs=False).use
    'sinha2024-ocs'
    >>> advise(moving=True).snippet.splitlines()[4].startswith('policy = bridle.policy("anytime", domain, window=')
    True
    >>> advise(constraints="none", costs=False)
    Traceback (most recent call last):
    bridle.core.InputError: costs must be true where there are no limits: there is nothing to decide for
    """
    all_answers = check_answers(**answers)
    rule = _rule_for(seen_by_rules(asdict(all_answers)))
    if rule.use not in policies.names() and rule.use[:1].isupper():
        return _tool(rule, all_answers)
    return _policy(rule, all_answers)


def check_answers(**values: Answer) -> Answers:
    """The answers, if they are among the choices and do not contradict each other."""
    names = [field.name for field in fields(Answers)]
    for name, value in values.items():
        validate.one_of("answer", name, names)
        if name == "horizon":
            values["horizon"] = None if value is None else validate.whole("horizon", value)
        else:
            values[name] = check_choice(name, value)
    answers = Answers(**values)  # type: ignore[arg-type]
    if "none" in (answers.limit, answers.constraints):
        answers = replace(answers, limit="none", constraints="none")
    if not answers.costs and answers.limit == "none":
        raise InputError("costs must be true where there are no limits: there is nothing to decide for")
    if not answers.costs and answers.known == "limits" and answers.limit != "budget":
        raise InputError("costs must be true where known is 'limits': what is known is kept, and there is nothing else to decide for")
    return answers


def check_choice(name: str, value: Answer) -> Answer:
    """The answer to a question, if it is one of the choices."""
    choices = QUESTIONS[name].choices
    if not any(value is choice or (isinstance(value, str) and value == choice) for choice in choices):
        raise validate.refused(f"{name} must be one of {', '.join(str(choice).lower() for choice in choices)}", value)
    return value


def complete_answers(**answers: Answer) -> dict[str, Answer]:
    """These answers, and the defaults of the others."""
    return asdict(check_answers(**answers))


def seen_by_rules(answers: Mapping[str, Answer]) -> dict[str, Answer]:
    """Answers as the rules see them: of the horizon, whether it is known; that there are no limits, under one name."""
    seen = dict(answers)
    if "horizon" in seen:
        seen["horizon"] = seen["horizon"] is not None
    return seen | ({"limit": "none"} if seen.get("constraints") == "none" else {})


def _rule_for(seen: Mapping[str, Answer]) -> Rule:
    return next(rule for rule in RULES if all(seen.get(name) == value for name, value in rule.when.items()))


def next_question(answers: Mapping[str, Answer]) -> str | None:
    """The next question, after these answers: those that are put to everybody, then what decides between rules; None where one is certain.

    >>> next_question({}), next_question({"limit": "budget"}), next_question({"limit": "share"})
    ('limit', 'costs', 'known')
    """
    seen = seen_by_rules(answers)
    for name in FIRST[: 1 if seen.get("limit") == "budget" else None]:
        if name not in seen:
            return name
    for rule in RULES:
        if all(seen.get(name, value) == value for name, value in rule.when.items()):
            missing = [name for name in rule.when if name not in seen]
            return missing[0] if missing else None
    return None


def further_questions(answers: Mapping[str, Answer]) -> list[str]:
    """The questions left once one rule is certain: late feedback, and the horizon where the policy can be told it."""
    rule = _rule_for(seen_by_rules(answers))
    if rule.use not in policies.names():
        return []
    return ["delay", *["horizon"] * (_uses_horizon(rule.use) and "horizon" not in answers)]


def _uses_horizon(policy: str) -> bool:
    """Whether the policy can be told the horizon by itself, and not only together with other constants."""
    alone = all(variant.parameter != "horizon" for variant in policies.entry(policy).variants)
    return alone and any(p.name == "horizon" for p in policies.parameters(policy))


EXAMPLE: Mapping[str, int | float] = {"horizon": 10_000, "lipschitz": 2.0, "bound": 1.3, "modulus": 1.0, "slater": 0.3}
"""What is true of the world in the snippets, for the parameters that a policy must be told."""

MOVING_NOTE = "what is promised is in comparison with one action that keeps every limit; where there is none, nothing is promised"
LATE_NOTE = "feedback comes late: each round has a ticket, and copies of the policy wait for theirs; the bounds of the copies add up"
POOL_NOTE = "feedback comes late: each round has a ticket, and one level is fed with whatever arrives; more violations may come before it"
RULES_NOTE = "what is promised is in comparison with the best fixed mixture of the rules that keeps the limits; one of them should be safe"
FOLLOW_NOTE = "in a world that moves, give it rules that follow by themselves, such as means of the last rounds: then their mixture does"
FEATURES_NOTE = "what is promised is in comparison with the best fixed affine function of the features; what leaves the domain is charged"
BOTH_NOTE = "rules and features do not go together: a function of the features can be one of the rules"
KEPT_NOTE = "what is known is kept in every round; limits that need not be, reveal after acting instead, and ask again without known"


def _policy(rule: Rule, answers: Answers) -> Advice:
    item = policies.entry(rule.use).with_settings(rule.settings)
    parameters = {p.name: p for p in policies.parameters(rule.use)}
    if rule.settings.keys() - parameters.keys():
        raise InputError(f"policy {rule.use} has no parameter {min(rule.settings.keys() - parameters.keys())}")
    told = {name: _safe_action(answers) if name == "safe" else value for name, value in rule.settings.items()} | _said(answers)
    settings = {name: EXAMPLE[name] for name, p in parameters.items() if p.required} | told
    if _uses_horizon(rule.use) and answers.horizon is not None:
        settings["horizon"] = answers.horizon
    orders = [f"Regret: {_in_words(item.regret)}."] * answers.costs
    orders += [f"Violation: {_in_words(item.violation)}."] * (answers.limit != "none")
    if item.regret == item.violation == "-":  # what is proved is no order of growth
        orders = [_proved(item.factory)]
    guarantee = " ".join([*orders, f"{item.reference}."])
    helps = {p.name: p.help for p in [*parameters.values(), *policies.shared_parameters(rule.use)]}
    needs = {name: helps[name] for name in settings}
    notes = [rule.note] * bool(rule.note) + _notes(rule, answers, settings)
    return Advice(rule.use, rule.why, guarantee, item.assumptions(), needs, told, notes, _snippet(rule, answers, settings))


def _notes(rule: Rule, answers: Answers, settings: Mapping[str, Setting]) -> list[str]:
    """What else to know, for these answers."""
    fixed = answers.moving and "window" not in settings and rule.use != "rate"
    notes = {
        RULES_NOTE: "rules" in settings and rule.use != "rate",
        FOLLOW_NOTE: "rules" in settings and fixed,
        FEATURES_NOTE: "features" in settings,
        BOTH_NOTE: "rules" in settings and answers.known == "features",
        KEPT_NOTE: answers.known == "limits" and answers.limit in ("share", "average"),
        LATE_NOTE: answers.delay and rule.use != "rate",
        POOL_NOTE: answers.delay and rule.use == "rate",
        MOVING_NOTE: fixed and answers.limit != "none" and "rules" not in settings,
        "the number of rounds is unknown: give the most there can be, or see bridle.Doubling": (
            "horizon" in settings and answers.horizon is None
        ),
    }
    return [note for note, holds in notes.items() if holds]


def _in_words(order: str) -> str:
    return "nothing is promised" if order == "-" else order


TOOL_SNIPPETS = {
    "Gate": """import bridle
import numpy as np

rng = np.random.default_rng(0)  # the world
gate = bridle.Gate(budget={budget})
for t in range({played}):
    amount = rng.uniform()  # see what acting would cost now
    if gate.allows(amount):
        gate.pay(amount)  # act, and pay
print(f"spent {{gate.spent:.2f}} of {{gate.budget:.2f}}")
""",
    "Pacer": """import bridle
import numpy as np

rng = np.random.default_rng(0)  # the world
pacer = bridle.Pacer(budget={budget}, rounds={rounds})
for t in range({played}):
    values, spends = rng.uniform(size=(2, 3))  # see the offers of this round: what each is worth, and costs
    taken = pacer.choose(values, spends)  # the one to take, or None
    pacer.pay(0.0 if taken is None else spends[taken])
print(f"spent {{pacer.spent:.2f}} of {{pacer.budget:.2f}}")
""",
}
"""How each class is used."""


def _tool(rule: Rule, answers: Answers) -> Advice:
    """What is said of a class: the guarantee in its module's docstring, else the first paragraph of its own, and its parameters."""
    import bridle  # here, because bridle exports this module's functions

    tool = getattr(bridle, rule.use, None)
    if tool is None:
        raise validate.unknown("class of bridle", rule.use, bridle.__all__)
    proved = _proved(tool)
    guarantee = proved if rule.use in proved else " ".join((inspect.getdoc(tool) or "").split("\n\n")[0].split())
    required = [p.name for p in inspect.signature(tool).parameters.values() if p.default is p.empty]
    words = policies.described(tool)
    needs = {name: words.get(name, {}).get("help", "") for name in required}
    rounds = answers.horizon or EXAMPLE["horizon"]
    program = TOOL_SNIPPETS[rule.use].format(budget=0.1 * rounds, rounds=rounds, played=_played(answers))
    return Advice(f"bridle.{rule.use}", rule.why, guarantee, [], needs, {}, [], program)


def _proved(made: Callable[..., object]) -> str:
    """The guarantee in the docstring of the module that has this function or class, in one line."""
    about = inspect.getdoc(inspect.getmodule(made)) or ""
    proved = " ".join(about.partition("\nGuarantee: ")[2].partition("\nReference: ")[0].split())
    return re.sub(r"^`[\w.]+`[:,] ", "", proved)  # the name of the function that computes it


def _played(answers: Answers) -> int:
    """How many rounds a program plays: some, and no more than there are."""
    return min(300, answers.horizon or 300)


def _mixes(answers: Answers) -> bool:
    """Whether rounds are played as mixtures of rules: of the user's, or of a forecast with several margins."""
    return answers.rules or answers.known == "forecast"


def _safe_action(answers: Answers) -> list[float]:
    """The action of the snippets' world that keeps every limit whatever comes."""
    return [1.0, 0.0] if answers.moving else [0.0, 0.0]


def _said(answers: Answers) -> dict[str, Setting]:
    """What `bridle.policy` is told of what is said before each round."""
    if _mixes(answers):
        own = ["careful", "usual", "bold"] * answers.rules
        return {"rules": [*own, *(["forecast", "forecast + margin", "safe"] if answers.known == "forecast" else [])]}
    return {"features": 2} if answers.known == "features" else {}


def _before(answers: Answers) -> tuple[list[str], list[str]]:
    """The lines of a program that come before acting, and what acting is told."""
    lines, words = [], []
    if _mixes(answers):
        rows = [[0.0, 0.0], [0.5, 0.0], [1.0, 0.0]] * answers.rules
        text = ", ".join(str(row) for row in rows)
        if answers.known == "forecast":
            lines.append(f"forecast = {'0.5 + 0.4 * np.sin(t / 50)' if answers.moving else '0.2'}  # yours, of what this round allows")
            text += ", " * bool(rows) + f"[forecast, 0.0], [1.1 * forecast, 0.0], {_safe_action(answers)}"
        lines.append(f"R = [{text}]  # what each rule proposes now")
        words.append("rules=R")
    elif answers.known == "features":
        lines.append("phi = [np.sin(t / 50), np.cos(t / 50)]  # what is known of this round")
        words.append("features=phi")
    if answers.known == "limits":
        level = "0.5 + 0.4 * np.sin(t / 50)" if answers.moving else "0.3" if answers.constraints == "fixed" else "rng.uniform(0.3, 0.5)"
        lines.append(f"A, b = [[1.0, 0.0]], [{level}]  # the limits A x <= b of this round")
        words.append("known=(A, b)")
    return lines, words


def _snippet(rule: Rule, answers: Answers, settings: Mapping[str, Setting]) -> str:
    """A program that plays the policy in a small world of the user's kind."""
    arguments = "".join(f", {name}={_literal(value)}" for name, value in settings.items())
    (before, words), seen = _before(answers), [*_cost(answers), *_limit(answers)]
    observed = ["f=f, df=df"] * answers.costs + ["g=g, dg=dg"] * bool(_limit(answers))
    # Where values are noisy, or what is allowed moves, nothing that was seen proves anything about a fixed action.
    unproved = answers.noise or answers.moving
    lines, said = ["import bridle"], ", ".join(words)
    if any("np." in line or "rng." in line for line in [*before, *seen]):
        lines.append("import numpy as np")
    if any("rng." in line for line in [*before, *seen]):
        lines += ["", "rng = np.random.default_rng(0)  # the world"]
    lines += ["", "domain = bridle.Ball(2)  # all actions that are possible", f'policy = bridle.policy("{rule.use}", domain{arguments})']
    lines += [f"session = bridle.Session(policy{', certify=False' if unproved else ''})"]
    lines += ["waiting = []"] * answers.delay
    lines += [f"for t in range({_played(answers)}):", *(f"    {line}" for line in before)]
    if answers.delay:
        lines += [f"    waiting.append(session.ask({said}))  # act: the ticket's x is this round's action"]
        lines += ["    if len(waiting) > 5:  # what a round reveals arrives five rounds later", "        ticket = waiting.pop(0)"]
        lines += ["        x = ticket.x", *(f"        {line}" for line in seen)]
        lines += [f"        session.observe({', '.join([*observed, 'ticket=ticket'])})"]
    else:
        lines += [f"    x = session.decide({said})  # act first", *(f"    {line}" for line in seen)]
        lines += [f"    session.observe({', '.join(observed)})"]
    if rule.use == "rate":
        lines += ["print(session.rates[0])"]
    else:
        lines += ['print(f"cost {session.cost:.1f}, violation {session.ccv:.1f}")' if unproved else "print(session.report())"]
    return "\n".join(lines) + "\n"


def _literal(value: Setting) -> str:
    """A value as a program says it."""
    if isinstance(value, list):
        return "[" + ", ".join(_literal(each) for each in value) + "]"
    return f'"{value}"' if isinstance(value, str) else str(value)


def _cost(answers: Answers) -> list[str]:
    if not answers.costs:
        return []
    if answers.moving and not _limit(answers):
        first, target = ["c = np.array([np.cos(t / 50), np.sin(t / 50)])"], "c"
    else:
        first, target = [], "[0.0, 0.0]" if answers.moving else "[1.0, 0.0]"
    if answers.strongly_convex:
        return [*first, f"df = x - {target}  # then see the cost, here of modulus 1, and its gradient", "f = 0.5 * df @ df"]
    f, df = ("-c @ x", "-c") if first else ("x[0]", "[1.0, 0.0]") if answers.moving else ("-x[0]", "[-1.0, 0.0]")
    return [*first, f"f, df = {f}, {df}  # then see the cost and its gradient"]


def _limit(answers: Answers) -> list[str]:
    """The lines that reveal the limit g <= 0 and its gradient; none where there is none, or all is known before."""
    if answers.limit == "none" or answers.known == "limits":
        return []
    first: list[str] = []
    if answers.moving:
        first, g, dg = ["need = 0.5 + 0.4 * np.sin(t / 50)"], "need - x[0]", "[-1.0, 0.0]"
    elif answers.constraints == "changing":
        first = ["a = rng.normal(size=2)", "a /= np.linalg.norm(a)"]
        g, dg = ("a @ x - 0.3", "a") if answers.linear else ("max(a @ x, 0.0) ** 2 - 0.09", "2.0 * max(a @ x, 0.0) * a")
    else:
        g, dg = ("x[0] - 0.3", "[1.0, 0.0]") if answers.linear else ("x @ x - 0.3", "2.0 * x")
    error = " + rng.uniform(-0.5, 0.5)" if answers.noise else ""
    return [*first, f"g, dg = {g}{error}, {dg}  # and the limit g <= 0, with its gradient"]
