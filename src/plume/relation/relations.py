"""What stands below the private SELECT, as immutable data: tables, joins, selections, unions. And whether each row is one user's.

Expressions in them are checked and total (`scalars`); columns in them name their source, never an alias.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from plume.relation.text import Text, Tree


@dataclass(frozen=True)
class BaseTable:
    """A table of the caller's, under the name it has in the engine; its columns are not known yet."""

    name: str
    written: str
    """What the statement calls it."""
    public: bool
    unit: str | None = None
    """The column that identifies its users, if its owner declared one."""


@dataclass(frozen=True)
class Source:
    """What a SELECT reads: a relation under a label of ours, and how it is joined to the sources before it."""

    label: str
    relation: "Relation"
    side: str = ""
    """Empty for the first and for inner joins, else LEFT, RIGHT, FULL or CROSS."""
    on: tuple[Tree, ...] = ()
    """Conditions, all of which must hold."""
    tree: Tree = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Call:
    """An aggregate or a window: a function of many rows."""

    function: str
    argument: Tree | None
    """None for COUNT(*) and ranks."""
    distinct: bool = False
    partition: tuple[Tree, ...] | None = None
    """What a window is partitioned by; None for an aggregate."""
    order: tuple[tuple[Tree, bool, bool], ...] = ()
    """What a window is ordered by, whether downwards, and whether NULL comes first."""
    tree: Tree = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Select:
    """A SELECT.

    Without calls its outputs are expressions over the sources. With calls there is a step between: `parts` are computed first, and
    outputs and `having` are expressions over the parts, which they call `parts.<name>`.
    """

    sources: tuple[Source, ...]
    where: tuple[Tree, ...] = ()
    groups: tuple[str, ...] | None = None
    """The parts that rows are grouped by; None if they are not grouped."""
    parts: tuple[tuple[str, Tree | Call], ...] = ()
    outputs: tuple[tuple[str, Tree], ...] | None = None
    """None for *, all columns of the one source."""
    having: tuple[Tree, ...] = ()
    distinct: bool = False
    tree: Tree = field(default=None, compare=False, repr=False)

    def source(self, label: str) -> Source:
        """Find a source by its label."""
        return next(source for source in self.sources if source.label == label)


@dataclass(frozen=True)
class Union:
    """UNION ALL; columns are matched by position, and have the names of the first part."""

    members: tuple[Select, ...]
    tree: Tree = field(default=None, compare=False, repr=False)


Relation = BaseTable | Select | Union
PARTS = "parts"


def names_of(relation: Relation) -> tuple[str, ...] | None:
    """Name the columns of a relation, as far as the statement tells; None if a table decides."""
    match relation:
        case BaseTable():
            return None
        case Union(members):
            return names_of(members[0])
        case Select(outputs=None, sources=sources):
            return names_of(sources[0].relation)
        case Select(outputs=outputs):
            return tuple(name for name, _ in outputs or ())


def tables_of(relation: Relation) -> Iterator[BaseTable]:
    """List the tables below a relation."""
    match relation:
        case BaseTable():
            yield relation
        case Union(members):
            for member in members:
                yield from tables_of(member)
        case Select(sources=sources):
            for source in sources:
                yield from tables_of(source.relation)


def is_public(relation: Relation) -> bool:
    """Return whether a relation is made of public tables alone."""
    return all(table.public for table in tables_of(relation))


def origin(select: Select, name: str) -> tuple[Source, str] | None:
    """Find the source and column that an output of a SELECT is, unchanged; None if it is computed."""
    if select.outputs is None:
        return select.sources[0], name
    expression = next((tree for output, tree in select.outputs if output == name), None)
    if isinstance(expression, exp.Column) and expression.table == PARTS:
        expression = next(part for part_name, part in select.parts if part_name == expression.name)
    return (select.source(expression.table), expression.name) if isinstance(expression, exp.Column) else None


def origins(relation: Relation, name: str) -> Iterator[tuple[BaseTable, str]]:
    """List the columns of tables that a column of a relation is, unchanged, as far as it is."""
    match relation:
        case BaseTable():
            yield relation, name
        case Union(members):
            place = (names_of(relation) or ()).index(name)
            for member in members:
                yield from origins(member, (names_of(member) or ())[place])
        case Select():
            if original := origin(relation, name):
                yield from origins(original[0].relation, original[1])


