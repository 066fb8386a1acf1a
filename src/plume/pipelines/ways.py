"""Ways to scale the noise of one query, and the best of them: some are known at once, others take a while to find out.

Its own file because it knows nothing of noise: it only avoids to find out what cannot matter.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

from plume.errors import RangeError

Found = TypeVar("Found")


@dataclass(frozen=True)
class Way(Generic[Found]):
    """A way to an answer, and at least how good one may hope that answer to be; smaller is better."""

    find: Callable[[], Found]
    hope: Callable[[], Found]
    """Something hardly better than what will be found, quickly; it is only ever compared."""


def best(ways: Iterable[Way[Found]], *, error: Callable[[Found], float]) -> Found:
    """Find the answer with the smallest error, and look at no way whose hope is not better than what is found already.

    A way whose noise would be too wide to draw leads nowhere; if all of them do, the last one says so.
    """
    listed = list(ways)
    if len(listed) == 1:
        return listed[0].find()
    hopes: list[tuple[float, Way[Found]]] = []
    for way in listed:
        with suppress(RangeError):
            hopes.append((error(way.hope()), way))
    found: list[tuple[float, Found]] = []
    for hope, way in sorted(hopes, key=lambda pair: pair[0]):
        if not found or hope < found[0][0]:
            answer = way.find()
            found = sorted([*found, (error(answer), answer)], key=lambda pair: pair[0])
    return found[0][1] if found else listed[-1].find()
