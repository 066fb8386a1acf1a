"""A query is checked when it is made, and never changes afterwards."""

from dataclasses import FrozenInstanceError
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import plume
from plume.errors import ArgumentError, BoundError, PublicKeysError, UsageError
from questions import asking


def test_one_key_is_a_tuple_of_one() -> None:
    assert asking(keys="k").keys == ("k",)


def test_keys_keep_their_order() -> None:
    assert asking(keys=["b", "a"]).keys == ("b", "a")


def test_one_measure_is_a_tuple_of_one() -> None:
    assert asking(measures=plume.users()).measures == (plume.users(),)


def test_value_columns_are_named_once() -> None:
    measures = [plume.sum("v", 0, 1), plume.sum("v", 0, 2, name="w"), plume.sum("z", 0, 1), plume.users()]
    assert asking(measures=measures).value_columns == ("v", "z")


def test_a_query_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'user'"):
        asking().user = "other"  # type: ignore[misc]


def test_changing_a_list_afterwards_changes_no_query() -> None:
    keys, measures = ["k"], [plume.users()]
    query = asking(keys=keys, measures=measures)
    keys.append("l")
    measures.clear()
    assert (query.keys, query.measures) == (("k",), (plume.users(),))


def test_without_a_condition_there_is_none() -> None:
    assert asking().condition is None


def test_the_papers_query_takes_what_a_query_takes() -> None:
    settings = {
        "user": "u",
        "keys": "k",
        "measures": [plume.users()],
        "max_keys_per_user": 1,
        "budget": plume.Budget(1, 1e-6),
    }
    asked = plume.Query.paper(**settings)
    assert {name: getattr(asked, name) for name in settings} == settings | {
        "keys": ("k",),
        "measures": (plume.users(),),
    }


def test_public_keys_without_delta_are_enough() -> None:
    assert asking(public_keys=["x"], budget=plume.Budget(1)).budget.delta == 0


def test_a_file_of_public_keys_is_not_opened_when_the_query_is_made() -> None:
    assert asking(public_keys="absent.csv").public_keys == Path("absent.csv")


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (["x", "y"], pa.string()),
        ([1, 2], pa.int64()),
        (range(2), pa.int64()),
        ({"x", "y"}, pa.string()),
        ([True, False], pa.bool_()),
        ([date(2026, 1, 31)], pa.date32()),
        ([b"x"], pa.binary()),
        ([Decimal("1.5")], pa.decimal128(2, 1)),
        ([2**64], pa.string()),
        (np.array(["x", "y"]), pa.string()),
        (np.array([1, 2], dtype=np.int16), pa.int16()),
        (pd.Series([1, 2]), pa.int64()),
        (pd.Index(["x", "y"]), pa.string()),
        (pl.Series([1, 2]), pa.int64()),
        (pa.array([1, 2], pa.uint8()), pa.uint8()),
        (pa.chunked_array([[1], [2]]), pa.int64()),
        (pd.DataFrame({"other": [1.5], "k": [1]}), pa.int64()),
        (pl.DataFrame({"other": [1.5], "k": [1]}), pa.int64()),
        (pa.table({"other": [1.5], "k": [1]}), pa.int64()),
    ],
)
def test_public_keys_become_a_table_of_the_key_columns(given: object, kind: pa.DataType) -> None:
    keys = asking(public_keys=given).public_keys
    assert keys.column_names == ["k"]
    assert keys.schema.field("k").type in (kind, pa.large_string())


@pytest.mark.parametrize(
    "given",
    [
        5,
        {"k": ["x"]},
        (key for key in "xy"),
        [("x", "y")],
        [["x"], ["y", "z"]],
        ["x", 1],
        [1, True],
        [1, 2.5],
        [date(2026, 1, 31), pd.Timestamp("2026-01-31 12:00")],
        [object()],
        ["\ud800"],
        [Decimal("1" * 80)],
        np.array([["x"], ["y"]]),
        pd.Series([1, "x"]),
        pd.DataFrame({"other": ["x"]}),
        pa.table({"K": ["x"]}),
        pl.DataFrame({"other": ["x"]}),
        pl.LazyFrame({"k": ["x"]}),
    ],
)
def test_what_is_no_list_of_public_keys_is_refused(given: object) -> None:
    with pytest.raises(PublicKeysError, match=r"^public_keys must be a list of values or of tuples with 1 parts"):
        asking(public_keys=given)


@pytest.mark.parametrize(
    "given", [[], (), set(), range(0), pa.table({"k": pa.array([], pa.string())}), pd.Series([], dtype=str)]
)
def test_an_empty_list_of_public_keys_is_refused(given: object) -> None:
    with pytest.raises(PublicKeysError, match="public_keys is empty; list at least one key"):
        asking(public_keys=given)


