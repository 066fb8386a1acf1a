"""What lies in Spark: DataFrames, tables and Parquet give the same answer as anywhere else, and the caller's session stays as it was."""

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import plume
from exact import exact_release
from plume.engines.spark import Spark
from plume.engines.spark_rows import make_frame
from plume.errors import ColumnNotFound, ColumnTypeError, InputError, OutputError, SettingError
from questions import EXPECTED, QUERY, ROWS, asking

pytestmark = pytest.mark.quick_on("spark")


def answer(content: Any, session: Any, query: plume.Query = QUERY) -> dict[str, list[Any]]:
    return exact_release(query, content, engine=Spark(session)).to_pydict()


@pytest.fixture
def frame(session: Any) -> Any:
    return session.createDataFrame(ROWS)


def parquet(path: Path, rows: pa.Table = ROWS) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, path)
    return str(path)


@pytest.mark.quick_on("spark-connect")
def test_a_dataframe_is_answered_in_its_own_session(frame: Any) -> None:
    assert exact_release(QUERY, frame, engine=Spark()).to_pydict() == EXPECTED


def test_the_engine_follows_from_the_data(frame: Any) -> None:
    release = plume.run(asking(public_keys=["x"], budget=plume.Budget(epsilon=1000)), frame)
    assert release.to_arrow()["count"].to_pylist() == [3]


def test_a_dataframe_that_is_computed_is_answered(session: Any, frame: Any) -> None:
    doubled = frame.union(frame).where("v IS NULL OR v < 100").selectExpr("*", "v * 2 AS more")
    assert answer(doubled, session)["count"] == [4, 4, 0]


@pytest.mark.quick_on("spark-connect")
def test_a_view_of_the_callers_session_is_a_table(session: Any, frame: Any) -> None:
    frame.createOrReplaceTempView("searches")
    assert answer("searches", session) == EXPECTED
    assert answer(["searches"], session) == EXPECTED


@pytest.mark.quick_on("spark-connect")
def test_parquet_files_folders_and_patterns_are_read(session: Any, tmp_path: Path) -> None:
    files = [parquet(tmp_path / "1.parquet", ROWS.slice(0, 3)), parquet(tmp_path / "2.parquet", ROWS.slice(3))]
    for content in (files, str(tmp_path), tmp_path, f"{tmp_path}/*.parquet"):
        assert answer(content, session) == EXPECTED


def test_names_of_folders_are_text(session: Any, tmp_path: Path) -> None:
    for key in ("007", "7"):
        parquet(tmp_path / f"k={key}" / "part.parquet", pa.table({"u": ["a", "b"], "v": [1.0, 1.0]}))
    assert answer(tmp_path, session, asking(public_keys=["007", "7"]))["count"] == [2, 2]


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("/absent/rows.parquet", "Spark could not read '/absent/rows.parquet' as Parquet"),
        (["/absent/1.parquet", "/absent/2.parquet"], "Spark could not read one of 2 paths as Parquet"),
        ("no_such_table", "Spark knows no table 'no_such_table'"),
        ("no such table", "Spark knows no table 'no such table'"),
        ([], "the list of files is empty"),
        (5, "data is an int; it must be"),
    ],
)
def test_what_is_not_there_is_said(session: Any, content: Any, match: str) -> None:
    with pytest.raises(InputError, match=match):
        answer(content, session)


def test_parquet_files_with_other_types_are_refused(session: Any, tmp_path: Path) -> None:
    other = ROWS.set_column(0, "u", pa.array(range(7)))
    files = [parquet(tmp_path / "1.parquet"), parquet(tmp_path / "2.parquet", other)]
    with pytest.raises(InputError, match="Spark could not read one of 2 paths as Parquet"):
        answer(files, session)


@pytest.mark.parametrize("name", ["user", "current_user", "_metadata", "U"])
def test_names_that_spark_knows_by_itself_are_no_columns(session: Any, tmp_path: Path, name: str) -> None:
    path = parquet(tmp_path / "rows.parquet")
    with pytest.raises(ColumnNotFound, match=f"no column '{name}' in rows.parquet"):
        answer(path, session, asking(user=name))


def test_names_that_differ_in_case_only_are_two_columns(session: Any) -> None:
    rows = pa.table({"u": ["a", "a"], "U": ["b", "c"], "k": ["x", "x"]})
    query = asking(measures=[plume.users()], public_keys=["x"])
    assert answer(rows, session, query)["users"] == [1]


@pytest.mark.quick_on("spark-connect")
@pytest.mark.parametrize(
    "drawn", ["rand()", "randn(3)", "uuid()", "monotonically_increasing_id()", "shuffle(array(u, k))", "randstr(3)"]
)
def test_rows_that_are_drawn_are_refused(session: Any, frame: Any, drawn: str) -> None:
    with pytest.raises(InputError, match="would hold other rows if Spark computed it again"):
        answer(frame.selectExpr("*", f"{drawn} AS drawn").where("drawn IS NOT NULL"), session)


