"""The engine's own connection: it reaches the tables that were let in and nothing else, and leaves nothing behind."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import plume
from plume.engines.duckdb import DuckDB, _set
from plume.engines.duckdb_session import DuckDBSession
from plume.engines.duckdb_silence import withheld
from plume.engines.engine import Table
from plume.errors import EngineError, InputError, ResourceError, SettingError
from plume.plan.types import Kind
from questions import asking, people

ROWS = people(k=["x"] * 5)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with a table, another file beside it, and room for temporary files."""
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    pq.write_table(ROWS, tmp_path / "other.parquet")
    (tmp_path / "temporary").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_parquet('{home}/other.parquet')",
        "SELECT * FROM '{home}/other.parquet'",
        "SELECT * FROM read_parquet('{home}/*.parquet')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_blob('{home}/other.parquet')",
        "SELECT * FROM glob('{home}/*')",
        "COPY (SELECT 1) TO '{home}/planted.csv'",
        "EXPORT DATABASE '{home}/planted'",
        "ATTACH '{home}/planted.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SELECT * FROM read_parquet('https://example.org/x.parquet')",
        "SET enable_external_access = true",
        "SET allowed_paths = ['/etc/passwd']",
        "SET allowed_directories = ['/']",
        "SET lock_configuration = false",
        "SET threads = 7",
        "SET temp_directory = '{home}'",
        "RESET lock_configuration",
        "PRAGMA enable_profiling = 'json'",
        "SELECT * FROM statement",
        "SELECT * FROM home",
    ],
)
def test_a_session_reaches_nothing_that_was_not_let_in(home: Path, statement: str) -> None:
    tables = {"input": Table(home / "rows.parquet", {"u": Kind.TEXT})}
    with DuckDB().open(tables) as session, pytest.raises(EngineError, match="its message is withheld"):
        session.ask(statement.format(home=home))
    assert not list(home.glob("planted*"))


def test_a_session_reads_what_was_let_in(home: Path) -> None:
    with DuckDB().open({"input": Table(home / "rows.parquet", {"u": Kind.TEXT})}) as session:
        assert session.fetch("input", ("u",)).num_rows == 5


def test_variables_of_the_caller_are_no_tables() -> None:
    input_rows = people(k=["x"])
    with (
        DuckDB().open({"input": Table(ROWS, {"u": Kind.TEXT})}) as session,
        pytest.raises(EngineError, match="withheld"),
    ):
        session.ask("SELECT * FROM input_rows")
    assert input_rows.num_rows == 1


def run(home: Path, content: Any, **changes: Any) -> None:
    plume.run(asking(**changes), content, engine=DuckDB(temp_directory=home / "temporary"))


def test_the_temporary_folder_is_gone_afterwards(home: Path) -> None:
    run(home, home / "rows.parquet")
    assert not list((home / "temporary").iterdir())


def test_the_temporary_folder_is_gone_after_links_to_hostile_names(home: Path) -> None:
    shutil.copy(home / "rows.parquet", home / "[x].parquet")
    run(home, home / "[x].parquet")
    assert not list((home / "temporary").iterdir())
    assert (home / "[x].parquet").exists()


@pytest.mark.parametrize("name", ["absent.parquet", "broken.parquet", "rows.parquet"])
def test_the_temporary_folder_is_gone_after_an_error(home: Path, name: str) -> None:
    (home / "broken.parquet").write_bytes(b"PAR1 oops")
    with pytest.raises(plume.PlumeError, match=r"no file|could not be read|no column"):
        run(home, home / name, user="absent")
    assert not list((home / "temporary").iterdir())


def test_the_temporary_folder_is_gone_after_an_interruption(home: Path) -> None:
    def interrupt(step: str) -> None:
        raise KeyboardInterrupt(step)

    with pytest.raises(KeyboardInterrupt, match="input"):
        plume.run(asking(), ROWS, engine=DuckDB(temp_directory=home / "temporary"), on_step=interrupt)
    assert not list((home / "temporary").iterdir())


def test_the_temporary_folder_is_private_while_it_is_there(home: Path) -> None:
    seen: list[int] = []

    def look(step: str) -> None:
        del step
        seen.extend(path.stat().st_mode & 0o777 for path in (home / "temporary").iterdir())

    plume.run(asking(), ROWS, engine=DuckDB(temp_directory=home / "temporary"), on_step=look)
    assert set(seen) == {0o700}


