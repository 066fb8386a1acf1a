"""What a release says of what limits and bounds cut off: docs/guarantees/auto-limit.md."""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import plume
from entropy import SeededEntropy
from exact import say_nothing
from plume.choosing.histogram import NOTHING_KNOWN, share_of_last
from plume.choosing.keys_per_user import CANDIDATES, EDGES, FULLNESS, USERS, share_above_limit
from plume.choosing.open_query import share_above
from plume.choosing.sizes import PAIRS, share_above_bound
from plume.cut_off import describe_cut_off
from plume.engines.duckdb import DuckDB
from plume.noise.gaussian import RoundedGaussian
from plume.planning import make_plan
from plume.running import run_with

# Of 2,000 people 400 are in 20 keys and the others in 2; in each of them one in ten has 50 records, and the others have one.
PEOPLE, KEYS, MANY, FEW = 2_000, 20, 50, 2
LIMITED, BOUNDED = "max_keys_per_user", "count: max_per_key"


def people() -> pa.Table:
    pairs = [(person, key % KEYS) for person in range(PEOPLE) for key in range(person, person + keys_of(person))]
    records = np.array([MANY if (person + key) % 10 == 0 else 1 for person, key in pairs])
    users, keys = (np.repeat(column, records) for column in zip(*pairs, strict=True))
    return pa.table({"person": users, "key": keys})


def keys_of(person: int) -> int:
    return KEYS if person < PEOPLE / 5 else FEW


def asking(*measures: object, **changes: object) -> plume.Query:
    settings = {"user": "person", "keys": "key", "measures": list(measures), "max_keys_per_user": 4}
    return plume.Query(**(settings | {"budget": plume.Budget(8, 1e-5)} | changes))


def run(query: plume.Query, **settings: object) -> plume.Release:
    return plume.run(query, people(), engine=DuckDB(threads=1), **settings)


def truth(release: plume.Release, of: str) -> float:
    """Which share of people have more keys, and of their largest contributions more records, than what was chosen."""
    sizes = {LIMITED: [keys_of(person) for person in range(PEOPLE)]}
    counted = people().group_by(["person", "key"]).aggregate([([], "count_all")]).to_pandas()
    largest = counted.sort_values("count_all", ascending=False).groupby("person").head(release.chosen[LIMITED])
    sizes[BOUNDED] = largest["count_all"].to_list()
    return float(np.mean(np.array(sizes[of]) > release.chosen[of]))


@pytest.mark.parametrize("number", [300, pytest.param(2_000, marks=pytest.mark.engines)])
@pytest.mark.parametrize("scale", [3, 40, 2_000])
def test_shares_above_all_numbers_lie_in_their_intervals_together(scale: int, number: int) -> None:
    """So it does not matter that the same noise chooses one of them. With noise that is a trifle, and with more than there are people.

    The least share that passes is five standard deviations below 0.95.
    """
    noise, counted = RoundedGaussian(Fraction(scale)), np.array([6_000.0, 2_000, 0, 500, 1_490, 0, 10, 0, 0])
    drawn = noise.sample(counted.size * number, SeededEntropy(scale)).reshape(-1, counted.size)
    shares = [counted[first:].sum() / counted.sum() for first in range(1, counted.size)]
    held = [
        all(low <= share <= high for share, (low, high) in zip(shares, all_shares(row, noise), strict=True))
        for row in counted + drawn
    ]
    assert np.mean(held) >= 0.95 - 5 * math.sqrt(0.95 * 0.05 / number)


def all_shares(row: np.ndarray, noise: RoundedGaussian) -> list[tuple[float, float]]:
    return [share_of_last(row, first, noise) for first in range(1, row.size)]


def test_more_noise_than_people_bounds_no_share() -> None:
    assert share_of_last(np.array([5.0, 3.0, 40.0]), 1, RoundedGaussian(Fraction(100))) == NOTHING_KNOWN


def histogram(column: str, numbers: Mapping[int, int], buckets: int) -> pa.Table:
    counted = [numbers.get(bucket, 0) for bucket in range(buckets)]
    return pa.table({"bucket": range(buckets), column: counted, FULLNESS: [0] * buckets})


def test_nobody_has_more_keys_than_are_selected() -> None:
    choice = make_plan(asking(plume.users(), max_keys_per_user="auto")).choice
    noised = histogram(USERS, {0: 100, len(CANDIDATES) - 1: 10**6}, len(CANDIDATES))
    assert share_above_limit(noised, choice, CANDIDATES[4], selected=CANDIDATES[4]) == (0, 0)
    assert share_above_limit(noised, choice, CANDIDATES[4], selected=EDGES[5])[1] < 1
    assert share_above_limit(noised, choice, CANDIDATES[-1], selected=10**6) == NOTHING_KNOWN


