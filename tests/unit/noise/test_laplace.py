import math
import os
from dataclasses import FrozenInstanceError
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entropy import ConstantEntropy, ScriptedEntropy, SeededEntropy
from plume.errors import EntropyError
from plume.noise import exponential, laplace
from plume.noise.entropy import SystemEntropy
from plume.noise.laplace import DiscreteLaplace

SCALES = [
    Fraction(1, 8),
    Fraction(1),
    Fraction(7, 3),
    Fraction("116.51"),
    Fraction(10**6),
    Fraction(2**40 - 1),
]
EXACT = mpmath.mp.clone()
EXACT.prec = 400

scales = st.fractions(min_value=Fraction(1, 1000), max_value=2**40 - 1)
words = st.integers(min_value=1, max_value=2**64 - 1)


def geometric(word: int, scale: Fraction) -> int:
    """What the fast path, with its margin, makes of one word."""
    return int(laplace._geometric(np.array([word], dtype=np.uint64), scale, SeededEntropy(0))[0])


def resolve(word: int, scale: Fraction, entropy: ScriptedEntropy | SeededEntropy) -> int:
    return exponential.resolve(word, scale, entropy, offset=Fraction(0))


def boundary(count: int, scale: Fraction) -> int:
    """The first 64 bits of exp(-count / scale), where the geometric count steps up to `count`."""
    return int(EXACT.floor(EXACT.exp(-EXACT.mpf(count * scale.denominator) / scale.numerator) * 2**64))


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1), Fraction(2**40), Fraction(2**41)])
def test_a_scale_out_of_range_is_refused(scale: Fraction) -> None:
    with pytest.raises(ValueError, match=f"scale is {scale}; it must be above 0 and below"):
        DiscreteLaplace(scale)


@pytest.mark.parametrize("scale", [1, 1.0, "1", np.float64(1)])
def test_a_scale_that_is_no_fraction_is_refused(scale: object) -> None:
    with pytest.raises(TypeError, match="it must be an exact Fraction"):
        DiscreteLaplace(scale)  # type: ignore[arg-type]


def test_a_law_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        DiscreteLaplace(Fraction(1)).scale = Fraction(2)  # type: ignore[misc]


@pytest.mark.parametrize("scale", SCALES)
def test_the_tail_adds_up_the_law(scale: Fraction) -> None:
    law, decay = DiscreteLaplace(scale), EXACT.exp(-EXACT.mpf(scale.denominator) / scale.numerator)
    for at_least in (-1000, -3, -1, 0, 1, 2, 5, 1000):
        upper = decay ** max(at_least, 1 - at_least) / (1 + decay)
        expected = upper if at_least > 0 else 1 - upper
        assert law.tail(at_least) == pytest.approx(float(expected), rel=1e-12, abs=1e-320)


def test_a_tail_beyond_floating_point_is_zero() -> None:
    assert DiscreteLaplace(Fraction(1, 10**400)).tail(10**400) == 0
    assert DiscreteLaplace(Fraction(1, 10**400)).tail(-(10**400)) == 1


@pytest.mark.parametrize("scale", SCALES)
def test_the_standard_deviation_is_that_of_the_law(scale: Fraction) -> None:
    decay = EXACT.exp(-EXACT.mpf(scale.denominator) / scale.numerator)
    expected = float(EXACT.sqrt(2 * decay) / (1 - decay))
    assert DiscreteLaplace(scale).standard_deviation == pytest.approx(expected, rel=1e-14)


def test_a_vanishing_scale_has_no_spread() -> None:
    assert DiscreteLaplace(Fraction(1, 10**400)).standard_deviation == 0
    assert not DiscreteLaplace(Fraction(1, 10**400)).sample(100, SystemEntropy()).any()


@pytest.mark.parametrize("size", [0, 1, 2**15, 2**15 + 1])
def test_a_sample_is_as_large_as_asked_for(size: int) -> None:
    noise = DiscreteLaplace(Fraction(5)).sample(size, SystemEntropy())
    assert noise.shape == (size,)
    assert noise.dtype == np.int64


def test_every_draw_has_two_words_of_its_own() -> None:
    script = SeededEntropy(3).words(2_000).tolist()
    noise = DiscreteLaplace(Fraction(50)).sample(1_000, ScriptedEntropy(script))
    counts = [geometric(word, Fraction(50)) for word in script]
    assert noise.tolist() == [counts[index] - counts[1_000 + index] for index in range(1_000)]


