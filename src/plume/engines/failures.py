"""What becomes of an engine's failures, whose words quote data: sentences of our own, and no way back to theirs."""

from collections.abc import Callable
from typing import TypeVar

from plume.errors import EngineError, PlumeError, ResourceError
from plume.redaction import Redaction

_Result = TypeVar("_Result")


def redacted(call: Callable[[], _Result], failure: Callable[[Exception], BaseException]) -> _Result:
    """Call into an engine; whatever it raises may quote data and is replaced, but for errors of our own."""
    with Redaction((Exception,), lambda error: error if isinstance(error, PlumeError) else failure(error)):
        return call()


def blaming_data(refusal: PlumeError) -> Redaction:
    """Refuse data that an engine fails on; if only room is missing, the data is not at fault."""
    return Redaction((EngineError,), lambda error: error if isinstance(error, ResourceError) else refusal)
