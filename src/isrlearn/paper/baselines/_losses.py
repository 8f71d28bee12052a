"""Losses of a linear model, sample by sample: value, first and second derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Loss(NamedTuple):
    """A loss of outputs ``z`` (n, C) whose derivative is ``activation(z) - target``."""

    activation: Callable[[NDArray], NDArray]
    #: Second derivative of each sample's loss, applied to v: (activation, v) -> (n, C).
    curve: Callable[[NDArray, NDArray], NDArray]
    #: (z, target) -> loss of each sample, (n,).
    value: Callable[[NDArray, NDArray], NDArray]


def _centred_sigmoid(z: NDArray) -> NDArray:
    """sigmoid(z) - 1/2, through tanh: it cannot overflow, and its slope is 1/4 - h²."""
    h = z * 0.5
    np.tanh(h, out=h)
    h *= 0.5
    return h


def _sigmoid_curve(h: NDArray, v: NDArray) -> NDArray:
    slope = h * h
    np.subtract(0.25, slope, out=slope)
    slope *= v
    return slope


def _logistic(z: NDArray, target: NDArray) -> NDArray:
    # Ten times faster than logaddexp. log1p would keep digits that the mean over samples loses.
    softplus = np.log(1 + np.exp(-np.abs(z))) + np.maximum(z, 0)
    return (softplus - (target + 0.5) * z)[:, 0]


def _softmax(z: NDArray) -> NDArray:
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return p


def _softmax_curve(p: NDArray, v: NDArray) -> NDArray:
    pv = p * v
    return pv - p * pv.sum(axis=1, keepdims=True)


def _cross_entropy(z: NDArray, target: NDArray) -> NDArray:
    top = z.max(axis=1)
    return top + np.log(np.exp(z - top[:, None]).sum(axis=1)) - (target * z).sum(axis=1)


#: Binary cross-entropy of one output. The target is the class minus 1/2.
LOGISTIC = Loss(_centred_sigmoid, _sigmoid_curve, _logistic)
#: Cross-entropy of K outputs. The target is the class's unit vector.
SOFTMAX = Loss(_softmax, _softmax_curve, _cross_entropy)
