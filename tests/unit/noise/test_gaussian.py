import math
import os
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from entropy import ConstantEntropy, ScriptedEntropy, SeededEntropy
from plume.errors import EntropyError
from plume.noise import gaussian
from plume.noise.entropy import SystemEntropy
from plume.noise.gaussian import RoundedGaussian

SCALES = [
    Fraction(1, 8),
    Fraction(1),
    Fraction(7, 3),
    Fraction("53.92026"),
    Fraction(2**25),
    Fraction(2**40 - 1),
]
ALL_ONES = 2**64 - 1
EXACT = mpmath.mp.clone()
EXACT.prec = 500

scales = st.fractions(min_value=Fraction(1, 1000), max_value=2**40 - 1)
words = st.integers(min_value=0, max_value=ALL_ONES)


def pair(first: int, second: int, scale: Fraction, later: list[int]) -> list[int]:
    """What the fast path, with its margin, makes of two words."""
    column = np.array([[first], [second]], dtype=np.uint64)
    return gaussian._rounded_pairs(column, scale, ScriptedEntropy(later))[:, 0].tolist()


def in_one(first: list[int]) -> int:
    """Words one after the other as one integer."""
    return sum(word << 64 * place for place, word in enumerate(reversed(first)))


def before_rounding(radius_bits: int, turn_bits: int, bits: int, scale: Fraction) -> tuple[mpmath.mpf, mpmath.mpf]:
    """The two normal numbers of U = radius_bits / 2**bits and T = turn_bits / 2**bits, from their definition."""
    radius = EXACT.sqrt(-2 * EXACT.log(EXACT.ldexp(radius_bits, -bits))) * scale.numerator / scale.denominator
    turn = EXACT.ldexp(turn_bits, 1 - bits)
    return radius * EXACT.cospi(turn), radius * EXACT.sinpi(turn)


def tail(at_least: int, scale: Fraction) -> mpmath.mpf:
    """Pr[X >= at_least], from the definition of the law."""
    return EXACT.erfc(EXACT.mpf((2 * at_least - 1) * scale.denominator) / (2 * scale.numerator) / EXACT.sqrt(2)) / 2


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1), Fraction(2**40), Fraction(2**41)])
def test_a_scale_out_of_range_is_refused(scale: Fraction) -> None:
    with pytest.raises(ValueError, match=f"scale is {scale}; it must be above 0 and below"):
        RoundedGaussian(scale)


@pytest.mark.parametrize("scale", [1, 1.0, "1", np.float64(1)])
def test_a_scale_that_is_no_fraction_is_refused(scale: object) -> None:
    with pytest.raises(TypeError, match="it must be an exact Fraction"):
        RoundedGaussian(scale)  # type: ignore[arg-type]


def test_a_law_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        RoundedGaussian(Fraction(1)).scale = Fraction(2)  # type: ignore[misc]


@pytest.mark.parametrize("scale", SCALES)
def test_the_tail_adds_up_the_law(scale: Fraction) -> None:
    law = RoundedGaussian(scale)
    for deviations in (0, 0.1, 1, 3, 7, 20, 37):
        at_least = round(deviations * scale)
        assert law.tail(at_least) == pytest.approx(float(tail(at_least, scale)), rel=1e-12)
        assert law.tail(-at_least) == pytest.approx(float(tail(-at_least, scale)), rel=1e-12)


def test_a_tail_of_1e_300_is_still_accurate() -> None:
    exact = tail(200, Fraction(27, 5))
    assert 1e-300 < exact < 1e-297
    assert RoundedGaussian(Fraction(27, 5)).tail(200) == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize("scale", SCALES)
def test_the_tail_is_that_of_scipy_half_a_unit_lower(scale: Fraction) -> None:
    for at_least in {round(deviations * scale) for deviations in range(-30, 31, 3)}:
        expected = norm.sf(at_least - 0.5, scale=float(scale))
        assert RoundedGaussian(scale).tail(at_least) == pytest.approx(expected, rel=1e-11)


def test_a_tail_beyond_floating_point_is_zero() -> None:
    assert RoundedGaussian(Fraction(1, 10**400)).tail(10**400) == 0
    assert RoundedGaussian(Fraction(1, 10**400)).tail(-(10**400)) == 1


@pytest.mark.parametrize("scale", [*SCALES, Fraction(1, 20), Fraction("1.999"), Fraction(2)])
def test_the_standard_deviation_is_that_of_the_law(scale: Fraction) -> None:
    # The Fourier series of the rounding error; the alternating sum needs the precision at small scales.
    square = EXACT.mpf(scale.numerator) ** 2 / EXACT.mpf(scale.denominator) ** 2
    variance = square + EXACT.mpf(1) / 12
    for k in range(1, 20 + int(10 / scale)):
        variance += (-1) ** k * EXACT.exp(-2 * (EXACT.pi * k) ** 2 * square) * (4 * square + 1 / (EXACT.pi * k) ** 2)
    assert RoundedGaussian(scale).standard_deviation == pytest.approx(float(EXACT.sqrt(variance)), rel=1e-12)


