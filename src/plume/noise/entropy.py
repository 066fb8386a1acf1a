"""Secure random bits: the operating system's source, and the shape any other source must have.

Separate from the distributions so that one place decides whether what was drawn may be called private.
"""

import os
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from plume.errors import EntropyError

_WORD_BYTES = 8
_BYTES_AT_ONCE = 64 * 2**20


class Entropy(Protocol):
    """A source of independent, uniformly random 64-bit words."""

    @property
    def private(self) -> bool:
        """Whether an adversary cannot know the words; if not, releases are stamped NOT PRIVATE."""

    def words(self, size: int) -> NDArray[np.uint64]:
        """Return `size` fresh words, never handed out before."""


class SystemEntropy:
    """The operating system's secure source, and the only private one.

    It has no seed and no state, so forked processes share nothing. If the system fails to give
    random bytes, an EntropyError is raised and no word is handed out.
    """

    @property
    def private(self) -> bool:
        """True: nobody can predict or repeat these words."""
        return True

    def words(self, size: int) -> NDArray[np.uint64]:
        """Return `size` fresh words from the operating system."""
        words = np.empty(size, dtype=np.uint64)
        octets = words.view(np.uint8)
        for start in range(0, size * _WORD_BYTES, _BYTES_AT_ONCE):
            piece = octets[start : start + _BYTES_AT_ONCE]
            piece[:] = np.frombuffer(_random_bytes(piece.size), dtype=np.uint8)
        return words


def _random_bytes(count: int) -> bytes:
    try:
        return os.urandom(count)
    except (OSError, NotImplementedError):
        raise EntropyError(
            "the operating system gave no random bytes (os.urandom failed), so no noise can be drawn; nothing was released."
        ) from None


def salt(entropy: Entropy) -> str:
    """Return 128 random bits as 32 lower-case hexadecimal characters."""
    first, second = entropy.words(2)
    return f"{first:016x}{second:016x}"
