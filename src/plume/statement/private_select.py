"""The private SELECT becomes a query over a relation: the user, the keys and the values, each a column of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from plume.condition import parse_condition
from plume.errors import BoundError, BudgetError, ConditionError
from plume.mechanisms.measure import PER_GROUP
from plume.mechanisms.mechanism import Mechanism
from plume.plan.types import Kind
from plume.query import Query
from plume.redaction import Redaction
from plume.relation.forms import refuse_unread
from plume.relation.names import Scope, Uses, qualified
from plume.relation.relations import PARTS, BaseTable, Call, Select, Source, units
from plume.relation.scalars import is_call
from plume.relation.text import Text, Tree
from plume.settings import AUTO
from plume.statement import elsewhere
from plume.statement.building import Builder, Find
from plume.statement.clauses import meant
from plume.statement.measures import Aggregate, Columns, leaves_out_bounds, make_measure
from plume.statement.ordering import Ordering, read_ordering
from plume.statement.public_groups import Keyed, split_public_groups
from plume.statement.reading import Parsed, read
from plume.statement.settings import Settings, read_settings

_UNIT = "privacy_unit"
_PRIVATE_PARTS = frozenset({"expressions", "from_", "joins", "where", "group", "order", "limit", "offset", "with_"})


@dataclass(frozen=True)
class Statement:
    """A statement that was read and checked."""

    settings: Settings
    user: str
    keys: tuple[str, ...]
    measures: tuple[Mechanism, ...]
    relation: Select
    """The rows that the query is about; each belongs to one user."""
    public_keys: Select | None
    """Where public groups come from."""
    one_group: bool
    """Whether there is no GROUP BY: then there are no keys."""
    uses: Uses
    left_out: bool
    """Whether an aggregate leaves out bounds, which are then AUTO."""
    units: tuple[tuple[BaseTable, str], ...]
    """The columns of private tables that say whose a row is."""
    ordering: Ordering
    where: str | None
    """The condition on rows, if it is one that a query can have."""
    clause: int
    text: Text
    words: str

    def query(self, public_keys: Any = None) -> Query:
        """Make the query."""
        return self._made(public_keys, where=self.where if self.table is not None else None)

    @property
    def table(self) -> BaseTable | None:
        """The one table that the query is about, if its rows need no SQL to be made."""
        relation, source = self.relation, self.relation.sources[0]
        plain = all(isinstance(tree, exp.Column) and tree.name == name for name, tree in relation.outputs or ())
        simple = len(relation.sources) == 1 and not relation.parts and (self.where is not None or not relation.where)
        return source.relation if plain and simple and isinstance(source.relation, BaseTable) else None

    def _made(self, public_keys: Any, *, where: str | None) -> Query:
        with self.text.placing(self.clause), Redaction((BoundError, BudgetError), self._telling_of_auto):
            return Query(
                user=self.user,
                keys=() if self.one_group else self.keys,
                measures=self.measures,
                budget=self.settings.budget,
                where=where,
                public_keys=public_keys,
                **self.settings.others,
            )

    def _telling_of_auto(self, error: Exception) -> Exception:
        """Explain an AUTO that does not stand in the statement."""
        if not self.left_out or repr(AUTO) not in str(error):
            return error
        return BoundError(f"{error} Bounds that are left out are AUTO; give them, as in {PER_GROUP} => (0, 5).")


def read_statement(text: str, dialect: str, find: Find) -> Statement:
    """Read a statement in the dialect of an engine; `find` knows the tables."""
    parsed = read(text, dialect)
    return _PrivateSelect(parsed, find).statement()


@dataclass
class _PrivateSelect:
    """Gathers the columns that the private SELECT needs."""

    parsed: Parsed
    find: Find
    names: dict[str, Tree] = field(default_factory=dict)
    """The columns of the relation so far: what each is, over the sources."""
    means: dict[str, Tree] = field(default_factory=dict)
    """Columns that are the mean of an expression over the rows of one user and group."""

    def __post_init__(self) -> None:
        self.text = self.parsed.text
        self.builder = Builder(self.text, self.find)
        self.scope = Scope(self.text, self.builder.uses)

    def statement(self) -> Statement:
        select, settings = self.parsed.select, read_settings(self.parsed)
        self._refuse_others(select)
        sources = self.builder.sources(select, self.scope, self.builder.ctes(select))
        where = self.builder.conditions(select.args.get("where"), self.scope)
        unit = self.scope.resolve(settings.unit)
        groups = self._groups(select)
        keyed = Keyed(sources, tuple(groups), ())
        if settings.public_groups and select.args.get("group") is None:
            raise self.text.refusal(select, "PUBLIC_GROUPS needs GROUP BY, with columns of the public list.")
        if settings.public_groups:
            keyed = split_public_groups(self.text, keyed, where, select)
        keys = self._name_keys(select, groups)
        self.names = dict(zip(keys, keyed.keys, strict=True))
        user = unit.name if unit.name.casefold() not in {key.casefold() for key in keys} else self._free(_UNIT)
        self.names = {user: unit} | self.names
        measures, columns = self._measures(select, unit, dict(zip(keys, groups, strict=True)))
        relation = self._relation(keyed.sources, where, user, keys)
        unit_columns = tuple(units(relation, user, self.text, settings.unit))
        self._note_kinds(relation, measures)
        refuse_unread(self.text, select)
        return Statement(
            settings=settings,
            user=user,
            keys=keys,
            measures=measures,
            relation=relation,
            public_keys=keyed.public_keys(keys) if settings.public_groups else None,
            one_group=select.args.get("group") is None,
            uses=self.builder.uses,
            left_out=any(map(leaves_out_bounds, self._aggregates(select))),
            units=unit_columns,
            ordering=read_ordering(self.text, select, columns),
            where=self._where(select),
            clause=self.parsed.clause,
            text=self.text,
            words=self.parsed.words,
        )

    def _refuse_others(self, select: Tree) -> None:
        told = {
            "having": "HAVING is not supported in a private SELECT; filter the release, which costs nothing",
            "qualify": "QUALIFY is not supported in a private SELECT",
            "distinct": "a private SELECT is not DISTINCT; groups are already",
        }
        for name, value in select.args.items():
            if value and name not in _PRIVATE_PARTS:
                at = value if isinstance(value, exp.Expression) and name != "distinct" else select
                raise self.text.refusal(
                    at, f"{told.get(name, f'{name.upper()} is not supported in a private SELECT')}."
                )
        group = select.args.get("group")
        others = [
            name for name, value in (group.args if group is not None else {}).items() if value and name != "expressions"
        ]
        if others:
            raise self.text.refusal(
                select.args["group"], f"GROUP BY {others[0].upper()} is not supported in a private SELECT."
            )
        for item in group.expressions if group is not None else ():
            if grouping := elsewhere.GROUPINGS.get(type(item).__name__):
                refused = f"{grouping} is not known in a private SELECT; write one statement for each grouping, each with a budget."
                raise self.text.refusal(item, refused)

    def _groups(self, select: Tree) -> list[Tree]:
        """Read what is grouped by, over the sources.

        Without GROUP BY there are no keys. The relation has a constant for one nevertheless: by it ledgers know what was asked earlier.
        """
        if select.args.get("group") is None:
            return [exp.Literal.number(1)]
        items = [meant(self.text, item, select.expressions) for item in select.args["group"].expressions]
        groups: list[Tree] = []
        for item in items:
            group = self.scope.scalar(item)
            if group in groups:
                raise self.text.refusal(item, "GROUP BY lists the same group twice.")
            groups.append(group)
        return groups

    def _name_keys(self, select: Tree, groups: list[Tree]) -> tuple[str, ...]:
        """Name keys as the list of the SELECT does, or else after their columns."""
        listed: dict[int, str] = {}
        for item in select.expressions:
            tree = item.this if isinstance(item, exp.Alias) else item
            if isinstance(tree, exp.Star):
                raise self.text.refusal(item, "a private SELECT lists its groups and aggregates; * is neither.")
            if not is_call(tree) and not any(is_call(part) for part in tree.walk()):
                group = self.scope.scalar(tree)
                if group not in groups or select.args.get("group") is None:
                    raise self.text.refusal(item, f"{self.text.quote(tree)!r} is neither grouped by nor an aggregate.")
                listed.setdefault(groups.index(group), item.alias_or_name or f"key_{groups.index(group) + 1}")
        columns = [
            group.name if isinstance(group, exp.Column) else f"key_{place + 1}" for place, group in enumerate(groups)
        ]
        return tuple(listed.get(place, column) for place, column in enumerate(columns))

    def _measures(
        self, select: Tree, unit: Tree, keys: Mapping[str, Tree]
    ) -> tuple[tuple[Mechanism, ...], list[tuple[str, Tree]]]:
        """Read the aggregates, and the columns of the result in the order of the list."""
        columns = Columns(self._value, self._mean_of_user, lambda tree: self._is(tree, unit), unit.name)
        measures: list[Mechanism] = []
        listed: list[tuple[str, Tree]] = []
        for item in select.expressions:
            tree = item.this if isinstance(item, exp.Alias) else item
            if any(is_call(part) for part in tree.walk()):
                if not is_call(tree) or isinstance(tree, exp.Window):
                    otherwise = elsewhere.AROUND.get(type(tree).__name__, "compute with it afterwards")
                    raise self.text.refusal(item, f"an aggregate of a private SELECT stands alone; {otherwise}.")
                measures.append(make_measure(self.text, Aggregate(tree, item.alias or None), columns))
                listed.append((next(iter(measures[-1].columns)), item))
            else:
                group = self.scope.scalar(tree)
                listed.append((next(name for name, key in keys.items() if key == group), item))
        if not measures:
            raise self.text.refusal(
                select, "there is no aggregate; COUNT(DISTINCT ...) of the privacy unit counts users."
            )
        return tuple(measures), listed

    def _aggregates(self, select: Tree) -> list[Aggregate]:
        listed = (item.this if isinstance(item, exp.Alias) else item for item in select.expressions)
        return [Aggregate(tree, None) for tree in listed if is_call(tree)]

    def _is(self, tree: Tree, unit: Tree) -> bool:
        return isinstance(tree, exp.Column) and bool(self.scope.resolve(tree) == unit)

    def _value(self, tree: Tree) -> str:
        """Name the column of an expression; one that is there already is not there twice."""
        own = self.scope.scalar(tree)
        for name, known in self.names.items():
            if known == own:
                return name
        name = own.name if isinstance(own, exp.Column) and self._is_free(own.name) else self._free("value")
        self.names[name] = own
        return name

    def _mean_of_user(self, tree: Tree) -> str:
        own = self.scope.scalar(tree)
        for name, known in self.means.items():
            if known == own:
                return name
        name = self._free("mean_of_user")
        self.means[name] = own
        return name

    def _is_free(self, name: str) -> bool:
        taken = {known.casefold() for known in (*self.names, *self.means)}
        return name.casefold() not in taken

    def _free(self, name: str) -> str:
        return next(candidate for number in range(1, 10**6) if self._is_free(candidate := f"{name}_{number}"))

    def _relation(
        self, sources: tuple[Source, ...], where: tuple[Tree, ...], user: str, keys: tuple[str, ...]
    ) -> Select:
        """Select the columns; means of users are windows over one user and group."""
        if not self.means:
            return Select(sources, where, outputs=tuple(self.names.items()), tree=None)
        partition = tuple(self.names[name] for name in (user, *keys))
        calls = {
            name: Call("AVG", tree, partition=partition, tree=self.parsed.select) for name, tree in self.means.items()
        }
        parts = {name: qualified(PARTS, f"c{place}") for place, name in enumerate([*self.names, *calls], start=1)}
        computed = zip((part.name for part in parts.values()), [*self.names.values(), *calls.values()], strict=True)
        return Select(sources, where, parts=tuple(computed), outputs=tuple(parts.items()), tree=None)

    def _where(self, select: Tree) -> str | None:
        """Give the condition as a query would have it, or None if it holds more."""
        clause = select.args.get("where")
        if clause is None:
            return None
        plain = clause.this.copy().transform(_unqualified)
        text = str(plain.sql(dialect="duckdb"))
        try:
            parse_condition(text)
        except ConditionError:
            return None
        return text

    def _note_kinds(self, relation: Select, measures: tuple[Mechanism, ...]) -> None:
        """Say how the values of measures are read from files without types."""
        for measure in measures:
            for name, kinds in measure.value_columns.items():
                self.builder.uses.note(relation, name, Kind.FLOAT if Kind.FLOAT in kinds else Kind.TIMESTAMP)


def _unqualified(tree: Tree) -> Tree:
    return exp.column(exp.to_identifier(tree.name, quoted=True)) if isinstance(tree, exp.Column) else tree
