"""Rates of one's own, under the name that they had before limits had a room of their own: `bridle.limits.rates`."""

from bridle.limits.rates import OWN_RATE, Cells, CountedRate, make_rate_level

__all__ = ["OWN_RATE", "Cells", "CountedRate", "make_rate_level"]