@pytest.mark.quick_on("spark-connect")
def test_a_stream_is_refused(session: Any) -> None:
    stream = session.readStream.format("rate").load()
    with pytest.raises(InputError, match="is a stream, which never ends"):
        answer(stream, session)


def test_two_columns_of_one_name_are_refused(session: Any, frame: Any) -> None:
    with pytest.raises(InputError, match="columns 'u' and 'u' are one to an engine"):
        answer(frame.select("u", "u", "k", "v"), session)


@pytest.mark.parametrize(
    ("kind", "match"),
    [
        ("MAP<STRING, INT>", "key column 'k' is"),
        ("STRING COLLATE UTF8_LCASE", "key column 'k' is"),
        ("DOUBLE", "key column 'k' is floating-point"),
        ("ARRAY<STRUCT<a: FLOAT>>", "key column 'k' is"),
        ("VARIANT", "key column 'k' is"),
    ],
)
def test_keys_of_which_equal_ones_can_differ_are_refused(session: Any, kind: str, match: str) -> None:
    frame = session.sql(f"SELECT 'a' AS u, CAST(NULL AS {kind}) AS k, 1.0D AS v")
    with pytest.raises(ColumnTypeError, match=match):
        answer(frame, session, asking())


def test_text_whose_case_does_not_count_is_no_identifier(session: Any) -> None:
    frame = session.sql("SELECT CAST('a' AS STRING COLLATE UTF8_LCASE) AS u, 'x' AS k, 1.0D AS v")
    with pytest.raises(ColumnTypeError, match="user column 'u' is"):
        answer(frame, session)


def test_the_callers_session_stays_as_it_was(session: Any, frame: Any) -> None:
    frame.createOrReplaceTempView("rows")
    before = dict(session.conf.getAll), sorted(table.name for table in session.catalog.listTables())
    answer(frame, session)
    assert (dict(session.conf.getAll), sorted(table.name for table in session.catalog.listTables())) == before
    assert session.table("rows").count() == 7
    assert not [table for table in session.catalog.listTables("global_temp") if table.name.startswith("plume_")]


def test_nothing_is_kept_after_a_run(classic: Any, frame: Any) -> None:
    answer(frame, classic, asking())
    with pytest.raises(ZeroDivisionError, match="stop"):
        plume.run(asking(), frame, engine=Spark(classic), on_step=stop_at_release)
    assert classic.sparkContext._jsc.getPersistentRDDs().isEmpty()


@pytest.mark.quick_on("spark-connect")
def test_a_run_gives_its_session_on_spark_connect_up(session: Any) -> None:
    """One left open would ask its server once more when Python ends; classic sessions have nothing to give up."""
    with Spark(session).open({}) as run:
        pass
    assert hasattr(session, "_jvm") or run._session.client.is_closed
    assert session.range(3).count() == 3


def stop_at_release(step: str) -> None:
    if step == "release":
        raise ZeroDivisionError("stop")


@pytest.mark.quick_on("spark-connect")
def test_a_release_becomes_a_dataframe_of_plain_data(session: Any, frame: Any) -> None:
    release = plume.run(asking(public_keys=["x", "y"]), frame)
    rows = release.to_spark(session)
    assert [rows.toArrow().sort_by("k").to_pydict() for _ in range(3)] == [release.to_arrow().to_pydict()] * 3


def test_a_release_is_written_by_spark_where_only_spark_can(session: Any, frame: Any, tmp_path: Path) -> None:
    release = plume.run(asking(public_keys=["x", "y"]), frame)
    release.write_parquet(f"file://{tmp_path}/release")
    assert (tmp_path / "release" / "_SUCCESS").exists()
    assert (
        session.read.parquet(f"{tmp_path}/release").toArrow().sort_by("k").to_pydict() == release.to_arrow().to_pydict()
    )
    with pytest.raises(OutputError, match=r"Spark could not write .* check that the path does not exist yet"):
        release.write_parquet(f"file://{tmp_path}/release")


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"lookup": "guess"}, "lookup is 'guess'; it must be one of auto, broadcast, store, join"),
        ({"lookup": "store"}, "lookup is 'store' and there is no store"),
        ({"keep_in": " "}, "keep_in is ' '; it must be the path of a folder as a text"),
        ({"keep_in": 5}, "keep_in is 5; it must be the path of a folder as a text"),
    ],
)
def test_settings_that_mean_nothing_are_refused_at_once(session: Any, settings: dict[str, Any], match: str) -> None:
    with pytest.raises(SettingError, match=match):
        Spark(session, **settings)


def test_an_engine_does_not_show_the_address_of_its_store(session: Any) -> None:
    assert "secret" not in repr(Spark(session, store="redis://:secret@host"))


def test_rows_behind_an_empty_chunk_are_rows(session: Any) -> None:
    chunks = pa.chunked_array([[], ["a"], [], ["b", "c"]], pa.string())
    assert make_frame(pa.table({"key": chunks}), session).toArrow()["key"].to_pylist() == ["a", "b", "c"]


