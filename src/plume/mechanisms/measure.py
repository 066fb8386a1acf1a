"""What all measures share, and how each is asked for: in Python, as text on the command line, and in a statement.

A new measure is one module here, which implements `Mechanism` and ends with its `FORMS`, its name in `mechanisms/forms.py` and in
`plume/__init__.py`, and one page in docs/guarantees/. What only a few measures have stands elsewhere: aggregates of statements that are
read in a way of their own in `statement/measures.py`, the names of all of them in `CALLS` of `relation/parsing.py`, and what
`plume tune` can estimate in `tuning/pairs.py`. A measure whose bounds may be left open, or that `tune` varies, is also named in
`auditing/choice.py` and `tuning/tuning.py`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import pyarrow as pa

from plume.mechanisms.margins import Blur
from plume.mechanisms.mechanism import Mechanism
from plume.mechanisms.rows import condition
from plume.plan.expressions import Expression

PER_GROUP, PER_ROW = "contribution_bounds_per_group", "contribution_bounds_per_row"
"""What statements call bounds on what a user has in a group, and on single values."""


class Measure:
    """What all measures share. Each is a frozen dataclass, whose fields are what was asked for."""

    word: ClassVar[str]
    """What ledgers call it, for ever; it is also the function that makes it, where `call` names no other."""
    counts: ClassVar[bool] = False
    """Whether it is a number of users or records, so that an error can be told relative to it."""
    where: str | None

    @property
    def condition(self) -> Expression | None:
        """Which records count."""
        return condition(self.where)

    def call(self) -> tuple[str, dict[str, Any]]:
        """Name the function of `plume` that makes this measure, and all its arguments."""
        described: Any = self
        return self.word, {field.name: getattr(self, field.name) for field in fields(described)}

    @property
    def extent(self) -> float:
        """Where no column is computed from several parts, noise alone says how good each number is."""
        return math.inf

    @property
    def parts_in_time(self) -> frozenset[str]:
        """None, where values are numbers."""
        return frozenset()

    def margins(self, noised: Mapping[str, Any], blurs: Mapping[str, Blur]) -> Mapping[str, tuple[pa.Array, pa.Array]]:
        """Where each column is one part, there is nothing to add: the noise of a part is as wide in all keys."""
        del noised, blurs
        return {}


@dataclass(frozen=True)
class SqlForm:
    """The aggregate of a private SELECT that asks for a measure."""

    function: str
    bounds: tuple[str, ...]
    """Which bounds it takes, one of them at a time."""


@dataclass(frozen=True)
class Form:
    """How a measure is asked for."""

    make: Callable[..., Mechanism]
    """The function in `plume`; the command line uses the same name and the same arguments."""
    example: str
    sql: SqlForm | None = None
    alias: str | None = None
    """What others call it: understood as text, and pointed out in Python."""

    @property
    def word(self) -> str:
        """What it is called."""
        return self.make.__name__
