"""What differs between engines that print the same plan, and how names and constants get into SQL: quoted here, or not at all."""

import math
from dataclasses import dataclass, field, replace
from datetime import date, datetime

from plume.errors import PlumeBug
from plume.plan.expressions import Value


@dataclass(frozen=True)
class Dialect:
    """What differs between engines that print the same plan; dialects are equal if the language is."""

    name: str
    quote: str
    text_type: str
    summable_type: str
    """The integer type whose sum cannot overflow, however many rows one user has."""
    wide_type: str
    """The integer type for what is multiplied before it is divided."""
    escapes: tuple[tuple[str, str], ...]
    """What must be replaced inside a text constant, in this order."""
    pattern_escapes: tuple[tuple[str, str], ...] = ()
    """What must be replaced inside the pattern of a LIKE, where a backslash is a backslash."""
    rereads: bool = field(default=False, compare=False)
    """Whether the table is sooner read again than its rows are kept."""
    tasks: int | None = field(default=None, compare=False)
    """How many pieces of rows are worked on at a time, where that is known and matters."""


DUCKDB = Dialect(
    "duckdb", quote='"', text_type="VARCHAR", summable_type="BIGINT", wide_type="HUGEINT", escapes=(("'", "''"),)
)
DUCKDB_REREADING = replace(DUCKDB, rereads=True)
SPARK = Dialect(
    "spark",
    quote="`",
    text_type="STRING",
    summable_type="DECIMAL(28, 0)",
    wide_type="DECIMAL(38, 0)",
    escapes=(("\\", "\\\\"), ("'", "\\'")),
    pattern_escapes=(("\\", "\\\\"),),
)


@dataclass(frozen=True)
class Target:
    """Where a text is going: an engine, and one run on it with its secret."""

    dialect: Dialect
    salt: str


def identifier(name: str, dialect: Dialect) -> str:
    """Quote a name so that it can only be a name."""
    return dialect.quote + name.replace(dialect.quote, dialect.quote * 2) + dialect.quote


def constant(value: Value, dialect: Dialect) -> str:  # noqa: C901 - one case per type
    """Print a constant so that it can only be a constant."""
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case str():
            for plain, escaped in dialect.escapes:
                value = value.replace(plain, escaped)
            return f"'{value}'"
        case float() if not math.isfinite(value):
            raise PlumeBug("a constant of a plan is no finite number")
        case float():
            return f"CAST({value!r} AS DOUBLE)"
        case int():
            return str(value)
