"""Pipes, sockets and devices are no tables. Nobody writes to these, so whoever waits for one waits for ever."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import plume
from plume.engines.engine import Table
from plume.engines.files import find_files
from plume.engines.spark_reading import let_in
from plume.errors import InputError

RUN = [sys.executable, "-m", "plume", "run"]


def make_pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


def make_socket(path: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))
    return path


def link_to_device(path: Path) -> Path:
    path.symlink_to("/dev/zero")
    return path


def link_to_pipe(path: Path) -> Path:
    os.mkfifo(path.with_name("pipe"))
    path.symlink_to(path.with_name("pipe"))
    return path


@pytest.fixture(params=[make_pipe, make_socket, link_to_device, link_to_pipe])
def make_special(request: pytest.FixtureRequest) -> Callable[[Path], Path]:
    return request.param


@pytest.mark.parametrize("name", ["rows.csv", "rows.json", "rows.parquet", "rows.csv.gz"])
def test_what_is_not_a_regular_file_is_refused(tmp_path: Path, make_special: Callable[[Path], Path], name: str) -> None:
    special = make_special(tmp_path / name)
    with pytest.raises(InputError, match=rf"'{name}' is a pipe, a socket or a device; it must be a file"):
        find_files(special)
    with pytest.raises(InputError, match="is a pipe, a socket or a device"):
        find_files(str(tmp_path / "rows.*"))


def test_what_is_not_a_regular_file_is_refused_before_spark_waits_for_it(
    tmp_path: Path, make_special: Callable[[Path], Path]
) -> None:
    special = make_special(tmp_path / "rows.parquet")
    with pytest.raises(InputError, match=r"'rows\.parquet' is a pipe, a socket or a device"):
        let_in(None, "input", Table(str(special), {}))


def test_a_pipe_ends_a_command_with_2(tmp_path: Path) -> None:
    query = "--user u --key k --measure users --epsilon 1 --delta 1e-5 --max-keys-per-user 1"
    command = [*RUN, str(make_pipe(tmp_path / "rows.csv")), *query.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert (done.returncode, done.stdout) == (2, "")
    assert "is a pipe, a socket or a device" in done.stderr


def test_public_keys_from_a_pipe_are_refused_before_a_ledger_waits_for_them(tmp_path: Path) -> None:
    ledger = plume.Ledger.create(tmp_path / "l")
    ledger.add_dataset("d", plume.Budget(1))
    rows = tmp_path / "rows.csv"
    rows.write_text("u,k\n1,x\n")
    program = (
        "import plume, sys; rows, keys, ledger = sys.argv[1:]; "
        "query = plume.Query(user='u', keys='k', measures=[plume.users()], max_keys_per_user=1, "
        "budget=plume.Budget(1), public_keys=keys); "
        "plume.run(query, rows, ledger=plume.Ledger(ledger), dataset='d', release_id='r')"
    )
    pipe = make_pipe(tmp_path / "keys.csv")
    command = [sys.executable, "-c", program, str(rows), str(pipe), str(ledger.path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert "InputError: 'keys.csv' is a pipe, a socket or a device" in done.stderr
    assert len(ledger.history()) == 1


def test_a_link_to_a_file_is_that_file(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("u,k\n")
    (tmp_path / "link.csv").symlink_to(tmp_path / "rows.csv")
    assert find_files(tmp_path / "link.csv").paths == (tmp_path / "link.csv",)


def test_a_name_that_is_too_long_for_a_file_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no file"):
        find_files(tmp_path / f"{'x' * 300}.csv")
