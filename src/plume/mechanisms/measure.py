"""Where a new measure begins: what all measures share, how each is asked for, and what to write, step by step.

1. A module here with the name of the measure. `users.py` is the shortest example, `sum.py` one whose values are on a grid.
   - A frozen dataclass that derives from `Measure`. `word` is what ledgers call it for ever. It has a field for each argument of the
     measure, under the same name, among them `name` and `where`; `__post_init__` refuses arguments that cannot be.
   - The operations of `Mechanism`, in `mechanism.py`, on integers: `combine_raw` makes one row of all rows of a user and key,
     `preprocess` clamps it, `combine_keyed` adds up the rows of a key, and `noise` makes the released columns of noised sums. `parts`
     says how much one user can change in one key, for which noise is scaled, and `size` how large one row is, by which users are clipped.
     `columns` names what is released, `value_columns` what is read. Pipelines, engines, prices, checks and audits work by these alone.
   - What `Measure` below has by default, where it does not fit: `counts`, `is_whole` for whole results, `parts_in_time` for dates, and
     `extent` and `margins` for columns that are computed from several parts.
   - The function that makes it, under `@call_checked()`, and `FORMS`: a `Form` with an example for the command line and, if SQL can ask
     for it, the aggregate of SQL.
2. Registration: the module in `forms.py` beside this file, and the function in `plume/__init__.py`, three times: for type checkers, in
   `__all__` and in `_HOMES`. The command line, query files, records, reports and ledgers then know it.
3. Its proof: one page in docs/guarantees/, which the `Guarantee:` paragraph of the dataclass names. A row in docs/api.md and docs/cli.md.
4. Tests: the same measure in plain Python in `tests/reference/measures.py`, drawn in `tests/strategies.py`, which engines must equal
   exactly; a line in `MECHANISMS` of `tests/unit/mechanisms/test_mechanisms.py`, in `QUERY` of `tests/privacy/test_neighbours.py`, in
   `MEASURES` of `tests/unit/report/test_settings.py`, and its word in `tests/unit/test_tables.py`.

Some measures need more. If SQL can ask for it, its function is named in `CALLS` of `relation/parsing.py`, and `statement/measures.py`
reads arguments that are special. If its bounds may be left open, or `plume tune` varies it, `auditing/choice.py`, `tuning/tuning.py` and
`tuning/pairs.py` name it too. What no aggregate or expression of `plan/aggregates.py` and `plan/expressions.py` computes is added there and
printed in `plan/printing/`.
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
from plume.plan.types import Kind

PER_GROUP, PER_ROW = "contribution_bounds_per_group", "contribution_bounds_per_row"
"""What statements call bounds on what a user has in a group, and on single values."""


class Measure:
    """What all measures share. Each is a frozen dataclass, whose fields are what was asked for."""

    word: ClassVar[str]
    """What ledgers call it, permanently. It is also the name of the function that makes it, unless `call` names another."""
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
        """How far computed values can be apart, for measures with columns that several parts make; infinite for all others."""
        return math.inf

    @property
    def parts_in_time(self) -> frozenset[str]:
        """The parts that are measured in time; none by default."""
        return frozenset()

    def is_whole(self, kinds: Mapping[str, Kind]) -> bool:
        """Return whether released numbers are rounded to whole ones after the noise; by default they are not."""
        del kinds
        return False

    def margins(self, noised: Mapping[str, Any], blurs: Mapping[str, Blur]) -> Mapping[str, tuple[pa.Array, pa.Array]]:
        """The ends of 95 % intervals of columns that several parts make; by default there are no such columns."""
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
