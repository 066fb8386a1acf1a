import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

import plume

Invoke = Callable[..., Result]
ASKED = [
    "--user",
    "user_id",
    "--key",
    "recipe",
    "--delta",
    "1e-5",
    "--max-keys-per-user",
    "4",
    "--users-per-key",
    "500",
]


@pytest.fixture
def need(invoke: Invoke) -> Invoke:
    return lambda *more: invoke("need", *ASKED, *more)


def test_the_smallest_epsilon_is_printed(need: Invoke) -> None:
    result = need("--measure", "users()", "--error", 0.05)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("the smallest epsilon for what is asked")


def test_options_are_the_arguments_of_python(need: Invoke) -> None:
    measures = ["--measure", "count(3)", "--measure", "sum(seconds, 0, 60)", "--measure", "users()"]
    errors = ["--error", 0.1, "--total", "seconds_sum", 9000, "--absolute-error", "count", 90]
    record = json.loads(need(*measures, *errors, "--chance", 0.9, "--keys-of-user", 2, "--format", "json").stdout)
    query = plume.Query(
        user="user_id",
        keys="recipe",
        measures=[plume.count(3), plume.sum("seconds", 0, 60), plume.users()],
        max_keys_per_user=4,
        budget=plume.Budget(1.0, 1e-5),
    )
    totals, absolute = {"seconds_sum": 9000}, {"count": 90}
    expected = plume.need(query, users=500, error=0.1, totals=totals, absolute=absolute, chance=0.9, keys_of_user=2)
    assert record == expected.record()


def test_limits_are_searched_for_users_of_several_kinds(need: Invoke) -> None:
    crowd = ["--keys-of-user", "5:0.9,20:0.1", "--limit", 5, "--limit", 20]
    record = json.loads(need("--measure", "users()", "--error", 0.2, *crowd, "--format", "json").stdout)
    assert [one["max_keys_per_user"] for one in record["limits"]] == [4, 5, 20]
    assert (record["max_keys_per_user"], record["keys_of_user"]) == (5, {"5": 0.9, "20": 0.1})


@pytest.mark.parametrize("text", ["many", "5:0.9,20", "5:much", "5:0.9:1"])
def test_keys_of_users_that_cannot_be_read_are_refused(need: Invoke, text: str) -> None:
    result = need("--measure", "users()", "--error", 0.2, "--keys-of-user", text)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "it must be a number such as 20, or shares of users, such as 5:0.9,20:0.1." in result.stderr


def test_values_of_a_user_are_assumed(need: Invoke) -> None:
    asked = [
        "--measure",
        "mean(seconds, 0, 60, max_per_key=3)",
        "--absolute-error",
        "seconds_mean",
        3,
        "--format",
        "json",
    ]
    one, two = (json.loads(need(*asked, "--values-of-user", values).stdout)["epsilon"] for values in (1, 2))
    assert two < one


def test_an_epsilon_in_a_query_file_does_not_matter(invoke: Invoke, tmp_path: Path) -> None:
    file = tmp_path / "query.toml"
    file.write_text(
        'user = "user_id"\nkeys = ["recipe"]\nmeasures = ["users()"]\nmax_keys_per_user = 4\nepsilon = 7.0\ndelta = 1e-5\n'
    )
    result = invoke("need", "--query", file, "--users-per-key", 500, "--error", 0.05, "--format", "json")
    assert json.loads(result.stdout)["epsilon"] < 2


def test_rows_are_printed_as_csv(need: Invoke) -> None:
    header, row = need("--measure", "users()", "--error", 0.05, "--format", "csv").stdout.splitlines()
    assert header.startswith('"epsilon","delta","max_keys_per_user"')
    assert '"users"' in row


def test_what_no_budget_reaches_is_wrong_use(need: Invoke) -> None:
    result = need("--measure", "users()", "--error", 0.05, "--min-users", 600)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: min_users is 600, so a key of 500 users is never shown;")


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (
            (),
            "no error is given for seconds_mean; give --error, or --absolute-error seconds_mean NUMBER in its own unit.",
        ),
        (("--error", 0.1), "or --total seconds_mean NUMBER, its value in such a key."),
        (("--error", 0.1, "--keys-of-user", "5:0.9"), "the shares of users in --keys-of-user add up to 0.9"),
    ],
)
def test_errors_name_options_where_python_has_arguments(need: Invoke, asked: tuple[object, ...], sentence: str) -> None:
    result = need("--measure", "mean(seconds, 0, 60)", *asked)
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr


def test_what_a_median_costs_is_told(need: Invoke) -> None:
    asked = ["--measure", "median(seconds, 0, 60)", "--absolute-error", "seconds_median", 6, "--format", "json"]
    record = json.loads(need(*asked).stdout)
    assert record["epsilon"] == pytest.approx(1.17, rel=0.01)
    assert record["chance"] >= 0.95
