"""A query with numbers in place of what it leaves open: those that were chosen and, before that, examples of them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from plume.mechanisms.open_bound import open_bounds
from plume.query import LIMIT, Query

# A candidate of every bound, and one whose noise is as wide in steps of its own grid as that of any: what can be drawn for it can be
# drawn for all.
_EXAMPLE_OF_BOUND = 3


def example_numbers(query: Query) -> dict[str, float]:
    """Give a candidate for each number that a query leaves open, to price and to explain the query by before anything is chosen."""
    return {what: query.selection_limit if what == LIMIT else _EXAMPLE_OF_BOUND for what in query.choices}


def with_numbers(query: Query, numbers: Mapping[str, float]) -> Query:
    """Ask the same with numbers for all that is left open.

    Its noise is Gaussian, as that of all queries that leave numbers open. It has no shares of its own: what choosing spends is not in it.
    """
    limit = int(numbers[LIMIT]) if query.chooses_limit else query.max_keys_per_user
    measures: list[Any] = list(query.measures)
    for what, (number, _) in open_bounds(query.measures).items():
        measures[number] = measures[number].with_bound(numbers[what])
    return replace(query, max_keys_per_user=limit, measures=tuple(measures), noise="gaussian", shares=())
