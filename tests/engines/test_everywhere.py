"""Values, users, keys and names of every sort mean the same on every engine; many at once, since each question costs Spark a second."""

import math
from collections.abc import Iterable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import plume
from exact import exact_release
from plume.engines.engine import Engine
from plume.errors import ColumnTypeError, PublicKeysError
from questions import asking, people

VALUES = {
    None: 0,
    math.nan: 0,
    math.inf: 0,
    -math.inf: 0,
    0.0: 0,
    5e-324: 0,
    -5e-324: 0,
    2.2250738585072014e-308: 0,
    1.7976931348623157e308: 100,
    -1.7976931348623157e308: -100,
    0.5: 0.5,
    2.0**53 + 2: 100,
    -(2.0**63): -100,
    99.9999999: 99.9999999,
}
# Ids that look alike; each is one user.
TEXTS = [
    "007", "7", "07", "7.0", "7e0", " 7", "7 ", "+7", "1e1", "10", "9007199254740992", "9007199254740993", "-0", "0", "nan", "NaN", "inf",
    "NULL", "null", "None", "true", "True", "é", "e\u0301", "bob", "Bob", "bob ", "bob\u00a0", "bob\u200b", "b\u043eb", "\U0001f600",
    "a\0b",    'a"b', "a'b", "a\\b", "a`b", "2026-01-31", "2026-1-31", "",
]  # fmt: skip
NAMES = [
    "`", "``; DROP VIEW input; --", '"', "'", "\\", "\\'", "a.b", "x`.`y", "*", "${x}", "{salt}", "-- ", "/*", "user", "user_id", "key_1",
    "count(*)",    "a\nb", "\u202e", "é", "名前", " ", "a" * 1000,
]  # fmt: skip
MOMENT = datetime(2026, 1, 31, 12, 30, 15, 123456)  # noqa: DTZ001 - a moment of no zone


def answer(engine: Engine, query: plume.Query, rows: pa.Table, **settings: Any) -> dict[str, list[Any]]:
    return exact_release(query, rows, engine=engine, **settings).to_pydict()


def held(engine: Engine, texts: Iterable[str]) -> list[str]:
    """Leave out what an engine has no texts for: PostgreSQL has none with a zero byte."""
    return [text for text in texts if "\0" not in text or type(engine).__name__ != "PostgreSQL"]


@pytest.mark.quick_on("spark")
@pytest.mark.parametrize("others", [[], [1.0, 2.0]])
def test_special_values_count_by_the_declared_rule(engine: Engine, others: list[float]) -> None:
    keys = [f"{number:02}" for number in range(len(VALUES)) for _ in range(1 + len(others))]
    rows = people(k=keys, v=pa.array([v for value in VALUES for v in (value, *others)], pa.float64()))
    query = asking(measures=[plume.sum("v", -100, 100)], public_keys=sorted(set(keys)))
    expected = [value + sum(others) for value in VALUES.values()]
    assert answer(engine, query, rows)["v_sum"] == pytest.approx(expected, abs=1e-4)


def test_users_without_a_value_add_nothing_even_where_zero_is_out_of_bounds(engine: Engine) -> None:
    rows = people(k=["x"] * 4, v=pa.array([None, math.nan, math.inf, -math.inf], pa.float64()))
    query = asking(measures=[plume.sum("v", 5, 10), plume.count(1), plume.users()])
    assert answer(engine, query, rows) == {"k": ["x"], "v_sum": [0.0], "count": [4], "users": [4]}


@pytest.mark.parametrize(
    "values",
    [
        pa.array([-(2**63), 2**63 - 1] * 50),
        pa.array([-(2**31), 2**31 - 1] * 50, pa.int32()),
        pa.array([Decimal("-" + "9" * 38), Decimal("9" * 38)] * 50, pa.decimal128(38, 0)),
        pa.array([-1.7e308, 1.7e308] * 50),
        pa.array([True, False] * 50),
    ],
)
def test_the_largest_values_of_one_user_do_not_overflow(engine: Engine, values: pa.Array) -> None:
    rows = pa.table({"u": ["a"] * 100, "k": ["x"] * 100, "v": values})
    (found,) = answer(engine, asking(measures=[plume.sum("v", -1e6, 1e6)], public_keys=["x"]), rows)["v_sum"]
    assert -1e6 <= found <= 1e6


@pytest.mark.quick_on("spark")
def test_each_text_is_one_user(engine: Engine) -> None:
    texts = held(engine, TEXTS)
    rows = pa.table({"u": [*texts * 2, *[None] * 1000], "k": ["x"] * (2 * len(texts) + 1000)})
    query = asking(measures=[plume.users(), plume.count(max_per_key=2)], public_keys=["x"])
    assert answer(engine, query, rows) == {"k": ["x"], "users": [len(texts)], "count": [2 * len(texts)]}


@pytest.mark.quick_on("spark")
def test_each_integer_is_one_user(engine: Engine) -> None:
    whole = [0, 1, -1, 7, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]
    rows = pa.table({"u": whole * 2, "k": ["x"] * 16})
    assert answer(engine, asking(measures=[plume.users()], public_keys=["x"]), rows)["users"] == [8]


