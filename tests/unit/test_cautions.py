"""What a query is cautioned against, from the query alone, and where people read it."""

import json
import re
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import plume
from plume.cautions import Caution
from plume.ledger.request import Request

HOSTILE = "u\x1b[31m\n<script>alert(1)</script>"


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


@pytest.mark.parametrize("population", [150_000, 10**6, 7 * 10**9, 10**12])
def test_the_delta_that_is_advised_is_not_cautioned_against(population: int) -> None:
    (caution,) = plume.explain(query(delta=1e-5, population=population)).cautions
    advised = float(caution.next_step.split()[3])
    assert advised > 0.9 / population
    assert cautioned(delta=advised, population=population) == []


@pytest.mark.parametrize(("epsilon", "expected"), [(10, []), (10.5, ["epsilon"])])
def test_an_epsilon_above_ten_is_cautioned_against(epsilon: float, expected: list[str]) -> None:
    assert cautioned(epsilon=epsilon) == expected


def test_a_limit_that_drowns_small_keys_in_noise_is_cautioned_against() -> None:
    assert cautioned(max_keys_per_user=1_000_000) == ["max_keys_per_user"]


def test_noise_above_half_the_users_that_a_key_needs_is_cautioned_against() -> None:
    measures = [plume.users(), plume.sum("v", 0, 9), plume.sum("w", 0, 9), plume.mean("v", 0, 9)]
    assert cautioned(measures=measures) == ["max_keys_per_user"]


def test_a_measure_whose_noise_is_wider_than_its_range_is_named() -> None:
    assert cautioned(measures=[plume.mean("v", 0, 9, max_per_key=100)]) == ["v_mean"]


def test_a_limit_of_1_is_not_advised_to_be_less() -> None:
    cautions = plume.explain(query(measures=[plume.median("v", 0, 9)], max_keys_per_user=1, epsilon=0.2)).cautions
    assert [caution.what for caution in cautions][-1] == "v_median"
    assert all("max_keys_per_user" not in caution.next_step for caution in cautions)


def test_public_keys_need_no_users_so_their_noise_is_not_judged() -> None:
    assert cautioned(measures=[plume.median("v", 0, 9)], max_keys_per_user=1, public_keys=["a"]) == []


def test_a_delta_of_which_nothing_is_spent_is_not_cautioned_against() -> None:
    assert cautioned(delta=0.5, public_keys=["a"], composition="basic") == []


def test_no_public_key_is_said_to_show_a_user() -> None:
    (caution,) = plume.explain(query(delta=0.5, public_keys=["a"], noise="gaussian")).cautions
    assert caution.found == "delta is 0.5: with up to this probability the guarantee may fail"


def test_noise_is_not_judged_before_the_limit_is_chosen() -> None:
    assert cautioned(measures=[plume.mean("v", 0, 9, max_per_key=100)], max_keys_per_user="auto", delta=0.5) == [
        "delta"
    ]


def test_a_release_prints_and_records_its_cautions() -> None:
    release = plume.run(query(delta=0.5), pa.table({"u": [1], "k": ["a"]}))
    (caution,) = (caution for caution in release.cautions if caution.what == "delta")
    assert f"caution: {caution.found}. Set delta to 1e-05 or less." in str(release).splitlines()
    assert json.loads(release.to_json())["cautions"][0]["what"] == "delta"
    assert "cautions" in str(release.explanation)
    assert "Set delta to 1e-05 or less." in re.sub("<[^>]*>", "", release._repr_html_())


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


def run(**settings: Any) -> plume.Release:
    asked = query(**settings)
    return plume.run(asked, pa.table({asked.user: [1], "k": ["a"], "v": [1], "w": [1]}))


def test_a_run_gives_its_cautions_to_warnings_at_the_line_that_called_it() -> None:
    with pytest.warns(plume.PlumeWarning, match="delta is 0.5: .* Set delta to 1e-05 or less") as caught:
        run(delta=0.5)
    assert [Path(one.filename).name for one in caught] == [Path(__file__).name] * len(caught)


