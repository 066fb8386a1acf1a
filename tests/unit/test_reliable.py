"""Columns that say which numbers are more than noise: docs/guarantees/intervals.md."""

import json
import shutil
from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import plume
from entropy import SeededEntropy
from exact import say_nothing
from plume.engines.duckdb import DuckDB
from plume.errors import MeasureError, UsageError
from plume.mechanisms.margins import is_reliable
from plume.running import run_with

# Of one and of 400 users; at this budget the mean of one is noise, that of 400 is known to a hundredth of the range.
SIZES = {"small": 1, "large": 400}
PEOPLE = pa.table(
    {
        "person": [f"{key} {number}" for key, size in SIZES.items() for number in range(size)],
        "key": [key for key, size in SIZES.items() for _ in range(size)],
        "seconds": [30.0 for size in SIZES.values() for _ in range(size)],
        "day": [date(2024, 6, 1) for size in SIZES.values() for _ in range(size)],
    }
)
MEASURES = {
    "seconds_mean": plume.mean("seconds", 0, 60),
    "seconds_variance": plume.variance("seconds", 0, 60),
    "seconds_stddev": plume.stddev("seconds", 0, 60),
    "seconds_median": plume.median("seconds", 0, 60),
    "seconds_minimum": plume.minimum("seconds", 0, 60),
    "seconds_maximum": plume.maximum("seconds", 0, 60),
    "day_mean": plume.mean("day", date(2024, 1, 1), date(2025, 1, 1)),
    "day_median": plume.median("day", datetime(2024, 1, 1), datetime(2025, 1, 1)),  # noqa: DTZ001 - as columns hold them
}


def asking(*measures: object, **changes: object) -> plume.Query:
    settings = {
        "user": "person",
        "keys": "key",
        "measures": list(measures),
        "max_keys_per_user": 1,
        "budget": plume.Budget(epsilon=2.0, delta=1e-6),
        "public_keys": ["small", "large"],
    }
    return plume.Query(**(settings | changes))


def run(*measures: object, **changes: object) -> plume.Release:
    """On a fixed seed: by chance one mean of one user in some hundred would look reliable."""
    settings = {"engine": DuckDB(threads=1), "pipeline": "plume", "on_step": say_nothing}
    return run_with(SeededEntropy(1), asking(*measures, **changes), PEOPLE, **settings)


@pytest.mark.parametrize("name", MEASURES)
def test_a_key_of_one_user_is_not_reliable_and_one_of_400_is(name: str) -> None:
    rows = run(MEASURES[name]).to_arrow()
    assert rows.column_names == ["key", name, f"{name}_reliable"]
    assert rows.schema.field(f"{name}_reliable").type == pa.bool_()
    assert dict(zip(rows["key"].to_pylist(), rows[f"{name}_reliable"].to_pylist(), strict=True)) == {
        "small": False,
        "large": True,
    }


def test_counts_and_sums_say_how_good_they_are_by_their_noise_alone() -> None:
    measures = plume.users(), plume.count(1), plume.sum("seconds", 0, 60), plume.histogram("seconds", [0, 60])
    assert not [name for name in run(*measures).to_arrow().column_names if name.endswith("_reliable")]


def test_each_level_of_quantiles_has_a_column_behind_all_measures() -> None:
    measures = plume.quantiles("seconds", [0.1, 0.9], 0, 60), plume.users()
    released = ["seconds_p10", "seconds_p90", "users"]
    assert run(*measures).to_arrow().column_names == [
        "key",
        *released,
        "seconds_p10_reliable",
        "seconds_p90_reliable",
    ]


def test_values_that_are_not_reliable_stay_as_they_are() -> None:
    assert run(MEASURES["seconds_mean"]).to_arrow()["seconds_mean"].null_count == 0


@pytest.mark.parametrize(
    ("width", "answer"), [(30.0, True), (30.0001, False), (0.0, True), (float("nan"), False), (None, None)]
)
def test_half_of_what_the_bounds_allow_is_the_widest_interval(width: float | None, answer: bool | None) -> None:  # noqa: FBT001
    low, high = (pa.chunked_array([pa.array([end], pa.float64())]) for end in (0.0, width))
    assert is_reliable(low, high, 60.0).to_pylist() == [answer]