def test_a_vanishing_scale_has_no_spread() -> None:
    assert RoundedGaussian(Fraction(1, 10**400)).standard_deviation == 0
    assert not RoundedGaussian(Fraction(1, 10**400)).sample(100, SystemEntropy()).any()


@pytest.mark.parametrize("size", [0, 1, 2, 2**15, 2**15 + 1])
def test_a_sample_is_as_large_as_asked_for(size: int) -> None:
    noise = RoundedGaussian(Fraction(5)).sample(size, SystemEntropy())
    assert noise.shape == (size,)
    assert noise.dtype == np.int64


@pytest.mark.parametrize("size", [1_000, 999])
def test_every_two_draws_have_two_words_of_their_own(size: int) -> None:
    script = SeededEntropy(3).words(1_000).tolist()
    noise = RoundedGaussian(Fraction(50)).sample(size, ScriptedEntropy(script))
    pairs = [pair(script[index], script[500 + index], Fraction(50), []) for index in range(500)]
    assert noise.tolist() == [value for half in zip(*pairs, strict=True) for value in half][:size]


def test_pieces_of_a_sample_share_no_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaussian, "_DRAWS_AT_ONCE", 4)
    noise = RoundedGaussian(Fraction(2**39)).sample(1_000, SeededEntropy(4))
    assert np.unique(np.abs(noise)).size == 1_000


@settings(deadline=None)
@given(word=words, scale=scales)
def test_a_constant_source_gives_no_noise(word: int, scale: Fraction) -> None:
    assert not RoundedGaussian(scale).sample(5, ConstantEntropy(word)).any()


@pytest.mark.parametrize("scale", SCALES)
def test_the_constant_source_of_other_tests_gives_no_noise(scale: Fraction) -> None:
    assert not RoundedGaussian(scale).sample(101, ConstantEntropy()).any()