def units(relation: Relation, name: str, text: Text, tree: Tree) -> Iterator[tuple[BaseTable, str]]:
    """Check that every row belongs to the one user in the column `name`, and list the columns of tables that say whose a row is.

    Guarantee: for every user, the rows with that user in the column are a function of that user's rows in the private tables, and of
    public tables. docs/guarantees/sql.md.
    """
    match relation:
        case BaseTable(public=False):
            yield relation, name
        case BaseTable():
            raise text.refusal(tree, f"the privacy unit {name!r} comes from a public table, which has no users.")
        case Union(members):
            place = (names_of(relation) or ()).index(name)
            for member in members:
                yield from units(member, (names_of(member) or ())[place], text, member.tree)
        case Select():
            yield from _units_of_select(relation, name, text, tree)


def _units_of_select(select: Select, name: str, text: Text, tree: Tree) -> Iterator[tuple[BaseTable, str]]:
    original = origin(select, name)
    if original is None:
        shown = _written(select, name) or tree
        raise text.refusal(
            shown,
            f"the privacy unit {name!r} is computed here; it must be a column as it is, or users could merge or split.",
        )
    source, column = original
    unit = (source.label, column)
    if is_public(source.relation):
        raise text.refusal(
            _written(select, name) or tree, f"the privacy unit {name!r} comes from a public table, which has no users."
        )
    _refuse_mixing_calls(select, unit, text)
    for label, unit_column in _joined_units(select, unit, text).items():
        yield from units(select.source(label).relation, unit_column, text, select.source(label).tree or tree)


def _written(select: Select, name: str) -> Tree | None:
    """Find where an output was written."""
    places = [place for place, (output, _) in enumerate(select.outputs or ()) if output == name]
    return select.tree.expressions[places[0]] if places and select.tree is not None else None


def _refuse_mixing_calls(select: Select, unit: tuple[str, str], text: Text) -> None:
    """Refuse groups and windows in which rows of several users would meet."""
    parts = dict(select.parts)
    if select.groups is not None and not any(_is(parts[group], unit) for group in select.groups):
        raise text.refusal(
            select.tree, f"GROUP BY must contain the privacy unit {unit[1]!r}, or groups would mix users."
        )
    for part in parts.values():
        if isinstance(part, Call) and part.partition is not None and not any(_is(by, unit) for by in part.partition):
            raise text.refusal(
                part.tree, f"PARTITION BY must contain the privacy unit {unit[1]!r}, or windows would mix users."
            )


def _joined_units(select: Select, unit: tuple[str, str], text: Text) -> dict[str, str]:
    """Give the column of each private source that says whose a row is: the unit, and what joins make equal to it."""
    known: dict[str, str] = {}
    for source in select.sources:
        if is_public(source.relation):
            continue
        reached = set(known.items()) or _equal_to(unit, select.sources)
        equal = {left for right, left in _equalities(source) if right in reached} if known else reached
        columns = sorted(column for label, column in equal if label == source.label)
        if source.label == unit[0]:
            columns = [column for column in columns if column == unit[1]]
        if not columns:
            raise text.refusal(
                source.tree,
                "two private tables meet here; the join must contain the equality of the privacy units of both, as in "
                "ON a.user_id = b.user_id, or one of the tables must be named in public_tables.",
            )
        known[source.label] = columns[0]
    return known


def _equal_to(unit: tuple[str, str], sources: tuple[Source, ...]) -> set[tuple[str, str]]:
    """Gather the columns that joins make equal to the unit, from one to the next."""
    reached, grown = {unit}, True
    pairs = [pair for source in sources for pair in _equalities(source)]
    while grown:
        more = {left for right, left in pairs if right in reached} - reached
        reached, grown = reached | more, bool(more)
    return reached


def _equalities(source: Source) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """List the equalities of columns that a join asks for, both ways round."""
    for condition in source.on:
        if (
            isinstance(condition, exp.EQ)
            and isinstance(condition.left, exp.Column)
            and isinstance(condition.right, exp.Column)
        ):
            left, right = ((side.table, side.name) for side in (condition.left, condition.right))
            yield left, right
            yield right, left


def _is(tree: Tree | Call, unit: tuple[str, str]) -> bool:
    return isinstance(tree, exp.Column) and (tree.table, tree.name) == unit
