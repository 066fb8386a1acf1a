"""Bad commands: exit code 2, one sentence, no traceback, and not a word of the data."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import Result

CANARY = "alice-7f3a"
Invoke = Callable[..., Result]

ASKED = {
    "--user": "u",
    "--key": "k",
    "--measure": "count(3)",
    "--epsilon": "1",
    "--delta": "1e-9",
    "--max-keys-per-user": "4",
}


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files with the canary in every place where something can go wrong."""
    monkeypatch.chdir(tmp_path)
    rows = pa.table({"u": ["a", CANARY], "k": ["x", CANARY], "v": [1.0, 2.0], "t": ["1", CANARY]})
    pq.write_table(rows, "rows.parquet")
    pq.write_table(rows.set_column(0, "u", pa.array([1, 2])), "numbers.parquet")
    files = {
        "rows.csv": f"u,k,v\na,x,1\n{CANARY},{CANARY},{CANARY}\n",
        "headless.csv": f"{CANARY},x,1\n{CANARY},y,2\n",
        "twice.csv": f"u,k,u\n{CANARY},x,{CANARY}\n",
        "cut.json": f'[{{"u":"{CANARY}","k":"x"}},{{"u":"{CANARY}"',
        "broken.parquet": f"PAR1{CANARY}PAR1",
        "rows.txt": CANARY,
        "keys.csv": "k\nx\nx\n",
        "other_keys.csv": "other\nx\n",
    }
    for name, text in files.items():
        Path(name).write_text(text)
    return tmp_path


BAD: dict[str, tuple[list[str], dict[str, str], str]] = {
    "no file": (["absent.parquet"], {}, "no file 'absent.parquet'"),
    "a web address": (["https://example.org/x.parquet"], {}, "is not a path on this machine"),
    "an unknown ending": (["rows.txt"], {}, "'rows.txt' has no ending Plume knows"),
    "two formats": (["rows.csv", "rows.parquet"], {}, "the files are of several formats"),
    "files that differ": (
        ["rows.parquet", "numbers.parquet"],
        {},
        "the 2 files differ in the columns this query reads",
    ),
    "a broken file": (["broken.parquet"], {}, "broken.parquet could not be read as Parquet"),
    "JSON that is cut off": (["cut.json"], {}, "cut.json could not be read as JSON"),
    "CSV without a header": (["headless.csv"], {}, "its first line must name the columns"),
    "CSV with a column twice": (["twice.csv"], {}, "columns 'u' and 'u' are one to an engine"),
    "a column that is not there": (
        ["rows.parquet"],
        {"--key": "kk"},
        "no column 'kk' in rows.parquet; did you mean 'k'?",
    ),
    "text in double quotes": (["rows.parquet"], {"--where": 't = "x"'}, "text is written in single quotes: 'x'"),
    "a user that is not there": (["rows.parquet"], {"--user": "user"}, "no column 'user' in rows.parquet"),
    "floats as users": (["rows.parquet"], {"--user": "v"}, "user column 'v' is floating-point"),
    "floats as keys": (["rows.parquet"], {"--key": "v"}, "key column 'v' is floating-point"),
    "text as value": (["rows.parquet"], {"--measure": "sum(t, 0, 1)"}, "column 't' is text; a value must be a number"),
    "text without quotes": (["rows.parquet"], {"--where": "t = x"}, "Text is written in single quotes: 'x'."),
    "a date without quotes": (["rows.parquet"], {"--where": "t > 2026-01-31"}, "A date is written DATE '2026-01-31'."),
    "a date of another form": (
        ["rows.parquet"],
        {"--where": "t > DATE '31.01.2026'"},
        "A date is written DATE '2026-01-31'.",
    ),
    "a comparison with NULL": (["rows.parquet"], {"--where": "t = NULL"}, "What is missing is found by IS NULL."),
    "an and of other languages": (
        ["rows.parquet"],
        {"--where": "k = 'x' && v > 1"},
        "are joined by AND, and not by &&.",
    ),
    "an expression as key": (
        ["rows.parquet"],
        {"--key": "LOWER(k)"},
        "Keys may be expressions, under names of their own: --key-as name 'LOWER(k)'.",
    ),
    "two keys in one": (
        ["rows.parquet"],
        {"--key": "k,t"},
        "If these are columns: repeat the option for several columns.",
    ),
    "half of a computed key": (
        ["rows.parquet", "--key-as", "letter"],
        {},
        "Option '--key-as' takes NAME EXPRESSION, such as month 'DATE_TRUNC(day, MONTH)'.",
    ),
    "a part and its weight in one": (
        ["rows.parquet"],
        {"--share": "count=2"},
        "'--share' takes PART WEIGHT, such as users 2.",
    ),
    "an option of other commands": (["rows.parquet"], {"--limit": "4"}, "Did you mean '--max-keys-per-user'?"),
    "a bound that is a date of another form": (
        ["rows.parquet"],
        {"--measure": "mean(t, '31.01.2026', '1.2.2026')"},
        "a date or a timestamp, such as '2026-01-31'.",
    ),
    "a wrong comparison": (
        ["rows.parquet"],
        {"--where": "t > 5"},
        "where compares column 't', which is text, with integer",
    ),
    "a function in where": (["rows.parquet"], {"--where": "length(t) > 5"}, "which is not allowed"),
    "a statement in where": (["rows.parquet"], {"--where": "v > 1; DROP TABLE x"}, "cannot be read as a condition"),
    "no epsilon": (["rows.parquet"], {"--epsilon": "0"}, "epsilon is 0.0; it must be a finite number above 0"),
    "no delta": (["rows.parquet"], {"--delta": "0"}, "selecting keys from data needs a delta above 0"),
    "an unknown measure": (["rows.parquet"], {"--measure": "median(v)"}, "median"),
    "public keys twice": (["rows.parquet"], {"--public-keys": "keys.csv"}, "public_keys holds 1 duplicates"),
    "public keys of another column": (
        ["rows.parquet"],
        {"--public-keys": "other_keys.csv"},
        "no column 'k' in other_keys.csv",
    ),
    "public keys that are not there": (
        ["rows.parquet"],
        {"--public-keys": "absent.csv"},
        "File 'absent.csv' does not exist",
    ),
    "a folder for temporary files": (
        ["rows.parquet"],
        {"--temp-directory": "absent"},
        "Directory 'absent' does not exist",
    ),
    "too little memory": (["rows.parquet"], {"--memory-limit": "plenty"}, "memory_limit = 'plenty'"),
    "a level that is no probability": (["rows.parquet"], {"--intervals": "95"}, "level is 95"),
    "an output nowhere": (["rows.parquet"], {"--out": "absent/out.csv"}, "'absent/out.csv'"),
    "an output of an unknown kind": (["rows.parquet"], {"--out": "out.xlsx"}, "'out.xlsx'"),
}


