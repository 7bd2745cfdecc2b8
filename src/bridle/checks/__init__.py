"""What every domain and every policy must satisfy, as checks that raise AssertionError: for this library's own tests, and for authors."""

from bridle.checks.domain import check_domain
from bridle.checks.policy import check_policy

__all__ = ["check_domain", "check_policy"]