class AlternatingEntropy:
    """Zeros, then ones, for ever: the uniform number behind the radius never leaves zero."""

    private = False

    def words(self, size: int) -> np.ndarray:
        return np.repeat(np.array([0, ALL_ONES], dtype=np.uint64), size // 2)


def test_a_stuck_source_raises_rather_than_hangs() -> None:
    with pytest.raises(EntropyError, match="the entropy source is stuck"):
        RoundedGaussian(Fraction(5)).sample(1, AlternatingEntropy())


def test_a_failing_system_gives_no_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    system, calls = os.urandom, iter(range(3))

    def failing_at_the_third_call(count: int) -> bytes:
        if next(calls) == 2:
            raise OSError("no entropy")
        return system(count)

    monkeypatch.setattr(os, "urandom", failing_at_the_third_call)
    with pytest.raises(EntropyError, match="no random bytes"):
        RoundedGaussian(Fraction(5)).sample(2**17, SystemEntropy())


@settings(deadline=None)
@given(first=words, second=words, scale=scales, seed=st.integers(min_value=0, max_value=2**32))
def test_draws_are_those_of_exact_arithmetic_on_all_bits(first: int, second: int, scale: Fraction, seed: int) -> None:
    later = SeededEntropy(seed).words(4).tolist()
    turn = in_one([second, *later[1::2]])
    radius = 2**192 - (in_one([first, *later[::2]]) ^ turn)
    exact = [int(EXACT.floor(value + 0.5)) for value in before_rounding(radius, turn, 192, scale)]
    assert pair(first, second, scale, later) == exact


@settings(deadline=None)
@given(
    scale=st.fractions(min_value=Fraction(3, 4), max_value=2**40 - 1),
    quarter=st.integers(min_value=0, max_value=3),
    within=st.integers(min_value=2**62 // 10, max_value=2**62 * 9 // 10),
    share=st.floats(min_value=0.02, max_value=1),
    output=st.sampled_from([0, 1]),
)
def test_later_bits_decide_on_both_sides_of_a_tie(
    scale: Fraction, quarter: int, within: int, share: float, output: int
) -> None:
    turn = quarter * 2**62 + within
    direction = abs((EXACT.cospi, EXACT.sinpi)[output](EXACT.ldexp(turn, -63)))
    below = int(share * (4.5 * float(scale) * float(direction) - 0.5))
    radius = (EXACT.mpf(below) + 0.5) * scale.denominator / scale.numerator / direction
    edge = int(EXACT.floor(EXACT.exp(-(radius**2) / 2) * 2**64))
    assert 2**48 < edge < ALL_ONES
    first = edge ^ ALL_ONES ^ turn
    outwards, inwards = (pair(first, turn, scale, [last, 0, 1, 0, 1, 0])[output] for last in (ALL_ONES, 0))
    assert (abs(outwards), abs(inwards)) == (below + 1, below)


@pytest.mark.parametrize("scale", SCALES[1:])
def test_later_bits_of_the_angle_decide_as_well(scale: Fraction) -> None:
    radius, below = before_rounding(2**60, 0, 64, scale)[0], int(scale)
    turn = int(EXACT.floor(EXACT.acos((below + EXACT.mpf(0.5)) / radius) / EXACT.pi * 2**63))
    first = 2**60 ^ ALL_ONES ^ turn
    outwards, inwards = (pair(first, turn, scale, [last ^ ALL_ONES, last])[0] for last in (0, ALL_ONES))
    assert (outwards, inwards) == (below + 1, below)


@pytest.mark.parametrize("scale", SCALES)
def test_a_float_right_between_two_integers_is_not_believed(scale: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    tie = np.array([[0.5], [0.0]]), np.array([float(scale) * 2**-45])
    monkeypatch.setattr(gaussian, "_pairs_before_rounding", lambda *_: tie)
    monkeypatch.setattr(gaussian, "_resolve", lambda *_: (7, 8))
    assert pair(2**62, 1, scale, []) == [7, 8]


def test_what_is_not_a_number_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = np.array([[0.0], [0.0]]), np.array([np.nan])
    monkeypatch.setattr(gaussian, "_pairs_before_rounding", lambda *_: broken)
    monkeypatch.setattr(gaussian, "_resolve", lambda *_: (7, 8))
    assert pair(2**62, 1, Fraction(1), []) == [7, 8]


@pytest.mark.parametrize("radius_word", [0, 1, 2**20, 2**40])
def test_a_word_too_small_for_floating_point_is_resolved(radius_word: int) -> None:
    scale, turn, later = Fraction(2**39), 12345 * 2**40, [3 * 2**62, 0, 1, 0]
    fast = pair(radius_word ^ ALL_ONES ^ turn, turn, scale, later)
    assert fast == list(gaussian._resolve(radius_word, turn, scale, ScriptedEntropy(later)))


def test_a_zero_word_waits_for_later_bits() -> None:
    noise = gaussian._resolve(0, 2**60, Fraction(1000), ScriptedEntropy([2**63 - 1, 0]))
    radius = 1000 * math.sqrt(2 * 65 * math.log(2))
    assert noise == (round(radius * math.cos(math.pi / 8)), round(radius * math.sin(math.pi / 8)))


def test_the_caller_s_precision_of_mpmath_does_not_matter() -> None:
    def draws() -> list[tuple[int, int]]:
        return [gaussian._resolve(word, 3 * word, Fraction(10**9), SeededEntropy(0)) for word in (12345, 2**62)]

    with mpmath.workprec(4):
        low = draws()
    assert low == draws()


def test_bounds_of_the_radius_hold() -> None:
    for prefix in [1, 2**40, ALL_ONES - 1, ALL_ONES, *SeededEntropy(8).words(50).tolist()]:
        least, most = gaussian._radius(prefix, 64)
        ends = [EXACT.sqrt(-2 * EXACT.log(EXACT.ldexp(end, -64))) * 2**64 for end in (prefix + 1, prefix)]
        assert least <= ends[0] <= ends[1] <= most
        assert most - least <= ends[1] - ends[0] + 2**34


def test_numpy_s_logarithm_is_as_good_as_the_margin_assumes() -> None:
    fractions = SeededEntropy(5).words(10_000) * 2.0**-64
    results = zip(fractions.tolist(), np.log(fractions).tolist(), strict=True)
    assert max(abs(EXACT.log(x) - EXACT.mpf(y)) / np.spacing(abs(y)) for x, y in results) < 4


@pytest.mark.parametrize(("function", "exact"), [(np.cos, EXACT.cos), (np.sin, EXACT.sin)], ids=["cos", "sin"])
def test_numpy_s_circle_is_as_good_as_the_margin_assumes(
    function: Callable[[np.ndarray], np.ndarray], exact: Callable[[float], mpmath.mpf]
) -> None:
    angles = SeededEntropy(5).words(10_000).view(np.int64) * (math.pi * 2.0**-63)
    results = zip(angles.tolist(), function(angles).tolist(), strict=True)
    assert max(abs(exact(x) - EXACT.mpf(y)) for x, y in results) < 4 * 2.0**-53


@pytest.mark.parametrize("scale", SCALES)
def test_the_float_values_are_within_a_third_of_their_margin(scale: Fraction) -> None:
    near_one = np.array([2**64 - 2**power for power in range(1, 64)], dtype=np.uint64)
    drawn = SeededEntropy(6).words(1_000)
    radius_words = np.concatenate([near_one, drawn[drawn >= gaussian.SMALLEST_FAST_WORD]])
    turns = SeededEntropy(7).words(radius_words.size)
    values, margins = gaussian._pairs_before_rounding(radius_words, turns, float(scale))
    for radius_word, turn, value, margin in zip(
        radius_words.tolist(), turns.tolist(), values.T.tolist(), margins.tolist(), strict=True
    ):
        for end in (0, 1):
            exact = before_rounding(radius_word + end, turn + end, 64, scale)
            assert max(abs(exact[0] - value[0]), abs(exact[1] - value[1])) < margin / 3