def test_days_and_microseconds_are_measured_alike() -> None:
    ends = [date(2024, 1, 1), date(2024, 1, 31)]
    year = 365 * 86_400_000_000.0
    for kind in (pa.date32(), pa.timestamp("us")):
        low, high = (pa.chunked_array([pa.array([end]).cast(kind)]) for end in ends)
        assert is_reliable(low, high, year).to_pylist() == [True]
        assert is_reliable(low, high, year / 12).to_pylist() == [False]


@pytest.mark.parametrize(
    ("name", "extent"),
    [("seconds_mean", 60), ("seconds_variance", 900), ("seconds_stddev", 30), ("seconds_median", 60)],
)
def test_the_bounds_allow(name: str, extent: float) -> None:
    assert MEASURES[name].extent == extent


def test_a_range_that_was_chosen_is_the_one_that_counts() -> None:
    """Noise on the number of 400 values has a standard deviation of 0.6, on their total one of 6: a false alarm below 1e-9."""
    query = asking(plume.mean("seconds", 0, "auto"), budget=plume.Budget(epsilon=20.0, delta=1e-6))
    release = plume.run(query, PEOPLE, engine=DuckDB(threads=1))
    (measure,) = release.explanation.calibrated.measures
    assert [measure.mechanism.extent] == list(release.chosen.values())
    assert release.to_arrow()["seconds_mean_reliable"].to_pylist()[0]


def test_a_release_without_rows_has_the_same_columns() -> None:
    """A key of 400 users is shown with a probability of 1.3e-9."""
    query = asking(MEASURES["seconds_mean"], public_keys=None, budget=plume.Budget(epsilon=0.01, delta=1e-12))
    rows = plume.run(query, PEOPLE, engine=DuckDB(threads=1)).to_arrow()
    assert rows.num_rows == 0
    assert rows.schema.field("seconds_mean_reliable").type == pa.bool_()


def test_a_release_without_rows_counts_no_noisy_keys() -> None:
    release = run(MEASURES["seconds_mean"])
    assert release.noise_in_words == "seconds_mean differs by key, too noisy in 1 of 2 keys"
    assert release.taken(pa.array([], pa.int64())).noise_in_words == "seconds_mean differs by key"


def test_where_all_keys_are_too_noisy_it_is_said_what_to_check() -> None:
    """Values with a decimal comma are no numbers: what they are is not looked at, but that all is noise is released."""
    release = run(MEASURES["seconds_mean"])
    few = release.taken(pa.array([release["key"].to_pylist().index("small")]))
    assert few.noise_in_words == (
        "seconds_mean differs by key, too noisy in 1 of 1 key (raise epsilon, or check that the values have the type and the range of "
        "their bounds)"
    )


def test_of_a_total_an_interval_is_told() -> None:
    """A total is one row: how often values are too noisy says less than between which numbers this one lies."""
    release = run(MEASURES["seconds_mean"], keys=[], public_keys=None)
    low, high = (release.margins[f"seconds_mean_{side}"][0].as_py() for side in ("low", "high"))
    assert release.noise_in_words == f"seconds_mean from {low:.6g} to {high:.6g}"


@pytest.mark.parametrize("clash", ["seconds_mean_reliable", "Seconds_Mean_RELIABLE"])
def test_a_measure_or_key_of_that_name_is_refused(clash: str) -> None:
    refusal = "seconds_mean comes with a column 'seconds_mean_reliable', and another column has that name"
    with pytest.raises(MeasureError, match=refusal):
        asking(plume.users(name=clash), plume.mean("seconds", 0, 60))
    with pytest.raises(MeasureError, match=refusal):
        asking(plume.mean("seconds", 0, 60), keys=clash, public_keys=None)


def test_files_have_the_column(tmp_path: Path) -> None:
    release = run(MEASURES["seconds_mean"])
    release.write_csv(tmp_path / "rows.csv")
    release.write_parquet(tmp_path / "rows.parquet")
    assert (tmp_path / "rows.csv").read_text().splitlines()[0] == '"key","seconds_mean","seconds_mean_reliable"'
    assert (tmp_path / "rows.csv").read_text().splitlines()[1].endswith(",true")
    assert pq.read_table(tmp_path / "rows.parquet")["seconds_mean_reliable"].to_pylist() == [True, False]


