import numpy as np
import pytest
from numpy.random import default_rng
from numpy.typing import NDArray
from scipy.stats import chisquare

from plume.synthetic.zipf_mandelbrot import ZipfMandelbrot

RECORDS = ZipfMandelbrot(size=100_000, exponent=4.67, shift=25)
KEYS = ZipfMandelbrot(size=1_000_000, exponent=1.4, shift=1000)


class OneUniform:
    """A generator that always draws the same number."""

    def __init__(self, uniform: float) -> None:
        self.uniform = uniform

    def random(self, count: int) -> NDArray[np.float64]:
        return np.full(count, self.uniform)


def chi_square_p_value(values: NDArray[np.int64], distribution: ZipfMandelbrot, bins: int = 100) -> float:
    """Compare a sample with a distribution over bins of about equal probability."""
    cumulative = np.cumsum(distribution.probabilities())
    last_of_bin = np.unique(np.searchsorted(cumulative, np.arange(1, bins) / bins))
    last_of_bin = last_of_bin[last_of_bin < distribution.size - 1]
    expected = np.diff(cumulative[last_of_bin], prepend=0, append=1) * len(values)
    observed = np.bincount(np.searchsorted(last_of_bin + 1, values), minlength=len(expected))
    return chisquare(observed, expected).pvalue


def test_probabilities_follow_the_formula() -> None:
    three = ZipfMandelbrot(size=3, exponent=2, shift=1)
    weights = np.array([1 / 4, 1 / 9, 1 / 16])
    assert three.probabilities() == pytest.approx(weights / weights.sum(), rel=1e-15)


def test_a_user_has_ten_records_on_average() -> None:
    values = np.arange(1, RECORDS.size + 1)
    assert values @ RECORDS.probabilities() == pytest.approx(10.067, abs=5e-4)


@pytest.mark.parametrize(("records", "probability"), [(10, 0.297), (64, 0.00998)])
def test_a_user_seldom_has_many_records(records: int, probability: float) -> None:
    assert RECORDS.probabilities()[records:].sum() == pytest.approx(probability, rel=1e-3)


def test_a_thousand_keys_have_a_quarter_of_the_records() -> None:
    assert KEYS.probabilities()[:1000].sum() == pytest.approx(0.258, abs=5e-4)


@pytest.mark.parametrize("distribution", [RECORDS, KEYS, ZipfMandelbrot(7, 1.0, 0.0)])
def test_a_sample_is_the_inverse_of_the_distribution_function(distribution: ZipfMandelbrot) -> None:
    uniforms = default_rng(1).random(100_000)
    inverse = np.searchsorted(np.cumsum(distribution.probabilities())[:-1], uniforms, side="right") + 1
    assert np.array_equal(distribution.sample(100_000, default_rng(1)), inverse)


@pytest.mark.parametrize("distribution", [RECORDS, KEYS, ZipfMandelbrot(7, 1.0, 0.0)])
def test_a_sample_fits_the_distribution(distribution: ZipfMandelbrot) -> None:
    # False alarms: 10^-8 for each of the three.
    assert chi_square_p_value(distribution.sample(300_000, default_rng(2)), distribution) > 1e-8


@pytest.mark.parametrize("factor", [0.9, 1.1])
@pytest.mark.parametrize("distribution", [RECORDS, KEYS])
def test_a_sample_does_not_fit_an_exponent_wrong_by_a_tenth(distribution: ZipfMandelbrot, factor: float) -> None:
    wrong = ZipfMandelbrot(distribution.size, distribution.exponent * factor, distribution.shift)
    assert chi_square_p_value(wrong.sample(300_000, default_rng(3)), distribution) < 1e-100


@pytest.mark.parametrize("distribution", [RECORDS, KEYS, ZipfMandelbrot(1, 2.0, 0.0)])
def test_the_smallest_and_largest_uniforms_give_values_in_range(distribution: ZipfMandelbrot) -> None:
    assert distribution.sample(1, OneUniform(0.0)) == 1
    assert 1 <= distribution.sample(1, OneUniform(np.nextafter(1, 0))) <= distribution.size


def test_the_same_generator_state_gives_the_same_sample() -> None:
    assert np.array_equal(KEYS.sample(1000, default_rng(4)), KEYS.sample(1000, default_rng(4)))


def test_an_empty_sample_is_possible() -> None:
    assert KEYS.sample(0, default_rng(5)).shape == (0,)


def test_no_values_are_refused() -> None:
    with pytest.raises(ValueError, match=r"size is 0; it must be at least 1"):
        ZipfMandelbrot(size=0, exponent=1.4, shift=1000)


def test_a_shift_with_infinite_probabilities_is_refused() -> None:
    with pytest.raises(ValueError, match=r"shift is -1; it must be above -1"):
        ZipfMandelbrot(size=10, exponent=1.4, shift=-1)