def test_a_backslash_in_a_constant_is_one_whatever_the_caller_set(classic: Any) -> None:
    query = asking(measures=[plume.count(max_per_key=2)], public_keys=["a\\b"], where="k = 'a\\b'")
    frame = classic.createDataFrame(pa.table({"u": ["ann"], "k": ["a\\b"]}))
    classic.conf.set("spark.sql.parser.escapedStringLiterals", "true")
    try:
        assert answer(frame, classic, query)["count"] == [1]
    finally:
        classic.conf.unset("spark.sql.parser.escapedStringLiterals")


@pytest.mark.parametrize(
    "where", ["v > 5", *(pytest.param(more, marks=pytest.mark.engines) for more in ("NOT v <= 5", "v <> 5"))]
)
@pytest.mark.parametrize("form", ["path", "frame", "statement"])
def test_one_value_does_not_decide_how_nan_of_others_is_read(
    session: Any, tmp_path: Path, form: str, where: str
) -> None:
    """By its statistics, which know no NaN, a file of 5 and NaN has nothing above 5, and one of 5, 6 and NaN has."""
    rows = pa.table({"u": ["a", "b", "c"], "k": ["x"] * 3, "v": [5.0, math.nan, math.nan]})
    path = parquet(tmp_path / "rows.parquet", rows)
    if form == "statement":
        text = (
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1e6, max_groups_contributed = 1, privacy_unit_column = u) "
            f"COUNT(DISTINCT u) AS n FROM t WHERE {where}"
        )
        found = plume.sql(text, tables={"t": path}, engine=Spark(session)).to_arrow()["n"].to_pylist()
    else:
        content = path if form == "path" else session.read.parquet(path)
        query = asking(measures=[plume.users()], public_keys=["x"], where=where)
        found = answer(content, session, query)["users"]
    assert found == [2]


MANY = [str(number) for number in range(100)]


@pytest.mark.engines
@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()], ids=str)
@pytest.mark.parametrize("where", ["v = 0", "v IN (0, 7)", "v >= 0", "v BETWEEN 0 AND 1"])
def test_one_value_does_not_decide_whether_negative_zeros_of_others_are_zero(
    session: Any, tmp_path: Path, where: str, kind: pa.DataType
) -> None:
    """The dictionary of a group of rows does not know that -0.0 is 0.0, and a reader that trusts it leaves the group out."""
    query = asking(measures=[plume.users()], where=where, public_keys=["x"])
    answers = []
    for name, more in {"without": [], "with": [0.0]}.items():
        values = [-0.0] * 4 + [-1.0] * 3 + more
        rows = pa.table(
            {
                "u": [f"user {number}" for number in range(len(values))],
                "k": ["x"] * 7 + ["y"] * len(more),
                "v": pa.array(values, kind),
            }
        )
        answers.append(answer(parquet(tmp_path / f"{name}.parquet", rows), session, query))
    assert answers[0] == answers[1] == {"k": ["x"], "users": [4]}


@pytest.mark.parametrize("zone", [None, pytest.param("UTC", marks=pytest.mark.engines)])
@pytest.mark.parametrize("unit", ["s", "ms"])
def test_a_far_timestamp_in_a_parquet_file_ends_no_run(
    session: Any, tmp_path: Path, unit: str, zone: str | None
) -> None:
    far = pa.array([*[1_600_000_000] * 100, 2**53, -(2**53)], pa.int64()).view(pa.timestamp(unit, zone))
    path = parquet(tmp_path / "rows.parquet", pa.table({"u": [*MANY, "b", "c"], "k": far}))
    found = exact_release(asking(measures=[plume.users()]), path, engine=Spark(session))
    microseconds = found["k"].cast(pa.timestamp("us", zone)).cast(pa.int64()).to_pylist()
    assert microseconds == [1_600_000_000 * (10**6 if unit == "s" else 1_000)]
    assert found["users"].to_pylist() == [100]


def test_timestamps_in_milliseconds_are_read_as_they_are(session: Any, tmp_path: Path) -> None:
    near = pa.array([0, -1, 253_402_300_799_999], pa.int64()).view(pa.timestamp("ms"))
    rows = pa.table({"u": MANY * 3, "k": near.take(pa.array([0, 1, 2] * 100))})
    parquet(tmp_path / "day=1" / "rows.parquet", rows)
    query = asking(
        keys=["k", "day"], measures=[plume.users()], where="k < TIMESTAMP '2000-01-01 00:00:00'", max_keys_per_user=3
    )
    found = exact_release(query, str(tmp_path), engine=Spark(session))
    assert found["k"].cast(pa.int64()).to_pylist() == [-1_000, 0]
    assert found["day"].to_pylist() == ["1", "1"]


def test_files_that_state_timestamps_in_two_units_are_refused(session: Any, tmp_path: Path) -> None:
    for number, unit in enumerate(("ms", "us")):
        moments = pa.array([0], pa.int64()).view(pa.timestamp(unit))
        parquet(tmp_path / f"{number}.parquet", pa.table({"u": ["a"], "k": moments}))
    with pytest.raises(ColumnTypeError, match="in milliseconds in some of its files"):
        answer(str(tmp_path), session, asking(measures=[plume.users()]))
