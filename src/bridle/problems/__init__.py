"""Named problems: a domain, an adversary, and the constants that are true of them.

To add a problem: write a function that is `registered`, and add it to the list below.
"""

# The order of the tables.
# isort: off
from bridle.problems.base import Problem
from bridle.problems.registry import ProblemFacts, needs, problem, problem_facts, problem_names, registered, takes
from bridle.problems._paper import fixed, halfspaces, lower_bound, minimax
from bridle.problems._special_settings import fixed_constraints, game, multi_task, nested_bodies, p_constrained, s_feasible
from bridle.problems._hostile import alternating, late_constraint, regret_seeking, scales, violation_seeking
from bridle.problems._streams import contradiction, late_temptation, noisy, pull_out, rare_constraint, scattered, tangent, tempting, uphill
from bridle.problems._applications import ad_pacing, capacity, fair_classifier, portfolio
from bridle.problems._auctions import auctions
from bridle.problems._markets import pricing, recommendation
from bridle.problems._revenue import revenue
from bridle.problems._navigation import navigation
from bridle.problems._bundles import bundle_auctions
from bridle.problems._limited_experts import experts
from bridle.problems._hints import hints
from bridle.problems._moving import drifting_optimum, jumping_limits, seasonal_limits
# isort: on

__all__ = [
    "Problem", "ProblemFacts", "ad_pacing", "alternating", "auctions", "bundle_auctions", "capacity", "contradiction",
    "drifting_optimum", "experts", "fair_classifier", "fixed", "fixed_constraints", "game", "halfspaces", "hints", "jumping_limits",
    "late_constraint", "late_temptation", "lower_bound", "minimax", "multi_task", "navigation", "needs", "nested_bodies", "noisy",
    "p_constrained", "portfolio", "pricing", "problem", "problem_facts", "problem_names", "pull_out", "rare_constraint",
    "recommendation", "registered", "regret_seeking", "revenue", "s_feasible", "scales", "scattered", "seasonal_limits", "takes",
    "tangent", "tempting", "uphill", "violation_seeking",
]  # fmt: skip
