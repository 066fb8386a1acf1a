"""Two lists of parameters that are tried with each other: each value by `make test`, each pair by `make test-engines`."""

from collections.abc import Collection
from typing import Any

import pytest


def pairs(ones: Collection[Any], others: Collection[Any]) -> list[Any]:
    """All pairs, of which those on diagonals are in `make test`, so that no value of either list is left out there."""
    fewer = min(len(ones), len(others))
    return [
        pytest.param(one, other, marks=[] if (row - column) % fewer == 0 else pytest.mark.engines)
        for row, one in enumerate(ones)
        for column, other in enumerate(others)
    ]
