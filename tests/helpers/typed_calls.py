"""Calls of the functions with overloads, for mypy: what is fine, and what must be an error. The tests run mypy over this file's text."""

GOOD = """
import bridle
from bridle.policies import Configured

ball = bridle.Ball(2)
problem: bridle.Problem = bridle.problem("halfspaces", 100, dim=2, constraints=3)
anytime: Configured = bridle.policy("anytime", ball, margin=0.1, form="value", lipschitz=1.0)
sweep: Configured = bridle.policy("sinha2024", ball, horizon=100, lipschitz=1.0, V=[1.0, 2.0], learner=bridle.AdaGrad(ball))
ruled: Configured = bridle.policy("rate", ball, at_most=[0.1, 0.2], rules=["mine", "yours"])
told: Configured = bridle.policy_for("sinha2024", problem, preset="practice")
trace = bridle.play(bridle.policy_for("neely2017", problem), problem)
own: Configured = bridle.policy("you2026", ball, price=2.0)
file: bridle.Problem = bridle.problem("mine.py", cut=0.5)


def by_name(name: str, **settings: object) -> bridle.Trace:
    return bridle.play(bridle.policy(name, ball, **settings), bridle.problem(name, 10))
"""

BAD = {
    "a parameter that is misspelt": 'bridle.play(bridle.policy("anytime", ball, margn=0.1), problem)',
    "a parameter of another policy": 'bridle.play(bridle.policy("anytime", ball, horizon=100), problem)',
    "a parameter of another type": 'bridle.play(bridle.policy("anytime", ball, hold="long"), problem)',
    "a choice that there is not": 'bridle.play(bridle.policy("anytime", ball, form="sideways"), problem)',
    "one that must be given": 'bridle.Session(bridle.policy("sinha2024", ball, horizon=100))',
    "no domain": 'bridle.policy("anytime", 3.0)',
    "misspelt for a problem": 'bridle.play(bridle.policy_for("sinha2024", problem, presett="practice"), problem)',
    "a problem's parameter": 'bridle.play(anytime, bridle.problem("halfspaces", 100, dimension=2))',
    "a problem without a horizon": 'bridle.play(anytime, bridle.problem("pricing"))',
    "a problem of a file that has no domain": "bridle.problem(3.0)",
}
"""What each line does wrong, and the line: mypy complains of it where it is used, or where it is called."""
