import json
import math
from typing import Any

import pytest

import plume
from plume.errors import RangeError, UsageError
from plume.explanation import guarantee


def query(epsilon: float = 1.1, **changes) -> plume.Query:
    settings = {
        "user": "user_id",
        "keys": "recipe",
        "measures": [plume.count(max_per_key=3), plume.sum("seconds", 0, 60)],
        "max_keys_per_user": 64,
        "budget": plume.Budget(epsilon=epsilon, delta=1e-5),
    }
    return plume.Query(**(settings | changes))


def test_an_explanation_names_threshold_noise_and_spending() -> None:
    text = str(plume.explain(query(epsilon=math.log(3), selection="laplace_threshold", composition="basic")))
    assert "reach 1747" in text
    assert "count: discrete Laplace, standard deviation 988.6" in text
    assert "selection: epsilon 0.5493, delta 9.97e-06" in text
    assert "plume: 3 shuffles" in text


SHRUNK = "count in all of their keys, shrunk together to the Euclidean norm of 64 keys"


@pytest.mark.parametrize(
    ("changes", "pipeline", "above"),
    [
        ({"noise": "gaussian"}, "plume", SHRUNK),
        ({"noise": "gaussian"}, "naive", SHRUNK),
        ({"noise": "gaussian"}, "runtime_optimized", "are cut to it"),
        ({"noise": "laplace"}, "plume", "are cut to it"),
        ({"noise": "laplace", "public_keys": ["lasagna"]}, "plume", "are cut to it"),
    ],
)
def test_an_explanation_says_what_happens_to_users_above_the_limit(
    changes: dict[str, Any], pipeline: str, above: str
) -> None:
    text = str(plume.explain(query(**changes), pipeline=pipeline))
    assert f"bound      limit of 64 keys per user_id; users above it {above}\n" in text


@pytest.mark.parametrize(
    ("epsilon", "stated"), [(1.1, "(1.1,"), (1.10004, "(1.101,"), (0.3, "(0.3,"), (1 / 3, "(0.3334,")]
)
def test_the_guarantee_is_rounded_up(epsilon: float, stated: str) -> None:
    assert stated in str(plume.explain(query(epsilon)))


def test_the_record_is_plain_json_with_the_exact_figures() -> None:
    record = json.loads(json.dumps(plume.explain(query(1.10004)).record()))
    assert record["guarantee"]["epsilon"] == 1.10004
    assert record["guarantee"]["delta"] <= 1e-5
    assert [spent["part"] for spent in record["spent"]] == ["selection", "count", "seconds_sum"]
    assert [noise["measure"] for noise in record["noise"]] == ["count", "seconds_sum"]
    assert record["query"]["measures"][0] == {"type": "CountRecords", "max_per_key": 3, "name": "count"}


def test_sql_is_printed_in_both_dialects_without_a_secret() -> None:
    explanation = plume.explain(query())
    assert 'FROM "input"' in explanation.sql()
    assert "FROM `input`" in explanation.sql("spark")
    assert "'{salt}'" in explanation.sql()


HOSTILE = "\x1b[31m\u202eu\n\u2028\x9b"
ESCAPED = r"\x1b[31m\u202eu\n\u2028\x9b"


@pytest.mark.parametrize(
    "changes",
    [
        {"user": HOSTILE},
        {"user": HOSTILE, "max_keys_per_user": "auto"},
        {"measures": [plume.count(max_per_key=3, name=HOSTILE)]},
        {"measures": [plume.sum("seconds", low_total=0, high_total="auto", name=HOSTILE)]},
        {"measures": [plume.mean("seconds", low=0, high=60, name=HOSTILE)]},
    ],
)
def test_names_in_an_explanation_cannot_command_a_terminal(changes: dict[str, Any]) -> None:
    explanation = plume.explain(query(**changes))
    text = str(explanation)
    assert text == repr(explanation)
    assert ESCAPED in text
    assert all(char.isprintable() or char == "\n" for char in text)


def test_the_guarantee_and_the_noise_escape_names() -> None:
    explanation = plume.explain(query(user=HOSTILE, measures=[plume.count(max_per_key=3, name=HOSTILE)]))
    assert f"for every {ESCAPED}: adding or removing all rows of one {ESCAPED}" in guarantee(explanation)
    assert [str(noise) for noise in explanation.noise] == [ESCAPED]


def test_an_unknown_dialect_is_refused() -> None:
    with pytest.raises(UsageError, match="dialect is 'oracle'; it must be one of duckdb, spark"):
        plume.explain(query()).sql("oracle")


def test_an_unknown_pipeline_is_refused() -> None:
    with pytest.raises(UsageError, match="pipeline is 'fast'; it must be one of plume, naive, runtime_optimized"):
        plume.explain(query(), pipeline="fast")


@pytest.mark.parametrize("selection", ["laplace_threshold", "gaussian_threshold", "weighted_gaussian"])
def test_noise_too_wide_for_selection_is_refused_like_that_of_measures(selection: str) -> None:
    tiny = plume.Budget(epsilon=1e-9, delta=1e-12)
    with pytest.raises(RangeError, match=r"raise (epsilon|delta)"):
        plume.explain(query(max_keys_per_user=10**6, measures=[plume.users()], selection=selection, budget=tiny))


def test_each_strategy_is_explained_in_its_own_words() -> None:
    said = {
        name: str(plume.explain(query(max_keys_per_user=limit, measures=[plume.users()], selection=name)))
        for name, limit in (("truncated_geometric", 1), ("weighted_gaussian", 64), ("auto", 64))
    }
    assert (
        "truncated geometric: a key is shown with a 50 % chance at 20 users, certainly above 39"
        in said["truncated_geometric"]
    )
    assert "weighted Gaussian: a key is shown if its users' weights, 1/√t each" in said["weighted_gaussian"]
    assert "each user has one account for selection and measures; measures take at most 75 % of it" in said["auto"]
    assert all("selection: mu " in said[name] for name in ("weighted_gaussian", "auto"))


def test_a_record_of_gaussian_parts_gives_their_mu() -> None:
    record = plume.explain(query()).record()
    assert [set(part) for part in record["spent"]] == [{"part", "mu", "delta"}] * 3


def test_parts_of_different_kinds_are_listed_by_key() -> None:
    text = str(plume.explain(query(max_keys_per_user=8, measures=[plume.users()], noise="laplace")))
    assert "users: epsilon 0.08827 for each of 8 keys" in text
    assert "selection: mu " in text


def test_the_record_holds_what_dp_accounting_finds_and_a_release_does_without() -> None:
    explained = plume.explain(query())
    recomputed = explained.record()["recomputed"]
    assert recomputed["epsilon"] == pytest.approx(1.1, rel=1e-3)
    assert recomputed["delta"] == 1e-5
    assert set(explained.record()) - set(explained.facts()) == {"recomputed"}


def test_a_record_of_laplace_parts_gives_their_coordinates() -> None:
    explained = plume.explain(query(max_keys_per_user=8, measures=[plume.users()], noise="laplace"))
    part = explained.facts()["spent"][1]
    assert (part["part"], part["coordinates"], part["shape"]) == ("users", 8, "Laplace")
