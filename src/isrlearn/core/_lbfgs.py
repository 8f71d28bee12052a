"""L-BFGS for smooth convex losses, down to where rounding hides them.

Not SciPy's: that one compares values, which near the minimum differ by less than their rounding,
and its products start threads that then compete with those of the loss.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Pairs of steps and changes of the gradient that are remembered.
_MEMORY = 30
#: Share of what its slope promises that a step must make the loss fall by, and share of that slope
#: that may be left at its end.
_FALL, _FLAT = 1e-4, 0.9
#: Most points tried along a step, and steps that gain nothing before the minimum counts as reached.
_TRIALS, _IDLE = 20, 20


class Trial(NamedTuple):
    """A point, and the loss there."""

    u: NDArray[np.float64]
    value: float
    gradient: NDArray[np.float64]

    @property
    def norm(self) -> float:
        """Norm of the gradient."""
        return float(np.linalg.norm(self.gradient))


class Descent:
    """Steps down a convex loss, which may be replaced by a more exact one on the way.

    Parameters
    ----------
    u : ndarray of shape (p,)
        Where to begin.

    Examples
    --------
    >>> import numpy as np
    >>> curvature = np.array([1.0, 10.0])
    >>> descent = Descent(np.ones(2))
    >>> bowl = lambda u: (0.5 * float(curvature @ u**2), curvature * u)
    >>> found = descent(bowl, goal=1e-8, visible=1e-6, most=50)
    >>> found.norm < 1e-8, descent.calls < 20
    (True, True)
    """

    def __init__(self, u: NDArray) -> None:
        self.u, self.calls = u, 0
        # A step, the change of the gradient that it made, and the product of the two.
        self._pairs: deque[tuple[NDArray, NDArray, float]] = deque(maxlen=_MEMORY)

    def __call__(
        self,
        loss: Callable[[NDArray], tuple[float, NDArray]],
        *,
        goal: float,
        visible: float,
        most: int,
    ) -> Trial:
        """Best point found, once the norm of the gradient is down to `goal`, or nothing helps.

        Below a norm of `visible` the loss changes by less than its rounding. `most` is how often a
        loss is computed altogether, or once more.
        """

        def at(u: NDArray) -> Trial:
            self.calls += 1
            return Trial(u, *loss(u))

        here = best = at(self.u)
        idle = 0
        while best.norm > goal and idle < _IDLE:
            there = self._search(at, here, visible, most)
            if there is None:
                break
            self._learn(there.u - here.u, there.gradient - here.gradient)
            here = there
            better = here.norm < best.norm or best.norm > visible
            best, idle = (here, 0) if better else (best, idle + 1)
        self.u = best.u
        return best

    def _search(
        self, at: Callable[[NDArray], Trial], here: Trial, visible: float, most: int
    ) -> Trial | None:
        """A point further on where the loss is smaller and flatter; None if none is to be seen.

        Wolfe's conditions; close to the minimum of a convex loss its slope alone can tell.
        """
        step = -self._times_inverse_curvature(here.gradient)
        slope = float(here.gradient @ step)
        low, high, size = 0.0, np.inf, 1.0
        slopes = {low: slope}
        while self.calls < most and len(slopes) <= _TRIALS:
            there = at(here.u + size * step)
            slopes[size] = float(there.gradient @ step)
            fell = there.value <= here.value + _FALL * size * slope
            if not (fell if here.norm > visible else slopes[size] <= -_FLAT * slope):
                high = size
            elif slopes[size] < _FLAT * slope:
                low = size
            else:
                return there
            if np.isinf(high):
                size *= 4.0
                continue
            # Where the slope would vanish, were it to change evenly; not too near to either end.
            share = slopes[low] / (slopes[low] - slopes[high]) if slopes[high] > 0 else 0.5
            size = low + float(np.clip(share, 0.1, 0.9)) * (high - low)
        return None

    def _learn(self, step: NDArray, change: NDArray) -> None:
        if (product := float(step @ change)) > 0:
            self._pairs.append((step, change, product))

    def _times_inverse_curvature(self, gradient: NDArray) -> NDArray:
        """Gradient times the inverse Hessian that steps and the changes they made tell of."""
        out, shares = gradient.copy(), []
        for step, change, product in reversed(self._pairs):
            shares.append(float(step @ out) / product)
            out -= shares[-1] * change
        if self._pairs:
            _, change, product = self._pairs[-1]
            out *= product / float(change @ change)
        for (step, change, product), share in zip(self._pairs, reversed(shares), strict=True):
            out += (share - float(change @ out) / product) * step
        return out
