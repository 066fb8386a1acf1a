import json
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import Result

import plume
from ledgers import change, spoil_release
from plume.ledger.price import Price

Invoke = Callable[..., Result]


@pytest.fixture
def ledger(invoke: Invoke, place: Path | str) -> Path | str:
    created = invoke("ledger", "create", place, "--dataset", "searches", "--epsilon", 120, "--delta", "1e-4")
    assert created.exit_code == 0
    return place


@pytest.fixture
def charge(run: Invoke, ledger: Path | str) -> Invoke:
    return lambda *more: run("--ledger", ledger, "--dataset", "searches", *more)


def test_create_says_what_may_be_spent(invoke: Invoke, place: Path | str) -> None:
    result = invoke("ledger", "create", place, "--dataset", "d", "--epsilon", 2)
    assert re.fullmatch(r"dataset d may spend epsilon 2 and delta 0; ledger head [0-9a-f]{64}\n", result.stdout)


def test_create_adds_to_a_ledger_that_is_there(invoke: Invoke, ledger: Path | str) -> None:
    assert invoke("ledger", "create", ledger, "--dataset", "more", "--epsilon", 1).exit_code == 0
    assert plume.Ledger(ledger).datasets() == ("searches", "more")


def test_a_run_is_charged_and_says_so(charge: Invoke, invoke: Invoke, ledger: Path | str) -> None:
    result = charge("--release-id", "first")
    assert result.exit_code == 0
    head = re.search(r"charged to searches as release first; ledger head ([0-9a-f]{64})\n$", result.stderr)
    assert head
    assert invoke("ledger", "verify", ledger, "--head", head[1]).exit_code == 0


def test_the_same_release_id_prints_the_same_rows(charge: Invoke) -> None:
    assert charge("--release-id", "first").stdout == charge("--release-id", "first").stdout


def test_the_same_release_id_can_be_written_again_elsewhere(charge: Invoke, tmp_path: Path) -> None:
    for name in ("one.parquet", "two.parquet"):
        assert charge("--release-id", "first", "--out", tmp_path / name).exit_code == 0
    assert pq.read_table(tmp_path / "one.parquet").equals(pq.read_table(tmp_path / "two.parquet"))


def test_a_release_beyond_the_budget_ends_with_3_and_says_what_is_needed_and_left(
    charge: Invoke, tmp_path: Path
) -> None:
    out = tmp_path / "out.csv"
    codes = [charge("--release-id", f"r{n}", "--selection", "laplace_threshold").exit_code for n in range(2)]
    result = charge("--release-id", "r2", "--selection", "laplace_threshold", "--out", out)
    assert (codes, result.exit_code, result.stdout) == ([0, 0], 3, "")
    assert "this release needs epsilon 50 and delta " in result.stderr
    assert re.search(r"dataset 'searches' has epsilon 20\S* and delta 9\.99e-05 left", result.stderr)
    assert not out.exists()


def test_show_says_what_is_spent_and_left(charge: Invoke, invoke: Invoke, ledger: Path | str) -> None:
    charge()
    said = invoke("ledger", "show", ledger).stdout
    expected = (
        r"searches: spent epsilon 50 at delta \S+, of epsilon 120 and delta 0\.0001; added up, epsilon 70 is left\n"
        r"  releases cost less together than added up; `plume ledger plan` says whether a query still fits\n"
    )
    assert re.fullmatch(expected, said)


def test_show_warns_of_a_ledger_that_others_may_change(invoke: Invoke, ledger: Path | str) -> None:
    assert invoke("ledger", "show", ledger).stderr == ""
    if isinstance(ledger, Path):
        ledger.chmod(0o666)
    else:
        change(plume.Ledger(ledger), "GRANT INSERT ON entries TO PUBLIC")
    assert re.search(r"chmod 600 keeps them out|REVOKE keeps them out", invoke("ledger", "show", ledger).stderr)


def test_history_lists_every_entry(charge: Invoke, invoke: Invoke, ledger: Path | str) -> None:
    charge("--release-id", "first")
    lines = invoke("ledger", "history", ledger).stdout.splitlines()
    assert len(lines) == len(plume.Ledger(ledger).history()) == 5
    assert "searches: first was charged epsilon 50 and delta " in lines[1]
    assert re.search(r"UTC  searches: first was released: \w+ by \w+", lines[4])


