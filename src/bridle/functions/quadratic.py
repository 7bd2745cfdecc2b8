"""Quadratic functions: equally curved in every direction, or with a matrix of curvatures."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bridle import showing, validate
from bridle.core import InputError
from bridle.ops import Array, Scalar, dot


@showing.shown("Quadratic", c="center", a="linear", b="offset")
class RoundQuadratic(NamedTuple):
    """(curvature / 2) |x - c|^2 + <a, x> + b: equally curved in every direction."""

    curvature: Scalar
    c: Array
    a: Array
    b: Scalar

    @property
    def convex(self) -> bool:
        return True

    def value(self, x: Array) -> Scalar:
        away = x - self.c
        return 0.5 * self.curvature * dot(away, away) + dot(self.a, x) + self.b

    def grad(self, x: Array) -> Array:
        return self.curvature * (x - self.c) + self.a

    def total(self) -> RoundQuadratic:
        """The sum of a sequence of these, again as one."""
        curvature = np.asarray(self.curvature).reshape(len(self.c), 1)
        weight = float(curvature.sum())
        middle = (curvature * self.c).sum(axis=0) / weight if weight > 0 else self.c[0]
        spread = 0.5 * (curvature * (self.c - middle) ** 2).sum()  # what is lost by moving every centre to the middle
        return RoundQuadratic(weight, middle, self.a.sum(axis=0), float(np.sum(self.b) + spread))


@showing.shown("Quadratic", P="curvature", a="linear", b="offset")
class QuadraticForm(NamedTuple):
    """x' P x / 2 + <a, x> + b, with P symmetric and positive semidefinite."""

    P: Array
    a: Array
    b: Scalar

    @property
    def convex(self) -> bool:
        return True

    def value(self, x: Array) -> Scalar:
        return 0.5 * dot(x, self._times(x)) + dot(self.a, x) + self.b

    def grad(self, x: Array) -> Array:
        return self._times(x) + self.a

    def _times(self, x: Array) -> Array:
        return (self.P @ x[..., None])[..., 0]

    def total(self) -> QuadraticForm:
        """The sum of a sequence of these, again as one."""
        return QuadraticForm(self.P.sum(axis=0), self.a.sum(axis=0), float(np.sum(self.b)))


@validate.computed
def Quadratic(
    curvature: ArrayLike, center: ArrayLike | None = None, linear: ArrayLike | None = None, offset: float = 0.0
) -> RoundQuadratic | QuadraticForm:
    """A convex quadratic, ``(1/2) (x - center)' P (x - center) + <linear, x> + offset``.

    Parameters
    ----------
    curvature : float or array_like of shape (d, d)
        P: a number, 0 or above, stands for that multiple of the identity; a matrix is symmetric and positive semidefinite.
    center : array_like of shape (d,), optional
        Where the quadratic part is 0. Default: the origin.
    linear : array_like of shape (d,), optional
        The slope that is added. Default: 0. Where `curvature` is a number, `center` or `linear` must be given.
    offset : float, default 0.0
        A constant that is added, in units of cost or constraint.

    Examples
    --------
    >>> Quadratic(2.0, center=[1.0, 1.0]).value(np.array([0.0, 0.0]))
    2.0
    """
    b = validate.number("offset", offset)
    P = validate.array("curvature", curvature)
    if P.ndim == 0:
        if center is None and linear is None:
            raise InputError("center or linear must be given with a number as curvature: the dimension is unknown otherwise")
        c = np.zeros(len(validate.vector("linear", linear))) if center is None else validate.vector("center", center)
        a = np.zeros(len(c)) if linear is None else validate.vector("linear", linear, len(c))
        return RoundQuadratic(validate.nonnegative("curvature", curvature), c, a, b)
    if P.ndim != 2 or P.shape[0] != P.shape[1] or P.size == 0:
        raise InputError(f"curvature must be a number or a square matrix, not an array of shape {P.shape}")
    if not np.allclose(P, P.T, rtol=1e-12, atol=0.0):
        raise validate.refused("curvature must be a symmetric matrix", curvature)
    least = float(np.linalg.eigvalsh(P)[0])
    if least < -1e-12 * max(1.0, float(abs(P).max())):
        raise InputError(f"curvature must be positive semidefinite; its smallest eigenvalue is {least:.3g}")
    c = np.zeros(len(P)) if center is None else validate.vector("center", center, len(P))
    a = np.zeros(len(P)) if linear is None else validate.vector("linear", linear, len(P))
    return QuadraticForm(P, a - P @ c, b + 0.5 * float(c @ P @ c))
