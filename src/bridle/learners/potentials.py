"""Lyapunov functions of the accumulated violation Q.

A potential is non-decreasing, convex and zero at zero; its slope at Q is the weight that Algorithm 1 puts on the constraint.
"""

from __future__ import annotations

from math import log
from typing import NamedTuple

from bridle import validate
from bridle.learners.base import Setting
from bridle.ops import Scalar, exp, floor, minimum

__all__ = ["Exponential", "Power", "Quadratic"]

UNIT = 64.0 * log(2.0)
"""The exponent is kept below this by counting whole units of it apart, so that e^{lam q} never overflows."""

CAP = 300.0
"""Where units cannot be counted apart (the learner is not scale-free) the exponent stops here: e^300, squared, is still a float."""


class ExponentialPotential(NamedTuple):
    """Phi(q) = e^{lam q} - 1."""

    lam: Scalar

    def value(self, q: Scalar) -> Scalar:
        return exp(minimum(self.lam * q, CAP)) - 1.0

    def slope(self, q: Scalar, units: Scalar = 0.0) -> Scalar:
        """lam e^{lam q}, divided by e^{UNIT units}."""
        return self.lam * exp(minimum(self.lam * q - UNIT * units, CAP))

    def units(self, q: Scalar) -> Scalar:
        """How many whole units of exponent there are at q: 0 in every run within the theory's assumptions."""
        return floor(self.lam * q / UNIT)


class PowerPotential(NamedTuple):
    """Phi(q) = q^n."""

    exponent: Scalar

    def value(self, q: Scalar) -> Scalar:
        return q**self.exponent

    def slope(self, q: Scalar) -> Scalar:
        return self.exponent * q ** (self.exponent - 1.0)


class QuadraticPotential(NamedTuple):
    """Phi(q) = q^2."""

    def value(self, q: Scalar) -> Scalar:
        return q * q

    def slope(self, q: Scalar) -> Scalar:
        return 2.0 * q


def Exponential(lam: Setting) -> ExponentialPotential:
    """The potential ``e^(lam q) - 1`` of Theorem 1.

    Returns the potential: ``value(q)`` and ``slope(q)`` of an accumulated violation q.

    Parameters
    ----------
    lam : float or list of float
        The rate, above 0, in 1 / violation.

    Examples
    --------
    >>> Exponential(0.5).slope(0.0)
    0.5
    """
    return ExponentialPotential(validate.setting("lam", lam))


def Power(exponent: Setting) -> PowerPotential:
    """The potential ``q^exponent``.

    Returns the potential: ``value(q)`` and ``slope(q)`` of an accumulated violation q.

    Parameters
    ----------
    exponent : float or list of float
        The exponent, 2 or above.

    Examples
    --------
    >>> Power(3.0).slope(2.0)
    12.0
    """
    n = validate.setting("exponent", exponent)
    if n < 2.0 if isinstance(n, float) else (n < 2.0).any():
        raise validate.refused("exponent must be 2 or above", exponent)
    return PowerPotential(n)


def Quadratic() -> QuadraticPotential:
    """The potential ``q^2`` of Theorem 2.

    Returns the potential: ``value(q)`` and ``slope(q)`` of an accumulated violation q.

    Examples
    --------
    >>> Quadratic().slope(3.0)
    6.0
    """
    return QuadraticPotential()
