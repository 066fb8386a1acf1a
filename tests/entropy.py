"""Entropy sources for tests only: repeatable, and therefore never private."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray


class SeededEntropy:
    """The same words for the same seed."""

    private = False

    def __init__(self, seed: int) -> None:
        self._generator = np.random.Philox(seed)

    def words(self, size: int) -> NDArray[np.uint64]:
        return self._generator.random_raw(size)


class ConstantEntropy:
    """The same word for ever, which makes all noise zero."""

    private = False

    def __init__(self, word: int = 2**63) -> None:
        self._word = word

    def words(self, size: int) -> NDArray[np.uint64]:
        return np.full(size, self._word, dtype=np.uint64)


class ScriptedEntropy:
    """The given words in order, and an error when they run out."""

    private = False

    def __init__(self, words: Iterable[int]) -> None:
        self._words = list(words)

    def words(self, size: int) -> NDArray[np.uint64]:
        if size > len(self._words):
            raise EOFError(f"{size} words asked for, {len(self._words)} left in the script.")
        taken, self._words = self._words[:size], self._words[size:]
        return np.array(taken, dtype=np.uint64)
