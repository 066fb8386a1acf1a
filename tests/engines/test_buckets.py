"""Files in buckets of S3, against moto's server on this machine: read as files are, at what they were when they were found."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import plume
from plume.cli.main import main
from plume.engines import buckets
from plume.errors import ColumnNotFound, InputError, PlumeError, StatementError
from plume.redaction import listening
from questions import EXPECTED, QUERY, ROWS, USERS, answer, asking
from stores import KEY, SECRET, emptied, put, served

CSV = "u,k,v\na,x,1\na,x,2\nb,x,3\nb,y,4\nc,y,\n,x,5\nd,,6\n"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with served() as address:
        yield address


@pytest.fixture
def bucket(server: str) -> Iterator[Any]:
    with emptied(server) as client:
        yield client


def folder_of_two(client: Any) -> str:
    put(client, "visits/1.parquet", ROWS.slice(0, 3))
    put(client, "visits/deep/2.parquet", ROWS.slice(3))
    put(client, "visits/_temporary/3.parquet", ROWS)
    put(client, "visits/notes.csv", "a,b\n")
    put(client, "visits_of_others/1.parquet", ROWS)
    return "s3://shop/visits"


KINDS = {
    "a Parquet file": lambda client: put(client, "rows.parquet", ROWS),
    "a CSV file": lambda client: put(client, "a folder/rows.csv", CSV),
    "JSON lines": lambda client: put(client, "rows.jsonl", "".join(json.dumps(row) + "\n" for row in ROWS.to_pylist())),
    "a folder of Parquet files": folder_of_two,
    "a folder with its slash": lambda client: f"{folder_of_two(client)}/",
    "a list of files": lambda client: [put(client, "1.csv", CSV[:18]), put(client, "2.csv", CSV[:6] + CSV[18:])],
    "a strange name": lambda client: put(client, "é {}\\..'\"%20.csv", CSV),
    "a name that leads elsewhere": lambda client: put(client, "x/../../../etc/rows.csv", CSV),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_rows_give_the_same_answer(bucket: Any, kind: str) -> None:
    given = KINDS[kind](bucket)
    assert answer(QUERY, given) == EXPECTED
    assert answer(QUERY, plume.private(given, unit="u").data, pipeline="naive") == EXPECTED


def test_a_file_that_is_written_between_two_steps_changes_nothing(bucket: Any) -> None:
    address = put(bucket, "rows.parquet", ROWS)
    seen = []

    def overwrite(step: str) -> None:
        seen.append(step)
        put(bucket, "rows.parquet", ROWS.slice(0, 1))

    release = plume.run(
        asking(measures=[plume.users()], public_keys=["x"], max_keys_per_user=1), address, on_step=overwrite
    )
    assert len(seen) > 1
    assert len(release) == 1
    assert answer(QUERY, address)["count"] == [1, 0, 0]


def test_a_file_that_changes_after_it_was_found_ends_the_run_before_it_is_charged(
    bucket: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(bucket, "visits/1.csv", CSV)
    put(bucket, "visits/2.csv", CSV)
    ledger = plume.Ledger.create(tmp_path / "ledger.db", datasets={"visits": plume.Budget(400, 0.9)})
    real = buckets._copy

    def touching(*given: Any) -> Path:
        path = real(*given)
        put(bucket, "visits/2.csv", CSV + "z,x,9\n")
        return path

    monkeypatch.setattr(buckets, "_copy", touching)
    with pytest.raises(InputError, match=r"a file of 's3://shop/visits' changed while it was copied; run again"):
        plume.run(USERS, "s3://shop/visits", ledger=ledger, dataset="visits")
    assert len(ledger.history()) == 1


def test_nothing_is_left_of_the_copies(bucket: Any, tmp_path: Path) -> None:
    engine = plume.DuckDB(temp_directory=tmp_path)
    plume.run(USERS, put(bucket, "rows.parquet", ROWS), engine=engine)
    with pytest.raises(ColumnNotFound):
        plume.run(asking(keys="no such"), put(bucket, "rows.parquet", ROWS), engine=engine)
    assert list(tmp_path.iterdir()) == []


REFUSED = {
    "s3://shop/no such.csv": "there is nothing at 's3://shop/no such.csv'",
    "s3://shop/": "an address in a bucket is written",
    "s3://shop": "an address in a bucket is written",
    "s3://shop/*.csv": "an address in a bucket is written",
    "s3://no-such-bucket/rows.csv": "could not be read; check the address, the credentials",
    "gs://shop/rows.csv": "is not a path on this machine",
    "az://shop/rows.csv": "is not a path on this machine",
    "http://shop/rows.csv": "is not a path on this machine",
    "https://shop/rows.csv": "is not a path on this machine",
    "S3://shop/rows.csv": "is not a path on this machine",
}


@pytest.mark.parametrize("address", REFUSED)
def test_an_address_that_cannot_be_read_is_refused(bucket: Any, address: str) -> None:
    put(bucket, "rows.csv", CSV)
    with pytest.raises(InputError) as error:
        answer(QUERY, address)
    assert REFUSED[address] in str(error.value)


def test_folders_of_partitions_are_refused(bucket: Any) -> None:
    put(bucket, "visits/k=x/1.parquet", ROWS.drop_columns(["k"]))
    with pytest.raises(InputError, match="folders of partitions in a bucket are not supported"):
        answer(QUERY, "s3://shop/visits")


def test_files_here_and_in_a_bucket_are_not_one_table(bucket: Any, tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    with pytest.raises(InputError, match="some of the files lie in a bucket and some do not"):
        answer(QUERY, [put(bucket, "rows.parquet", ROWS), str(tmp_path / "rows.parquet")])


@pytest.mark.parametrize("where", ["AKIA:{}@shop/rows.csv", "shop/rows.csv?X-Amz-Signature={}"])
def test_a_password_in_an_address_is_refused_and_not_repeated(bucket: Any, where: str) -> None:
    put(bucket, "rows.csv", CSV)
    with pytest.raises(InputError) as error:
        answer(QUERY, f"s3://{where.format(SECRET)}")
    assert SECRET not in str(error.value)
    assert "shop" not in str(error.value)


def test_credentials_reach_no_message_record_ledger_or_progress(
    bucket: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    address = put(bucket, "rows.parquet", ROWS)
    ledger = plume.Ledger.create(tmp_path / "ledger.db", datasets={"visits": plume.Budget(400, 0.9)})
    heard: list[str] = []
    with listening(heard.append):
        release = plume.run(USERS, address, ledger=ledger, dataset="visits", progress=True)
        with pytest.raises(PlumeError) as error:
            answer(QUERY, "s3://no-such-bucket/rows.csv")
    release.write_parquet(tmp_path / "release.parquet")
    told = [str(error.value), release.to_json(), str(release), repr(ledger.history()), *capfd.readouterr()]
    kept = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    tag = bucket.head_object(Bucket="shop", Key="rows.parquet")["ETag"].strip('"')
    for hidden in (SECRET, KEY, tag):
        assert not [text for text in told if hidden in text]
        assert not [content for content in kept if hidden.encode() in content]
    assert not [text for text in heard if SECRET in text]


def test_the_command_line_takes_an_address(bucket: Any, capsys: pytest.CaptureFixture[str]) -> None:
    address = put(bucket, "rows.csv", CSV)
    asked = [
        "--user",
        "u",
        "--key",
        "k",
        "--measure",
        "users()",
        "--max-keys-per-user",
        "1",
        "--epsilon",
        "200",
        "--delta",
        "0.5",
    ]
    with pytest.raises(SystemExit) as ended:
        main(["run", address, *asked])
    assert ended.value.code in (0, None)
    assert '"k","users"' in capsys.readouterr().out


class Redirect(BaseHTTPRequestHandler):
    """Sends whoever asks elsewhere, and counts who came."""

    def do_GET(self) -> None:
        self.server.seen.append(self.path)
        self.send_response(307)
        self.send_header("Location", f"{self.server.elsewhere}{self.path}")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_HEAD = do_GET  # noqa: N815 - the server calls it so

    def log_message(self, *_: Any) -> None:
        pass


def test_a_redirect_is_not_followed(bucket: Any, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither to another host nor to one that has the file: whoever answers for a store would see what is asked for."""
    address = put(bucket, "rows.csv", CSV)
    trap, other = (ThreadingHTTPServer(("127.0.0.1", 0), Redirect) for _ in range(2))
    trap.seen, other.seen = [], []
    trap.elsewhere, other.elsewhere = f"http://127.0.0.1:{other.server_port}", server
    for each in (trap, other):
        threading.Thread(target=each.serve_forever, daemon=True).start()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{trap.server_port}")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    try:
        with pytest.raises(InputError, match="could not be read; check the address"):
            answer(QUERY, address)
    finally:
        for each in (trap, other):
            each.shutdown()
            each.server_close()
    assert trap.seen
    assert other.seen == []


