"""Rules that people use, as policies that can be mixed: ``bridle.policy(..., rules=bridle.rules.demand_rules(domain, day=288))``."""

from bridle.rules.demand import autoscaler, demand_rules, everything, ewma, last_quantile, propose, same_slot

__all__ = ["autoscaler", "demand_rules", "everything", "ewma", "last_quantile", "propose", "same_slot"]
