"""Axes of figures: from numbers to places, and where the ticks are."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

#: Steps between ticks that people read easily, times a power of ten.
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True)
class Axis:
    """A linear or logarithmic axis from `low` to `high`, drawn from `start` to `stop`.

    Examples
    --------
    >>> axis = Axis(0.0, 10.0, 0.0, 100.0)
    >>> axis(2.5), [value for value, _ in axis.ticks(5)]
    (25.0, [0.0, 2.0, 4.0, 6.0, 8.0, 10.0])
    """

    low: float
    high: float
    start: float
    stop: float
    logarithmic: bool = False

    @classmethod
    def around(
        cls, values: Iterable[float], start: float, stop: float, *, margin: float = 0.06
    ) -> Axis:
        """A linear axis that holds the values with some room on both sides."""
        real = [v for v in values if math.isfinite(v)] or [0.0]
        low, high = min(real), max(real)
        room = margin * (high - low) or max(abs(high), 1.0) * margin
        return cls(low - room, high + room, start, stop)

    @classmethod
    def decades(cls, values: Iterable[float], start: float, stop: float) -> Axis:
        """A logarithmic axis over whole powers of ten around the positive values."""
        real = [v for v in values if math.isfinite(v) and v > 0] or [1.0]
        low = 10.0 ** math.floor(math.log10(min(real)))
        high = 10.0 ** math.ceil(math.log10(max(real)) + 1e-9)
        return cls(low, high, start, stop, True)

    def __call__(self, value: float) -> float:
        """Where a value is drawn, at the end of the axis if beyond it."""
        low, high = self.low, self.high
        if self.logarithmic:
            low, high = math.log10(low), math.log10(high)
            value = math.log10(value) if value > 0 else low
        if math.isnan(value):
            value = low
        share = min(max((value - low) / (high - low), 0.0), 1.0) if high > low else 0.5
        return round(self.start + share * (self.stop - self.start), 1)

    def ticks(self, wanted: int = 5) -> list[tuple[float, float]]:
        """Round values and their places."""
        if self.logarithmic:
            first, last = round(math.log10(self.low)), round(math.log10(self.high))
            stride = max(1, -(-(last - first) // wanted))
            return [(10.0**k, self(10.0**k)) for k in range(first, last + 1, stride)]
        span = self.high - self.low
        power = 10.0 ** math.floor(math.log10(span / wanted))
        step = next((s * power for s in _STEPS if span <= wanted * s * power * 1.001), 10 * power)
        first = math.ceil(self.low / step - 1e-9)
        values = [k * step for k in range(first, math.floor(self.high / step + 1e-9) + 1)]
        return [(v, self(v)) for v in values]
