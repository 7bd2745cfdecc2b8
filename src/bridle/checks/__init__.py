"""What domains, policies and your own functions must satisfy, as checks that raise AssertionError: for tests of this library and yours."""

from bridle.checks.domain import check_domain
from bridle.checks.functions import check_functions
from bridle.checks.policy import check_policy

__all__ = ["check_domain", "check_functions", "check_policy"]
