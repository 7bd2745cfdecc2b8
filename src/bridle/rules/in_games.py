"""Rules in games: a policy that mixes rules by itself, `rate`, with all that a session would do for its rules, as one policy for `play`.

In every round the rules are asked, what they propose is handed to the policy, and what was revealed is read at each proposal and learned
from: step by step what `bridle.Session` does. So a policy with rules can be played against a problem, and compared.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bridle import validate
from bridle.core import Feedback, InputError
from bridle.ops import Array
from bridle.policies import Configured
from bridle.policies.levels import Tally
from bridle.policies.round_maps import OwnMixture, is_policy


class RuledState(NamedTuple):
    """The policy's state, told what the rules propose in the coming round; the rules' states; and these proposals."""

    policy: Any  # of the policy's own type
    rules: tuple[object, ...]
    proposals: Array


class RuledPolicy:
    """A policy and its rules as one policy; see `playing`."""

    compiled = False
    """Rules are asked in Python."""

    def __init__(self, policy: Configured, through: OwnMixture) -> None:
        self._inner, self._mixture, self.domain = policy.record, through, policy.domain
        self.name, self.each = f"{policy.name} with {len(through.names)} rules", policy.record.each

    def init(self, x1: Array) -> RuledState:
        """The state in which the first round is played, with all weight on the medoid of what is proposed."""
        if np.ndim(x1) > 1:
            raise InputError(f"policy {self.name} plays one run at a time, not {len(x1)}: play the seeds one after the other")
        states = self._mixture.states
        proposals = self._ask(states)
        state = self._inner.begin(self._inner.init(np.asarray(x1, dtype=float)), self._mixture.first(proposals))
        return RuledState(self._inner.propose(state, proposals), states, proposals)

    def decide(self, state: RuledState) -> Array:
        """The policy's decision."""
        x: Array = self._inner.decide(state.policy)
        return x

    def update(self, state: RuledState, feedback: Feedback) -> RuledState:
        """The state after a round: the policy learns, then the rules, and these are asked for the next one."""
        after = self._inner.update(state.policy, feedback)
        states = self._mixture.learn(state.rules, state.proposals, feedback)
        proposals = self._ask(states)
        return RuledState(self._inner.propose(after, proposals), states, proposals)

    def tally(self, state: RuledState) -> Tally:
        """The counts of its limits on how often."""
        counts: Tally = self._inner.tally(state.policy)
        return counts

    def _ask(self, states: tuple[object, ...]) -> Array:
        return self._mixture.checked(None, self._mixture.ask((), states))


def playing(policy: Configured) -> RuledPolicy:
    """A policy with its rules, for `bridle.play`.

    Returns what `bridle.play` takes.

    Parameters
    ----------
    policy : Configured
        One that mixes rules by itself, such as `rate` made with ``rules=``; all of its rules are policies, as those of `bridle.rules` are.

    Examples
    --------
    >>> import bridle
    >>> problem = bridle.problem("uphill", horizon=300)
    >>> policy = bridle.policy("rate", problem.domain, at_most=0.1, safe=[4.0], rules=bridle.rules.demand_rules(problem.domain))
    >>> trace = bridle.play(bridle.rules.playing(policy), problem)
    >>> bool(bridle.violation_rates(trace).measured <= 0.11)
    True
    """
    through = getattr(policy, "through", None)
    if not isinstance(policy, Configured) or not isinstance(through, OwnMixture):
        raise validate.refused("policy must be one that mixes rules by itself, such as rate made with rules=", policy)
    others = [through.names[i] for i in range(len(through.names)) if not is_policy(through.asked.get(i))]
    if others:
        raise InputError(f"policy must have rules that are policies alone, in a game nobody speaks for {', '.join(others)}")
    return RuledPolicy(policy, through)
