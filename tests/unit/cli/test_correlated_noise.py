"""`--noise correlated`: a file of public keys is read before the query is planned, since their number must be known."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import Result
from pyarrow.csv import write_csv

from plume.cli.query_file import read_query_file

Invoke = Callable[..., Result]
OPTIONS = (
    *("--user", "user_id", "--key", "recipe", "--measure", "users()", "--max-keys-per-user", "8"),
    *("--epsilon", "1", "--delta", "1e-6", "--noise", "correlated"),
)


@pytest.fixture
def recipes(tmp_path: Path) -> Path:
    path = tmp_path / "recipes.csv"
    path.write_text("course,recipe\n" + "".join(f"main,recipe {number}\n" for number in range(12)), encoding="utf-8")
    return path


def test_public_keys_of_a_file_share_noise(invoke: Invoke, searches: Path, recipes: Path) -> None:
    ended = invoke("run", str(searches), *OPTIONS, "--public-keys", str(recipes))
    assert ended.exit_code == 0, ended.output
    assert ended.output.count("recipe ") >= 10


def test_an_explanation_reads_them_too(invoke: Invoke, recipes: Path) -> None:
    told = invoke("explain", *OPTIONS, "--public-keys", str(recipes)).output
    assert "users: correlated Gaussian, standard deviation" in told
    assert "the 12 keys share a part of it, so that totals over keys get worse" in told.replace("\n           ", " ")


def test_a_query_file_may_ask_for_it(invoke: Invoke, recipes: Path, tmp_path: Path) -> None:
    asked = {"user": '"user_id"', "keys": '"recipe"', "measures": '["users()"]', "max_keys_per_user": "8"}
    asked |= {"epsilon": "1", "delta": "1e-6", "noise": '"correlated"', "public_keys": f'"{recipes}"'}
    path = tmp_path / "query.toml"
    path.write_text("\n".join(f"{name} = {value}" for name, value in asked.items()), encoding="utf-8")
    assert read_query_file(path)["noise"] == "correlated"
    assert "users: correlated Gaussian" in invoke("explain", "--query", str(path)).output


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_file_without_the_key_column_is_refused(invoke: Invoke, tmp_path: Path, ending: str) -> None:
    path, pages = tmp_path / f"pages.{ending}", pa.table({"page": ["a", "b"]})
    (write_csv if ending == "csv" else pq.write_table)(pages, path)
    ended = invoke("explain", *OPTIONS, "--public-keys", str(path))
    assert ended.exit_code != 0
    assert "no column 'recipe'" in ended.output


def test_keys_from_the_data_are_refused(invoke: Invoke) -> None:
    ended = invoke("explain", *OPTIONS)
    assert ended.exit_code != 0
    assert "public_keys is missing beside noise = 'correlated'" in ended.output
