"""What kinds of values columns hold, as far as plans and queries care; engines translate their own types to these."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """What a column's values are, as far as a query cares; the value is what people call it."""

    TEXT = "text"
    INTEGER = "integer"
    DECIMAL = "decimal"
    FLOAT = "floating-point"
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMP = "timestamp"
    UUID = "uuid"
    OTHER = "other"


@dataclass(frozen=True)
class ColumnType:
    """The type of a column: its kind, its name in the engine, and whether equal values are the same in every respect.

    Numbers with a floating point are not (0.0 equals -0.0), nor is anything that holds them, nor are intervals (a month equals 30 days).
    """

    kind: Kind
    engine_name: str
    exact: bool = True


Schema = Mapping[str, ColumnType]
