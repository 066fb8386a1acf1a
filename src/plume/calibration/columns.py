"""Which columns of a plan hold what each measure knows.

What two measures compute in the same way has one column: it is computed once, noised once, paid once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from plume.mechanisms.mechanism import Mechanism, Part
from plume.plan.aggregates import Aggregate
from plume.plan.expressions import Expression
from plume.plan.nodes import Size
from plume.plan.trees import rename
from plume.query import Query


@dataclass(frozen=True)
class MeasureColumns:
    """A mechanism, and the plan's column for each of its names."""

    mechanism: Mechanism
    raw: Mapping[str, str]
    """For each name that combining raw rows makes."""
    state: Mapping[str, str]
    """For each name of its state."""
    released: Mapping[str, str]
    """For each column that it releases."""

    @property
    def margins(self) -> dict[str, tuple[str, str]]:
        """For each column that is computed from several parts, where its margins are."""
        computed = (name for name, part in self.mechanism.columns.items() if part is None)
        return {name: (f"{self.released[name]}_low", f"{self.released[name]}_high") for name in computed}

    @property
    def size(self) -> Size:
        """How large a row is for the measure, in the plan's columns."""
        size = self.mechanism.size()
        return replace(size, of=tuple(rename(expression, self.raw) for expression in size.of))

    def covered(self, part: Part) -> tuple[str, ...]:
        """The columns of a part."""
        return tuple(self.state[name] for name in part.covers)


def values_of(query: Query) -> dict[str, str]:
    """The plan's column for each column of the table that measures read."""
    return {name: f"value_{number}" for number, name in enumerate(query.measured_columns, start=1)}


def columns_of_measures(query: Query) -> tuple[MeasureColumns, ...]:
    """Give every measure its columns; equal expressions get the same one, called after the first measure that needs it."""
    values = values_of(query)
    raw: dict[Aggregate, str] = {}
    state: dict[Expression, str] = {}
    measures = []
    for number, mechanism in enumerate(query.measures, start=1):
        prefix = f"measure_{number}"
        its_raw = {
            name: raw.setdefault(rename(aggregate, values), f"{prefix}_raw_{name}")
            for name, aggregate in mechanism.combine_raw().items()
        }
        its_state = {
            name: state.setdefault(rename(expression, its_raw), f"{prefix}_{name}")
            for name, expression in mechanism.preprocess().items()
        }
        released = _released(mechanism, prefix)
        measures.append(MeasureColumns(mechanism, its_raw, its_state, released))
    return tuple(measures)


def _released(mechanism: Mechanism, prefix: str) -> dict[str, str]:
    names = tuple(mechanism.columns)
    plain = [prefix] if len(names) == 1 else [f"{prefix}_{number}" for number in range(1, len(names) + 1)]
    return dict(zip(names, plain, strict=True))
