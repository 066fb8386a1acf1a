"""What limits and bounds cut off from released numbers, in one sentence. The intervals of noise do not cover it.

How much is cut off is known only where a number was chosen within the budget, from the noised histogram it was chosen by. The histogram is
paid for, so saying it costs nothing: docs/guarantees/auto-limit.md.
"""

import math
from collections.abc import Iterator, Mapping

from plume.choosing.histogram import NOTHING_KNOWN, Share
from plume.errors import printable
from plume.explanation import Explanation
from plume.mechanisms.margins import LEVEL
from plume.mechanisms.open_bound import open_bounds
from plume.mechanisms.users import CountUsers
from plume.query import LIMIT
from plume.settings import AUTO


def describe_cut_off(explanation: Explanation, above: Mapping[str, Share]) -> str:
    """Say which shares lie above the numbers that were chosen, and beyond which other limits it is not known how much lies."""
    told = {what: share for what, share in above.items() if share != NOTHING_KNOWN}
    words = [_told(explanation, what, share) for what, share in told.items()]
    if unknown := list(_unknown(explanation, told)):
        otherwise = "" if explanation.query.choices else f', unless "{AUTO}" chooses the number'
        words.append(f"what lies beyond {' and '.join(unknown)}; how much that is stays unknown{otherwise}")
    return printable("; ".join(words))


def _told(explanation: Explanation, what: str, share: Share) -> str:
    number, user, shown = explanation.chosen[what], explanation.query.user, _percent(share)
    if what != LIMIT:
        most = explanation.calibrated.max_keys_per_user
        looked_at = f"the contributions of each value of {user} (the {most:,} largest, where there are more)"
        return f"{shown} of {looked_at} are beyond {what} = {number:,.10g}"
    if share == (0, 0):
        return f"no value of {user} has more than {number:,.10g} selected keys"
    return f"{shown} of the values of {user} have more than {number:,.10g} selected keys"


def _percent(share: Share) -> str:
    """Round outwards, and say how sure that is."""
    low, high = math.floor(share[0] * 1000) / 10, math.ceil(share[1] * 1000) / 10
    return f"{low:g} to {high:g} % ({100 * LEVEL:g} % interval)"


def _unknown(explanation: Explanation, told: Mapping[str, Share]) -> Iterator[str]:
    """Name what cuts off nobody knows how much: the limit, where there are keys, and the bounds of what does not count a user once."""
    query = explanation.query
    if query.keys and LIMIT not in told:
        yield f"{LIMIT} = {explanation.calibrated.max_keys_per_user:,}"
    bounded_by = {number for what, (number, _) in open_bounds(query.measures).items() if what in told}
    bounded = [
        measure.name
        for number, measure in enumerate(query.measures)
        if number not in bounded_by and not isinstance(measure, CountUsers)
    ]
    if bounded:
        yield f"the bounds of {', '.join(bounded)}"
