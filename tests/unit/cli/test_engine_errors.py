"""Messages that are withheld, for the operator who may see data: in a file of theirs, and nowhere else."""

import errno
import os
import traceback
from collections.abc import Callable
from contextvars import copy_context
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import Result

import plume
from plume.errors import ColumnNotFound, EngineError, InputError, OutputError, OutputExists, PlumeError
from plume.redaction import redacting, tell_operator
from questions import ENGINE, asking

CANARY = "alice-7f3a"
Invoke = Callable[..., Result]


def withhold(words: str = CANARY) -> None:
    with pytest.raises(EngineError), redacting(ValueError, to=EngineError("it failed")):
        raise ValueError(words)


def told(folder: Path, data: object, error: type[PlumeError]) -> str:
    with plume.engine_errors_to(folder / "errors.txt") as path, pytest.raises(error):
        plume.run(asking(), data, engine=ENGINE)
    return path.read_text()


def test_what_is_withheld_is_in_the_file_of_the_operator(tmp_path: Path) -> None:
    with plume.engine_errors_to(tmp_path / "errors.txt") as path:
        withhold()
    assert f"it failed\nValueError: {CANARY}\n" in path.read_text()


def test_what_is_withheld_before_and_after_is_not_in_it(tmp_path: Path) -> None:
    withhold()
    with plume.engine_errors_to(tmp_path / "errors.txt") as path:
        pass
    withhold()
    assert CANARY not in path.read_text()


def test_what_a_thread_withholds_that_outlives_the_block_is_in_no_other_file(tmp_path: Path) -> None:
    """As one of asyncio may after a timeout. The next file that is opened gets the number of the one that was closed."""
    with plume.engine_errors_to(tmp_path / "errors.txt") as path:
        outliving = copy_context()
    with (tmp_path / "released.csv").open("w"):
        outliving.run(withhold)
    assert ((tmp_path / "released.csv").read_text(), CANARY in path.read_text()) == ("", False)


def test_the_file_says_that_it_is_not_private_in_its_name_and_its_first_line(tmp_path: Path) -> None:
    with plume.engine_errors_to(tmp_path / "errors.txt") as path:
        pass
    assert path == tmp_path / "errors.NOT-PRIVATE.txt"
    assert path.read_text().startswith("NOT PRIVATE")


def test_only_its_owner_can_read_the_file_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with plume.engine_errors_to(tmp_path / "errors.txt") as path:
            pass
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_there_is_not_replaced(tmp_path: Path) -> None:
    there = tmp_path / "errors.NOT-PRIVATE.txt"
    there.write_text("mine")
    with pytest.raises(OutputExists, match="exists; give another name"), plume.engine_errors_to(there):
        pass
    assert there.read_text() == "mine"


def test_a_file_that_is_replaced_is_closed_to_others_too(tmp_path: Path) -> None:
    there = tmp_path / "errors.NOT-PRIVATE.txt"
    there.write_text("mine")
    there.chmod(0o644)
    with plume.engine_errors_to(there, overwrite=True):
        pass
    assert "mine" not in there.read_text()
    assert there.stat().st_mode & 0o777 == 0o600


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "errors.NOT-PRIVATE.txt").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OutputExists), plume.engine_errors_to(tmp_path / "errors.txt"):
        pass
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("name", ["", ".", "/"])
def test_a_path_without_a_name_is_refused(name: str) -> None:
    with pytest.raises(OutputError, match="could not be written"), plume.engine_errors_to(name):
        pass


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_folder_in_the_way_is_refused(tmp_path: Path, *, overwrite: bool) -> None:
    (tmp_path / "errors.NOT-PRIVATE.txt").mkdir()
    with (
        pytest.raises(OutputError, match="could not be written"),
        plume.engine_errors_to(tmp_path / "errors.txt", overwrite=overwrite),
    ):
        pass