def test_rows_keep_their_answers_when_they_are_sorted_and_cut() -> None:
    top = run(plume.users(), MEASURES["seconds_mean"]).top(1, by="users").to_arrow().to_pylist()
    assert [(row["key"], row["seconds_mean_reliable"]) for row in top] == [("large", True)]


def test_a_statement_has_the_column_behind_those_it_lists() -> None:
    """Noise on the number of 400 values has a standard deviation of 0.2, on their total one of 6: a false alarm below 1e-9."""
    text = """SELECT WITH DIFFERENTIAL_PRIVACY
        OPTIONS (epsilon = 50, delta = 1e-6, max_groups_contributed = 1, privacy_unit_column = person)
        AVG(seconds, contribution_bounds_per_row => (0, 60)) AS m, key, COUNT(DISTINCT person) AS users
        FROM people GROUP BY key ORDER BY users DESC LIMIT 1"""
    rows = plume.sql(text, tables={"people": PEOPLE}, engine=DuckDB(threads=1)).to_arrow()
    assert rows.column_names == ["m", "key", "users", "m_reliable"]
    assert rows["m_reliable"].to_pylist() == [True]


def test_a_ledger_gives_the_same_answers_again(tmp_path: Path) -> None:
    ledger = plume.Ledger.create(tmp_path / "led", datasets={"d": plume.Budget(100, 1e-5)})
    charged = {"ledger": ledger.dataset("d"), "release_id": "one"}
    query, settings = asking(*MEASURES.values()), {"engine": DuckDB(threads=1)} | charged
    first, again = (plume.run(query, PEOPLE, **settings).to_arrow() for _ in range(2))
    assert first.equals(again)
    assert not any(again[f"{name}_reliable"].null_count for name in MEASURES)


def test_of_what_an_older_version_kept_nothing_is_known(tmp_path: Path) -> None:
    folder = Path(__file__).parent / "ledger" / "written_by_0_1_0"
    shutil.copytree(folder, tmp_path / "copy")
    rows = pa.table(
        {"u": [str(n) for n in range(3000)], "k": ["x", "y", "z"] * 1000, "v": [float(n % 60) for n in range(3000)]}
    )
    query = plume.Query(
        user="u",
        keys="k",
        measures=[plume.count(2, where="v > 3"), plume.users(), plume.mean("v", 0, 60)],
        max_keys_per_user=2,
        budget=plume.Budget(1, 1e-6),
        where="v < 59",
    )
    ledger = plume.Ledger(tmp_path / "copy" / "visits.ledger")
    release = plume.run(query, rows, ledger=ledger.dataset("visits"), release_id="plain")
    assert set(release.to_arrow()["v_mean_reliable"].to_pylist()) == {None}
    assert "v_mean_low" not in release.intervals().to_arrow().column_names
    assert json.loads(release.to_json())["rows"] == len(release)


def test_people_read_too_noisy_where_a_value_is_unreliable() -> None:
    head, large, small, *_ = str(run(plume.users(), MEASURES["seconds_mean"])).splitlines()
    assert head.split() == ["key", "users", "seconds_mean"]
    assert "too noisy" not in large
    assert small.endswith("  too noisy")


def test_unreliable_values_are_null_on_request(tmp_path: Path) -> None:
    release = run(MEASURES["seconds_mean"], MEASURES["day_mean"])
    nulled = release.to_arrow(unreliable="null")
    for name in ("seconds_mean", "day_mean"):
        assert [value is None for value in nulled[name].to_pylist()] == [False, True]
        assert nulled[f"{name}_reliable"].to_pylist() == [True, False]
    assert nulled.schema == release.to_arrow().schema
    release.write_parquet(tmp_path / "rows.parquet", unreliable="null")
    release.write_csv(tmp_path / "rows.csv", unreliable="null")
    assert pq.read_table(tmp_path / "rows.parquet").equals(nulled)
    assert (tmp_path / "rows.csv").read_text().splitlines()[2] == '"small",,,false,false'
    assert release.to_polars(unreliable="null")["seconds_mean"].null_count() == 1
    assert release.to_pandas(unreliable="null")["seconds_mean"].isna().sum() == 1


def test_unreliable_is_kept_or_null() -> None:
    with pytest.raises(UsageError, match="unreliable is 'drop'; it must be 'keep' or 'null'"):
        run(MEASURES["seconds_mean"]).to_arrow(unreliable="drop")
