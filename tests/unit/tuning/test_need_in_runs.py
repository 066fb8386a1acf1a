"""What `plume.need` says of keys, and what becomes of 40,000 of them in a run of the query on made-up users."""

import math
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pytest

import plume
from plume.mechanisms.quantiles import Quantiles
from plume.tuning.need import Need

MEAN, MEDIAN, SMALLEST = (make("seconds", 0, 60) for make in (plume.mean, plume.median, plume.minimum))
KEYS = 40_000
# What is asked, and for which users of each key; some are in more keys than the limit.
REAL = {
    "mean": ({"measures": MEAN}, {"users": 40, "absolute": {"seconds_mean": 15}}),
    "median": ({"measures": MEDIAN}, {"users": 40, "absolute": {"seconds_median": 15}}),
    "median of skewed values, Laplace": (
        {"measures": MEDIAN, "max_keys_per_user": 1, "noise": "laplace"},
        {"users": 60, "error": 0.4, "totals": {"seconds_median": 15}},
    ),
    "several quantiles": (
        {"measures": plume.quantiles("seconds", [0.1, 0.5, 0.9], 0, 60)},
        {"users": 60, "absolute": {"seconds_quantiles": 12}, "chance": 0.9},
    ),
    "minimum, and the mean of the same values": (
        {"measures": [SMALLEST, MEAN]},
        {"users": 60, "absolute": {"seconds_minimum": 15, "seconds_mean": 8}},
    ),
    "limit that cuts and clips": ({}, {"users": 40, "error": 0.6, "keys_of_user": 8}),
    "limit that cuts, Laplace": ({"max_keys_per_user": 2}, {"users": 40, "error": 0.65, "keys_of_user": 4}),
    "limit that cuts counts, min_users": (
        # Accounts are taken to be charged for two records of each user and key, and here is one: selection is of its own.
        {"measures": plume.count(2), "min_users": 10, "selection": "weighted_gaussian"},
        {"users": 60, "error": 0.9, "keys_of_user": {2: 0.1, 10: 0.9}},
    ),
    "more keys than selection counts": (
        {"selection": "pooled_gaussian", "max_keys_per_user": 100},
        {"users": 100, "error": 1.0, "keys_of_user": 80, "chance": 0.8},
    ),
    "more keys than measures pay for": (
        {"selection": "pooled_gaussian"},
        {"users": 60, "error": 0.6, "keys_of_user": 8, "chance": 0.8},
    ),
    "searched limit": (
        {"max_keys_per_user": "auto"},
        {"users": 100, "error": 0.5, "keys_of_user": {5: 0.9, 40: 0.1}},
    ),
}


TRUTHS = {"seconds_mean": 30.0, "seconds_median": 30.0, "seconds_minimum": 0.0}
TRUTHS |= {"seconds_p10": 6.0, "seconds_p50": 30.0, "seconds_p90": 54.0}


def query(**settings) -> plume.Query:
    asked = {"user": "person", "keys": "key", "measures": plume.users(), "max_keys_per_user": 4}
    return plume.Query(**asked | {"budget": plume.Budget(epsilon=1.0, delta=1e-5)} | settings)


def people(needed: Need, middle: float) -> pa.Table:
    """Made-up users of 40,000 keys: each key has as many as asked for, each of them in as many keys.

    One half of their values is spread evenly below the middle, one half above.
    """
    shares = needed.keys_of_user if isinstance(needed.keys_of_user, dict) else {needed.keys_of_user: 1}
    groups, persons = [], 0
    for keys, share in shares.items():
        users = round(needed.users * share)
        pairs = np.arange(users * KEYS)
        seconds = np.interp((pairs // KEYS + 0.5) / users, [0, 0.5, 1], [0, middle, 60])
        groups.append(pa.table({"person": pairs // keys + persons, "key": pairs % KEYS, "seconds": seconds}))
        persons += users * KEYS
    return pa.concat_tables(groups)


def share_of_keys_as_asked(needed: Need, totals: Mapping[str, float]) -> float:
    """Of all keys of a real run, those that are shown with numbers as near as asked."""
    truths = TRUTHS | totals
    released = plume.run(needed.query, people(needed, truths["seconds_median"])).to_arrow().to_pydict()
    right, errors = np.ones(len(released["key"]), bool), {one.measure: one.error for one in needed.numbers}
    for measure in needed.query.measures:
        for column in measure.columns:
            found = np.array(released[column]) - truths.get(column, needed.users)
            right &= np.abs(found) <= errors[measure.name]
    return right.sum() / KEYS


def agrees_with_a_run(settings: dict, asked: dict) -> bool:
    """Return whether the chance is that of 40,000 keys, within 4 standard deviations: a false alarm has a probability below 7e-5.

    Of a chance of 0.95 these are 0.0044, by which two percent of epsilon change it, too. Quantiles are simulated in 65,536 keys, which
    makes them 0.0055.
    """
    needed = plume.need(query(**settings), **asked)
    found = share_of_keys_as_asked(needed, asked.get("totals", {}))
    simulated = any(isinstance(measure, Quantiles) for measure in needed.query.measures)
    variance = needed.chance * (1 - needed.chance) * (1 / KEYS + simulated / 2**16)
    return abs(found - needed.chance) < 4 * math.sqrt(variance)


@pytest.mark.parametrize("setting", ["mean", "median"])
def test_it_agrees_with_a_run_on_made_up_data(setting: str) -> None:
    assert agrees_with_a_run(*REAL[setting])


@pytest.mark.engines
@pytest.mark.parametrize("setting", REAL)
def test_it_agrees_with_runs_on_made_up_data_in_more_settings(setting: str) -> None:
    assert agrees_with_a_run(*REAL[setting])