def test_nothing_is_printed_by_the_library(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run(home, home / "rows.parquet")
    with pytest.raises(InputError, match="no file"):
        run(home, home / "absent.csv")
    assert capfd.readouterr() == ("", "")


def test_too_little_memory_is_said_plainly(home: Path) -> None:
    many = pa.table({"u": range(300_000), "k": [str(number) for number in range(300_000)]})
    with pytest.raises((ResourceError, EngineError), match=r"ran out of memory or temporary disk space|withheld"):
        plume.run(asking(), many, engine=DuckDB(memory_limit="1MB", temp_directory=home / "temporary"))
    assert not list((home / "temporary").iterdir())


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"memory_limit": "lots"}, "memory_limit = 'lots'; write it with its unit"),
        ({"memory_limit": "5"}, "memory_limit = '5'; write it with its unit"),
        ({"memory_limit": "-1GB"}, "memory_limit = '-1GB'; write it with its unit"),
        ({"memory_limit": 4}, "memory_limit = 4; write it with its unit"),
        ({"memory_limit": "1GB'; DROP TABLE x; --"}, "write it with its unit"),
        ({"threads": 0}, "threads = 0; it must be a whole number from 1"),
        ({"threads": -1}, "threads = -1; it must be a whole number"),
        ({"threads": 1.5}, r"threads = 1\.5; it must be a whole number"),
        ({"threads": True}, "threads = True; it must be a whole number"),
        ({"threads": "two"}, "threads = 'two'; it must be a whole number"),
    ],
)
def test_settings_that_duckdb_would_misread_are_refused_at_once(settings: dict[str, Any], match: str) -> None:
    with pytest.raises(SettingError, match=match):
        DuckDB(**settings)


@pytest.mark.parametrize("name", ["absent", "rows.parquet", "a\0b"])
def test_a_temporary_folder_must_be_one(home: Path, name: str) -> None:
    with pytest.raises(SettingError, match=r"temp_directory = .*; it must be a folder that can be written to"):
        plume.run(asking(), ROWS, engine=DuckDB(temp_directory=home / name))


@pytest.mark.parametrize("limit", ["512MB", "0.5 GiB", "1gb", "50%"])
def test_memory_can_be_limited(limit: str) -> None:
    assert len(plume.run(asking(), ROWS, engine=DuckDB(memory_limit=limit))) == 1


def raising(error: BaseException) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


FAILURES: list[tuple[BaseException, type[BaseException], str]] = [
    (duckdb.ConversionException("alice"), EngineError, "^DuckDB failed at step by_user; its message is withheld"),
    (duckdb.InvalidInputException("interrupted by alice"), EngineError, "^DuckDB failed at step by_user"),
    (pa.ArrowInvalid("alice"), EngineError, "^DuckDB failed at step by_user"),
    (OSError("alice"), EngineError, "^DuckDB failed at step by_user"),
    (ValueError("alice"), EngineError, "^step by_user failed; the reason is withheld"),
    (UnicodeDecodeError("utf-8", b"alice", 0, 1, "alice"), EngineError, "^step by_user failed"),
    (duckdb.OutOfMemoryException("alice"), ResourceError, "^step by_user ran out of memory or temporary disk space"),
    (MemoryError("alice"), ResourceError, r"^step \w+ ran out of memory or temporary disk space"),
    (
        OSError(28, "No space left on device", "alice"),
        ResourceError,
        r"^step \w+ ran out of memory or temporary disk space",
    ),
    (
        duckdb.IOException("alice: No space left on device"),
        ResourceError,
        r"^step \w+ ran out of memory or temporary disk space",
    ),
    (duckdb.InterruptException("alice"), KeyboardInterrupt, "^$"),
    (RuntimeError("Query interrupted"), KeyboardInterrupt, "^$"),
    (KeyboardInterrupt(), KeyboardInterrupt, "^$"),
    (InputError("in our own words"), InputError, "^in our own words$"),
]


@pytest.mark.parametrize(("raised", "error", "match"), FAILURES)
def test_what_goes_wrong_is_said_in_our_own_words(
    raised: BaseException, error: type[BaseException], match: str
) -> None:
    with pytest.raises(error, match=match) as caught:
        withheld("by_user", raising(raised))
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


def test_too_little_room_for_data_is_no_fault_of_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DuckDBSession, "keep", lambda *_: raising(ResourceError("memory ran out"))())
    with pytest.raises(ResourceError, match="memory ran out"):
        plume.run(asking(), ROWS.to_reader())


def test_a_setting_that_this_duckdb_does_not_know_is_named() -> None:
    with (
        duckdb.connect() as connection,
        pytest.raises(SettingError, match="DuckDB does not take fast = true; another version"),
    ):
        _set(connection, "fast", "true")


def test_folders_of_partitions_with_names_like_patterns_are_refused(tmp_path: Path) -> None:
    (tmp_path / "k=[x]").mkdir()
    pq.write_table(ROWS.drop_columns(["k"]), tmp_path / "k=[x]" / "rows.parquet")
    with pytest.raises(InputError, match=r"the path of 'rows.parquet' holds one of \* \? \[ \] "):
        plume.run(asking(), tmp_path)