@pytest.mark.quick_on("spark")
@pytest.mark.parametrize(
    "ids", [pa.array([1.0]), pa.array([Decimal(1)]), pa.array([True]), pa.array([b"a"]), pa.array([["a"]])]
)
def test_users_must_be_text_integers_or_uuids(engine: Engine, ids: pa.Array) -> None:
    with pytest.raises(ColumnTypeError, match=r"user column 'u' is .*; an identifier must be text, integer or uuid"):
        answer(engine, asking(), pa.table({"u": ids, "k": ["x"]}))


KEYS = {
    "text": pa.array(["", "ß"]),
    "small integers": pa.array([-128, 127], pa.int8()),
    "large integers": pa.array([-(2**63), 2**63 - 1]),
    "booleans": pa.array([False, True]),
    "decimals": pa.array([Decimal("-2.5"), Decimal("1.5")]),
    "dates": pa.array([date(1900, 1, 1), date(2026, 1, 31)]),
    "moments": pa.array([datetime(1969, 12, 31, 23, 59, 59), MOMENT]),  # noqa: DTZ001
    "moments in a zone": pa.array([datetime(1969, 12, 31, tzinfo=UTC), MOMENT.replace(tzinfo=UTC)]),
    "bytes": pa.array([b"", b"\xff\x00"]),
    "lists": pa.array([[], [1, None, 2]]),
    "lists of text": pa.array([["a", "b"], ["a,b"]]),
    "structs": pa.array([{"a": 1, "b c`d": "x"}, {"a": 1, "b c`d": "y"}]),
}


@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_a_type_are_selected_counted_and_come_back_as_they_were(engine: Engine, kind: str) -> None:
    """Three users have the first key, two the second; one who has both is cut in the secret order of keys."""
    keys = KEYS[kind].take(pa.array([0, 0, 0, 1, 1, 0, 1]))
    rows = pa.table({"u": ["a", "b", "c", "d", "e", "f", "f"], "k": keys})
    found = answer(engine, asking(max_keys_per_user=1), rows)
    assert found["k"] == KEYS[kind].to_pylist()
    assert sum(found["count"]) == 6
    assert min(found["count"]) in (2, 3)


@pytest.mark.quick_on("spark")
def test_public_keys_of_another_type_are_refused(engine: Engine) -> None:
    with pytest.raises(PublicKeysError, match="values that the key columns' types cannot hold"):
        answer(engine, asking(public_keys=["x"]), people(k=[1, 2, 3]))


@pytest.mark.large
@pytest.mark.parametrize("name", NAMES[::4])
def test_a_hostile_name_is_only_a_name(engine: Engine, name: str) -> None:
    rows = pa.table({"person of it": list("abcde"), name: [1, 1, 2, 2, 9]})
    where = f'"{name.replace(chr(34), chr(34) * 2)}" < 9'
    query = asking(user="person of it", keys=name, measures=[plume.sum(name, 0, 5, name=f"{name} total")], where=where)
    assert answer(engine, query, rows) == {name: [1, 2], f"{name} total": [2.0, 4.0]}


@pytest.mark.quick_on("spark")
def test_hostile_names_are_only_columns(engine: Engine) -> None:
    measures = [plume.sum(name, 0, 5, name=f"m {name}") for name in NAMES]
    rows = pa.table({"u of it": list("abc"), "k of it": ["x"] * 3} | {name: [1.0, 2.0, 3.0] for name in NAMES})
    query = asking(user="u of it", keys="k of it", measures=measures, public_keys=["x"])
    assert answer(engine, query, rows) == {"k of it": ["x"]} | {f"m {name}": [6.0] for name in NAMES}


@pytest.mark.parametrize("pipeline", ["plume", "naive", "runtime_optimized"])
def test_hostile_values_are_only_keys(engine: Engine, pipeline: str) -> None:
    listed = sorted(held(engine, {*NAMES, *TEXTS}))
    rows = people(k=[name for name in listed for _ in range(2)])
    found = answer(engine, asking(), rows, pipeline=pipeline)
    assert dict(zip(found["k"], found["count"], strict=True)) == dict.fromkeys(listed, 2)
    assert found["k"] == sorted(listed, key=str.encode)


CONDITIONS = {
    "t = 'it''s'": "b",
    "t LIKE 'a\\%'": "cd",
    "t LIKE '_b%' OR t IN ('x', 'é')": "ae",
    "n BETWEEN -1 AND 1 AND NOT n = 0": "bc",
    "f > 0.5": "bcde",
    "d >= DATE '2026-02-01'": "de",
    "m < TIMESTAMP '2026-01-31 12:30:16'": "ab",
    "b = TRUE": "ac",
    "t IS NULL OR n IS NULL": "",
    "n < f": "bcde",
}


def test_conditions_mean_the_same(engine: Engine) -> None:
    days = [date(2026, 1, 30), date(2026, 1, 31), date(2026, 1, 31), date(2026, 2, 1), date(2026, 3, 1)]
    rows = pa.table(
        {
            "u": list("abcde"),
            "k": ["x"] * 5,
            "t": ["abc", "it's", "a\\", "a\\%", "é"],
            "n": [2, 1, -1, 0, 5],
            "f": [-1.0, 1.5, math.inf, math.nan, 7.0],
            "d": days,
            "m": [MOMENT, MOMENT, *[datetime(2026, 2, 1)] * 3],  # noqa: DTZ001
            "b": [True, False, True, None, False],
        }
    )
    query = {"measures": [plume.users()], "public_keys": ["x"]}
    found = {text: answer(engine, asking(where=text, **query), rows)["users"] for text in CONDITIONS}
    assert found == {text: [len(users)] for text, users in CONDITIONS.items()}
