"""Tables of lakes and datasets that change while others write to them: each is pinned to what it is when a run begins.

Which library made one is seen by its class, so that none of them is imported here.
"""

from collections.abc import Callable
from typing import Any

from plume.engines.arrow_datasets import pin_dataset
from plume.engines.delta import pin_delta
from plume.engines.iceberg import pin_iceberg
from plume.engines.pinned import PinnedTable
from plume.errors import InputError, PlumeError
from plume.redaction import Redaction

_PINS: dict[tuple[str, str], Callable[[Any], PinnedTable]] = {
    ("deltalake", "DeltaTable"): pin_delta,
    ("pyiceberg", "Table"): pin_iceberg,
    ("pyiceberg", "DataScan"): pin_iceberg,
    ("pyarrow", "Dataset"): pin_dataset,
}


def pinned(content: Any) -> Any:
    """Give data as it is to be read: tables that may change as the version they have now, all else as it is."""
    pin = next(filter(None, (_PINS.get(_made_by(each)) for each in type(content).__mro__)), None)
    if pin is None:
        return content
    refusal = InputError(
        f"this {type(content).__name__} could not be opened; check that its files are there, and that its own library can read it."
    )
    with Redaction((Exception,), lambda error: error if isinstance(error, PlumeError) else refusal):
        return pin(content)


def _made_by(kind: type) -> tuple[str, str]:
    return kind.__module__.partition(".")[0], kind.__name__
