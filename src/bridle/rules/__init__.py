"""Rules that people use, as policies that can be mixed: ``bridle.policy(..., rules=bridle.rules.demand_rules(domain, day=288))``."""

from bridle.rules.in_games import playing
from bridle.rules.last_demands import autoscaler, everything, last_quantile
from bridle.rules.running_means import ewma, same_slot
from bridle.rules.stock import demand_rules, propose

__all__ = ["autoscaler", "demand_rules", "everything", "ewma", "last_quantile", "playing", "propose", "same_slot"]
