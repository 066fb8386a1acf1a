"""What a query is cautioned against, from the query alone, and where people read it."""

import json
from typing import Any

import pyarrow as pa
import pytest

import plume
from plume.ledger.request import Request


def query(**settings: Any) -> plume.Query:
    epsilon, delta = settings.pop("epsilon", 1.0), settings.pop("delta", 1e-6)
    usual = {"user": "u", "keys": "k", "measures": [plume.users()], "max_keys_per_user": 4}
    return plume.Query(**usual | settings, budget=plume.Budget(epsilon, delta))


def cautioned(**settings: Any) -> list[str]:
    return [caution.what for caution in plume.explain(query(**settings)).cautions]


def test_usual_settings_are_cautioned_against_in_nothing() -> None:
    assert cautioned() == []


@pytest.mark.parametrize(("delta", "expected"), [(1e-5, []), (1.1e-5, ["delta"])])
def test_a_delta_above_a_hundred_thousandth_is_cautioned_against(delta: float, expected: list[str]) -> None:
    assert cautioned(delta=delta) == expected


@pytest.mark.parametrize(("population", "expected"), [(10**6, []), (10**6 + 1, ["delta"]), (50, [])])
def test_a_delta_above_one_over_the_population_is_cautioned_against(population: int, expected: list[str]) -> None:
    assert cautioned(delta=1e-6, population=population) == expected


@pytest.mark.parametrize(("epsilon", "expected"), [(10, []), (10.5, ["epsilon"])])
def test_an_epsilon_above_ten_is_cautioned_against(epsilon: float, expected: list[str]) -> None:
    assert cautioned(epsilon=epsilon) == expected


def test_a_limit_that_drowns_small_keys_in_noise_is_cautioned_against() -> None:
    assert cautioned(max_keys_per_user=1_000_000) == ["max_keys_per_user"]


def test_noise_above_half_the_users_that_a_key_needs_is_cautioned_against() -> None:
    measures = [plume.users(), plume.sum("v", 0, 9), plume.sum("w", 0, 9), plume.mean("v", 0, 9)]
    assert cautioned(measures=measures) == ["max_keys_per_user"]


def test_a_measure_whose_noise_is_wider_than_its_range_is_named() -> None:
    assert cautioned(measures=[plume.count(100)]) == ["count"]


def test_public_keys_need_no_users_so_their_noise_is_not_judged() -> None:
    assert cautioned(measures=[plume.count(100)], public_keys=["a"]) == []


def test_noise_is_not_judged_before_the_limit_is_chosen() -> None:
    assert cautioned(measures=[plume.count(100)], max_keys_per_user="auto", delta=0.5) == ["delta"]


def test_a_release_prints_and_records_its_cautions() -> None:
    release = plume.run(query(delta=0.5), pa.table({"u": [1], "k": ["a"]}))
    (caution,) = (caution for caution in release.cautions if caution.what == "delta")
    assert f"caution: {caution.found}. Set delta to 1e-05 or less." in str(release).splitlines()
    assert json.loads(release.to_json())["cautions"][0]["what"] == "delta"
    assert "cautions" in str(release.explanation)
    assert "Set delta to 1e-05 or less." in release._repr_html_()


def test_a_record_without_cautions_is_as_it_was() -> None:
    assert "cautions" not in plume.explain(query()).record()


def test_cautions_and_an_unset_population_are_no_part_of_the_question() -> None:
    """The hashes were made before there were cautions and populations."""
    canonical = Request(plume.explain(query(delta=0.5)), "visits").canonical
    assert "population" not in canonical
    assert "cautions" not in plume.explain(query(delta=0.5)).facts()


@pytest.mark.parametrize("population", [0, -1, 1.5, True, "many", 10**13])
def test_a_population_is_a_positive_whole_number(population: Any) -> None:
    with pytest.raises(plume.PlumeError, match=r"population is .* it must be a whole number from 1 to"):
        query(population=population)
