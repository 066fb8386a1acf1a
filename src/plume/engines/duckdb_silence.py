"""What DuckDB says when it fails, kept back: its messages quote data."""

from collections.abc import Callable
from typing import TypeVar

import duckdb
import pyarrow as pa

from plume.engines.failures import redacted
from plume.errors import EngineError, PlumeError, ResourceError

_Result = TypeVar("_Result")


def withheld(step: str, call: Callable[[], _Result]) -> _Result:
    """Call DuckDB; what it says of a failure is kept back, and a sentence of our own goes on."""
    return redacted(call, lambda error: _failure(step, error))


def _failure(step: str, error: Exception) -> PlumeError | KeyboardInterrupt:
    """Say what went wrong in words of our own."""
    match error:
        case duckdb.InterruptException():
            return KeyboardInterrupt()
        case duckdb.Error() | OSError() | pa.ArrowException() if not _is_out_of_room(error):
            return EngineError(f"DuckDB failed at step {step}; its message is withheld, since it may quote data.")
        case RuntimeError() if "interrupt" in str(error).lower():
            return KeyboardInterrupt()
        case _ if _is_out_of_room(error):
            return ResourceError(
                f"step {step} ran out of memory or temporary disk space; "
                "give DuckDB a larger memory limit, or a temporary directory with more space."
            )
        case _:
            return EngineError(f"step {step} failed; the reason is withheld, since it may quote data.")


def _is_out_of_room(error: Exception) -> bool:
    full = isinstance(error, duckdb.IOException | OSError) and "no space left" in str(error).lower()
    return full or isinstance(error, duckdb.OutOfMemoryException | MemoryError)
