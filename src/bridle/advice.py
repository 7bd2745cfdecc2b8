"""Which policy for whom: questions, rules in order, and the answer with its guarantee and code that runs.

Rules and questions are data. What a policy promises, assumes and needs is read from the registry, and what a class promises from its
module's docstring, so that nothing is said twice.

>>> found = advise(constraints="changing", strongly_convex=True)
>>> found.use, found.settings
('anytime', {'modulus': 1.0})
>>> print(found.guarantee)
Regret: O(sqrt(T)), O(log T) strongly convex. Violation: O(sqrt(T log T)), squared O(log T). The bridle developers, This library 2026.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import NamedTuple, TypeAlias

from bridle import policies, validate
from bridle.core import InputError

Answer: TypeAlias = str | bool | int | None
"""One of the choices of a question; of the horizon, a number of rounds or None."""


@dataclass(frozen=True)
class Answers:
    """What the user knows; the defaults promise nothing. `horizon` is a number of rounds, or None where it is not known."""

    constraints: str = "changing"
    limit: str = "safety"
    costs: bool = True
    noise: bool = False
    moving: bool = False
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
        Question("constraints", "Which limits are there?", {
            "fixed": "limits stay the same", "changing": "limits change from round to round", "none": "there are no limits",
        }),
        Question("limit", "What must a limit do?", {
            "safety": "every violation counts", "average": "limits must hold on average", "budget": "a total must never be exceeded",
        }),
        Question("costs", "Is there a cost to keep low, besides the limits?", {True: "there are costs", False: "there are no costs"}),
        Question("noise", "Are the limits' values measured with errors?", {
            True: "limits are measured with errors", False: "limits are exact",
        }),
        Question("moving", "Does what is allowed move, so that no single action would have kept every limit?", {
            True: "what is allowed moves", False: "one action would have kept every limit",
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


class Rule(NamedTuple):
    """Where the answers are those of `when`, `use` a registered policy with `settings`, or a class of bridle. The first that fits holds.

    `note` is what else to know.
    """

    when: Mapping[str, Answer]
    use: str
    why: str
    settings: Mapping[str, float] = {}
    note: str = ""


RULES = (
    Rule(
        {"constraints": "none", "strongly_convex": True}, "anytime",
        "without limits its steps are those of gradient descent for strongly convex costs", {"modulus": 1.0},
    ),
    Rule({"constraints": "none"}, "adagrad", "nothing but costs: it needs no horizon and no Lipschitz constant"),
    Rule(
        {"limit": "budget"}, "Pacer",
        "what an opportunity is worth is seen before it is paid for; a gate stops what would exceed the budget",
    ),
    Rule(
        {"noise": True}, "soft",
        "no policy can keep hard limits on noisy values; this one adds them up, so that errors cancel, and keeps limits on average",
        {"noise": 0.5}, note="any noise above 0 will do: it says that single values prove nothing; no other number has to be known",
    ),
    Rule(
        {"limit": "average", "costs": False}, "sinha2024-ocs",
        "with no costs to mind, it keeps the sum of every limit low over every stretch of rounds",
    ),
    Rule({"limit": "average"}, "soft", "rounds with room to spare make up for others, so that costs can be lower than with hard limits"),
    Rule({"moving": True}, "anytime", "it follows an action that moves; tell it how far in all", {"drift": 1.0}),
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
    """What to use and why, what it promises and must be told, and code that runs as it stands."""

    use: str
    why: str
    guarantee: str
    assumes: list[str]
    needs: dict[str, str]
    settings: dict[str, float]
    notes: list[str]
    snippet: str

    def facts(self) -> dict[str, object]:
        """All of it as a dictionary."""
        return asdict(self)


def advise(**answers: Answer) -> Advice:
    """What to use for these answers; see `Answers` for their names, and `QUESTIONS` for what they mean.

    >>> advise(limit="average", costs=False).use
    'sinha2024-ocs'
    >>> advise(constraints="fixed", moving=True)
    Traceback (most recent call last):
    bridle.core.InputError: moving must be false where constraints is 'fixed': limits that stay the same do not move
    """
    all_answers = check_answers(**answers)
    rule = next(rule for rule in RULES if all(_seen_by_rules(all_answers, name) == value for name, value in rule.when.items()))
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
    if answers.moving and answers.constraints == "fixed":
        raise InputError("moving must be false where constraints is 'fixed': limits that stay the same do not move")
    if answers.constraints == "none" and not answers.costs:
        raise InputError("costs must be true where constraints is 'none': there is nothing to decide for")
    return answers


def check_choice(name: str, value: Answer) -> Answer:
    """The answer to a question, if it is one of the choices."""
    choices = QUESTIONS[name].choices
    if not any(value is choice or (isinstance(value, str) and value == choice) for choice in choices):
        raise InputError(f"{name} must be one of {', '.join(str(choice).lower() for choice in choices)}, not {validate.show(value)}")
    return value


def complete_answers(**answers: Answer) -> dict[str, Answer]:
    """These answers, and the defaults of the others."""
    return asdict(check_answers(**answers))


def _seen_by_rules(answers: Answers, name: str) -> Answer:
    """An answer as the rules see it: of the horizon, whether it is known."""
    if name == "horizon":
        return answers.horizon is not None
    answer: Answer = getattr(answers, name)
    return answer


def next_question(answers: Mapping[str, Answer]) -> str | None:
    """The next question that decides between rules, after these answers; None where one rule is certain.

    >>> next_question({}), next_question({"constraints": "none"}), next_question({"constraints": "none", "strongly_convex": False})
    ('constraints', 'strongly_convex', None)
    """
    for rule in RULES:
        if all(answers.get(name, value) == value for name, value in rule.when.items()):
            missing = [name for name in rule.when if name not in answers]
            return missing[0] if missing else None
    return None


def further_questions(answers: Mapping[str, Answer]) -> list[str]:
    """The questions left once one rule is certain: late feedback, and the horizon where the policy can be told it."""
    rule = next(rule for rule in RULES if all(answers.get(name) == value for name, value in rule.when.items()))
    if rule.use not in policies.names():
        return []
    return ["delay", *["horizon"] * (_uses_horizon(rule.use) and "horizon" not in answers)]


def _uses_horizon(policy: str) -> bool:
    """Whether the policy can be told the horizon by itself, and not only together with other constants."""
    alone = all(variant.parameter != "horizon" for variant in policies.entry(policy).variants)
    return alone and any(p.name == "horizon" for p in policies.parameters(policy))


EXAMPLE = {"horizon": 10_000, "lipschitz": 2.0, "bound": 1.3, "modulus": 1.0, "slater": 0.3}
"""What is true of the world in the snippets, for the parameters that a policy must be told."""

MOVING_NOTE = "what is promised is in comparison with one action that keeps every limit; where there is none, nothing is promised"
LATE_NOTE = "feedback comes late: each round has a ticket, and copies of the policy wait for theirs; the bounds of the copies add up"


def _policy(rule: Rule, answers: Answers) -> Advice:
    item = policies.entry(rule.use).with_settings(rule.settings)
    parameters = {p.name: p for p in policies.parameters(rule.use)}
    if rule.settings.keys() - parameters.keys():
        raise InputError(f"policy {rule.use} has no parameter {min(rule.settings.keys() - parameters.keys())}")
    settings = {name: EXAMPLE[name] for name, p in parameters.items() if p.required} | dict(rule.settings)
    if _uses_horizon(rule.use) and answers.horizon is not None:
        settings["horizon"] = answers.horizon
    notes = [rule.note] * bool(rule.note) + [LATE_NOTE] * answers.delay
    if answers.moving and answers.constraints != "none" and "drift" not in settings:
        notes.append(MOVING_NOTE)
    if "horizon" in settings and answers.horizon is None:
        notes.append("the number of rounds is unknown: give the most there can be, or see bridle.Doubling")
    orders = [f"Regret: {_in_words(item.regret)}."] * answers.costs
    orders += [f"Violation: {_in_words(item.violation)}."] * (answers.constraints != "none")
    guarantee = " ".join([*orders, f"{item.reference}."])
    needs = {name: parameters[name].help for name in settings}
    return Advice(rule.use, rule.why, guarantee, item.assumptions(), needs, dict(rule.settings), notes, _snippet(rule, answers, settings))


def _in_words(order: str) -> str:
    return "nothing is promised" if order == "-" else order


TOOL_SNIPPETS = {
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
    about = inspect.getdoc(inspect.getmodule(tool)) or ""
    guarantee = about.partition("\nGuarantee: ")[2].partition("\nReference: ")[0] or (inspect.getdoc(tool) or "").split("\n\n")[0]
    required = [p.name for p in inspect.signature(tool).parameters.values() if p.default is p.empty]
    needs = {name: policies.PARAMETER_HELP.get(name, "") for name in required}
    rounds = answers.horizon or EXAMPLE["horizon"]
    program = TOOL_SNIPPETS[rule.use].format(budget=0.1 * rounds, rounds=rounds, played=_played(answers))
    guarantee = re.sub(r"^`\w+`: ", "", " ".join(guarantee.split()))  # the name of the function that computes it
    return Advice(f"bridle.{rule.use}", rule.why, guarantee, [], needs, {}, [], program)


def _played(answers: Answers) -> int:
    """How many rounds a program plays: some, and no more than there are."""
    return min(300, answers.horizon or 300)


def _snippet(rule: Rule, answers: Answers, settings: Mapping[str, float]) -> str:
    """A program that plays the policy in a small world of the user's kind."""
    arguments = "".join(f", {name}={value}" for name, value in settings.items())
    seen = [*_cost(answers), *_limit(answers)]
    observed = ["f=f, df=df"] * answers.costs + ["g=g, dg=dg"] * (answers.constraints != "none")
    # Where values are noisy, or what is allowed moves, nothing that was seen proves anything about a fixed action.
    unproved = answers.noise or answers.moving
    lines = ["import bridle"]
    if any("rng." in line for line in seen):
        lines += ["import numpy as np", "", "rng = np.random.default_rng(0)  # the world"]
    lines += ["", "domain = bridle.Ball(2)  # all actions that are possible", f'policy = bridle.policy("{rule.use}", domain{arguments})']
    lines += [f"session = bridle.Session(policy{', certify=False' if unproved else ''})"]
    if answers.delay:
        lines += [
            "waiting = []",
            f"for t in range({_played(answers)}):",
            "    waiting.append(session.ask())  # act: the ticket's x is this round's action",
        ]
        lines += ["    if len(waiting) > 5:  # what a round reveals arrives five rounds later", "        ticket = waiting.pop(0)"]
        lines += ["        x = ticket.x", *(f"        {line}" for line in seen)]
        lines += [f"        session.observe({', '.join([*observed, 'ticket=ticket'])})"]
    else:
        lines += [f"for t in range({_played(answers)}):", "    x = session.decide()  # act first", *(f"    {line}" for line in seen)]
        lines += [f"    session.observe({', '.join(observed)})"]
    lines += ['print(f"cost {session.cost:.1f}, violation {session.ccv:.1f}")' if unproved else "print(session.report())"]
    return "\n".join(lines) + "\n"


