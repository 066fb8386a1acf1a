"""From a query to its stages: all of them at once if it has its numbers, else those of examples until they are chosen."""

from typing import Any

from plume.choosing.open_query import plan_open
from plume.errors import UsageError, type_in_words
from plume.pipelines.pipeline import PIPELINES, PlannedQuery, plan_query
from plume.query import Query


def make_plan(query: Query, pipeline: Any = "plume") -> PlannedQuery:
    """Plan a query, and refuse a plan that would release anything exact, unbounded or over budget."""
    if not isinstance(pipeline, str) or pipeline not in PIPELINES:
        raise UsageError(f"pipeline is {pipeline!r}; it must be one of {', '.join(PIPELINES)}.")
    return plan_open(query, pipeline) if query.choices else plan_query(query, pipeline)


def refuse_other_than_query(query: Any, place: str = "") -> None:
    """Refuse what is not a query; `place` says where it must stand, for calls that take data too."""
    if not isinstance(query, Query):
        raise UsageError(f"the query is {type_in_words(query)}; it must be a plume.Query{place}.")
