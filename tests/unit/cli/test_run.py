import csv
import json
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import Result

from plume.progress import STAGES

Invoke = Callable[..., Result]


def test_rows_go_to_standard_output_as_csv(run: Invoke) -> None:
    result = run()
    assert result.exit_code == 0
    header, *rows = csv.reader(result.stdout.splitlines())
    assert header == ["recipe", "count"]
    assert [recipe for recipe, _ in rows] == ["'=1+1", "lasagna", "red\x1b[31m"]
    assert all(abs(int(count) - 300) < 100 for _, count in rows)


def told_by(result: Result) -> list[str]:
    """Standard error without cautions: the epsilon of these tests, 50, is cautioned against."""
    return [line for line in result.stderr.splitlines() if not line.startswith("caution: epsilon is 50")]


def test_standard_error_tells_stages_and_what_was_spent_and_nothing_else(run: Invoke) -> None:
    stages, remarks = list(STAGES.values()), 3
    lines = told_by(run())
    assert lines[:-remarks] == stages
    assert lines[-3].startswith("(50, ")
    assert "differential privacy for every user_id" in lines[-3]
    assert lines[-2].startswith("noise (95 %): count ± ")
    assert lines[-1].startswith("cut off: what lies beyond max_keys_per_user = ")


def test_the_noise_is_told_as_a_printed_release_tells_it(run: Invoke) -> None:
    told = told_by(run("--measure", "mean(seconds, 0, 10)"))[-2]
    assert re.fullmatch(r"noise \(95 %\): count ± \d+; seconds_mean differs by key, too noisy in \d+ of \d+ keys", told)


def test_unreliable_values_are_null_on_request(run: Invoke) -> None:
    rows = json.loads(
        run("--measure", "mean(seconds, 0, 10)", "--unreliable", "null", "--format", "json").stdout,
    )
    assert all((row["seconds_mean"] is None) is not row["seconds_mean_reliable"] for row in rows)


def test_quiet_leaves_standard_error_empty(run: Invoke) -> None:
    result = run("--quiet")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith('"recipe","count"\n')


def test_json_is_an_array_of_rows(run: Invoke) -> None:
    rows = json.loads(run("--format", "json").stdout)
    assert [row["recipe"] for row in rows] == ["=1+1", "lasagna", "red\x1b[31m"]
    assert all(isinstance(row["count"], int) for row in rows)


def test_intervals_become_columns(run: Invoke) -> None:
    rows = json.loads(run("--format", "json", "--intervals", "0.95").stdout)
    assert all(row["count_low"] < row["count"] < row["count_high"] for row in rows)


def test_a_table_escapes_what_could_command_the_terminal(run: Invoke) -> None:
    header, *rows = run("--format", "table").stdout.splitlines()
    assert header.split() == ["recipe", "count"]
    assert rows[-1].split()[0] == r"red\x1b[31m"


@pytest.mark.parametrize(("ending", "read"), [("parquet", pq.read_table), ("csv", pyarrow.csv.read_csv)])
def test_out_writes_the_rows_to_a_file_and_none_to_standard_output(
    run: Invoke, tmp_path: Path, ending: str, read: Callable[[Path], pa.Table]
) -> None:
    out = tmp_path / f"popular.{ending}"
    result = run("--out", out)
    assert (result.exit_code, result.stdout) == (0, "")
    assert f"3 rows written to {out}" in result.stderr
    assert read(out).column_names == ["recipe", "count"]
    assert read(out).num_rows == 3


def test_a_report_is_a_page_beside_the_rows(run: Invoke, tmp_path: Path) -> None:
    report = tmp_path / "popular.html"
    result = run("--report", report)
    assert (result.exit_code, len(result.stdout.splitlines())) == (0, 4)
    assert f"report written to {report}" in result.stderr
    assert report.read_text().startswith("<!doctype html>")