def _cost(answers: Answers) -> list[str]:
    if not answers.costs:
        return []
    if answers.strongly_convex:
        return ["df = x - [1.0, 0.0]  # then see the cost, here of modulus 1, and its gradient", "f = 0.5 * df @ df"]
    return ["f, df = -x[0], [-1.0, 0.0]  # then see the cost and its gradient"]


def _limit(answers: Answers) -> list[str]:
    """The lines that reveal the limit g <= 0 and its gradient."""
    if answers.constraints == "none":
        return []
    first: list[str] = []
    if answers.moving:
        first, g, dg = ["side = 1.0 if t < 150 else -1.0"], "0.2 - side * x[0]", "[-side, 0.0]"
    elif answers.constraints == "changing":
        first = ["a = rng.normal(size=2)", "a /= np.linalg.norm(a)"]
        g, dg = ("a @ x - 0.3", "a") if answers.linear else ("max(a @ x, 0.0) ** 2 - 0.09", "2.0 * max(a @ x, 0.0) * a")
    else:
        g, dg = ("x[0] - 0.3", "[1.0, 0.0]") if answers.linear else ("x @ x - 0.3", "2.0 * x")
    error = " + rng.uniform(-0.5, 0.5)" if answers.noise else ""
    return [*first, f"g, dg = {g}{error}, {dg}  # and the limit g <= 0, with its gradient"]
