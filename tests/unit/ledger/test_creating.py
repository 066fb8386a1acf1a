"""A ledger appears with its datasets or not at all, and is one ledger by whatever name it is reached."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

import plume
from plume.cli.main import main
from plume.errors import BudgetError, LedgerDamaged, LedgerError
from plume.ledger import store

ROWS = pa.table({"u": ["1"], "k": ["x"]})
QUERY = plume.Query(
    user="u", keys="k", measures=[plume.users()], max_keys_per_user=1, budget=plume.Budget(1), public_keys=["x"]
)


def create(path: Path, name: str = "d", epsilon: float = 1) -> Result:
    return CliRunner().invoke(main, ["ledger", "create", str(path), "--dataset", name, "--epsilon", str(epsilon)])


def killed(call: Callable[[], object]) -> int:
    """Call in a process of its own that dies when an entry is hashed: the ledger is made, its dataset is not yet written."""
    child = os.fork()
    if not child:
        store.hash_of = lambda _: os.kill(os.getpid(), signal.SIGKILL)
        call()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_ledger_comes_with_its_datasets(tmp_path: Path) -> None:
    budgets = {"a": plume.Budget(1), "b": plume.Budget(2, 1e-6)}
    ledger = plume.Ledger.create(tmp_path / "l", datasets=budgets)
    assert {name: ledger.dataset(name).budget for name in ledger.datasets()} == budgets
    ledger.verify()


def test_a_kill_before_the_dataset_is_written_leaves_no_ledger(tmp_path: Path) -> None:
    assert killed(lambda: create(tmp_path / "l")) == -signal.SIGKILL
    assert not (tmp_path / "l").exists()
    assert create(tmp_path / "l").exit_code == 0


@pytest.mark.parametrize(("name", "epsilon"), [("a\nb", 1), ("x" * 201, 1), ("d", 1e-12), ("d", 1e9)])
def test_a_dataset_that_is_refused_leaves_no_ledger(tmp_path: Path, name: str, epsilon: float) -> None:
    assert create(tmp_path / "l", name, epsilon).exit_code == 2
    assert list(tmp_path.iterdir()) == []


def test_a_second_dataset_that_is_refused_leaves_no_ledger(tmp_path: Path) -> None:
    with pytest.raises(BudgetError, match="budget is 1; it must be"):
        plume.Ledger.create(tmp_path / "l", datasets={"a": plume.Budget(1), "b": 1})
    assert list(tmp_path.iterdir()) == []


def test_a_ledger_reached_by_a_link_has_one_folder_of_releases(tmp_path: Path) -> None:
    ledger = plume.Ledger.create(tmp_path / "l", datasets={"d": plume.Budget(2)})
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "link").symlink_to(ledger.path)
    linked = plume.Ledger(tmp_path / "elsewhere" / "link")
    first = plume.run(QUERY, ROWS, ledger=linked, dataset="d", release_id="first")
    again = plume.run(QUERY, ROWS, ledger=ledger, dataset="d", release_id="first")
    assert again.rows.equals(first.rows)
    assert ledger.verify() == linked.verify()
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["link"]


def test_a_release_in_the_making_is_let_be_by_whoever_comes_by_a_link(tmp_path: Path) -> None:
    ledger = plume.Ledger.create(tmp_path / "l", datasets={"d": plume.Budget(2)})
    (tmp_path / "link").symlink_to(ledger.path)
    with ledger.shelf.lock("first"), pytest.raises(LedgerError, match="being made by another process"):
        plume.run(QUERY, ROWS, ledger=plume.Ledger(tmp_path / "link"), dataset="d", release_id="first")


def test_a_release_that_is_kept_beside_a_link_is_said_where_to_put(tmp_path: Path) -> None:
    ledger = plume.Ledger.create(tmp_path / "l", datasets={"d": plume.Budget(2)})
    plume.run(QUERY, ROWS, ledger=ledger, dataset="d", release_id="first")
    ledger.shelf.folder.rename(tmp_path / "link.releases")
    with pytest.raises(LedgerDamaged, match=r"put it back from a copy, as '.*/l\.releases/first\.parquet'\. Earlier"):
        ledger.verify()
    (tmp_path / "link.releases").rename(ledger.shelf.folder)
    ledger.verify()


@pytest.mark.parametrize("command", [["show"], ["verify"], ["create", "--dataset", "d", "--epsilon", "1"]])
def test_a_ledger_whose_name_is_too_long_is_told(tmp_path: Path, command: list[str]) -> None:
    name, *more = command
    result = CliRunner().invoke(main, ["ledger", name, str(tmp_path / ("x" * 300)), *more])
    assert result.exit_code == 2
    assert "no ledger" in result.stderr or "could not be created" in result.stderr
