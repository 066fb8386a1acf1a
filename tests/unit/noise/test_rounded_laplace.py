from dataclasses import FrozenInstanceError
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entropy import ConstantEntropy, ScriptedEntropy, SeededEntropy
from plume.noise import rounded_laplace
from plume.noise.entropy import SystemEntropy
from plume.noise.exponential import exponentials, resolve
from plume.noise.rounded_laplace import RoundedLaplace

SCALES = [Fraction(1, 8), Fraction(1), Fraction(7, 3), Fraction("116.51"), Fraction(10**6), Fraction(2**40 - 1)]
HALF = Fraction(1, 2)
EXACT = mpmath.mp.clone()
EXACT.prec = 400

scales = st.fractions(min_value=Fraction(1, 1000), max_value=2**40 - 1)
words = st.integers(min_value=1, max_value=2**64 - 1)


def size_of(word: int, scale: Fraction) -> int:
    """What the fast path, with its margin, makes of one word, with a plus sign."""
    pair = np.array([[~word & 2**64 - 1], [0]], dtype=np.uint64)
    return int(rounded_laplace._rounded(pair, scale, SeededEntropy(0))[0])


def boundary(size: int, scale: Fraction) -> int:
    """The first 64 bits of exp(-(size - 1/2) / scale), where rounding steps up to `size`."""
    exponent = (size - HALF) / scale
    return int(EXACT.floor(EXACT.exp(-EXACT.mpf(exponent.numerator) / exponent.denominator) * 2**64))


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1), Fraction(2**40), Fraction(2**41)])
def test_a_scale_out_of_range_is_refused(scale: Fraction) -> None:
    with pytest.raises(ValueError, match=f"scale is {scale}; it must be above 0 and below"):
        RoundedLaplace(scale)


def test_a_scale_that_is_no_fraction_is_refused() -> None:
    with pytest.raises(TypeError, match="it must be an exact Fraction"):
        RoundedLaplace(1.0)  # type: ignore[arg-type]


def test_a_law_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        RoundedLaplace(Fraction(1)).scale = Fraction(2)  # type: ignore[misc]


@pytest.mark.parametrize("scale", SCALES)
def test_the_tail_is_that_of_the_continuous_law_half_a_step_earlier(scale: Fraction) -> None:
    law = RoundedLaplace(scale)
    for at_least in (-1000, -3, -1, 0, 1, 2, 5, 1000):
        exponent = (max(at_least, 1 - at_least) - HALF) / scale
        upper = EXACT.exp(-EXACT.mpf(exponent.numerator) / exponent.denominator) / 2
        assert law.tail(at_least) == pytest.approx(float(upper if at_least > 0 else 1 - upper), rel=1e-12, abs=1e-320)


@pytest.mark.parametrize("scale", [Fraction(1, 8), Fraction(1), Fraction(7, 3), Fraction("116.51")])
def test_the_standard_deviation_is_that_of_the_law(scale: Fraction) -> None:
    law = RoundedLaplace(scale)
    squares = EXACT.fsum(2 * (2 * size - 1) * EXACT.mpf(law.tail(size)) for size in range(1, int(60 * scale) + 100))
    assert law.standard_deviation == pytest.approx(float(EXACT.sqrt(squares)), rel=1e-12)


def test_rounding_adds_a_twelfth_of_a_squared_step_to_the_variance() -> None:
    variance = RoundedLaplace(Fraction(1000)).standard_deviation ** 2
    assert variance - 2 * 1000**2 == pytest.approx(1 / 12, abs=1e-3)


def test_a_vanishing_scale_has_no_spread() -> None:
    assert RoundedLaplace(Fraction(1, 10**400)).standard_deviation == 0
    assert not RoundedLaplace(Fraction(1, 10**400)).sample(100, SystemEntropy()).any()


@pytest.mark.parametrize("size", [0, 1, 2**15, 2**15 + 1])
def test_a_sample_is_as_large_as_asked_for(size: int) -> None:
    noise = RoundedLaplace(Fraction(5)).sample(size, SystemEntropy())
    assert noise.shape == (size,)
    assert noise.dtype == np.int64


def test_pieces_of_a_sample_share_no_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounded_laplace, "_DRAWS_AT_ONCE", 3)
    noise = RoundedLaplace(Fraction(2**39)).sample(1_000, SeededEntropy(4))
    assert np.unique(np.abs(noise)).size == 1_000


def test_the_second_word_decides_the_sign_and_nothing_else() -> None:
    first, second = 0x7ABC << 48, 6789 << 30
    plus = RoundedLaplace(Fraction(50)).sample(1, ScriptedEntropy([first, second]))
    minus = RoundedLaplace(Fraction(50)).sample(1, ScriptedEntropy([first ^ 1 << 63, second ^ 1 << 63]))
    assert plus[0] == -minus[0] > 0


@settings(deadline=None)
@given(word=words, scale=scales)
def test_a_constant_source_gives_no_noise(word: int, scale: Fraction) -> None:
    assert not RoundedLaplace(scale).sample(5, ConstantEntropy(word)).any()


@settings(deadline=None)
@given(word=words, scale=scales)
def test_the_fast_path_agrees_with_exact_arithmetic(word: int, scale: Fraction) -> None:
    least, most = (
        int(EXACT.floor(-EXACT.log(EXACT.ldexp(end, -64)) * scale.numerator / scale.denominator + 0.5))
        for end in (word + 1, word)
    )
    assert least <= size_of(word, scale) <= most


@settings(deadline=None)
@given(scale=scales, position=st.floats(min_value=0.01, max_value=8))
def test_rounding_steps_up_exactly_where_the_law_says(scale: Fraction, position: float) -> None:
    size = max(1, round(position * scale))
    edge = boundary(size, scale)
    if 1 < edge < 2**64 - 1:
        assert size_of(edge - 1, scale) >= size
        assert size_of(edge + 1, scale) < size


@pytest.mark.parametrize("scale", SCALES[1:])
def test_later_bits_decide_where_the_first_64_cannot(scale: Fraction) -> None:
    size = max(1, int(scale))
    edge = boundary(size, scale)
    below = resolve(edge, scale, ScriptedEntropy([0]), offset=HALF)
    above = resolve(edge, scale, ScriptedEntropy([2**64 - 1]), offset=HALF)
    assert (below, above) == (size, size - 1)


def test_the_rounding_of_tiny_values_cannot_hide_behind_a_margin() -> None:
    """With a scale of 1/1000 the margin is far below what float64 loses when 1/2 is added to a small number."""
    scale = Fraction(1, 1000)
    values, margin = exponentials(np.array([2**50], dtype=np.uint64), scale)
    assert (values + margin < 0.5).all()
    assert size_of(2**50, scale) == 0
