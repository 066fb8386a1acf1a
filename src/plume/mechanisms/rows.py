"""Which rows and values of the table a measure reads: those a condition holds for, and of these the ones that are numbers."""

from plume.plan.aggregates import CountValues
from plume.plan.expressions import Column, Expression, Number, When
from plume.plan.types import Kind

NUMBERS = frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT, Kind.BOOLEAN})
"""What can be counted as a number; a boolean is 0 or 1."""


def condition(where: str | None) -> Expression | None:
    """Read a condition on rows, or raise ConditionError."""
    if where is None:
        return None
    from plume.condition import parse_condition  # noqa: PLC0415 - a parser takes long to load, and few queries have a condition

    return parse_condition(where)


def given(where: str | None, of: Expression) -> Expression:
    """Read an expression on the rows that a condition holds for, and NULL on the others."""
    records = condition(where)
    return of if records is None else When(records, of)


def values(column: str, where: str | None) -> CountValues:
    """Count the values of a column."""
    return CountValues(given(where, Number(Column(column))))
