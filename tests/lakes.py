"""Delta and Iceberg tables on this machine, and changes to them that their Python packages read and do not write."""

import json
import struct
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent, ManifestWriterV2
from pyiceberg.table import Table
from pyiceberg.typedef import Record
from pyroaring import BitMap

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_MAGIC_OF_VECTORS = 1681511377


def delta(folder: Path, rows: pa.Table, **settings: Any) -> DeltaTable:
    write_deltalake(folder, rows, **settings)
    return DeltaTable(folder)


def iceberg(folder: Path, rows: pa.Table, name: str = "rows") -> Table:
    folder.mkdir(parents=True, exist_ok=True)
    catalog = SqlCatalog("local", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse")
    catalog.create_namespace_if_not_exists("shop")
    table = catalog.create_table(f"shop.{name}", rows.schema)
    table.append(rows)
    return table


def actions(table: DeltaTable) -> list[dict[str, Any]]:
    """All that the log of a table says, in its order."""
    logs = sorted((_root(table) / "_delta_log").glob("*.json"))
    return [json.loads(line) for log in logs for line in log.read_text().splitlines()]


def commit(table: DeltaTable, *written: dict[str, Any]) -> DeltaTable:
    """Write the next version of a table by hand."""
    log = _root(table) / "_delta_log" / f"{table.version() + 1:020}.json"
    log.write_text("".join(f"{json.dumps(one)}\n" for one in written))
    return DeltaTable(_root(table))


def protocol(*features: str, reader: int = 3) -> dict[str, Any]:
    if reader < 3:
        return {"protocol": {"minReaderVersion": reader, "minWriterVersion": 5}}
    return {
        "protocol": {
            "minReaderVersion": reader,
            "minWriterVersion": 7,
            "readerFeatures": features,
            "writerFeatures": features,
        }
    }


def with_deletion_vectors(table: DeltaTable, *rows: int) -> DeltaTable:
    """Delete rows of each file of a table by their places, as Delta's protocol says, in vectors within the log."""
    added = [one["add"] for one in actions(table) if "add" in one]
    removed = [
        {
            "remove": {name: add[name] for name in ("path", "partitionValues", "size")}
            | {"dataChange": True, "deletionTimestamp": 1}
        }
        for add in added
    ]
    again = [{"add": add | {"deletionVector": _vector(rows)}} for add in added]
    return commit(table, protocol("deletionVectors"), *removed, *again)


def _vector(rows: tuple[int, ...]) -> dict[str, Any]:
    data = struct.pack("<IQI", _MAGIC_OF_VECTORS, 1, 0) + BitMap(rows).serialize()
    padded = data + b"\0" * (-len(data) % 4)
    words = (int.from_bytes(padded[place : place + 4], "big") for place in range(0, len(padded), 4))
    text = "".join(_Z85[word // 85**power % 85] for word in words for power in (4, 3, 2, 1, 0))
    return {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": len(data), "cardinality": len(rows)}


def _root(table: DeltaTable) -> Path:
    return Path(table.table_uri.removeprefix("file://"))


def delete_by_position(
    table: Table, path: str, *places: int, content: DataFileContent = DataFileContent.POSITION_DELETES
) -> None:
    """Delete rows of a file of a table by their places, as engines of Iceberg do and pyiceberg does not."""
    written = Path(table.location().removeprefix("file://")) / "data" / f"deletes-{len(table.snapshots())}.parquet"
    fields = [
        pa.field("file_path", pa.string(), metadata={"PARQUET:field_id": "2147483546"}),
        pa.field("pos", pa.int64(), metadata={"PARQUET:field_id": "2147483545"}),
    ]
    pq.write_table(pa.table([[path] * len(places), places], schema=pa.schema(fields)), written)
    file = DataFile.from_args(
        content=content,
        file_path=f"file://{written}",
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=len(places),
        file_size_in_bytes=written.stat().st_size,
        equality_ids=[1] if content is DataFileContent.EQUALITY_DELETES else None,
    )
    file.spec_id = 0
    with (
        patch.object(ManifestWriterV2, "content", lambda _: ManifestContent.DELETES),
        table.transaction() as transaction,
        transaction.update_snapshot().fast_append() as appending,
    ):
        appending.append_data_file(file)


def data_files(table: Table) -> list[str]:
    return sorted(task.file.file_path for task in table.scan().plan_files())


def plain_path(uri: str) -> Path:
    return Path(uri.removeprefix("file://"))


def rewrite(path: Path, rows: pa.Table) -> None:
    """Write other rows into a file of a table, with the numbers that its columns have, as writers do that check less."""
    numbers = {column.name: column.metadata for column in pq.read_schema(path)}
    fields = [column.with_metadata(numbers[column.name]) for column in rows.schema]
    pq.write_table(pa.Table.from_arrays(rows.columns, schema=pa.schema(fields)), path)
