"""Calls into engines whose errors quote data: the error ends here, and a plain sentence of our own goes on."""

from collections.abc import Callable
from typing import TypeVar

from plume.errors import PlumeError

_Result = TypeVar("_Result")

Failure = Callable[[Exception], PlumeError | KeyboardInterrupt]


def quietly(call: Callable[[], _Result], failure: Failure) -> _Result:
    """Call; what is raised is replaced outside of the handler, so that no exception chain keeps its words."""
    said: PlumeError | KeyboardInterrupt
    try:
        return call()
    except PlumeError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, it may quote data
        said = failure(error)
    raise said
