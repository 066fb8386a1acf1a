"""A plan in which contributions of users within the limit travel with their weights: other steps for the same release.

SQL waits with many numbers until keys are selected, since passing them along costs more than reading rows twice: decision 59. A loop over a
user's rows adds up many numbers nearly as quickly as one, and would have to keep all rows to wait. So for a pass they are added up for
every key, and those of selected keys are kept. docs/guarantees/bounding.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from plume.plan.aggregates import Max, Sum
from plume.plan.analysis import readers_of, steps
from plume.plan.expressions import Column, Expression, Literal
from plume.plan.nodes import Append, Combine, CountKeys, KeepSelected, Map, Node, Noise, Plan, reading

_Named = tuple[tuple[str, Expression], ...]


@dataclass(frozen=True)
class _Waiting:
    """Steps that read the rows of users within the limit again, and those that could have carried what these contribute."""

    of_uncut: Map
    of_bounded: Map
    keyed: Combine
    again: Map
    selected: KeepSelected
    contributions: Map

    @property
    def carried(self) -> _Named:
        """What is contributed to a key, beside the key."""
        return self.contributions.expressions[len(self.keyed.by) :]


def carrying(plan: tuple[Noise, ...]) -> tuple[Noise, ...]:
    """Carry contributions with weights wherever a plan waits with them, and all steps are what they are expected to be."""
    made: dict[str, Node] = {}
    changes = {name: one for found in _waiting(plan) for name, one in _changes(found).items()}
    for step in steps(plan):
        again = reading(step, made)
        made[step.name] = reading(changes[step.name], made) if step.name in changes else again
    return tuple(reading(stage, made) for stage in plan)


def _changes(found: _Waiting) -> dict[str, Node]:
    """Give the steps that carry contributions by their names; what they read has its name alone, and is put in its place later."""
    names = tuple(name for name, _ in found.carried)
    nothing = tuple((name, Literal(0)) for name in names)
    sums = tuple((name, Sum(Column(name))) for name in names)
    as_added = _as_they_are((*found.keyed.by, *names))
    return {
        found.of_uncut.name: replace(found.of_uncut, expressions=(*found.of_uncut.expressions, *found.carried)),
        found.of_bounded.name: replace(found.of_bounded, expressions=(*found.of_bounded.expressions, *nothing)),
        found.keyed.name: replace(found.keyed, aggregates=(*found.keyed.aggregates, *sums)),
        found.selected.name: replace(found.selected, source=found.keyed),
        found.contributions.name: replace(found.contributions, expressions=as_added),
    }


def _waiting(plan: Plan) -> Iterator[_Waiting]:
    listed = steps(plan)
    for keyed in listed:
        for contributions in listed:
            found = _steps_of(keyed, contributions)
            alike = found is not None and _is_the_same(found)
            if found is not None and alike and _are_read_by_nobody_else(found, plan) and _are_added_up(found, plan):
                yield found


def _steps_of(keyed: Node, contributions: Node) -> _Waiting | None:
    """Find steps in the places in which they are expected; what they say is not looked at."""
    match keyed, contributions:
        case (
            Combine(source=Append(sources=(Map() as of_uncut, Map() as of_bounded))),
            Map(source=KeepSelected(source=Map(source=CountKeys(source=Combine())) as again) as selected),
        ):
            return _Waiting(of_uncut, of_bounded, keyed, again, selected, contributions)
        case _:
            return None


def _is_the_same(found: _Waiting) -> bool:
    """Return whether rows that are read again are those that have weights, and each of them contributes to its own key.

    Guarantee: the sums of selected keys are the same, since a key is selected for all of its rows or for none. docs/guarantees/bounding.md.
    """
    keys, uncut, again = found.keyed.by, found.of_uncut.source, found.again
    counted = again.source
    if not (isinstance(uncut, Map) and isinstance(counted, CountKeys)):
        return False
    same_rows = Map(again.name, uncut.source, _as_they_are(counted.source.columns), where=uncut.where)
    columns = (name for name, _ in found.carried)
    return (
        again == same_rows
        and uncut.expressions == _as_they_are(counted.columns)
        and found.selected.keys == keys
        and found.of_uncut.where is found.of_bounded.where is found.contributions.where is None
        and found.contributions.expressions[: len(keys)] == _as_they_are(keys)
        and set(found.keyed.columns).isdisjoint(columns)
    )


def _are_read_by_nobody_else(found: _Waiting, plan: Plan) -> bool:
    chain: tuple[Node, ...] = (found.again, found.selected, found.contributions)
    return all([one.name for one in readers_of(step, plan)] == [reader.name] for step, reader in pairwise(chain))


def _are_added_up(found: _Waiting, plan: Plan) -> bool:
    """Return whether all that reads contributions adds them up by key, so that it is the same if some are added up before."""
    reading_them = readers_of(found.contributions, plan)
    appended = [append for one in reading_them for append in readers_of(one, plan)]
    combining = [combine for append in appended for combine in readers_of(append, plan)]
    return (
        all(isinstance(one, Map) and one.where is None and _hands_on(one, found.contributions) for one in reading_them)
        and all(isinstance(append, Append) for append in appended)
        and all(_adds_up(combine, found) for combine in combining)
    )


def _hands_on(step: Map, rows: Map) -> bool:
    """Return whether a step gives columns on under their names, and beside them nothing, of which any number adds up to nothing."""
    return all(of == (Column(name) if name in rows.columns else Literal(0)) for name, of in step.expressions)


def _adds_up(step: Node, found: _Waiting) -> bool:
    """Return whether a step adds contributions up by key; of other columns it may take the largest."""
    if not (isinstance(step, Combine) and step.by == found.keyed.by):
        return False
    names = {name for name, _ in found.carried}
    return all(
        of == Sum(Column(name)) or (of == Max(Column(name)) and name not in names) for name, of in step.aggregates
    )


def _as_they_are(columns: tuple[str, ...]) -> _Named:
    return tuple((column, Column(column)) for column in columns)
