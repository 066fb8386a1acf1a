"""The parts that the measures of a query are made of, each once, and which share of the budget each of them gets."""

from dataclasses import dataclass, replace
from fractions import Fraction

from plume.calibration.columns import columns_of_measures
from plume.calibration.shares import Shares
from plume.mechanisms.mechanism import Part
from plume.query import Query


@dataclass(frozen=True)
class RequiredPart:
    """A part, its columns in the plan, the measures that need it, and the shares of all of them together."""

    part: Part
    columns: tuple[str, ...]
    measures: tuple[str, ...]
    share: Fraction


def required_parts(query: Query, shares: Shares) -> tuple[RequiredPart, ...]:
    """List the parts of all measures, each once."""
    required: dict[tuple[str, ...], RequiredPart] = {}
    for measure, of_measure in zip(columns_of_measures(query), shares.measures, strict=True):
        for part in measure.mechanism.parts():
            columns, name = measure.covered(part), measure.mechanism.name
            before = required.get(columns, RequiredPart(part, columns, (), Fraction()))
            required[columns] = replace(
                before, measures=(*before.measures, name), share=before.share + of_measure * part.weight
            )
    return tuple(required.values())


def shares_by_part(query: Query, shares: Shares) -> Shares:
    """Split the shares of measures among their parts."""
    return replace(shares, measures=tuple(part.share for part in required_parts(query, shares)))
