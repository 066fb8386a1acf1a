"""Alternatives to scale the noise of one query, and the best of them: some are known at once, others take a while to compute.

Its own file because it knows nothing of noise: it only avoids computing what cannot matter.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

from plume.errors import RangeError

Answer = TypeVar("Answer")

# What an estimate must promise to be worth computing exactly, against the best answer so far.
_WORTH = 0.97


@dataclass(frozen=True)
class Alternative(Generic[Answer]):
    """One way to an answer."""

    estimate: Callable[[], Answer]
    """The answer; or, where there is an exact one, an answer that is at most hardly better than that and only ever compared."""
    exact: Callable[[], Answer] | None = None

    def answer(self) -> Answer:
        """Compute the answer that can be used."""
        return self.exact() if self.exact else self.estimate()


def best(alternatives: Iterable[Alternative[Answer]], *, error: Callable[[Answer], float]) -> Answer:
    """Find the answer with the smallest error, what is known at once first, and compute only what promises to be worth it.

    An alternative whose noise would be too wide to draw has no answer; if all of them have none, the last one says so.
    """
    listed = list(alternatives)
    if len(listed) == 1:
        return listed[0].answer()
    estimates: list[tuple[bool, float, Answer, Alternative[Answer]]] = []
    for alternative in listed:
        with suppress(RangeError):
            estimated = alternative.estimate()
            estimates.append((alternative.exact is not None, error(estimated), estimated, alternative))
    answers: list[tuple[float, Answer]] = []
    for unknown, estimate, estimated, alternative in sorted(estimates, key=lambda listed: listed[:2]):
        if not answers or estimate < answers[0][0] * _WORTH:
            answer = alternative.answer() if unknown else estimated
            answers = sorted([(error(answer), answer), *answers], key=lambda pair: pair[0])
    return answers[0][1] if answers else listed[-1].answer()