def test_a_statement_gives_them_at_the_line_that_called_it() -> None:
    text = """SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 11, delta = 1e-6, max_groups_contributed = 1, privacy_unit_column = u)
        k, COUNT(DISTINCT u) AS users FROM t GROUP BY k"""
    with pytest.warns(plume.PlumeWarning, match="epsilon is 11") as caught:
        plume.sql(text, tables={"t": pa.table({"u": [1], "k": ["a"]})})
    assert [Path(one.filename).name for one in caught] == [Path(__file__).name]


def test_usual_settings_warn_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run()


def test_a_filter_silences_them() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", category=plume.PlumeWarning)
        run(delta=0.5)
    assert caught == []


def test_where_they_are_errors_nothing_is_charged(tmp_path: Path) -> None:
    dataset = plume.Ledger.create(tmp_path / "l").add_dataset("d", plume.Budget(100, 0.6))
    with warnings.catch_warnings():
        warnings.simplefilter("error", plume.PlumeWarning)
        with pytest.raises(plume.PlumeWarning, match="epsilon is 20"):
            plume.run(query(epsilon=20), pa.table({"u": [1], "k": ["a"]}), ledger=dataset, release_id="r")
    assert dataset.spent.epsilon == 0


def test_names_in_cautions_are_printed_harmlessly_everywhere(tmp_path: Path) -> None:
    measures = [plume.mean("v", 0, 9, max_per_key=100, name=f"c{HOSTILE}")]
    with pytest.warns(plume.PlumeWarning) as caught:
        release = run(user=HOSTILE, delta=0.5, epsilon=0.5, measures=measures)
    release.report(tmp_path / "page.html")
    assert {"delta", f"c{HOSTILE}"} <= {caution.what for caution in release.cautions}
    said = [str(one.message) for one in caught] + [str(one) for one in release.cautions]
    assert all("\x1b" not in one and "\n" not in one for one in said)
    for page in ((tmp_path / "page.html").read_text(), release._repr_html_()):
        assert "<script>alert" not in page
        assert "\x1b" not in page


def test_no_caution_depends_on_data() -> None:
    asked = query(delta=0.5, epsilon=12, measures=[plume.count(100), plume.median("v", 0, 9)], population=10**7)
    none = pa.table({"u": pa.array([], pa.int64()), "k": pa.array([], pa.string()), "v": pa.array([], pa.int64())})
    many = pa.table({"u": range(5000), "k": ["a", "b"] * 2500, "v": [1] * 5000})
    said = []
    for rows in (none, many):
        with pytest.warns(plume.PlumeWarning) as caught:
            release = plume.run(asked, rows)
        said.append((release.cautions, [str(one.message) for one in caught]))
    assert said[0] == said[1]
    assert len(said[0][0]) > 1


def noised(measures: list[Any], epsilon: float) -> tuple[Caution, ...]:
    return plume.explain(query(measures=measures, epsilon=epsilon, max_keys_per_user=1, delta=1e-6)).cautions


@pytest.mark.parametrize(
    "measure",
    [
        plume.median("v", 0, 9),
        plume.minimum("v", 0, 9),
        plume.quantiles("v", [0.1, 0.9], 0, 9),
        plume.mean("v", 0, 9, max_per_key=50),
        plume.variance("v", 0, 9, max_per_key=50),
    ],
    ids=lambda measure: measure.name,
)
def test_a_lone_measure_that_is_all_noise_where_keys_are_smallest_is_named(measure: Any) -> None:
    assert measure.name in [caution.what for caution in noised([measure], 1)]


@pytest.mark.parametrize("measure", [plume.mean("v", 0, 9), plume.sum("v", 0, 9), plume.count(50), plume.users()])
def test_a_lone_measure_whose_range_is_wider_than_its_noise_is_not(measure: Any) -> None:
    assert noised([measure], 1) == ()


def test_fewer_measures_are_advised_only_where_there_are_several() -> None:
    (one, *_), (two, *_) = noised([plume.median("v", 0, 9)], 1), noised([plume.median("v", 0, 9), plume.users()], 1)
    assert "fewer measures" not in one.next_step
    assert "fewer measures" in two.next_step


def test_a_population_is_no_part_of_the_question_of_a_release_id() -> None:
    plain, told = (Request(plume.explain(query(population=size)), "visits").digest for size in (None, 1000))
    assert plain == told
