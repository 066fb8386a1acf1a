"""How often the value before noise lies between the margins of a released number: docs/guarantees/intervals.md."""

from collections.abc import Mapping
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import plume
from entropy import ConstantEntropy, SeededEntropy
from plume.mechanisms.margins import Blur
from plume.mechanisms.mechanism import Mechanism
from plume.mechanisms.quantile_tree import LEAVES, LEVELS, leaf_at_end, root_of, walk
from plume.mechanisms.quantiles import Extreme, Quantiles
from plume.mechanisms.tally import ExactTally, NoisyTally
from plume.noise.gaussian import RoundedGaussian
from plume.noise.laplace import DiscreteLaplace
from plume.noise.noise import Distribution

HIGH, UNIT, BITS = 100, 2**20, 8
KEYS = [2_000, pytest.param(20_000, marks=pytest.mark.engines)]
NOISES = {"gaussian": RoundedGaussian, "laplace": DiscreteLaplace}
# In values of one user: a usual budget, for some ten keys per user.
SCALE = 12


def values(users: int, keys: int) -> np.ndarray:
    """Values of the users of each key; a thousand different keys are enough, each noised several times."""
    drawn = np.clip(np.random.default_rng(users).lognormal(2, 1, (1_000, users)), 0, HIGH * 0.9999)
    return np.tile(drawn, (keys // 1_000, 1))


def covered(margins: tuple, truth: np.ndarray) -> float:
    low, high = (side.to_numpy() for side in margins)
    return float(np.mean((low <= truth + 1e-9) & (truth <= high + 1e-9)))


def exact_state(measure: Mechanism, drawn: np.ndarray) -> dict[str, np.ndarray]:
    scale = measure.scale
    steps = np.rint((drawn - scale.middle) / float(scale.unit)).astype(np.int64)
    state = {"values": np.full(len(drawn), drawn.shape[1]), "total": steps.sum(axis=1)}
    if "squares" in measure.preprocess():
        centred = (steps * steps - measure._centre) >> scale.bits
        state["squares"] = centred.sum(axis=1)
    return state


def noised_state(measure: Mechanism, state: Mapping[str, np.ndarray], kind: type) -> tuple[dict, dict[str, Blur]]:
    """Noise as a release does: the number of values is rounded from finer steps."""
    entropy, parts = SeededEntropy(7), {part.name: part for part in measure.parts()}
    bits = {name: BITS if name == "values" else 0 for name in state}
    blurs = {name: Blur(kind(Fraction(SCALE * parts[name].absolute << bits[name])), bits[name]) for name in state}
    noised = {
        name: ((exact << bits[name]) + blurs[name].noise.sample(exact.size, entropy) + (1 << bits[name] >> 1))
        >> bits[name]
        for name, exact in state.items()
    }
    return noised, blurs


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("users", [50, 1_000])
@pytest.mark.parametrize(
    "measure", [plume.mean("v", 0, HIGH), plume.variance("v", 0, HIGH), plume.stddev("v", 0, HIGH)]
)
def test_moments_lie_between_their_margins_as_often_as_they_say(
    measure: Mechanism, users: int, noise: str, keys: int
) -> None:
    """On a fixed seed; 0.94 is six standard deviations of 20,000 trials below 0.95, and two of 2,000."""
    state = exact_state(measure, values(users, keys))
    noised, blurs = noised_state(measure, state, NOISES[noise])
    (truth,) = (column.to_numpy() for column in measure.noise(state).values())
    (margins,) = measure.margins(noised, blurs).values()
    assert covered(margins, truth) >= 0.94


def test_margins_of_a_mean_are_no_wider_than_they_must_be() -> None:
    """Far from the ends of the range Fieller's interval is exact; 0.96 is six standard deviations above 0.95."""
    measure = plume.mean("v", 0, HIGH)
    state = exact_state(measure, np.full((20_000, 1), 30.0)) | {"values": np.full(20_000, 5_000)}
    state["total"] = state["total"] * 5_000
    noised, blurs = noised_state(measure, state, RoundedGaussian)
    (margins,) = measure.margins(noised, blurs).values()
    assert 0.94 <= covered(margins, np.full(20_000, 30.0)) <= 0.96


def test_a_number_that_may_be_zero_bounds_no_mean() -> None:
    measure = plume.mean("v", 0, HIGH)
    state = {"values": np.array([3, -200]), "total": np.array([10**6, 10**6])}
    blurs = {"values": Blur(RoundedGaussian(Fraction(12))), "total": Blur(RoundedGaussian(Fraction(10**6)))}
    ((low, high),) = measure.margins(state, blurs).values()
    assert (low.to_pylist(), high.to_pylist()) == ([0, 0], [HIGH, HIGH])


def tally_of_values(drawn: np.ndarray) -> ExactTally:
    leaves = (drawn * (LEAVES / HIGH)).astype(np.int64)
    numbers, counts = np.unique((np.arange(len(drawn))[:, np.newaxis] * LEAVES + leaves).ravel(), return_counts=True)
    return ExactTally(len(drawn), LEAVES, numbers, np.concatenate([[0], np.cumsum(counts * UNIT)]))


def true_places(measure: Quantiles, tally: ExactTally, noise: Distribution, users: int) -> np.ndarray:
    """Where quantiles lie without noise; extremes are four standard deviations of the noise that there is from the end."""
    ranks = np.array(measure.quantiles)
    if isinstance(measure, Extreme):
        ranks = np.abs(ranks - min(4 * noise.standard_deviation / (users * UNIT), 1 / 2))
    exact = NoisyTally(tally, RoundedGaussian(Fraction(1)), ConstantEntropy())
    return walk(exact, np.tile(ranks, (tally.keys, 1))) * HIGH


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("users", [50, 1_000])
@pytest.mark.parametrize(
    "measure",
    [
        plume.quantiles("v", [0.1, 0.9], 0, HIGH),
        plume.median("v", 0, HIGH),
        plume.minimum("v", 0, HIGH),
        plume.maximum("v", 0, HIGH),
    ],
)
def test_quantiles_lie_between_their_margins_as_often_as_they_say(
    measure: Quantiles, users: int, noise: str, keys: int
) -> None:
    """On a fixed seed, as above."""
    tally, law = tally_of_values(values(users, keys)), NOISES[noise](Fraction(SCALE * UNIT * 2))
    truth = true_places(measure, tally, law, users)
    margins = measure.margins({"leaves": NoisyTally(tally, law, SeededEntropy(3))}, {})
    for number, name in enumerate(measure.names):
        assert covered(margins[name], truth[:, number]) >= 0.94


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("path", [0, 1, 3])
def test_the_walks_know_how_much_noise_is_left_of_each_end(share: float, path: int) -> None:
    """On all levels, for whoever always takes the same child. Of 20,000 deviations 0.03 is six standard deviations of their own."""
    tree = NoisyTally(tally_of_values(np.zeros((20_000, 0))), RoundedGaussian(Fraction(1000)), SeededEntropy(5))
    seen: list[np.ndarray] = []

    def look(ends: np.ndarray) -> np.ndarray:
        seen.append(ends)
        return np.full(len(ends), path)

    root = root_of(tree, np.full((tree.keys, 1), share), beyond=0)
    for reach in (1, -1):
        leaf_at_end(tree, root, reach, look)
    above, below = seen[:LEVELS], seen[LEVELS:]
    for high, low in zip(above, below, strict=True):
        noise, deviation = (high + low) / 2, (high - low) / 2
        assert np.abs((noise / deviation).std(axis=0) - 1).max() < 0.03


@pytest.mark.parametrize("keys", KEYS)
def test_a_median_between_two_equal_halves_is_covered_too(keys: int) -> None:
    """The hardest case: every end of a node between the halves is as likely, on all levels. On a fixed seed."""
    tally = tally_of_values(np.tile(np.repeat([HIGH * 0.4, HIGH * 0.6], 500), (keys, 1)))
    law, measure = RoundedGaussian(Fraction(SCALE * UNIT)), plume.median("v", 0, HIGH)
    margins = measure.margins({"leaves": NoisyTally(tally, law, SeededEntropy(4))}, {})
    low, high = (side.to_numpy() for side in margins["v_median"])
    assert np.mean((low <= HIGH * 0.4 + HIGH / LEAVES) & (high >= HIGH * 0.4)) >= 0.94


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_noise_too_little_to_have_a_deviation_has_margins(noise: str) -> None:
    measures = [
        plume.mean("v", 0, 10),
        plume.stddev("v", 0, 10),
        plume.quantiles("v", [0.5], 0, 10),
        plume.minimum("v", 0, 10),
    ]
    query = plume.Query(
        user="u", keys="k", measures=measures, public_keys=["x"], max_keys_per_user=1, noise=noise,
        budget=plume.Budget(1e6, 0.01 if noise == "gaussian" else 0),
    )  # fmt: skip
    released = plume.run(query, pa.table({"u": ["a", "b"], "k": ["x", "x"], "v": [1.0, 2.0]}))
    assert released.to_arrow()["v_mean"].to_pylist() == pytest.approx([1.5], abs=0.1)
    assert released.to_arrow()["v_mean_reliable"].to_pylist() == [True]
