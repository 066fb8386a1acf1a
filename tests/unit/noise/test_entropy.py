import os

import numpy as np
import pytest

from entropy import ConstantEntropy, ScriptedEntropy, SeededEntropy
from plume.errors import EntropyError
from plume.noise import entropy as entropy_module
from plume.noise.entropy import SystemEntropy, salt


def test_only_the_system_source_is_private() -> None:
    assert SystemEntropy().private
    assert not any(source.private for source in (SeededEntropy(1), ConstantEntropy(), ScriptedEntropy([])))


def test_the_system_source_cannot_be_relabelled() -> None:
    with pytest.raises(AttributeError, match="private"):
        SystemEntropy().private = False  # type: ignore[misc]


def test_the_system_source_takes_no_seed() -> None:
    with pytest.raises(TypeError, match="no arguments"):
        SystemEntropy(1)  # type: ignore[call-arg]


@pytest.mark.parametrize("size", [0, 1, 2, 7, 1000])
def test_words_are_as_many_as_asked_for(size: int) -> None:
    words = SystemEntropy().words(size)
    assert words.shape == (size,)
    assert words.dtype == np.uint64


@pytest.mark.parametrize("size", [1, 2, 3, 4, 9])
def test_words_read_in_pieces_are_the_bytes_of_the_system(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    script = bytes(range(8 * size))
    asked: list[int] = []

    def scripted(count: int) -> bytes:
        asked.append(count)
        return script[sum(asked) - count : sum(asked)]

    monkeypatch.setattr(os, "urandom", scripted)
    monkeypatch.setattr(entropy_module, "_BYTES_AT_ONCE", 24)
    assert SystemEntropy().words(size).tobytes() == script
    assert max(asked) <= 24


def test_every_bit_of_a_word_is_used() -> None:
    # 1000 words leave some bit constant with probability below 64 * 2 * 2**-1000.
    words = SystemEntropy().words(1000)
    assert np.bitwise_or.reduce(words) == 2**64 - 1
    assert np.bitwise_and.reduce(words) == 0


def test_a_million_pairs_of_words_do_not_repeat() -> None:
    # A repeat has probability below 2**-88.
    pairs = SystemEntropy().words(2 * 10**6).view(np.dtype("V16"))
    assert np.unique(pairs).size == 10**6


@pytest.mark.parametrize("failure", [OSError("no entropy"), NotImplementedError("no source")])
def test_a_failing_system_raises_and_gives_nothing(failure: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(_: int) -> bytes:
        raise failure

    monkeypatch.setattr(os, "urandom", failing)
    with pytest.raises(EntropyError, match="the operating system gave no random bytes") as caught:
        SystemEntropy().words(4)
    assert caught.value.__suppress_context__


def test_a_salt_is_two_words_in_hexadecimal_first_word_first() -> None:
    assert salt(ScriptedEntropy([0xAB, 2**64 - 1])) == "00000000000000abffffffffffffffff"


def test_salts_differ() -> None:
    assert len({salt(SystemEntropy()) for _ in range(1000)}) == 1000


def test_a_seed_repeats_its_words_and_another_does_not() -> None:
    first, again, other = (SeededEntropy(seed).words(100) for seed in (7, 7, 8))
    assert (first == again).all()
    assert not np.intersect1d(first, other).size


def test_a_script_that_runs_out_raises() -> None:
    with pytest.raises(EOFError, match="2 words asked for, 1 left"):
        ScriptedEntropy([5]).words(2)
