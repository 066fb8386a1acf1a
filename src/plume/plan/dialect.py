"""What differs between the SQL of engines in words and not in form, and how names and constants get into it: quoted here, or not at all.

`plan/printing/spark.py` lists all places where engines differ.
"""

import math
from dataclasses import dataclass
from datetime import date, datetime

from plume.errors import PlumeBug
from plume.plan.expressions import Value
from plume.plan.types import Schema


@dataclass(frozen=True)
class StatementForms:
    """How an engine says what the statement of a caller may say."""

    tries: bool
    """Whether TRY and TRY_CAST make NULL of what fails; where not, sessions read relations so that nothing in them fails."""
    timestamp_type: str
    """The type of a timestamp without a time zone."""
    starts_with: str
    """The function that compares how a text begins."""
    trims_in_words: bool
    """Whether what is trimmed is said in words, as in TRIM(BOTH 'x' FROM t), and not by a second argument."""
    rounds_to_places: bool
    """Whether FLOOR and CEIL take a number of places."""
    truncates_dates_to_dates: bool
    """Whether DATE_TRUNC of a date is a date."""
    extracted_units: tuple[str, ...]
    """The units that EXTRACT knows beside those of all engines."""
    truncated_units: tuple[str, ...]
    """The units that DATE_TRUNC knows beside those of all engines."""
    escapes_in_patterns: bool
    """Whether a backslash in a pattern of LIKE is an escape."""
    has_catalogue: bool
    """Whether a name that the caller does not explain is a table that the engine knows, or a path that it reads."""
    computes: bool = True
    """Whether what a caller may write is known to be total there; where not, statements and computed keys are refused."""


@dataclass(frozen=True)
class Dialect:
    """An engine's SQL: its name, its types, how it quotes."""

    name: str
    quote: str
    text_type: str
    summable_type: str
    """The integer type whose sum cannot overflow, however many rows one user has."""
    wide_type: str
    """The integer type for what is multiplied before it is divided."""
    divide: str
    """How integers are divided and cut toward zero: the one and the other in the place of two pairs of braces."""
    escapes: tuple[tuple[str, str], ...]
    """What must be replaced inside a text constant, in this order."""
    pattern_escapes: tuple[tuple[str, str], ...]
    """What must be replaced inside the pattern of a LIKE, where a backslash is a backslash."""
    statements: StatementForms
    double_type: str = "DOUBLE"


def identifier(name: str, dialect: Dialect) -> str:
    """Quote a name so that it can only be a name."""
    return dialect.quote + name.replace(dialect.quote, dialect.quote * 2) + dialect.quote


def typed(column: str, types: Schema, dialect: Dialect) -> str:
    """Print a column, as the type that `types` has for it, if any."""
    quoted = identifier(column, dialect)
    return f"CAST({quoted} AS {types[column].engine_name}) AS {quoted}" if column in types else quoted


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
            raise PlumeBug("a constant of a plan is not a finite number")
        case float():
            return f"CAST({value!r} AS {dialect.double_type})"
        case int():
            return str(value)
