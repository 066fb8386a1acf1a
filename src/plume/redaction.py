"""Errors whose words may quote data, a password or a path end here, and a sentence of our own goes on with nothing of them behind it.

Separate because it is easily got wrong: `raise ... from None` hides the first error and keeps it, a traceback keeps what frames name, and
both are written into logs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType


@dataclass(frozen=True)
class Redaction:
    """A block of code in which errors of some kinds become others; `becomes` returns an error itself to let it pass.

    Guarantee: from the error that leaves the block no way leads to the one that was raised in it, neither by its chain nor by its frames.
    """

    kinds: tuple[type[Exception], ...]
    becomes: Callable[[Exception], BaseException]

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None:
        if not isinstance(error, self.kinds):
            return
        failure = self.becomes(error)
        if failure is error:
            return
        # A traceback keeps this frame and its names.
        del kind, error, trace
        try:
            raise failure
        finally:
            # Python notes here what is being handled around the block.
            failure.__context__ = None


def redacting(*kinds: type[Exception], to: BaseException) -> Redaction:
    """Replace errors of some kinds by one of ours."""
    return Redaction(kinds, lambda _: to)
