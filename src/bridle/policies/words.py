"""What is said of every parameter of a policy: its meaning, its unit, the values it takes, and what happens where it is not given.

The command line, the docstrings, the typed overloads and the reference read these words; nothing else says them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypedDict


@dataclass(frozen=True)
class ParameterWords:
    """The words for one parameter of a policy or a problem.

    `meaning` says what it is, `unit` in what it is measured, `values` which ones it takes, and `absent` what happens where it is not given.
    """

    meaning: str
    unit: str
    values: str
    absent: str = ""


class ParameterFacts(TypedDict):
    """What is told about a parameter, as JSON: `help` is its meaning, `absent` what happens where it is not given."""

    name: str
    required: bool
    default: object
    help: str
    unit: str
    values: str
    absent: str
    type: str


def sentences(p: ParameterFacts) -> str:
    """What is said of a parameter, in sentences: its meaning, default, values and unit.

    >>> words = PARAMETER_WORDS["margin"]
    >>> facts = {"name": "margin", "required": False, "default": 0.0, "help": words.meaning, "unit": words.unit, "values": words.values}
    >>> sentences({**facts, "absent": "", "type": "Setting"})
    'r, the distance to keep from every constraint. Default: 0.0. Values: 0 or above. Unit: action.'
    """
    unit = "" if p["unit"] in NO_UNIT else f"Unit: {p['unit']}."
    parts = (f"{p['help']}.", default_text(p), f"Values: {p['values']}." if p["values"] else "", unit)
    return " ".join(part for part in parts if part not in ("", "."))


def default_text(p: ParameterFacts) -> str:
    """A sentence on what happens where the parameter is not given."""
    if p["required"]:
        return "Must be given."
    if p["default"] is not None:
        return f"Default: {p['default']}."
    return f"Where not given: {p['absent']}." if p["absent"] else ""


NO_UNIT = ("", "none", "a name", "yes or no", "0 or 1", "a file", "a name or a record", "a name or a domain")
"""What stands for a unit where there is none: the values say it all."""

ABOVE = "above 0"
FROM_ZERO = "0 or above"
COUNT = "a whole number, 1 or above"
FROM_NONE = "a whole number, 0 or above"
FRACTION = "above 0 and below 1"
SWITCH = "True or False"
PAPER = "the value of the theorem"


PARAMETER_WORDS = {
    "horizon": ParameterWords("T, how many rounds will be played", "rounds", COUNT, "the policy plays on without end"),
    "lipschitz": ParameterWords(
        "G, a Lipschitz constant of every cost and constraint on the domain",
        "cost and constraint per unit of action",
        ABOVE,
        "the policy does without it",
    ),
    "diameter": ParameterWords("D, the domain's Euclidean diameter", "action", ABOVE, "the domain's own diameter"),
    "modulus": ParameterWords("strong convexity of the costs", "cost per squared unit of action", ABOVE, "costs are merely convex"),
    "exp_concavity": ParameterWords(
        "alpha: exp(-alpha f) is concave for every cost f; 1 for the log-wealth of a portfolio, 0 for merely convex costs",
        "1 / cost",
        FROM_ZERO,
    ),
    "constraints": ParameterWords("k, how many constraints a round reveals", "constraints", COUNT, "any number"),
    "bound": ParameterWords("F, the largest |g| on the domain", "constraint", ABOVE),
    "slater": ParameterWords("the margin by which some action satisfies every constraint", "constraint", ABOVE),
    "window": ParameterWords("over every so many rounds in a row constraints sum to 0 or less", "rounds", COUNT),
    "learner": ParameterWords(
        "the OCO algorithm inside",
        "a name or a record",
        "adagrad, adaftrl, ftpl, ogd; on a simplex adahedge, mlpoly, track; or a learner of the same domain",
    ),
    "potential": ParameterWords("the Lyapunov function", "a name or a record", "exponential, quadratic, power, or a potential"),
    "V": ParameterWords("the weight of the cost against the potential's slope", "none", ABOVE, PAPER),
    "beta": ParameterWords("the scale of the constraints in the queue", "1 / constraint", ABOVE, PAPER),
    "lam": ParameterWords("the rate of the exponential potential", "none", ABOVE, PAPER),
    "exponent": ParameterWords("b, the exponent of the step sizes t^-b", "none", FRACTION),
    "step": ParameterWords("the step size", "action per unit of gradient", ABOVE, PAPER),
    "initial": ParameterWords("the starting value of an accumulator", "squared gradient", FROM_ZERO, "0"),
    "clip": ParameterWords("feed the positive part of the constraints", "yes or no", SWITCH),
    "geometry": ParameterWords("how distance is measured", "a name", "euclidean or entropy (on a simplex)"),
    "mirror": ParameterWords("the mirror map", "a name", "euclidean or entropic (on a simplex)"),
    "form": ParameterWords("how a constraint is read from its feedback", "a name", "affine or function (a convex function as it is)"),
    "samples": ParameterWords("how many draws the Monte-Carlo mean uses", "draws", COUNT, "1000"),
    "preset": ParameterWords(
        "which constants to start from",
        "a name",
        "theory (the theorem's), tight (sharper ones) or practice (reacts at realistic horizons)",
    ),
    "seed": ParameterWords("the seed of the policy's own randomness", "none", FROM_NONE, "0"),
    "smoothness": ParameterWords(
        "M of self-bounding constraints: |grad g|^2 <= 2 M g",
        "constraint per squared unit of action",
        ABOVE,
        "constraints are not self-bounding",
    ),
    "drift": ParameterWords("P, how far in all the feasible action may move", "action", FROM_ZERO),
    "level": ParameterWords("rho, how far below 0 the constraint is held", "constraint", "above 0 and below slater", "that of the preset"),
    "margin": ParameterWords("r, the distance to keep from every constraint", "action", FROM_ZERO),
    "predictable": ParameterWords("weigh a round's constraint by what was seen before it", "yes or no", SWITCH),
    "halfspace": ParameterWords("project on the revealed halfspaces", "yes or no", SWITCH),
    "hold": ParameterWords("how many rounds to hold a decision before moving", "rounds", COUNT),
    "cuts": ParameterWords("how many of the last violated halfspaces to keep", "halfspaces", FROM_NONE, "20, or 0 with drift"),
    "noise": ParameterWords("sigma, the largest standard deviation of the error in constraint values", "constraint", FROM_ZERO),
    "weight": ParameterWords(
        "v: how much costs weigh against limits; below 1 keeps limits closer and costs more",
        "none",
        ABOVE,
        "1, or 1/4 where lipschitz and bound are given",
    ),
    "cap": ParameterWords(
        "the largest price of a unit of constraint; guarantees on limits end where it is reached",
        "cost per unit of constraint",
        ABOVE,
        "prices have no cap",
    ),
    "damping": ParameterWords(
        "kappa: how far ahead a price looks; at 0 it does not, and decisions circle around the limit",
        "none",
        FROM_ZERO,
        "1/2",
    ),
    "delay": ParameterWords(
        "how many other rounds may be waiting when late feedback is fed in", "rounds", FROM_ZERO, "feedback comes before the next decision"
    ),
    "hint": ParameterWords(
        "what is expected of a round of which nobody has given a prediction", "a name", "last (the gradients of the last round) or none"
    ),
    "at_most": ParameterWords(
        "the share of rounds that may violate a limit: one number, or one for each limit", "share of rounds", "between 0 and 1"
    ),
    "safe": ParameterWords(
        "an action that keeps every limit whatever comes, to fall back on", "action", "an action of the domain", "no fallback"
    ),
    "scale": ParameterWords(
        "the least that counts as the largest violation there is of an expert", "constraint", ABOVE, "the largest one seen so far"
    ),
    "drop": ParameterWords("drop experts that have violated a limit", "yes or no", SWITCH),
    "delta": ParameterWords(
        "how far from the decision points are tried", "action", "above 0 and below the radius of the ball inside the domain", PAPER
    ),
    "feedback": ParameterWords("what is seen of a round", "a name", "full (every reward) or bandit (that of the arm pulled)"),
    "rules": ParameterWords(
        "how many rules propose actions, or a list of their names, of functions and of policies: mixtures of them are played",
        "rules",
        "a whole number, 1 or above, or a list",
        "the policy decides by itself",
    ),
    "rules_per": ParameterWords("what has one mixture of the rules", "a name", "round or coordinate (on a box)", "round"),
    "features": ParameterWords(
        "how many numbers are known of a round before acting: affine functions of them are played", "numbers", COUNT, "none"
    ),
}
"""One name for each parameter everywhere: in Python, in --set and in the JSON."""


def _also(name: str, **changes: str) -> ParameterWords:
    """The common words for a parameter, with these in place of some of them."""
    return replace(PARAMETER_WORDS[name], **changes)


OWN_STEP = _also("step", absent="the step of the theorem, from lipschitz and the diameter")
ONE_CONSTRAINT = _also("constraints", absent="1")
SEVERAL = _also("constraints", meaning="k, how many constraints a round reveals; only checked, since the worst of any number counts")

ANY_NUMBER = _also("constraints", meaning="k, how many constraints a round reveals; only checked")

OF_POLICY: dict[str, dict[str, ParameterWords]] = {
    "dynamic": {
        "lipschitz": _also(
            "lipschitz",
            meaning="the steepest that a cost is anywhere on the domain",
            unit="cost per unit of action",
            absent="the steepest that was seen so far",
        )
    },
    "sinha2024": {
        "beta": _also(
            "beta",
            meaning="the scale of costs and constraints alike",
            unit="1 / (lipschitz times diameter)",
            absent="1 / (sqrt(2) c G), c the learner's regret constant; 1 / (c G) with the presets tight and practice",
        ),
        "V": _also("V", absent="1 with the exponential potential, lam with the preset practice, else that of Theorem 1"),
        "lam": _also("lam", absent="1 / (2 sqrt(T)); 0.9 / sqrt(T) with the presets tight and practice"),
        "exponent": _also("exponent", meaning="n of the power potential q^n", values="2 or above", absent="ln T rounded up, at least 2"),
        "step": _also("step", meaning="the step of learner='ogd'", absent="the best one at the first violation"),
        "samples": _also("samples", meaning="how many draws learner='ftpl' averages"),
        "seed": _also("seed", meaning="the seed of learner='ftpl'"),
        "constraints": SEVERAL,
        "initial": _also("initial", meaning="what the sum of squared gradients of learner='adagrad' starts from"),
    },
    "optimistic": {
        "V": _also("V", meaning="the weight of the cost against violations", unit="1 / cost", absent="10 / (D |first gradient|)"),
        "cuts": _also("cuts", absent="20"),
    },
    "wang2025": {
        "preset": _also("preset", values="theory or practice (V = lam)"),
        "beta": _also(
            "beta", meaning="the scale of costs and constraints alike", unit="1 / (lipschitz times diameter)", absent="4 / (13 G D)"
        ),
        "V": _also("V", absent="1; lam with the preset practice"),
        "lam": _also("lam", absent="0.9 / T^(3/4)"),
        "constraints": SEVERAL,
    },
    "wang2025-squared": {
        "preset": _also("preset", values="theory or practice (lam = 1 / (4 D^2), without a bound in advance)"),
        "V": _also("V", absent="10 / (D |first gradient|)"),
        "lam": _also("lam", unit="1 / squared unit of action", absent="8 / (169 D^2 sqrt(T))"),
        "constraints": SEVERAL,
    },
    "sinha2024-strong": {
        "learner": _also("learner", absent="gradient descent for strongly convex costs"),
        "potential": _also("potential", values="quadratic, power, exponential, or a potential"),
        "V": _also("V", absent="8 G^2 ln(e T) / modulus"),
        "beta": _also("beta", meaning="the scale of costs and constraints alike"),
        "lam": _also("lam", meaning="the rate of potential='exponential'", absent="must be given with that potential"),
        "exponent": _also("exponent", meaning="n of the power potential q^n", values="2 or above", absent="ln T rounded up, at least 2"),
        "constraints": SEVERAL,
    },
    "sinha2024-ocs": {
        "samples": _also("samples", meaning="how many draws learner='ftpl' averages"),
        "seed": _also("seed", meaning="the seed of learner='ftpl'"),
        "learner": _also("learner", values="adagrad, adaftrl, ftpl; on a simplex adahedge, mlpoly, track; or a learner of the same domain"),
    },
    "anytime": {
        "V": _also("V", meaning="the weight of the cost against violations", unit="1 / cost", absent="10 / (D |first gradient|)"),
        "lam": _also("lam", meaning="how fast the weight of violations grows", unit="1 / squared action", absent="1 / (4 D^2)"),
        "form": _also(
            "form",
            meaning="how a violation is measured",
            values="distance, value (for noisy gradients) or self-bounding (with smoothness)",
        ),
        "lipschitz": _also(
            "lipschitz",
            meaning="G, a Lipschitz constant of the constraints, for form='value'",
            unit="constraint per unit of action",
            absent="the policy does without it",
        ),
        "window": _also(
            "window",
            meaning="begin anew every so many rounds, because what is feasible changes; auto mixes several such memories",
            values="a whole number, 1 or above, or auto",
            absent="everything is remembered",
        ),
        "constraints": _also("constraints", meaning="k, how many constraints a round reveals; only checked"),
        "diameter": _also("diameter", absent="the domain's own diameter"),
    },
    "soft": {
        "horizon": _also("horizon", meaning="T, how many rounds will be played; goes with lipschitz and bound"),
        "lipschitz": _also("lipschitz", absent="the policy learns the scale; given, bound must be given too"),
        "bound": _also("bound", absent="the policy learns the scale; given, lipschitz must be given too"),
        "constraints": _also("constraints", absent="the first round says how many; 1 where lipschitz is given"),
        "damping": _also("damping", meaning="kappa: how far ahead a price looks, without lipschitz; at 0 decisions circle the limit"),
    },
    "rate": {
        "step": _also("step", meaning="how far one violation moves the level of caution", unit="levels a violation"),
        "form": _also("form", meaning="what counts as a violation", values="each (every limit has its share) or any (limits share one)"),
        "constraints": _also("constraints", absent="as many as at_most has numbers"),
    },
    "experts": {
        "V": _also("V", meaning="the weight of the cost against violations", unit="1 / cost", absent="1 / (10 ranges of the first cost)"),
        "lam": _also("lam", meaning="how fast the weight of violations grows", unit="1 / largest violation", absent="16 / (81 (1 + ln N))"),
        "constraints": ANY_NUMBER,
    },
    "mahdavi2012": {
        "form": _also("form", meaning="which of the paper's two algorithms", values="gradient or mirror-prox"),
        "clip": _also("clip", meaning="feed the positive part of the constraints, with form='gradient'"),
        "step": OWN_STEP,
        "constraints": ONE_CONSTRAINT,
    },
    "jenatton2016": {
        "exponent": _also("exponent", meaning="b of the step sizes t^-b: larger means less regret and more violation"),
        "step": _also("step", meaning="the first step", absent="D / G"),
    },
    "sun2017": {"step": OWN_STEP},
    "neely2017": {
        "V": _also("V", meaning="the weight of the cost against the queues", unit="squared constraint per cost"),
        "step": _also("step", unit="action per unit of weighted gradient", absent="D^2 over the horizon and the squared size of g"),
    },
    "liakopoulos2019": {
        "window": _also("window", meaning="K: over every K rounds in a row constraints sum to 0 or less", values="from 1 to the horizon"),
        "V": _also("V", meaning="the weight of the cost against the queues", unit="squared constraint per cost"),
        "step": _also("step", unit="action per unit of weighted gradient", absent="that of the theorem, for this window"),
    },
    "yuan2018": {"step": _also("step", absent="D / (G sqrt(k + 1) T^b)")},
    "yu2020": {
        "beta": _also("beta", absent="that of the theorem: (G sqrt(T) / (sqrt(2) D k))^(1/2) / G"),
        "step": _also("step", absent="D / (sqrt(2) G sqrt(T))"),
    },
    "yi2021": {
        "exponent": _also("exponent", meaning="c of the step sizes t^-c, for convex costs", values="between 0 and 1", absent="1/2"),
        "step": _also("step", meaning="the first step, for convex costs", absent="sqrt(2) D / G"),
        "modulus": _also("modulus", values=FROM_ZERO),
    },
    "yi2022": {
        "exponent": _also("exponent", meaning="kappa of the step sizes t^-kappa"),
        "step": _also("step", meaning="the first step, for convex costs", absent="D / G"),
    },
    "guo2022": {
        "initial": _also("initial", meaning="how fast the queue's lowest level grows: initial sqrt(t)", unit="none", values=ABOVE),
        "exponent": _also("exponent", meaning="e: constraints of round t are scaled by t^(1/2 + e)", values=ABOVE),
        "step": _also("step", absent="D / (sqrt(2) G)"),
        "beta": _also("beta", absent="1 / (G D); the paper has 1"),
    },
    "guo2022-strong": {
        "initial": _also("initial", meaning="how fast the queue's lowest level grows: initial sqrt(t)", unit="none", values=ABOVE),
        "exponent": _also("exponent", meaning="e: constraints of round t are scaled by t^(1/2 + e)", values=ABOVE),
        "beta": _also("beta", absent="1 / (modulus D^2); the paper has 1"),
    },
    "yi2023": {
        "horizon": _also("horizon", absent="steps shrink as t^-exponent; given, the step is constant"),
        "exponent": _also("exponent", meaning="c: steps shrink as t^-c, or are proportional to T^-c where the horizon is given"),
        "step": _also("step", absent="that of the theorem: proportional to D / G"),
        "form": _also("form", meaning="how the penalty is minimised", values="projection (a gradient step) or prox (exactly)"),
    },
    "yi2023-strong": {
        "form": _also("form", meaning="how the penalty is minimised", values="projection (a gradient step) or prox (exactly)"),
    },
    "banditq": {
        "bound": _also("bound", meaning="the largest reward times the simplex's mass", unit="cost"),
        "V": _also("V", meaning="the weight of the reward against the queues", unit="constraint", absent="bound sqrt(T)"),
    },
    "vaze2025": {
        "cuts": _also("cuts", values=COUNT),
        "constraints": ANY_NUMBER,
    },
    "vaze2025-strong": {
        "cuts": _also("cuts", values=COUNT),
        "constraints": _also("constraints", meaning="k, how many constraints a round reveals; only checked"),
    },
    "hutchinson2025": {
        "preset": _also("preset", values="theory (the theorem's) or practice (reacts at realistic horizons)"),
        "step": _also("step", absent="that of the preset"),
    },
    "sarkar2025": {
        "lam": _also("lam", meaning="the rate of the exponential potential in round 1; it falls as 1 / sqrt(t)"),
        "constraints": SEVERAL,
    },
    "yu2026": {
        "lam": _also("lam", meaning="how fast the weight of a limit grows with its queue: larger means limits closer and more regret"),
        "bound": _also("bound", meaning="F, the largest |g| on the domain, without errors"),
    },
    "steiner": {
        "horizon": _also("horizon", meaning="T, how many rounds will be played: how much room the outline may need"),
        "samples": _also(
            "samples",
            meaning="how many directions are drawn, from three dimensions on",
            unit="directions",
            values="a whole number, 2 or above",
        ),
    },
    "ogd": {
        "horizon": _also("horizon", absent="steps shrink as 1 / sqrt(t); given, the step is constant"),
        "step": _also("step", absent="D / (sqrt(2) G), or D / (G sqrt(T)) where the horizon is given"),
    },
}
"""Where a parameter of one policy means something else than usual, takes other values, or has a default that is computed."""
