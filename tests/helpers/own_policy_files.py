"""Files with policies of a user's own, as text."""

from __future__ import annotations

SMALL = '''
"""Small policies."""
from typing import NamedTuple

from bridle import validate
from bridle.ops import worst
from bridle.policies import Entry


class Steps(NamedTuple):
    domain: object
    step: object
    price: object

    def init(self, x1):
        return (x1,)

    def decide(self, state):
        return state[0]

    def update(self, state, feedback):
        g, dg = worst(feedback.g, feedback.dg)
        return (self.domain.project(state[0] - self.step * (feedback.df + self.price * (g > 0.0) * dg)),)


def bold(domain, step=0.1):
    return Steps(domain, validate.setting("step", step), 0.0)


def shy(domain, step=0.1, price=5.0):
    """Steps with a price.

    Parameters
    ----------
    price
        What a unit of violation costs.
    """
    return Steps(domain, validate.setting("step", step), validate.setting("price", price))
'''

ONE = SMALL + 'ENTRY = Entry("shy", shy, "a shy one", "nobody", regret="-", violation="-")\n'

TWO = ONE + 'ENTRIES = (ENTRY, Entry("bold", bold, "a bold one", "nobody", regret="-", violation="-"))\n'

FUNCTION = SMALL + "policy = shy\n"