def test_beyond_the_last_bound_nothing_is_known() -> None:
    choice = make_plan(asking(plume.count("auto"))).choice
    noised = histogram(PAIRS, {0: 10**6}, choice.buckets)
    assert share_above_bound(noised, choice, choice.bound.candidates[-1]) == NOTHING_KNOWN
    low, high = share_above_bound(noised, choice, 1)
    assert (low, 0 < high < 0.1) == (0, True)


def test_shares_of_a_release_hold_what_was_cut_off() -> None:
    """On a fixed seed; each would miss by chance once in twenty."""
    query = asking(plume.count("auto"), plume.users(), max_keys_per_user="auto")
    release = run_with(
        SeededEntropy(2), query, people(), engine=DuckDB(threads=1), pipeline="plume", on_step=say_nothing
    )
    assert list(release.above) == list(release.chosen) == [LIMITED, BOUNDED]
    for what, (low, high) in release.above.items():
        assert low <= truth(release, what) <= high
        assert high - low < 0.5


def test_shares_are_made_from_the_noised_histogram_alone() -> None:
    """Post-processing: the same noised rows, the same query and as many selected keys give the same share."""
    planned = make_plan(asking(plume.users(), max_keys_per_user="auto"))
    noised = histogram(USERS, {0: 5_000, 6: 400}, len(CANDIDATES))
    first, again = (share_above(planned, noised, CANDIDATES[3], selected=100) for _ in range(2))
    assert first == again
    assert first != share_above(planned, histogram(USERS, {0: 5_000}, len(CANDIDATES)), CANDIDATES[3], selected=100)


def test_a_given_limit_and_given_bounds_are_named() -> None:
    release = run(asking(plume.users(), plume.count(3), plume.mean("key", 0, 9, name="m")))
    assert release.above == {}
    assert release.cut_off == (
        "what lies beyond max_keys_per_user = 4 and the bounds of count, m; how much that is stays unknown, "
        'unless "auto" chooses the number'
    )


def test_users_have_no_bounds() -> None:
    assert run(asking(plume.users())).cut_off.startswith("what lies beyond max_keys_per_user = 4; how much")


@pytest.mark.parametrize(
    ("share", "words"),
    [
        ((0.0412, 0.0588), "4.1 to 5.9 % (95 % interval) of the values of person have more than 4 selected keys"),
        ((0.0, 0.0), "no value of person has more than 4 selected keys"),
        ((0.0, 1.0), "what lies beyond max_keys_per_user = 4; how much that is stays unknown"),
    ],
)
def test_a_chosen_limit_says_how_many_are_above_it(share: tuple[float, float], words: str) -> None:
    explanation = plume.explain(asking(plume.users(), max_keys_per_user="auto"))
    decided = replace(explanation, planned=replace(explanation.planned, chosen={LIMITED: 4}))
    decided = replace(
        decided, planned=replace(decided.planned, calibrated=replace(decided.calibrated, max_keys_per_user=4))
    )
    assert describe_cut_off(decided, {LIMITED: share}) == words


def test_a_chosen_bound_says_how_much_is_beyond_it() -> None:
    release = replace(run(asking(plume.count("auto"), plume.users())), above={BOUNDED: (0.01, 0.021)})
    assert release.cut_off == (
        "1 to 2.1 % (95 % interval) of the contributions of each value of person (the 4 largest, where there are more) are beyond "
        f"count: max_per_key = {release.chosen[BOUNDED]}; "
        "what lies beyond max_keys_per_user = 4; how much that is stays unknown"
    )


def test_prints_records_notebooks_and_reports_say_it(tmp_path: Path) -> None:
    release = run(asking(plume.users(), max_keys_per_user="auto"))
    said = release.cut_off
    assert f"cut off: {said}" in str(release).splitlines()
    assert release.record()["cut_off"] == said
    assert release.record()["above"] == {LIMITED: list(release.above[LIMITED])}
    assert f"Cut off: {said}" in release._repr_html_()
    release.report(tmp_path / "report.html")
    assert f"What limits and bounds cut off is in neither: {said}." in (tmp_path / "report.html").read_text()


def test_a_name_cannot_write_to_the_terminal() -> None:
    rows = people().rename_columns(["\x1b[31mu", "key"])
    release = plume.run(asking(plume.users(), user="\x1b[31mu", max_keys_per_user="auto"), rows)
    assert "\x1b" not in release.cut_off


def test_a_ledger_says_the_same_again(tmp_path: Path) -> None:
    ledger = plume.Ledger.create(tmp_path / "led", datasets={"d": plume.Budget(100, 1e-3)})
    charged = {"ledger": ledger.dataset("d"), "release_id": "one"}
    query = asking(plume.count("auto"), plume.users(), max_keys_per_user="auto")
    first, again = (run(query, **charged) for _ in range(2))
    assert again.released_before is not None
    assert first.above == again.above
    assert first.cut_off == again.cut_off
    assert json.loads(again.to_json())["above"] == json.loads(first.to_json())["above"]
