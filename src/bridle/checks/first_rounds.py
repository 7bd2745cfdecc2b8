"""Whether a policy can be played at all: its first rounds, looked at as `check_policy` looks at all of them."""

from __future__ import annotations

import os
import warnings

from bridle import records
from bridle.checks.case import PolicyCase, gentle_rounds
from bridle.checks.walk import walk
from bridle.core import BridleWarning, Domain, InputError
from bridle.policies import Configured
from bridle.policies.own import blame
from bridle.policies.registry import for_constraints, source_of
from bridle.problems import Problem
from bridle.validate import show

ROUNDS = 3


def check_first_rounds(policy: Configured, problem: Problem) -> None:
    """Raise an InputError where this is no policy for the problem, or its first decisions are none."""

    def make(domain: Domain, k: int, scale: float | None = None) -> object:
        return policy

    case = PolicyCase(f"policy {policy.name}", make, problem.domain, int(problem.constants.get("constraints") or 1), seed=0)
    record = for_constraints(policy.record, case.k)
    try:
        case.require(records.is_record(record), f"a policy must be a NamedTuple, not {show(record)}")
        for method in ("init", "decide", "update"):
            case.require(hasattr(record, method), f"a policy must have the method `{method}`")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BridleWarning)
            walk(case, record, gentle_rounds(case, ROUNDS, salt=0), problem.domain.center())
    except AssertionError as broken:
        cause = broken.__cause__
        message = str(broken) if cause is None else f"policy {policy.name}: {blame(os.path.relpath(source_of(policy.entry)), cause)}"
        raise InputError(" ".join(message.split())) from broken
