"""Data in and out through pipes and files, as a Unix user expects. Each test is a shell line."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

PLUME = f"{shlex.quote(sys.executable)} -m plume"


@pytest.fixture
def folder(searches: Path, asked: list[str]) -> Path:
    """A folder with the data as Parquet, CSV and JSON lines, and the query as a file."""
    rows = pq.read_table(searches)
    pyarrow.csv.write_csv(rows, searches.with_suffix(".csv"))
    lines = "".join(json.dumps(row) + "\n" for row in rows.to_pylist())
    searches.with_suffix(".jsonl").write_text(lines, encoding="utf-8")
    words = dict(zip(asked[::2], asked[1::2], strict=True))
    searches.with_name("query.toml").write_text(
        f'user = "{words["--user"]}"\nkeys = "{words["--key"]}"\nmeasures = ["{words["--measure"]}"]\n'
        f"epsilon = {words['--epsilon']}\ndelta = {words['--delta']}\nmax_keys_per_user = {words['--max-keys-per-user']}\n",
        encoding="utf-8",
    )
    return searches.parent


def shell(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    """Run a line in a shell, with the status of the first command that failed in a pipe."""
    command = ["bash", "-o", "pipefail", "-c", line.replace("plume ", f"{PLUME} ")]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603


def test_head_takes_what_it_wants(folder: Path) -> None:
    done = shell(folder, "plume run searches.parquet --query query.toml --quiet | head -1")
    assert (done.stdout, done.stderr) == ('"recipe","count"\n', "")


def test_redirection_writes_all_rows_and_nothing_else(folder: Path) -> None:
    done = shell(folder, "plume run searches.parquet --query query.toml > out.csv")
    assert (done.returncode, done.stdout) == (0, "")
    assert pyarrow.csv.read_csv(folder / "out.csv").num_rows == 3


@pytest.mark.parametrize(
    ("file", "more"), [("csv", ""), ("jsonl", "--stdin-format jsonl"), ("parquet", "--stdin-format parquet")]
)
def test_data_come_through_a_pipe(folder: Path, file: str, more: str) -> None:
    done = shell(folder, f"cat searches.{file} | TMPDIR=$PWD plume run - --query query.toml --quiet {more}")
    assert (done.returncode, done.stderr, len(done.stdout.splitlines())) == (0, "", 4)
    assert not list(folder.glob("plume-*"))


def test_a_statement_comes_through_a_pipe_and_so_may_its_data(folder: Path) -> None:
    statement = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 50, delta = 1e-5, max_groups_contributed = 4, privacy_unit_column = user_id) "
        "recipe, COUNT(*, contribution_bounds_per_group => (0, 3)) AS n FROM searches WHERE recipe = 'lasagna' GROUP BY recipe"
    )
    (folder / "popular.sql").write_text(statement, encoding="utf-8")
    piped = shell(folder, "cat popular.sql | plume sql - --table searches=searches.parquet --quiet --format json")
    assert [row["recipe"] for row in json.loads(piped.stdout)] == ["lasagna"]
    data = shell(folder, "cat searches.csv | plume sql popular.sql --table searches=- --quiet")
    assert (data.returncode, data.stderr, len(data.stdout.splitlines())) == (0, "", 2)


def test_without_a_terminal_nothing_moves(folder: Path) -> None:
    done = shell(folder, "setsid -w plume run searches.parquet --query query.toml < /dev/null 2> remarks | cat")
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 4)
    assert "\x1b" not in (folder / "remarks").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        (
            "plume run searches.parquet --query query.toml --quiet > /dev/full",
            2,
            "standard output could not be written",
        ),
        ("plume run searches.parquet --query query.toml --quiet >&-", 2, "standard output is closed"),
        ("plume run - --query query.toml --quiet <&-", 2, "standard input is closed or a terminal"),
        ("plume run - - --query query.toml --quiet < searches.csv", 2, "can be read once only"),
        ("plume sql - <&-", 2, "standard input could not be read as a statement"),
        ("plume sql none.sql", 2, "'none.sql' could not be read as a statement"),
        # The same in this process is in test_bad_commands.py and test_targets.py.
        *(
            pytest.param(line, 2, said, marks=pytest.mark.engines)
            for line, said in {
                "plume run searches.parquet --query query.toml --quiet --out none/out.csv": "is not there or not writable",
                "plume run searches.parquet --query query.toml --quiet --out out.xlsx": "does not end in .parquet or .csv or .json",
                "plume run searches.parquet --query query.toml --out searches.parquet --force": "is part of the data",
            }.items()
        ),
    ],
)
def test_what_cannot_be_read_or_written_is_one_sentence(folder: Path, line: str, code: int, said: str) -> None:
    done = shell(folder, line)
    assert (done.returncode, done.stderr.count("\n")) == (code, 1)
    assert said in done.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_found_out_before_the_run(folder: Path) -> None:
    locked = folder / "locked"
    locked.mkdir(mode=0o555)
    done = shell(folder, "plume run searches.parquet --query query.toml --out locked/out.csv")
    assert (done.returncode, "is not there or not writable" in done.stderr) == (2, True)
    assert "Reading" not in done.stderr


def test_json_is_written_by_its_ending(folder: Path) -> None:
    done = shell(folder, "plume run searches.parquet --query query.toml --out out.json --quiet")
    assert done.returncode == 0
    assert {row["recipe"] for row in json.loads((folder / "out.json").read_text(encoding="utf-8"))} >= {"lasagna"}


def test_a_permission_that_is_denied_is_told_before_anything_is_spent(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same for root, who is told no by nobody: the check itself says so."""
    from plume.cli.targets import check_target  # noqa: PLC0415 - beside what it replaces
    from plume.errors import OutputError  # noqa: PLC0415 - the same

    monkeypatch.setattr("plume.cli.targets.os.access", lambda path, mode: False)  # noqa: ARG005
    with pytest.raises(OutputError, match="is not there or not writable"):
        check_target(folder / "out.csv", [".csv"], force=False)


def test_tables_keep_their_types(folder: Path) -> None:
    done = shell(
        folder, "plume run searches.parquet --query query.toml --out out.parquet --quiet --intervals 0.95 --top 2 count"
    )
    assert done.returncode == 0
    rows = pq.read_table(folder / "out.parquet")
    assert rows.column_names == ["recipe", "count", "count_low", "count_high"]
    assert (rows.num_rows, rows.schema.field("count").type) == (2, pa.int64())
