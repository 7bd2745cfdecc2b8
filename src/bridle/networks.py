"""A network with one hidden layer as a function of its weights: the loss of one labelled example, forward and backward by hand.

With W the (hidden, inputs) matrix of the first layer, b its biases, v and c those of the output, a the features and y the label (0 or 1):

    h = sigmoid(W a + b),   s = <v, h> + c,   p = sigmoid(s) kept to [CLAMP, 1 - CLAMP],   loss = -y ln p - (1 - y) ln(1 - p)

The decision is (W row by row, b, v, c), so hidden = (d - 1) / (inputs + 2) comes from the shapes. The loss is not convex in it: policies
run on it all the same, and no theorem applies.

Both losses are one function of the margin m = (1 - 2y) s: loss = softplus(m), with derivative sigmoid(m); p leaves its range where |m| is
above `LIMIT`, and from there on the loss is constant and its gradient zero, as automatic differentiation of the clamp has it.
"""

from __future__ import annotations

from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bridle import ops, showing, validate
from bridle.core import Feedback, InputError
from bridle.ops import Array, Scalar, dot

CLAMP = 1e-7
"""The output is kept to [CLAMP, 1 - CLAMP], so that a loss is at most 16.1."""

LIMIT = log(1.0 / CLAMP - 1.0)
"""The largest |s| at which the output is within its range."""


@showing.shown("Network", a="features")
class NetworkLoss(NamedTuple):
    """weight * (the network's loss on one example - tolerance)."""

    a: Array
    label: Scalar
    weight: Scalar
    tolerance: Scalar

    @property
    def convex(self) -> bool:
        return False

    def value(self, x: Array) -> Scalar:
        loss, _ = _loss(self.label, _forward(self.a, x)[1])
        return self.weight * (loss - self.tolerance)

    def grad(self, x: Array) -> Array:
        h, s = _forward(self.a, x)
        return (self.weight * _loss(self.label, s)[1]) * _backward(self.a, x, h)


@showing.shown("NetworkRound")
class NetworkRound(NamedTuple):
    """One example: its loss is the cost where the label is 0 and the constraint, less `tolerance`, where it is 1; the other one is 0.

    Where `everyone` is 1, the loss is the cost whatever the label.

    In the paper's words (section 4, tolerance 0): f_t = -(1 - y) ln(1 - p), g_t = -y ln p. Both come from one forward and one backward
    pass, so this stands in the place of a `Round` of two functions.
    """

    a: Array
    label: Scalar
    tolerance: Scalar
    everyone: Scalar

    @property
    def convex(self) -> bool:
        return False

    @property
    def cost(self) -> NetworkLoss:
        return NetworkLoss(self.a, self.label, 1.0 - self.label * (1.0 - self.everyone), 0.0)

    @property
    def constraints(self) -> tuple[NetworkLoss]:
        return (NetworkLoss(self.a, self.label, self.label, self.tolerance),)

    def reveal(self, x: Array) -> Feedback:
        """The feedback of this round at the decision `x`."""
        h, s = _forward(self.a, x)
        loss, slope = _loss(self.label, s)
        grad = _backward(self.a, x, h)
        g = self.label * (loss - self.tolerance)
        dg = (self.label * slope) * grad
        counted = 1.0 - self.label * (1.0 - self.everyone)
        return Feedback(x, counted * loss, (counted * slope) * grad, _listed(g, x), dg[..., None, :], None, self)  # type: ignore[arg-type]


def score(a: Array, x: Array) -> Scalar:
    """The network's output for the features `a` and the weights `x`, kept to its range: the probability of label 1.

    >>> float(score(np.array([1.0, -2.0]), np.array([1.0, 0.5, 0.0, 2.0, -1.0])))  # one hidden unit: sigmoid(2 sigmoid(0) - 1)
    0.5
    """
    return ops.sigmoid(ops.maximum(ops.minimum(_forward(a, x)[1], LIMIT), -LIMIT))


def weights(inputs: int, hidden: int) -> int:
    """How many numbers a network has: the dimension of a decision.

    >>> weights(30, 10), weights(29, 10)
    (321, 311)
    """
    return validate.whole("hidden", hidden) * (validate.whole("inputs", inputs) + 2) + 1


def Network(features: ArrayLike, label: float, weight: float = 1.0, tolerance: float = 0.0) -> NetworkLoss:
    """The loss of a neural network with one hidden layer on one example, as a function of its weights.

    The value is ``weight * (log-loss - tolerance)``. It is not convex: no theorem applies to what is played on it.

    Returns the loss as a function of a vector of ``hidden * (inputs + 2) + 1`` weights.

    Parameters
    ----------
    features : array_like of shape (inputs,)
        The example.
    label : {0, 1}
        Its class.
    weight : float, default 1.0
        How much the example counts, 0 or above.
    tolerance : float, default 0.0
        The log-loss that is allowed: as a constraint, the loss is to be at most this.

    Examples
    --------
    >>> loss = Network([1.0, -2.0], label=1)
    >>> x = np.array([1.0, 0.5, 0.0, 2.0, -1.0])  # one hidden unit: W = (1, 0.5), b = 0, v = 2, c = -1
    >>> round(loss.value(x), 6), loss.grad(x)
    (0.693147, array([-0.25,  0.5 , -0.25, -0.25, -0.5 ]))
    """
    a, y = validate.vector("features", features), validate.number("label", label)
    if y not in (0.0, 1.0):
        raise validate.refused("label must be 0 or 1", label)
    return NetworkLoss(a, y, validate.nonnegative("weight", weight), validate.number("tolerance", tolerance))


def _forward(a: Array, x: Array) -> tuple[Array, Scalar]:
    """The hidden units (hidden,), and the output before its sigmoid as a scalar; for B runs (B, hidden) and (B, 1)."""
    W, b, v, c = _parts(a, x)
    h = ops.sigmoid((W @ a if a.ndim == 1 else (W @ a[..., None])[..., 0]) + b)
    return h, dot(v, h) + (ops.first(c) if c.ndim == 1 else c)


def _loss(label: Scalar, s: Scalar) -> tuple[Scalar, Scalar]:
    """The loss, and its derivative by s."""
    sign = 1.0 - 2.0 * label
    m = sign * s
    loss = ops.softplus(ops.maximum(ops.minimum(m, LIMIT), -LIMIT))
    return loss, sign * ops.sigmoid(m) * (abs(m) <= LIMIT)  # type: ignore[operator]


def _backward(a: Array, x: Array, h: Array) -> Array:
    """The gradient of s by the weights."""
    u = _parts(a, x)[2] * h * (1.0 - h)
    outer = u[..., None] * a[..., None, :]
    return ops.join([outer.reshape(*u.shape[:-1], u.shape[-1] * a.shape[-1]), u, h, 0.0 * h[..., :1] + 1.0], -1)


def _parts(a: Array, x: Array) -> tuple[Array, Array, Array, Array]:
    n = a.shape[-1]
    hidden, rest = divmod(x.shape[-1] - 1, n + 2)
    if rest or not hidden:
        raise InputError(f"x must have hidden * {n + 2} + 1 coordinates for a network of {n} inputs, not {x.shape[-1]}")
    end = hidden * n
    return x[..., :end].reshape(*x.shape[:-1], hidden, n), x[..., end : end + hidden], x[..., end + hidden : -1], x[..., -1:]


def _listed(g: Scalar, x: Array) -> Array:
    """A scalar as the only one of k = 1 constraints."""
    if isinstance(g, float):
        return np.array([g])
    return g if x.ndim > 1 else g[None]