def arguments(kind: str) -> list[str]:
    files, changes, _ = BAD[kind]
    return ["run", *files, *(part for option in (ASKED | changes).items() for part in option)]


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_command_ends_with_2_and_one_sentence(invoke: Invoke, data: Path, kind: str) -> None:
    before = {path: path.read_bytes() for path in data.iterdir()}
    result = invoke(*arguments(kind))
    assert (result.exit_code, result.stdout) == (2, "")
    assert BAD[kind][2] in result.stderr
    assert "Traceback" not in result.output
    assert CANARY not in result.output
    assert {path: path.read_bytes() for path in data.iterdir()} == before


@pytest.mark.parametrize(
    "kind",
    [
        "a broken file",
        "CSV without a header",
        *(pytest.param(kind, marks=pytest.mark.engines) for kind in ("a wrong comparison", "an unknown measure")),
    ],
)
def test_a_bad_command_of_a_process_of_its_own_is_no_different(data: Path, kind: str) -> None:
    """Here nobody catches what libraries print by themselves."""
    environment = os.environ | {"TMPDIR": str(data)}
    before = set(data.iterdir())
    command = [sys.executable, "-m", "plume", *arguments(kind)]
    result = subprocess.run(command, capture_output=True, env=environment, check=False)  # noqa: S603
    assert (result.returncode, result.stdout) == (2, b"")
    assert BAD[kind][2].encode() in result.stderr
    assert b"Traceback" not in result.stderr
    assert CANARY.encode() not in result.stderr
    assert set(data.iterdir()) == before