@pytest.mark.parametrize("given", [["x", None], [None], pd.Series(["x", None]), [("x",), (None,)]])
def test_null_is_no_public_key(given: object) -> None:
    with pytest.raises(PublicKeysError, match="public_keys holds NULL"):
        asking(public_keys=given)


@pytest.mark.parametrize(
    "given", [["x", "y", "x", "x"], [1, 2, 1, 1], [([1],), ([2],), ([1],), ([1],)], pd.Series(list("xyxx"))]
)
def test_public_keys_are_listed_once(given: object) -> None:
    with pytest.raises(PublicKeysError, match="public_keys holds 2 duplicates; list each key once"):
        asking(public_keys=given)


@pytest.mark.parametrize("given", [[1.5, 2.5], np.array([1.0]), pd.Series([1.0]), pa.array([1.5], pa.float32())])
def test_floating_point_numbers_are_no_public_keys(given: object) -> None:
    with pytest.raises(PublicKeysError, match="public_keys holds floating-point numbers, which cannot be keys"):
        asking(public_keys=given)


def test_parts_of_composite_public_keys_may_be_of_different_types() -> None:
    keys = asking(keys=["k", "l"], public_keys=[("x", 1), ("y", 2)]).public_keys
    assert keys.to_pydict() == {"k": ["x", "y"], "l": [1, 2]}


def test_public_keys_may_be_alike_in_some_parts() -> None:
    assert asking(keys=["k", "l"], public_keys=[("x", 1), ("x", 2)]).public_keys.num_rows == 2


def test_min_users_beside_public_keys_is_refused() -> None:
    with pytest.raises(BoundError, match="min_users is 2 beside public_keys"):
        asking(public_keys=["x"], min_users=2)


@pytest.mark.parametrize("keys", [[], ()])
def test_a_query_without_keys_asks_for_a_total_and_needs_no_limit_and_no_delta(keys: object) -> None:
    query = plume.Query(user="u", keys=keys, measures=plume.users(), budget=plume.Budget(1))
    assert (query.keys, query.max_keys_per_user, query.has_public_keys) == ((), 1, True)
    assert query.released_columns == ("users",)


@pytest.mark.parametrize("limit", [1, 8, "auto"])
def test_the_limit_of_a_total_plays_no_part(limit: object) -> None:
    query = plume.Query(user="u", keys=[], measures=plume.users(), budget=plume.Budget(1), max_keys_per_user=limit)
    assert (query.max_keys_per_user, query.choices) == (1, ())


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"public_keys": ["x"]}, "a total has no keys, so leave public_keys out"),
        ({"min_users": 2}, "min_users is 2, and keys is empty; a total is released whoever is in it"),
        ({"max_keys_per_user": 0}, "max_keys_per_user is 0"),
        (
            {"keys": None},
            "keys is None; it must be the name of a column, a list of names, or a mapping of names to expressions; .. asks for a total",
        ),
        ({"keys": {}}, "keys is {}"),
        ({"shares": {"selection": 2}}, "the parts that spend are users"),
    ],
)
def test_what_does_not_go_with_a_total_is_refused(asked: dict[str, Any], said: str) -> None:
    settings = {"user": "u", "keys": [], "measures": plume.users(), "budget": plume.Budget(1), "max_keys_per_user": 1}
    with pytest.raises(UsageError, match=said):
        plume.Query(**(settings | asked))


@pytest.mark.parametrize("keys", ["k", ["k"], ("k", "l")])
def test_with_keys_a_limit_must_be_given(keys: object) -> None:
    with pytest.raises(ArgumentError, match=r"^plume.Query needs max_keys_per_user\. max_keys_per_user is the limit"):
        plume.Query(user="u", keys=keys, measures=plume.users(), budget=plume.Budget(1, 1e-6))


def test_audit_and_tune_refuse_a_total() -> None:
    query = plume.Query(user="u", keys=[], measures=plume.users(), budget=plume.Budget(1))
    with pytest.raises(UsageError, match="an audit makes up many keys, and keys is empty"):
        plume.audit(query)
    with pytest.raises(UsageError, match="tuning estimates which keys would be shown, and keys is empty"):
        plume.tune(query, "rows.parquet")


@pytest.mark.parametrize("name", [".", "..", "a.b", "a[0]", "0"])
def test_public_keys_of_a_column_whose_name_looks_like_a_path_are_checked(name: str) -> None:
    """Arrow takes such names for paths into structures."""
    assert asking(keys=name, public_keys=["x", "y"]).public_keys.num_rows == 2
    with pytest.raises(PublicKeysError, match="public_keys holds 1 duplicates"):
        asking(keys=name, public_keys=["x", "x"])
