"""Calls of the functions that make policies and problems, for mypy: what is fine, and what must be an error."""

GOOD = """
import bridle
import bridle.comparisons.analysis
from bridle import compare
from bridle.policies import Configured

ball = bridle.Ball(2)
problem: bridle.Problem = bridle.problems.halfspaces(100, dim=2, constraints=3)
anytime: Configured = bridle.policies.anytime(ball, margin=0.1, form="value", lipschitz=1.0)
sweep: Configured = bridle.policies.sinha2024(ball, horizon=100, lipschitz=1.0, V=[1.0, 2.0], learner=bridle.AdaGrad(ball))
ruled: Configured = bridle.policies.rate(ball, at_most=[0.1, 0.2], rules=["mine", "yours"])
told: Configured = bridle.policy_for("sinha2024", problem, preset="practice")
trace = bridle.play(bridle.policy_for("neely2017", problem), problem)
own: Configured = bridle.policy("you2026", ball, price=2.0)
file: bridle.Problem = bridle.problem("mine.py", cut=0.5)
compared: bridle.Comparison = bridle.compare("halfspaces", ["ogd", anytime], horizons=100, seeds=3)
again: bridle.Comparison = compare(["halfspaces", problem])
label: str = compared[0]["label"]


def by_name(name: str, **settings: object) -> bridle.Trace:
    return bridle.play(bridle.policy(name, ball, **settings), bridle.problem(name, 10))
"""

BAD = {
    "a parameter that is misspelt": "bridle.play(bridle.policies.anytime(ball, margn=0.1), problem)",
    "a parameter of another policy": "bridle.play(bridle.policies.anytime(ball, horizon=100), problem)",
    "a parameter of another type": 'bridle.play(bridle.policies.anytime(ball, halfspace="long"), problem)',
    "a choice that there is not": 'bridle.play(bridle.policies.anytime(ball, form="sideways"), problem)',
    "one that must be given": "bridle.Session(bridle.policies.sinha2024(ball, horizon=100))",
    "rules of a policy that tries points": "bridle.policies.bandit1(ball, rules=3)",
    "no domain": "bridle.policies.anytime(3.0)",
    "a problem's parameter": "bridle.play(anytime, bridle.problems.halfspaces(100, dimension=2))",
    "a problem without a horizon": "bridle.play(anytime, bridle.problems.pricing())",
    "a comparison's argument": 'bridle.compare("halfspaces", nonsense=1)',
    "a comparison of numbers": "bridle.compare(3)",
    "a problem of a file that has no domain": "bridle.problem(3.0)",
}
"""What each line does wrong, and the line: mypy complains of it where it is used, or where it is called."""