def test_a_link_that_is_replaced_leaves_what_it_leads_to_alone(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("mine")
    (tmp_path / "errors.NOT-PRIVATE.txt").symlink_to(tmp_path / "elsewhere")
    with plume.engine_errors_to(tmp_path / "errors.txt", overwrite=True) as path:
        withhold()
    assert ((tmp_path / "elsewhere").read_text(), path.is_symlink()) == ("mine", False)


def test_no_way_leads_from_an_error_to_what_the_operator_was_told(tmp_path: Path) -> None:
    with (
        plume.engine_errors_to(tmp_path / "errors.txt"),
        pytest.raises(EngineError) as caught,
        redacting(ValueError, to=EngineError("it failed")),
    ):
        raise ValueError(CANARY)
    error = caught.value
    assert (error.__cause__, error.__context__, getattr(error, "__notes__", [])) == (None, None, [])
    assert CANARY not in "".join(traceback.format_exception(error)).replace("CANARY", "")


def test_the_file_holds_no_password(tmp_path: Path) -> None:
    with plume.engine_errors_to(tmp_path / "errors.txt") as path:
        withhold("no answer from redis://me:hunter2@host")
    assert "redis://***@host" in path.read_text()


def test_no_run_fails_where_the_file_finds_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether anything is written depends on data."""
    with plume.engine_errors_to(tmp_path / "errors.txt") as path:
        monkeypatch.setattr("plume.output.files.os.write", no_room)
        withhold()
        tell_operator(CANARY)
        monkeypatch.undo()
    assert CANARY not in path.read_text()


def no_room(*_: object) -> None:
    raise OSError(errno.ENOSPC, "no space left on device")


def test_words_of_data_cannot_command_a_terminal(tmp_path: Path) -> None:
    with plume.engine_errors_to(tmp_path / "errors.txt") as path:
        withhold("red\x1b[31m\ud800")
    assert "red\\x1b[31m\\ud800" in path.read_text()


def test_the_file_that_could_not_be_read_is_named_to_the_operator_alone(tmp_path: Path) -> None:
    files = [tmp_path / f"{number}.parquet" for number in range(3)]
    for file in files:
        pq.write_table(pa.table({"u": ["a"], "k": ["x"]}), file)
    files[1].write_bytes(b"PAR1")
    with plume.engine_errors_to(tmp_path / "errors.txt") as path, pytest.raises(InputError) as caught:
        plume.run(asking(), files, engine=ENGINE)
    assert str(caught.value) == "one of 3 files (engine_errors_to says which) could not be read as Parquet."
    assert str(files[1]) in path.read_text()


def test_the_csv_file_that_lacks_a_column_is_named(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("u,k\n")
    (tmp_path / "2.csv").write_text("u,n\n")
    assert f"{tmp_path / '2.csv'}: the first line does not name 'k'; it names 'u', 'n'" in told(
        tmp_path, [tmp_path / "1.csv", tmp_path / "2.csv"], ColumnNotFound
    )


@pytest.mark.parametrize("name", ["2.csv.gz", "2.jsonl.gz", "2.json.gz"])
def test_the_compressed_file_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"not gzip")
    assert str(tmp_path / name) in told(tmp_path, tmp_path / name, InputError)


def test_the_parquet_files_that_differ_are_named_with_their_types(tmp_path: Path) -> None:
    for number, user in enumerate(("a", 1)):
        pq.write_table(pa.table({"u": [user], "k": ["x"]}), tmp_path / f"{number}.parquet")
    said = told(tmp_path, tmp_path, InputError)
    assert [f"{tmp_path / f'{number}.parquet'}: the columns" in said for number in range(2)] == [True, True]
    assert [kind in said for kind in ("VARCHAR", "BIGINT")] == [True, True]


def test_what_nobody_expected_is_told_with_its_trace(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), plume.engine_errors_to(tmp_path / "errors.txt") as path:
        1 / 0  # noqa: B018 - it fails
    assert "ZeroDivisionError: division by zero" in path.read_text()


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    path = tmp_path / f"{CANARY}.parquet"
    path.write_bytes(b"PAR1")
    return path


def test_the_command_line_writes_the_file_and_says_no_more(
    invoke: Invoke, asked: list[str], broken: Path, tmp_path: Path
) -> None:
    result = invoke("run", broken, *asked, "--engine-errors-to", tmp_path / "errors.log")
    path = tmp_path / "errors.NOT-PRIVATE.log"
    first, *_, last = result.stderr.splitlines()
    assert first == f"NOT PRIVATE: the engine's error messages are written to {path}"
    assert last == f"Error: {CANARY}.parquet could not be read as Parquet."
    assert "InvalidInputException" in path.read_text()


def test_a_run_that_ends_well_does_not_show_whether_anything_was_withheld(
    invoke: Invoke, asked: list[str], tmp_path: Path
) -> None:
    """Where text is not UTF-8, Arrow reads the file in DuckDB's place, and one row may be the reason. The other key is always selected."""
    users, said = [f"user {number}" for number in range(1000)], []
    for number, text in enumerate((b"lasagna", b"\xff\xfe")):
        recipes = pa.array([b"lasagna"] * 999 + [text], pa.binary()).view(pa.string())
        pq.write_table(pa.table({"user_id": users, "recipe": recipes}), tmp_path / f"{number}.parquet")
        target = tmp_path / f"{number}.NOT-PRIVATE.txt"
        result = invoke("run", tmp_path / f"{number}.parquet", *asked, "--engine-errors-to", target)
        said.append((result.exit_code, result.stderr.replace(str(target), "")))
        assert ("Exception" in target.read_text()) == bool(number)
    assert said[0] == said[1]


@pytest.mark.parametrize(
    ("name", "refusal"),
    [
        ("errors.csv", "does not end in .txt or .log"),
        ("/", "does not end in .txt or .log"),
        ("there.NOT-PRIVATE.txt", "exists; give another name, or --force"),
    ],
)
def test_a_file_that_may_not_be_written_is_refused_before_the_run(
    run: Invoke, tmp_path: Path, name: str, refusal: str
) -> None:
    (tmp_path / "there.NOT-PRIVATE.txt").write_text("mine")
    result = run("--engine-errors-to", tmp_path / name)
    assert (result.exit_code, refusal in result.stderr, result.stdout) == (2, True, "")


def test_force_replaces_the_file(run: Invoke, tmp_path: Path) -> None:
    (tmp_path / "there.NOT-PRIVATE.txt").write_text("mine")
    assert run("--engine-errors-to", tmp_path / "there.txt", "--force").exit_code == 0
    assert "mine" not in (tmp_path / "there.NOT-PRIVATE.txt").read_text()


def test_quiet_says_nothing_of_the_file(run: Invoke, tmp_path: Path) -> None:
    assert run("--engine-errors-to", tmp_path / "errors.txt", "--quiet").stderr == ""
