"""Delta tables, Iceberg tables and datasets of Arrow: one version of them is read, exactly, whatever their libraries make of a value."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.manifest import DataFileContent
from pyiceberg.table import Table
from pyiceberg.types import DoubleType, LongType

import plume
from lakes import (
    actions,
    commit,
    data_files,
    delete_by_position,
    delta,
    iceberg,
    plain_path,
    protocol,
    rewrite,
    with_deletion_vectors,
)
from plume.engines.pinned import becomes
from plume.errors import ColumnNotFound, ColumnTypeError, InputError, PlumeError, StatementError
from questions import EXPECTED, QUERY, ROWS, USERS, answer, asking


def parted(folder: Path, **settings: Any) -> ds.Dataset:
    hive = ds.partitioning(pa.schema([("k", pa.string())]), flavor="hive")
    ds.write_dataset(ROWS, folder, format="parquet", partitioning=hive)
    return ds.dataset(folder, **({"partitioning": "hive"} | settings))


def in_two(folder: Path) -> DeltaTable:
    write_deltalake(folder, ROWS.slice(0, 3))
    write_deltalake(folder, ROWS.slice(3), mode="append")
    return DeltaTable(folder)


def with_checkpoint(folder: Path) -> DeltaTable:
    table = in_two(folder)
    table.create_checkpoint()
    return DeltaTable(folder)


KINDS: dict[str, Callable[[Path], Any]] = {
    "a Delta table": lambda folder: delta(folder, ROWS),
    "a Delta table of two files": in_two,
    "a Delta table with a checkpoint": with_checkpoint,
    "a Delta table with partitions": lambda folder: delta(folder, ROWS, partition_by=["k"]),
    "a Delta table with partitions by users": lambda folder: delta(folder, ROWS, partition_by=["u", "k"]),
    "an Iceberg table": lambda folder: iceberg(folder, ROWS),
    "a scan of an Iceberg table": lambda folder: iceberg(folder, ROWS).scan(),
    "a dataset": lambda folder: (folder.mkdir(), pq.write_table(ROWS, folder / "rows.parquet"), ds.dataset(folder))[-1],
    "a dataset with partitions": parted,
    "a dataset with partitions as dictionaries": lambda folder: parted(
        folder, partitioning=ds.HivePartitioning.discover(infer_dictionary=True)
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_rows_give_the_same_answer(tmp_path: Path, kind: str) -> None:
    table = KINDS[kind](tmp_path / "rows")
    assert answer(QUERY, table) == EXPECTED
    assert answer(QUERY, table, pipeline="naive") == EXPECTED


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_column_is_named(tmp_path: Path, kind: str) -> None:
    with pytest.raises(
        ColumnNotFound, match=r"no column 'w' in this \w+; did you mean|no column 'w' in this \w+\. Columns: "
    ):
        answer(asking(measures=[plume.sum("w", 0, 1)]), KINDS[kind](tmp_path / "rows"))


def test_rows_in_deletion_vectors_are_gone(tmp_path: Path) -> None:
    table = with_deletion_vectors(delta(tmp_path / "rows", ROWS.slice(0, 5)), 1, 4)
    assert answer(QUERY, table) == {"k": ["x", "y", "z"], "count": [2, 1, 0], "v_sum": [4.0, 4.0, 0.0]}
    assert sorted(pa.table(table.scan()).column("v").to_pylist()) == [1.0, 3.0, 4.0]


def test_deletion_vectors_of_partitions_belong_to_their_files(tmp_path: Path) -> None:
    rows = pa.table({"u": ["a", "b", "c", "d"], "k": ["x /%20", "x /%20", "y", "y"]})
    table = with_deletion_vectors(delta(tmp_path / "rows", rows, partition_by=["k"]), 0)
    query = asking(measures=[plume.users()], public_keys=["x /%20", "y"])
    assert answer(query, table) == {"k": ["x /%20", "y"], "users": [1, 1]}


def test_rows_are_deleted_by_their_places_across_batches(tmp_path: Path) -> None:
    rows = pa.table({"u": [str(n) for n in range(200_000)], "k": ["x"] * 200_000})
    table = with_deletion_vectors(delta(tmp_path / "rows", rows), *range(65_000, 140_000))
    assert answer(asking(measures=[plume.users()], public_keys=["x"]), table)["users"] == [125_000]


def test_a_column_that_was_added_is_null_in_older_files(tmp_path: Path) -> None:
    write_deltalake(tmp_path, ROWS.drop_columns(["v"]).slice(0, 3))
    write_deltalake(tmp_path, ROWS.slice(3), mode="append", schema_mode="merge")
    assert answer(QUERY, DeltaTable(tmp_path))["v_sum"] == [0.0, 4.0, 0.0]


def test_a_version_is_what_it_was_whatever_is_committed_between_two_steps(tmp_path: Path) -> None:
    table = delta(tmp_path / "rows", ROWS)
    steps = []

    def overwrite(step: str) -> None:
        steps.append(step)
        write_deltalake(tmp_path / "rows", ROWS.slice(0, 1), mode="overwrite")

    release = plume.run(USERS, table, on_step=overwrite)
    assert len(steps) > 1
    assert release.record()["sources"] == [{"table": "Delta table", "id": str(table.metadata().id), "version": 0}]
    assert answer(QUERY, table) == EXPECTED
    assert answer(QUERY, DeltaTable(tmp_path / "rows"))["count"] == [1, 0, 0]


def test_a_snapshot_is_what_it_was_whatever_is_committed_between_two_steps(tmp_path: Path) -> None:
    table = iceberg(tmp_path, ROWS)
    snapshot = table.current_snapshot().snapshot_id
    before = table.scan()

    release = plume.run(USERS, before, on_step=lambda _: table.append(ROWS))
    assert release.record()["sources"] == [
        {"table": "Iceberg table", "id": str(table.metadata.table_uuid), "snapshot": str(snapshot)}
    ]
    assert answer(QUERY, before) == answer(QUERY, table.scan(snapshot_id=snapshot)) == EXPECTED
    assert answer(QUERY, table)["v_sum"] != EXPECTED["v_sum"]


def test_a_release_that_is_asked_for_again_names_the_version_that_was_read(tmp_path: Path) -> None:
    ledger = plume.Ledger.create(tmp_path / "ledger.db", datasets={"rows": plume.Budget(400, 0.9)})
    table = delta(tmp_path / "rows", ROWS)
    first = plume.run(USERS, table, ledger=ledger, dataset="rows", release_id="one")
    write_deltalake(tmp_path / "rows", ROWS, mode="append")
    again = plume.run(USERS, DeltaTable(tmp_path / "rows"), ledger=ledger, dataset="rows", release_id="one")
    assert again.released_before is not None
    assert again.sources == first.sources
    assert again.record()["sources"][0]["version"] == 0


def test_other_data_has_no_version(tmp_path: Path) -> None:
    assert "sources" not in plume.run(USERS, ROWS).record()
    assert "sources" not in plume.run(USERS, parted(tmp_path)).record()


@pytest.mark.parametrize("written", [protocol("columnMapping"), protocol("timestampNtz"), protocol(reader=2)])
def test_what_a_reader_of_a_delta_table_must_know_is_known(tmp_path: Path, written: dict[str, Any]) -> None:
    assert answer(QUERY, commit(delta(tmp_path / "rows", ROWS), written)) == EXPECTED


def test_what_a_reader_of_a_delta_table_must_know_is_a_closed_list(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="needs a reader that knows typeWidening, which Plume does not"):
        answer(QUERY, commit(delta(tmp_path / "rows", ROWS), protocol("typeWidening")))


def test_mapped_columns_are_refused(tmp_path: Path) -> None:
    table = delta(tmp_path / "rows", ROWS)
    [metadata] = [one for one in actions(table) if "metaData" in one]
    metadata["metaData"]["configuration"] = {"delta.columnMapping.mode": "name"}
    fields = json.loads(metadata["metaData"]["schemaString"])
    for number, column in enumerate(fields["fields"]):
        column["metadata"] = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": column["name"]}
    metadata["metaData"]["schemaString"] = json.dumps(fields)
    with pytest.raises(InputError, match="knows columnMapping, which Plume does not"):
        answer(QUERY, commit(table, protocol(reader=2), metadata))


def test_a_file_that_is_gone_is_an_error_without_its_path(tmp_path: Path) -> None:
    table = delta(tmp_path / "secret", ROWS)
    for file in (tmp_path / "secret").glob("*.parquet"):
        file.unlink()
    with pytest.raises(InputError, match="this DeltaTable could not be opened") as error:
        answer(QUERY, table)
    assert "secret" not in str(error.value)


def test_a_file_that_changes_while_it_is_read_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = parted(tmp_path)
    [*_, last] = sorted(tmp_path.rglob("*.parquet"))
    real = pq.ParquetFile.iter_batches

    def touching(file: pq.ParquetFile, **settings: Any) -> Any:
        pq.write_table(ROWS.slice(0, 1).drop_columns(["k"]), last)
        return real(file, **settings)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", touching)
    with pytest.raises(InputError, match="that nobody changes it meanwhile"):
        answer(QUERY, dataset)


def far(*values: int, kind: pa.DataType) -> pa.Array:
    return pa.array(values, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)


HOSTILE = {
    "text that is not UTF-8": pa.array([b"a", b"\xff"]).view(pa.string()),
    "a day after the year 9999": far(0, 2_932_897, kind=pa.date32()),
    "a day before the year 1": far(0, -719_529, kind=pa.date32()),
    "a far timestamp": far(0, 2**62, kind=pa.timestamp("us")),
    "a far timestamp with a zone": far(0, -(2**62), kind=pa.timestamp("us", "UTC")),
    "NaN": pa.array([1.0, float("nan")]),
    "infinity": pa.array([1.0, float("inf")]),
}


def iceberg_as_others_write_it(folder: Path, rows: pa.Table) -> Table:
    """pyiceberg writes no day that Python has none for, and no text that is not UTF-8; other writers do."""
    table = iceberg(folder, pa.table([column.take([0] * len(rows)) for column in rows.columns], schema=rows.schema))
    rewrite(plain_path(data_files(table)[0]), rows)
    return table


def delta_with_a_hostile_file(folder: Path, rows: pa.Table) -> DeltaTable:
    table = delta(folder, pa.table([column.take([0] * len(rows)) for column in rows.columns], schema=rows.schema))
    rewrite(next(folder.glob("*.parquet")), rows)
    return table


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("make", [delta, iceberg_as_others_write_it, delta_with_a_hostile_file])
def test_no_value_of_a_lake_makes_a_run_fail(tmp_path: Path, value: str, make: Callable[..., Any]) -> None:
    columns = {"u": pa.array(["a", "b"]), "k": pa.array(["x", "x"]), "x": HOSTILE[value]}
    table = make(tmp_path / "rows", pa.table(columns))
    asked = asking(measures=[plume.users(where="x IS NULL OR u = 'a'")], public_keys=["x"])
    assert answer(asked, table) == {"k": ["x"], "users": [1 + (value == "text that is not UTF-8")]}


@pytest.mark.parametrize("value", [value for value in HOSTILE if value not in ("NaN", "infinity")])
@pytest.mark.parametrize("make", [delta, iceberg_as_others_write_it])
def test_a_hostile_key_of_a_lake_is_one_key_at_most(tmp_path: Path, value: str, make: Callable[..., Any]) -> None:
    rows = pa.table(
        {"u": pa.array(["a", "b", "c"]), "x": pa.concat_arrays([HOSTILE[value], HOSTILE[value].slice(0, 1)])}
    )
    released = answer(asking(keys="x", measures=[plume.users()]), make(tmp_path / "rows", rows))
    assert released["users"][0] == 2 or released["users"][-1] == 2


def test_a_day_after_the_year_9999_fails_in_the_library_of_a_delta_table_and_not_here(tmp_path: Path) -> None:
    table = delta(tmp_path / "rows", ROWS.slice(0, 2).append_column("day", HOSTILE["a day after the year 9999"]))
    with pytest.raises(ValueError, match="Invalid isoformat string"):
        table.to_pyarrow_dataset()
    assert answer(QUERY, table)["count"] == [2, 0, 0]


@pytest.mark.parametrize("kind", ["a far timestamp", "a day after the year 9999", "infinity"])
def test_a_partition_of_a_strange_value_is_read(tmp_path: Path, kind: str) -> None:
    rows = ROWS.slice(0, 2).append_column("day", HOSTILE[kind])
    assert answer(QUERY, delta(tmp_path / "rows", rows, partition_by=["day"]))["count"] == [2, 0, 0]


def test_statistics_of_a_delta_table_are_not_believed(tmp_path: Path) -> None:
    table = delta(tmp_path / "rows", ROWS)
    [added] = [one["add"] for one in actions(table) if "add" in one]
    lies = {
        "numRecords": 0,
        "minValues": {"u": "zz", "v": 1e9},
        "maxValues": {"u": "zzz", "v": 1e9},
        "nullCount": {"u": 7, "k": 7, "v": 7},
    }
    assert answer(QUERY, commit(table, {"add": added | {"stats": json.dumps(lies)}})) == EXPECTED


# Iceberg


def test_columns_of_an_iceberg_table_keep_their_numbers_when_they_are_renamed(tmp_path: Path) -> None:
    table = iceberg(tmp_path, ROWS)
    with table.update_schema() as update:
        update.rename_column("v", "w")
    with table.update_schema() as update:
        update.add_column("v", DoubleType())
    table.append(pa.table({"u": ["z"], "k": ["y"], "w": [7.0], "v": [1.0]}))
    query = asking(measures=[plume.sum("v", 0, 10), plume.sum("w", 0, 10)], public_keys=["x", "y"])
    assert answer(query, table) == {"k": ["x", "y"], "v_sum": [0.0, 1.0], "w_sum": [6.0, 11.0]}


def test_an_iceberg_table_with_partitions_is_read(tmp_path: Path) -> None:
    table = iceberg(tmp_path, ROWS.slice(0, 0))
    with table.update_spec() as update:
        update.add_identity("k")
    table.append(ROWS.slice(0, 3))
    with table.update_schema() as update:
        update.add_column("w", DoubleType())
    with table.update_spec() as update:
        update.remove_field("k")
    table.append(ROWS.slice(3).append_column("w", pa.array([1.0, None, None, None])))
    assert answer(QUERY, table) == EXPECTED
    assert answer(asking(measures=[plume.sum("w", 0, 1)], public_keys=["x", "y"]), table)["w_sum"] == [0.0, 1.0]


def test_a_column_that_stands_in_partitions_alone_is_refused(tmp_path: Path) -> None:
    table = iceberg(tmp_path, ROWS.slice(0, 0))
    with table.update_spec() as update:
        update.add_identity("k")
    table.append(ROWS.slice(0, 3))
    [path] = map(plain_path, data_files(table))
    rewrite(path, pq.read_table(path, partitioning=None).drop_columns(["k"]))
    with pytest.raises(InputError, match="column 'k' of this Iceberg table stands in its partitions"):
        answer(QUERY, table)


def test_a_column_that_was_dropped_and_added_again_is_another_one(tmp_path: Path) -> None:
    table = iceberg(tmp_path, ROWS)
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("v")
    with table.update_schema() as update:
        update.add_column("v", DoubleType())
    assert answer(QUERY, table)["v_sum"] == [0.0, 0.0, 0.0]


def test_a_type_that_was_widened_is_read_in_older_files(tmp_path: Path) -> None:
    rows = pa.table({"u": ["a", "b"], "k": ["x", "y"], "v": pa.array([1, -2], pa.int32())})
    table = iceberg(tmp_path, rows)
    with table.update_schema() as update:
        update.update_column("v", LongType())
    table.append(pa.table({"u": ["c"], "k": ["x"], "v": [4]}))
    query = asking(measures=[plume.sum("v", -10, 10)], public_keys=["x", "y"])
    assert answer(query, table) == {"k": ["x", "y"], "v_sum": [5, -2]}


def test_rows_that_are_deleted_by_their_places_are_gone(tmp_path: Path) -> None:
    table = iceberg(tmp_path, ROWS.slice(0, 5))
    table.append(ROWS.slice(0, 1))
    one = data_files(table)[0]
    rows = pq.read_metadata(one.removeprefix("file://")).num_rows
    delete_by_position(table, one, *range(rows))
    left = table.scan().to_arrow()
    assert left.num_rows == 6 - rows
    assert answer(asking(measures=[plume.count(9)], public_keys=["x", "y"]), table)["count"] == [
        left.column("k").to_pylist().count(key) for key in "xy"
    ]


def test_rows_that_are_deleted_by_their_values_are_refused(tmp_path: Path) -> None:
    table = iceberg(tmp_path, ROWS)
    delete_by_position(table, data_files(table)[0], 0, content=DataFileContent.EQUALITY_DELETES)
    with pytest.raises(InputError, match="this Table could not be opened"):
        answer(QUERY, table)


def added_file(folder: Path) -> Table:
    table = iceberg(folder, ROWS)
    pq.write_table(ROWS, folder / "more.parquet")
    table.add_files([f"file://{folder}/more.parquet"])
    return table


def test_files_that_were_added_to_an_iceberg_table_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="files whose columns have no numbers"):
        answer(QUERY, added_file(tmp_path))


@pytest.mark.parametrize("scan", [{"row_filter": "v > 1"}, {"limit": 1}])
def test_a_scan_of_some_rows_is_refused(tmp_path: Path, scan: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="leaves rows out; scan all of it, and filter by where="):
        answer(QUERY, iceberg(tmp_path, ROWS).scan(**scan))


def test_an_iceberg_table_without_a_snapshot_is_empty(tmp_path: Path) -> None:
    table = iceberg(tmp_path, ROWS)
    empty = table.catalog.create_table("shop.empty", ROWS.schema)
    assert answer(QUERY, empty)["count"] == [0, 0, 0]
    assert plume.run(USERS, empty).record()["sources"][0]["snapshot"] is None


# Datasets


def test_a_dataset_with_a_filter_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="filter by where=") as error:
        answer(QUERY, parted(tmp_path).filter(ds.field("v") > 4321))
    assert "4321" not in str(error.value)


@pytest.mark.parametrize("form", ["csv", "feather", "memory"])
def test_a_dataset_of_other_files_is_refused(tmp_path: Path, form: str) -> None:
    if form == "memory":
        dataset = ds.dataset(ROWS)
    else:
        ds.write_dataset(ROWS, tmp_path, format=form)
        dataset = ds.dataset(tmp_path, format=form)
    with pytest.raises(InputError, match="not made of Parquet files on this machine"):
        answer(QUERY, dataset)
    if form != "csv":  # where nothing and an empty text are one
        assert answer(QUERY, dataset.scanner().to_reader()) == EXPECTED


def test_a_dataset_reads_the_parts_of_files_that_it_lists(tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "rows.parquet", row_group_size=2)
    [fragment] = ds.dataset(tmp_path).get_fragments()
    some = ds.FileSystemDataset(
        [fragment.subset(row_group_ids=[0, 2])], ROWS.schema, fragment.format, fragment.filesystem
    )
    assert answer(QUERY, some)["count"] == [2, 1, 0]


def test_a_column_that_files_have_in_types_of_which_one_holds_less_is_refused(tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "1.parquet")
    pq.write_table(ROWS.set_column(2, "v", pa.array(range(7), pa.int64())), tmp_path / "2.parquet")
    with pytest.raises(ColumnTypeError, match="column 'v' of this dataset is double, and int64 in one of its files"):
        answer(QUERY, ds.dataset(tmp_path))


def test_columns_nobody_asks_for_may_differ_between_files(tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "1.parquet")
    pq.write_table(ROWS.append_column("more", pa.array([[1]] * 7)), tmp_path / "2.parquet")
    pq.write_table(ROWS.append_column("more", pa.array(["x"] * 7)), tmp_path / "3.parquet")
    assert answer(USERS, ds.dataset(tmp_path)) == {"k": ["x", "y"], "users": [2, 2]}


WIDENED = [
    (pa.int8(), pa.int64(), True),
    (pa.int64(), pa.int32(), False),
    (pa.uint32(), pa.int64(), False),
    (pa.float32(), pa.float64(), True),
    (pa.float64(), pa.float32(), False),
    (pa.int32(), pa.float64(), False),
    (pa.decimal128(9, 2), pa.decimal128(12, 2), True),
    (pa.decimal128(9, 2), pa.decimal128(12, 3), False),
    (pa.decimal128(9, 2), pa.float64(), False),
    (pa.string(), pa.large_string(), True),
    (pa.binary(), pa.string(), False),
    (pa.string(), pa.binary(), False),
    (pa.date32(), pa.timestamp("us"), False),
    (pa.timestamp("us"), pa.timestamp("us", "UTC"), True),
    (pa.timestamp("us", "UTC"), pa.timestamp("us"), False),
    (pa.timestamp("us"), pa.timestamp("us", "Asia/Kathmandu"), False),
    (pa.list_(pa.int32()), pa.list_(pa.int64()), False),
    (pa.bool_(), pa.int8(), False),
]


@pytest.mark.parametrize(("held", "wanted", "fits"), WIDENED)
def test_a_type_of_a_file_becomes_that_of_its_table_from_a_closed_list(
    held: pa.DataType,
    wanted: pa.DataType,
    fits: bool,  # noqa: FBT001 - a case
) -> None:
    assert becomes(held, wanted) is fits


# One table, one unit

JOIN = (
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, max_groups_contributed = 1, privacy_unit_column = a.u) "
    "COUNT(DISTINCT a.u) AS n FROM a JOIN b ON a.u = b.{}"
)
PAIRS = pa.table({"u": [1, 2], "friend": [2, 1]})


def two_deltas(folder: Path) -> tuple[Any, Any]:
    table = delta(folder, PAIRS)
    write_deltalake(folder, PAIRS, mode="overwrite")
    return table, DeltaTable(folder)


def delta_and_file(folder: Path) -> tuple[Any, Any]:
    table = delta(folder, PAIRS)
    return table, next(folder.glob("*.parquet"))


def two_icebergs(folder: Path) -> tuple[Any, Any]:
    table = iceberg(folder, PAIRS)
    first = table.scan()
    table.overwrite(PAIRS)
    return first, table


def dataset_and_folder(folder: Path) -> tuple[Any, Any]:
    folder.mkdir()
    pq.write_table(PAIRS, folder / "rows.parquet")
    return ds.dataset(folder), folder


@pytest.mark.parametrize("pair", [two_deltas, delta_and_file, two_icebergs, dataset_and_folder])
def test_versions_of_a_table_and_its_files_have_one_unit(
    tmp_path: Path, pair: Callable[[Path], tuple[Any, Any]]
) -> None:
    tables = dict(zip("ab", pair(tmp_path / "rows"), strict=True))
    with pytest.raises(StatementError, match="would belong to the user in"):
        plume.sql(JOIN.format("friend"), tables=tables)
    assert plume.sql(JOIN.format("u"), tables=tables).rows.num_rows == 1


def test_two_tables_have_two_units(tmp_path: Path) -> None:
    tables = {"a": delta(tmp_path / "a", PAIRS), "b": iceberg(tmp_path / "b", PAIRS)}
    release = plume.sql(JOIN.format("friend"), tables=tables)
    assert [source["table"] for source in release.record()["sources"]] == ["Delta table", "Iceberg table"]


# A table of a DuckDB file


def shop(folder: Path) -> Path:
    with duckdb.connect(folder / "shop.duckdb") as connection:
        connection.register("arrow", ROWS)
        connection.execute(
            "CREATE SCHEMA s; CREATE TABLE visits AS FROM arrow; CREATE TABLE s.other AS FROM arrow; CREATE VIEW v AS FROM arrow"
        )
    return folder / "shop.duckdb"


@pytest.mark.parametrize("name", ["visits", "main.visits", "s.other", "other"])
@pytest.mark.parametrize("path", [Path, str])
def test_a_table_of_a_database_gives_the_same_answer(tmp_path: Path, name: str, path: Callable[[Path], Any]) -> None:
    assert answer(QUERY, plume.DatabaseTable(path(shop(tmp_path)), name)) == EXPECTED


def test_a_table_of_a_database_is_declared_like_any_other(tmp_path: Path) -> None:
    private = plume.private(plume.DatabaseTable(shop(tmp_path), "visits"), unit="u")
    assert plume.run(USERS, private).private
    with pytest.raises(PlumeError, match="declared to belong to the users in 'u'"):
        plume.run(asking(user="k", keys="u"), private)


def test_a_view_of_a_database_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"shop\.duckdb has no table 'v', or several; write schema\.table, and no views"
    ):
        answer(QUERY, plume.DatabaseTable(shop(tmp_path), "v"))


@pytest.mark.parametrize(("path", "table"), [(1, "t"), ("shop.duckdb", ""), ("shop.duckdb", None)])
def test_a_table_of_a_database_has_a_path_and_a_name(path: Any, table: Any) -> None:
    with pytest.raises(InputError, match="must be the "):
        plume.DatabaseTable(path, table)


def test_the_path_of_a_database_alone_says_how_to_name_a_table(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"'shop\.duckdb' is a database; give plume\.DatabaseTable\(path, table\)"):
        answer(QUERY, shop(tmp_path))
