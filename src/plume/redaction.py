"""Errors whose words may quote data, a password or a path end here, and a sentence of our own goes on with nothing of them behind it.

Separate because it is easily got wrong: `raise ... from None` hides the first error and keeps it, a traceback keeps what frames name, and
both are written into logs. Only to an operator who asked for it, and may see data, is it told what was withheld.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from plume.errors import PlumeError

Listen = Callable[[str], None]
# Here and not handed from call to call: what is withheld anywhere is for the one operator of a run.
_OPERATOR: ContextVar[Listen | None] = ContextVar("operator", default=None)
_PLACE: ContextVar[str] = ContextVar("place", default="")


@dataclass(frozen=True)
class Redaction:
    """A block of code in which errors of some kinds become others; `becomes` returns an error itself to let it pass.

    Guarantee: from the error that leaves the block no way leads to the one that was raised in it, neither by its chain nor by its frames.
    """

    kinds: tuple[type[BaseException], ...]
    becomes: Callable[[Any], BaseException]

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None:
        if not isinstance(error, self.kinds):
            return
        failure = self.becomes(error)
        if failure is error:
            return
        if not isinstance(error, PlumeError):
            with suppress(Exception):  # an error whose words cannot be written
                tell_operator(_words(failure, error))
        # A traceback keeps this frame and its names.
        del kind, error, trace
        try:
            raise failure
        finally:
            # Python notes here what is being handled around the block.
            failure.__context__ = None


def redacting(*kinds: type[BaseException], to: BaseException) -> Redaction:
    """Replace errors of some kinds by one of ours."""
    return Redaction(kinds, lambda _: to)


def tell_operator(text: str) -> None:
    """NOT PRIVATE: say something to the operator who may see data, if one listens."""
    listen = _OPERATOR.get()
    if listen is not None:
        place = _PLACE.get()
        listen(f"{place}: {text}" if place else text)


@contextmanager
def listening(listen: Listen) -> Iterator[None]:
    """NOT PRIVATE: let an operator hear what is withheld in a block."""
    before = _OPERATOR.set(listen)
    try:
        yield
    finally:
        _OPERATOR.reset(before)


@contextmanager
def placed(place: str) -> Iterator[None]:
    """Say to the operator where in the data what goes wrong in a block goes wrong."""
    before = _PLACE.set(place)
    try:
        yield
    except PlumeError:
        raise
    except Exception as error:
        error.add_note(place)  # it may be withheld outside of the block
        raise
    finally:
        _PLACE.reset(before)


def _words(failure: BaseException, error: BaseException) -> str:
    notes = getattr(error, "__notes__", ())
    return "\n".join([str(failure) or type(failure).__name__, f"{type(error).__name__}: {error}", *notes])