FORM = (
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, max_groups_contributed = 1, privacy_unit_column = a.u) "
    "COUNT(DISTINCT a.u) AS n FROM {} AS a JOIN {} AS b ON a.u = b.{}"
)


@pytest.mark.parametrize("address", ["s3://shop/rows.csv", "S3://shop/rows.csv", "https://shop/rows.csv"])
def test_the_text_of_a_statement_names_no_address(address: str) -> None:
    with pytest.raises(StatementError, match="is an address; the text of a statement names none"):
        plume.sql(FORM.format(f"'{address}'", f"'{address}'", "u"))


@pytest.mark.parametrize(
    "other", ["s3://shop/rows.csv", "s3://shop/./rows.csv", "s3://shop/ROWS.csv", "s3://shop", "s3://another/rows.csv"]
)
def test_an_address_under_another_name_has_the_same_unit(bucket: Any, other: str) -> None:
    put(bucket, "rows.csv", CSV)
    with pytest.raises(StatementError, match="would belong to the user in"):
        plume.sql(FORM.format("a", "b", "k"), tables={"a": "s3://shop/rows.csv", "b": other})


def test_two_files_of_a_bucket_are_two_tables(bucket: Any) -> None:
    tables = {"a": put(bucket, "rows.csv", CSV), "b": put(bucket, "Rows.csv", "u,k,f\nz,y,a\n")}
    release = plume.sql(FORM.format("a", "b", "u"), tables=tables)
    assert release.private
    declared = {
        "a": plume.private(tables["a"], unit="u"),
        "b": plume.private(put(bucket, "others.csv", "u,k,f\nz,y,a\n"), unit="f"),
    }
    assert plume.sql(FORM.format("a", "b", "f"), tables=declared).private
