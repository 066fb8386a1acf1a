"""Where columns of a relation meet: sides of equalities that joins are printed with, and members of unions.

What an engine does there to bring them to one type stands outside of every TRY, so their types must be checked before a row is read.
"""

from collections.abc import Iterator
from itertools import combinations

from plume.engines.engine import Meeting
from plume.plan.dialect import Dialect
from plume.relation.final import is_equality
from plume.relation.printing import print_relation
from plume.relation.relations import Relation, Select, Source, Union


def meetings_of(relation: Relation, dialect: Dialect) -> Iterator[Meeting]:
    """List all places of a relation where columns meet, from the inside out, so that what lies outside can be asked about."""
    match relation:
        case Union(members):
            for member in members:
                yield from meetings_of(member, dialect)
            printed = (print_relation(member, dialect) for member in members)
            yield from (Meeting("UNION ALL combines", *pair) for pair in combinations(printed, 2))
        case Select(sources=sources):
            for source in sources:
                yield from meetings_of(source.relation, dialect)
            for source in sources:
                yield from _joined(source, relation, dialect)


def _joined(source: Source, select: Select, dialect: Dialect) -> Iterator[Meeting]:
    for condition in filter(is_equality, source.on):
        left, right = condition.left, condition.right
        one, other = (print_relation(select.source(side.table).relation, dialect) for side in (left, right))
        yield Meeting("a join compares", one, other, ((left.name, right.name),))