def test_verify_ends_with_1_if_something_is_wrong(charge: Invoke, invoke: Invoke, ledger: Path | str) -> None:
    charge("--release-id", "first")
    assert invoke("ledger", "verify", ledger).stdout.startswith("all is well; ledger head ")
    assert invoke("ledger", "verify", ledger, "--head", "f" * 64).exit_code == 1
    spoil_release(plume.Ledger(ledger), "first")
    assert invoke("ledger", "verify", ledger).exit_code == 1


def test_recover_and_abandon_say_what_became_of_releases(invoke: Invoke, ledger: Path | str) -> None:
    for name, draws in (("kept", False), ("gone", True)):
        with plume.Ledger(ledger).dataset("searches").claimed(name, "q") as claim:
            claim.reserve(Price(10**9, 0, 10**9, 0, 0))
            if draws:
                claim.begin_drawing()
    assert "release gone is drawing" in invoke("ledger", "show", ledger).stdout
    assert invoke("ledger", "recover", ledger).stdout == "release kept is reserved\nrelease gone is lost\n"
    assert "stays spent" in invoke("ledger", "abandon", ledger, "kept").stdout
    assert invoke("ledger", "abandon", ledger, "kept").exit_code == 2


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--dataset", "searches"], "--dataset and --release-id need --ledger"),
        (["--release-id", "x"], "--dataset and --release-id need --ledger"),
        (["--ledger", "absent"], "--ledger needs --dataset"),
        (["--ledger", "absent", "--dataset", "x"], "no ledger 'absent'"),
    ],
)
def test_half_a_ledger_ends_with_2(run: Invoke, args: list[str], said: str) -> None:
    result = run(*args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


def test_a_result_that_cannot_be_written_is_not_charged(charge: Invoke, ledger: Path | str) -> None:
    assert charge("--out", "absent/out.csv").exit_code == 2
    assert len(plume.Ledger(ledger).history()) == 1


def test_a_repeated_release_id_says_that_nothing_was_read_or_charged(charge: Invoke) -> None:
    charge("--release-id", "first")
    said = charge("--release-id", "first").stderr
    assert re.search(
        r"release first of searches was released at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC; these are its rows\. No data was read",
        said,
    )
    assert "charged to searches" not in said


def test_plan_says_what_fits_and_charges_nothing(invoke: Invoke, ledger: Path | str, asked: list[str]) -> None:
    result = invoke("ledger", "plan", ledger, "--dataset", "searches", *asked)
    assert (result.exit_code, len(plume.Ledger(ledger).history())) == (0, 1)
    assert "The largest epsilon with which this query fits is 120.\n" in result.stdout


def test_plan_ends_with_3_if_the_query_does_not_fit(invoke: Invoke, ledger: Path | str, asked: list[str]) -> None:
    result = invoke("ledger", "plan", ledger, "--dataset", "searches", *asked, "--epsilon", 130, "--format", "json")
    assert (result.exit_code, json.loads(result.stdout)["fits"]) == (3, False)


def test_programs_get_history_in_words_and_amounts_beside_its_units(
    invoke: Invoke, charge: Invoke, ledger: Path
) -> None:
    charge("--release-id", "first")
    entries = json.loads(invoke("ledger", "history", ledger, "--format", "json").stdout)
    lines = invoke("ledger", "history", ledger).stdout.splitlines()
    assert [entry["what"] for entry in entries] == [line.partition("searches: ")[2] for line in lines]
    assert [entry.get("epsilon") for entry in entries] == [120, 50, None, None, None]
    assert entries[1]["content"]["epsilon"] == 50 * 10**9


def test_the_help_of_ledgers_cuts_no_sentence(invoke: Invoke) -> None:
    assert "..." not in invoke("ledger", "--help").stdout.partition("Commands:")[2]


@pytest.mark.parametrize("command", ["show", "history", "verify"])
def test_programs_get_json(invoke: Invoke, charge: Invoke, ledger: Path | str, command: str) -> None:
    charge("--release-id", "first")
    assert plume.Ledger(ledger).head in invoke("ledger", command, ledger, "--format", "json").stdout
    assert json.loads(invoke("ledger", command, ledger, "--format", "json").stdout)
