"""From which number on something holds: the search behind noise, thresholds, widths and composed epsilons.

Its own file, below everything, because it is mathematics alone. A property that holds from some number on is bracketed by doubling and
found by halving; a function that is slow to compute is followed along its values, which takes fewer looks. Three searches are elsewhere,
for reasons of their own: `selection/threshold.py` refines thresholds by SciPy's `brentq`, `selection/released_users.py` searches many
numbers at once, and `auditing/choice.py` halves a range that is given.
"""

from collections.abc import Callable
from typing import TypeVar

Number = TypeVar("Number", int, float)
Holds = Callable[[Number], bool]
Grow = Callable[[Number], Number]
Close = Callable[[float, float, int], bool]
"""When to stop: given both ends of what is left, and how often it was halved."""


def doubled(number: Number) -> Number:
    """Grow as fast as is usual."""
    return 2 * number


def smallest(holds: Holds[float], *, start: float, close: Close, grow: Grow[float] = doubled) -> float:
    """Find the smallest positive number from which on a property holds, or one that is hardly larger."""
    low, high = bracket(holds, 0.0, start, grow)
    return _halve(holds, low, high, lambda low, high: (low + high) / 2, close)


def smallest_whole(holds: Holds[int], low: int, high: int) -> int:
    """Find the smallest whole number above `low` from which on a property holds; `high` need not be large enough."""
    low, high = bracket(holds, low, high, doubled)
    return _halve(holds, low, high, lambda low, high: (low + high) // 2, lambda low, high, _: high - low <= 1)


def within(step: float) -> Close:
    """Stop when both ends are as near, as a share of the upper one."""
    return lambda low, high, _: high - low <= step * high


def after(times: int) -> Close:
    """Stop when as many halvings are done."""
    return lambda _low, _high, halvings: halvings == times


def bracket(holds: Holds[Number], low: Number, high: Number, grow: Grow[Number]) -> tuple[Number, Number]:
    """Raise `high` until a property holds there, and `low` behind it."""
    while not holds(high):
        low, high = high, grow(high)
    return low, high


def _halve(
    holds: Holds[Number], low: Number, high: Number, halfway: Callable[[Number, Number], Number], close: Close
) -> Number:
    halvings = 0
    while not close(low, high, halvings):
        middle = halfway(low, high)
        low, high = (low, middle) if holds(middle) else (middle, high)
        halvings += 1
    return high


def crossing(excess: Callable[[float], float], start: float, tolerance: float, *, first_step: float = 0.0) -> float:
    """Find the smallest number at which a falling function is at most 0, or one that is larger by less than the tolerance.

    It is looked for near `start` first, in steps that grow; `first_step` says how far off it may well be.
    """
    low = high = (start, excess(start))
    step = max(first_step, 4 * tolerance)
    while low[1] <= 0:
        high, place = low, low[0] - step
        low, step = (place, excess(place)), 3 * step
    while high[1] > 0:
        low, place = high, high[0] + step
        high, step = (place, excess(place)), 3 * step
    while high[0] - low[0] > tolerance:
        place = _between(low, high, tolerance)
        value = excess(place)
        low, high = (low, (place, value)) if value <= 0 else ((place, value), high)
    return high[0]


def _between(low: tuple[float, float], high: tuple[float, float], tolerance: float) -> float:
    """Guess where the function crosses 0, a little towards the end that is farther off, so that both ends close in."""
    wide = high[0] - low[0]
    place = low[0] + wide * low[1] / (low[1] - high[1])
    aside = tolerance / 3 if high[0] - place > place - low[0] else -tolerance / 3
    return min(max(place + aside, low[0] + wide / 10), high[0] - wide / 10)