def test_a_report_that_cannot_be_drawn_is_refused_before_anything_runs(
    run: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("plume.cli.running.run")
    monkeypatch.setattr("plume.report.chart.find_spec", lambda _: None)
    result = run("--report", tmp_path / "popular.html")
    assert result.exit_code == 2
    assert "run pip install vl-convert-python" in result.stderr


def test_the_record_says_what_was_asked_and_spent(run: Invoke, tmp_path: Path) -> None:
    record = tmp_path / "popular.json"
    assert run("--record", record).exit_code == 0
    kept = json.loads(record.read_text())
    assert (kept["private"], kept["rows"], kept["guarantee"]["epsilon"]) == (True, 3, 50)
    assert kept["query"]["keys"] == ["recipe"]


def test_several_files_are_one_table(invoke: Invoke, searches: Path, asked: list[str], tmp_path: Path) -> None:
    other = tmp_path / "more.parquet"
    pq.write_table(pq.read_table(searches), other)
    rows = json.loads(invoke("run", searches, other, *asked, "--format", "json").stdout)
    assert all(abs(row["count"] - 600) < 100 for row in rows)


def test_where_keeps_rows(run: Invoke) -> None:
    rows = json.loads(run("--format", "json", "--where", "recipe = 'lasagna'").stdout)
    assert [row["recipe"] for row in rows] == ["lasagna"]


def test_public_keys_are_released_and_no_others(run: Invoke, tmp_path: Path) -> None:
    public = tmp_path / "known.csv"
    public.write_text("recipe\nlasagna\nramen\n")
    rows = json.loads(run("--format", "json", "--public-keys", public).stdout)
    assert [row["recipe"] for row in rows] == ["lasagna", "ramen"]


def test_min_users_keeps_keys_out(run: Invoke) -> None:
    assert run("--min-users", "5000").stdout == '"recipe","count"\n'


def test_several_keys_and_measures_become_columns_in_their_order(run: Invoke, searches: Path) -> None:
    more = ["--key", "seconds_text", "--measure", "sum(seconds, 0, 60) AS time", "--measure", "users"]
    rows = pq.read_table(searches)
    pq.write_table(rows.append_column("seconds_text", rows["seconds"].cast(pa.string())), searches)
    header, *_ = run(*more).stdout.splitlines()
    assert header == '"recipe","seconds_text","count","time","users"'


@pytest.mark.parametrize("pipeline", ["plume", "naive", "runtime_optimized"])
def test_every_pipeline_answers_in_known_stages(run: Invoke, pipeline: str) -> None:
    result = run("--pipeline", pipeline)
    assert result.exit_code == 0
    assert told_by(result)[:4] == list(STAGES.values())


def test_the_engine_takes_its_limits(run: Invoke, searches: Path, tmp_path: Path) -> None:
    limits = ["--threads", "1", "--memory-limit", "500MB", "--temp-directory", tmp_path]
    assert run(*limits).exit_code == 0
    assert list(tmp_path.iterdir()) == [searches]


def test_a_limit_that_is_left_open_is_chosen_and_told(run: Invoke) -> None:
    """300 users with three keys each; with so little noise whoever cuts them loses more."""
    result = run("--max-keys-per-user", "auto")
    assert result.exit_code == 0
    assert "chosen within the budget: max_keys_per_user = 3" in result.stderr.splitlines()


def test_a_limit_that_is_no_number_is_wrong_use(run: Invoke) -> None:
    result = run("--max-keys-per-user", "many")
    assert result.exit_code == 2
    assert "'many' is not a whole number; write one such as 16, or 'auto'" in result.stderr


def test_cautions_are_said_once_on_standard_error_and_recorded(run: Invoke, tmp_path: Path) -> None:
    result = run("--record", tmp_path / "record.json", "--population", "1000000")
    said = [line for line in result.stderr.splitlines() if line.startswith("caution: ")]
    assert [line.split()[1] for line in said] == ["epsilon", "delta"]
    assert "epsilon is 50" not in result.stdout
    recorded = json.loads((tmp_path / "record.json").read_text())["cautions"]
    assert [caution["what"] for caution in recorded] == ["epsilon", "delta"]


def test_cautions_are_said_before_anything_is_read_or_charged(run: Invoke) -> None:
    lines = run().stderr.splitlines()
    assert lines[0].startswith("caution: epsilon is 50")
    assert lines[1] == next(iter(STAGES.values()))


def test_cautions_are_not_said_to_the_quiet(run: Invoke) -> None:
    assert run("--quiet").stderr == ""


def test_an_empty_release_says_on_standard_error_how_many_users_a_key_needs(run: Invoke) -> None:
    result = run("--epsilon", "1", "--min-users", "5000")
    assert result.stdout == '"recipe","count"\n'
    assert re.search(r"^a key needs 5,\d+ users to be shown half of the time", result.stderr, re.MULTILINE)
    assert re.search(r"^it would need \d+ with min_users = 1", result.stderr, re.MULTILINE)


def test_quiet_says_nothing_of_an_empty_release(run: Invoke) -> None:
    assert run("--epsilon", "0.1", "--quiet").stderr == ""


ASKED = ("--user", "user_id", "--measure", "users", "--epsilon", "50", "--delta", "1e-5")


def test_a_total_needs_no_key_and_no_limit(searches: Path, invoke: Invoke) -> None:
    result = invoke("run", searches, *ASKED, "--no-keys", "--quiet")
    header, *rows = result.stdout.splitlines()
    assert (result.exit_code, header, len(rows)) == (0, '"users"', 1)


def test_a_key_may_be_computed(searches: Path, invoke: Invoke) -> None:
    result = invoke("run", searches, *ASKED, "--key-as", "dish", "UPPER(recipe)", "--max-keys-per-user", "4", "--quiet")
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, '"dish","users"')


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--key", "recipe"], "Missing option '--max-keys-per-user'"),
        (
            ["--max-keys-per-user", "4"],
            "Missing option '--key'. Column to group by; repeatable. Or give --key-as or --no-keys.",
        ),
        (["--key-as", "dish", "UPPER(recipe)"], "Missing option '--max-keys-per-user'"),
        (
            ["--no-keys", "--key", "recipe"],
            "--no-keys asks for a total, which has no keys; leave --key and --key-as out.",
        ),
        (["--no-keys", "--key-as", "dish", "UPPER(recipe)"], "--no-keys asks for a total"),
        (["--key-as", "dish", "ODD(recipe)", "--max-keys-per-user", "4"], "is not known to be a function of one row"),
    ],
)
def test_what_keys_lack_is_said(searches: Path, invoke: Invoke, options: list[str], said: str) -> None:
    result = invoke("run", searches, *ASKED, *options)
    assert result.exit_code == 2
    assert said in result.stderr
