"""Ways to scale the noise of one query, and the best of them: some are known at once, others take a while to find out.

Its own file because it knows nothing of noise: it only avoids finding out what cannot matter.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

from plume.errors import RangeError

Found = TypeVar("Found")

# What a way must promise to be worth finding out about, against what is found already.
_WORTH = 0.97


@dataclass(frozen=True)
class Way(Generic[Found]):
    """A way to an answer."""

    hope: Callable[[], Found]
    """The answer, or if that must be found out, one that is hardly worse than this and only ever compared."""
    find_out: Callable[[], Found] | None = None

    def answer(self) -> Found:
        """Go the way."""
        return self.find_out() if self.find_out else self.hope()


def best(ways: Iterable[Way[Found]], *, error: Callable[[Found], float]) -> Found:
    """Find the answer with the smallest error, what is known at once first, and find out only what promises to be worth it.

    A way whose noise would be too wide to draw leads nowhere; if all of them do, the last one says so.
    """
    listed = list(ways)
    if len(listed) == 1:
        return listed[0].answer()
    hopes: list[tuple[bool, float, Found, Way[Found]]] = []
    for way in listed:
        with suppress(RangeError):
            hoped = way.hope()
            hopes.append((way.find_out is not None, error(hoped), hoped, way))
    found: list[tuple[float, Found]] = []
    for unknown, hope, hoped, way in sorted(hopes, key=lambda listed: listed[:2]):
        if not found or hope < found[0][0] * _WORTH:
            answer = way.answer() if unknown else hoped
            found = sorted([(error(answer), answer), *found], key=lambda pair: pair[0])
    return found[0][1] if found else listed[-1].answer()
