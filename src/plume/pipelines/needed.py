"""The parts that the measures of a query are made of, each once, and which share of the budget each of them gets."""

from dataclasses import dataclass, replace
from fractions import Fraction

from plume.mechanisms.mechanism import Part
from plume.pipelines.columns import columns_of_measures
from plume.privacy.calibration import Shares, share
from plume.query import Query


@dataclass(frozen=True)
class Needed:
    """A part, its columns in the plan, the measures that need it, and the shares of all of them together."""

    part: Part
    columns: tuple[str, ...]
    measures: tuple[str, ...]
    share: Fraction


def needed(query: Query) -> tuple[Needed, ...]:
    """List the parts of all measures, each once."""
    found: dict[tuple[str, ...], Needed] = {}
    for measure, of_measure in zip(columns_of_measures(query), _shares(query).measures, strict=True):
        for part in measure.mechanism.parts():
            columns, name = measure.covered(part), measure.mechanism.name
            before = found.get(columns, Needed(part, columns, (), Fraction()))
            found[columns] = replace(
                before, measures=(*before.measures, name), share=before.share + of_measure * part.weight
            )
    return tuple(found.values())


def shares_of(query: Query) -> Shares:
    """Share the budget out among selection, choices of numbers, and the parts of measures."""
    shares = _shares(query)
    return replace(shares, measures=tuple(part.share for part in needed(query)))


def _shares(query: Query) -> Shares:
    names = tuple(measure.name for measure in query.measures)
    selects_keys = query.public_keys is None
    return share(dict(query.shares), names, selects_keys=selects_keys, choices=query.choices)