def test_pieces_of_a_sample_share_no_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(laplace, "_DRAWS_AT_ONCE", 3)
    noise = DiscreteLaplace(Fraction(2**39)).sample(1_000, SeededEntropy(4))
    assert np.unique(np.abs(noise)).size == 1_000


@settings(deadline=None)
@given(word=words, scale=scales)
def test_a_constant_source_gives_no_noise(word: int, scale: Fraction) -> None:
    assert not DiscreteLaplace(scale).sample(5, ConstantEntropy(word)).any()


def test_a_source_stuck_at_zero_raises_rather_than_hangs() -> None:
    with pytest.raises(EntropyError, match="the entropy source is stuck"):
        DiscreteLaplace(Fraction(5)).sample(1, ConstantEntropy(0))


def test_a_failing_system_gives_no_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    system, calls = os.urandom, iter(range(3))

    def failing_at_the_third_call(count: int) -> bytes:
        if next(calls) == 2:
            raise OSError("no entropy")
        return system(count)

    monkeypatch.setattr(os, "urandom", failing_at_the_third_call)
    with pytest.raises(EntropyError, match="no random bytes"):
        DiscreteLaplace(Fraction(5)).sample(2**17, SystemEntropy())


@settings(deadline=None)
@given(word=words, scale=scales)
def test_the_fast_path_agrees_with_exact_arithmetic(word: int, scale: Fraction) -> None:
    least, most = (
        math.floor(-EXACT.log(EXACT.ldexp(end, -64)) * scale.numerator / scale.denominator) for end in (word + 1, word)
    )
    assert least <= geometric(word, scale) <= most


@settings(deadline=None)
@given(scale=scales, position=st.floats(min_value=0.01, max_value=8))
def test_a_count_steps_up_exactly_where_the_law_says(scale: Fraction, position: float) -> None:
    count = max(1, round(position * scale))
    edge = boundary(count, scale)
    if 1 < edge < 2**64 - 1:
        assert geometric(edge - 1, scale) >= count
        assert geometric(edge + 1, scale) < count


@pytest.mark.parametrize("scale", SCALES)
def test_later_bits_decide_where_the_first_64_cannot(scale: Fraction) -> None:
    count = max(1, int(scale))
    edge = boundary(count, scale)
    below = resolve(edge, scale, ScriptedEntropy([0]))
    above = resolve(edge, scale, ScriptedEntropy([2**64 - 1]))
    assert (below, above) == (count, count - 1)


@pytest.mark.parametrize("word", [0, 1, 2**20, 2**40])
def test_a_word_too_small_for_floating_point_is_resolved(word: int) -> None:
    scale, later = Fraction(2**39), [3 * 2**62, 0]
    fast = laplace._geometric(np.array([word], dtype=np.uint64), scale, ScriptedEntropy(later))
    assert fast[0] == resolve(word, scale, ScriptedEntropy(later))


def test_a_zero_word_waits_for_later_bits() -> None:
    assert resolve(0, Fraction(1), ScriptedEntropy([2**63])) == math.floor(65 * math.log(2))


def test_the_caller_s_precision_of_mpmath_does_not_matter() -> None:
    with mpmath.workprec(4):
        low = [resolve(word, Fraction(10**9), SeededEntropy(0)) for word in (12345, 2**63)]
    assert low == [resolve(word, Fraction(10**9), SeededEntropy(0)) for word in (12345, 2**63)]


def test_numpy_s_logarithm_is_as_good_as_the_margin_assumes() -> None:
    fractions = SeededEntropy(5).words(20_000) * 2.0**-64
    errors = [
        abs(EXACT.log(x) - EXACT.mpf(y)) / np.spacing(abs(y))
        for x, y in zip(fractions.tolist(), np.log(fractions).tolist(), strict=True)
    ]
    assert max(errors) < 4


@pytest.mark.parametrize("scale", SCALES)
def test_the_float_value_is_within_half_its_margin(scale: Fraction) -> None:
    sample = SeededEntropy(6).words(5_000)
    for word in sample[sample >= laplace.SMALLEST_FAST_WORD].tolist():
        value = -np.log((float(word) + 0.5) * 2.0**-64) * float(scale)
        margin = (value + float(scale)) * exponential._RELATIVE_MARGIN
        for end in (word, word + 1):
            exact = -EXACT.log(EXACT.ldexp(end, -64)) * scale.numerator / scale.denominator
            assert abs(exact - EXACT.mpf(float(value))) < margin / 2
