"""Ways to minimise an objective of linear weights."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Gradient = Callable[[NDArray], NDArray]


def initial_weights(
    n_features: int, n_outputs: int, random_state: int | np.random.RandomState | None
) -> NDArray[np.float32]:
    """Weights (d + 1, C), uniform within 1/sqrt(d); the last row is the intercept.

    With an integer ``random_state`` these are the weights that PyTorch's linear layer starts from
    after ``torch.manual_seed(random_state)``: both draw 24 bits of a Mersenne Twister a weight, so
    runs published with a seed can be repeated without PyTorch.
    """
    if isinstance(random_state, np.random.RandomState):
        stream = random_state
    else:
        stream = np.random.RandomState(random_state)
    size = (n_features + 1) * n_outputs
    bits = stream.randint(0, 2**32, size=size, dtype=np.uint32) & np.uint32(2**24 - 1)
    bound = np.float32(1.0 / np.sqrt(n_features))
    drawn = bits.astype(np.float32) * np.float32(2.0**-24) * (2 * bound) - bound
    coef, intercept = np.split(drawn, [n_features * n_outputs])
    return np.vstack([coef.reshape(n_outputs, n_features).T, intercept[None, :]])


def adam(
    gradient: Gradient,
    start: NDArray,
    *,
    learning_rate: float,
    weight_decay: float,
    n_steps: int,
) -> NDArray:
    """Weights after full-batch Adam (decay rates 0.9 and 0.999), in the precision of ``start``.

    The weight decay is an L2 penalty on all weights, the intercept included.
    """
    W = start.copy()
    first, second = np.zeros_like(W), np.zeros_like(W)
    for t in range(1, n_steps + 1):
        g = gradient(W).astype(W.dtype, copy=False)
        if weight_decay:
            g = g + W * weight_decay
        first += (g - first) * 0.1
        second *= 0.999
        second += np.square(g) * 0.001
        scale = np.sqrt(second)
        scale /= math.sqrt(1.0 - 0.999**t)
        scale += 1e-8
        W -= first / scale * (learning_rate / (1.0 - 0.9**t))
    return W
