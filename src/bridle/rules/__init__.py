"""Rules that people use, as policies that can be mixed: ``bridle.policy(..., rules=bridle.rules.demand_rules(domain, day=288))``."""

from bridle.rules.demand import autoscaler, demand_rules, everything, ewma, last_quantile, propose, same_slot
from bridle.rules.in_games import playing

__all__ = ["autoscaler", "demand_rules", "everything", "ewma", "last_quantile", "playing", "propose", "same_slot"]
