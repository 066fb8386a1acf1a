"""What a terminal is shown: names are strangers' words, and none of them may command it, whatever the command."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import Result

from plume.auditing.audit import Audit
from plume.auditing.finding import Finding
from plume.errors import LedgerError, PlumeError, StatementError, UsageError

Invoke = Callable[..., Result]

HOSTILE = "\x1b[31m\u202en\x9b\u2028\x07"
ESCAPED = r"\x1b[31m\u202en\x9b\u2028\x07"
QUERY = [
    *("--user", f"{HOSTILE}user", "--key", f"{HOSTILE}key", "--measure", f'sum(v, 0, 1) AS "{HOSTILE}sum"'),
    *("--epsilon", "50", "--delta", "1e-5", "--max-keys-per-user", "2"),
]


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.parquet"
    users = [str(user) for user in range(100)]
    pq.write_table(pa.table({f"{HOSTILE}user": users, f"{HOSTILE}key": [HOSTILE] * 100, "v": [1.0] * 100}), path)
    return path


@pytest.fixture
def terminal(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> Invoke:
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: True)
    monkeypatch.setenv("TERM", "dumb")
    return invoke


def is_harmless(text: str) -> bool:
    return all(char.isprintable() or char == "\n" for char in text)


@pytest.mark.parametrize(
    "command",
    [
        ["explain"],
        ["explain", "--format", "json"],
        ["explain", "--sql", "duckdb"],
        ["explain", "--sql", "spark"],
        ["expect"],
        ["expect", "--format", "csv"],
        ["expect", "--format", "json"],
    ],
)
def test_what_is_said_before_a_run_cannot_command_a_terminal(terminal: Invoke, command: list[str]) -> None:
    result = terminal(*command, *QUERY)
    assert result.exit_code == 0
    assert is_harmless(result.stdout + result.stderr)
    assert r"[31m\u202e" in result.stdout


@pytest.mark.parametrize("layout", ["table", "csv", "json"])
@pytest.mark.parametrize("command", ["run", "tune"])
def test_what_is_said_of_data_cannot_command_a_terminal(
    terminal: Invoke, rows: Path, command: str, layout: str
) -> None:
    result = terminal(command, rows, *QUERY, "--format", layout)
    assert result.exit_code == 0
    assert is_harmless(result.stdout + result.stderr)
    assert r"[31m\u202e" in result.stdout


def test_programs_get_sql_as_it_is(invoke: Invoke) -> None:
    assert f'"{HOSTILE}user"' in invoke("explain", *QUERY, "--sql", "duckdb").stdout


@pytest.mark.parametrize(
    "args",
    [
        [HOSTILE],
        ["ledger", HOSTILE],
        ["ledger", "verify", "l", HOSTILE],
        ["explain", f"--{HOSTILE}"],
        ["explain", "--epsilon", HOSTILE],
        ["explain", "--pipeline", HOSTILE],
        ["run", HOSTILE, *QUERY],
        ["run", "absent.csv", *QUERY, "--share", HOSTILE, "1"],
        ["run", "absent.csv", *QUERY, "--top", "1", HOSTILE],
        ["run", "absent.csv", *QUERY, "--out", f"{HOSTILE}.xlsx"],
        ["sql", f"SELECT {HOSTILE}"],
        ["sql", f"SELECT 1 FROM '{HOSTILE}'"],
    ],
)
def test_what_is_refused_cannot_command_a_terminal(terminal: Invoke, args: list[str]) -> None:
    result = terminal(*args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert is_harmless(result.stderr)


@pytest.mark.parametrize(
    "error",
    [PlumeError(HOSTILE), UsageError(HOSTILE), LedgerError(HOSTILE), StatementError(HOSTILE, line=1, column=1)],
)
def test_no_error_can_command_a_terminal(error: PlumeError) -> None:
    assert is_harmless(str(error))
    assert ESCAPED in str(error)


def test_an_audit_cannot_command_a_terminal() -> None:
    text = str(Audit(f"CountRecords {HOSTILE} per k", "plume", (Finding("A", f"a test of {HOSTILE}", True, 1),)))  # noqa: FBT003
    assert is_harmless(text)
    assert text.count(ESCAPED) == 2
