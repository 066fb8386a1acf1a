"""Which column a name means: every column is given its source, so that what was checked is what the engine reads."""

from dataclasses import dataclass, field

from sqlglot import exp

from plume.condition import quotes_hint
from plume.plan.types import Kind
from plume.relation.relations import Relation, Source, names_of, origins
from plume.relation.scalars import hint, rewrite
from plume.relation.text import Text, Tree


@dataclass
class Uses:
    """The columns of tables that a statement reads, and how to read them where a file does not say."""

    kinds: dict[str, dict[str, Kind | None]] = field(default_factory=dict)

    def note(self, relation: Relation, column: str, kind: Kind | None) -> None:
        """Note that a column is read, down to the tables it comes from."""
        for table, name in origins(relation, column):
            known = self.kinds.setdefault(table.name, {})
            known[name] = known.get(name) or kind


@dataclass
class Scope:
    """The sources of one SELECT under the names that the statement gives them, as they come in."""

    text: Text
    uses: Uses
    named: dict[str, Source] = field(default_factory=dict)
    merged: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Columns that USING made one, by their names: source and column."""

    def add(self, name: str, source: Source, tree: Tree) -> None:
        """Let a source be called by a name."""
        if name.casefold() in self.named:
            raise self.text.refusal(tree, f"two tables are called {name!r} here; give one another name with AS.")
        self.named[name.casefold()] = source

    def resolve(self, column: Tree) -> Tree:
        """Find the one source that a column can come from, and say so."""
        others = any(value for name, value in column.args.items() if name not in ("this", "table"))
        if others or not isinstance(column.this, exp.Identifier):
            raise self.text.refusal(
                column, f"{self.text.quote(column)!r} is not a column; write table.column, and no fields of structures."
            )
        label, name = self._find(column)
        self.uses.note(self._source(label).relation, name, hint(column))
        return qualified(label, name)

    def scalar(self, tree: Tree) -> Tree:
        """Read an expression over one row of the sources."""
        return rewrite(self.text, tree, column=self.resolve, call=self._refuse_call)

    def _refuse_call(self, tree: Tree) -> Tree:
        raise self.text.refusal(tree, f"{self.text.quote(tree)!r} is a function of many rows, which cannot stand here.")

    def _find(self, column: Tree) -> tuple[str, str]:
        name = column.name
        if column.table:
            source = self.named.get(column.table.casefold())
            if source is None:
                known = ", ".join(self.named) or "none"
                raise self.text.refusal(column, f"no table is called {column.table!r} here; there are: {known}.")
            return source.label, self._in(source, column) or self._missing(column)
        if name.casefold() in self.merged:
            return self.merged[name.casefold()]
        candidates = [
            (source.label, own) for source in self.named.values() if (own := self._in(source, column)) is not None
        ]
        if not candidates:
            self._missing(column)
        if len(candidates) > 1:
            raise self.text.refusal(
                column,
                f"{name!r} may be a column of several tables; say which, as in {next(iter(self.named))}.{name}.",
            )
        return candidates[0]

    def _in(self, source: Source, column: Tree) -> str | None:
        """Give the name of a column in a source as it is there; a table whose columns are not known may have any."""
        names = names_of(source.relation)
        if names is None:
            return str(column.name)
        return next((name for name in names if name.casefold() == column.name.casefold()), None)

    def _source(self, label: str) -> Source:
        return next(source for source in self.named.values() if source.label == label)

    def _missing(self, column: Tree) -> str:
        known = [name for source in self.named.values() for name in names_of(source.relation) or ()]
        raise self.text.refusal(
            column,
            f"there is no column {column.name!r} here; there are: {', '.join(known) or 'none'}.{quotes_hint(column)}",
        )


def qualified(label: str, name: str) -> Tree:
    """Make a column that can only be one of a source."""
    return exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(label, quoted=True))


def table_name(tree: Tree) -> str:
    """Give the full name of a table as it is written."""
    return ".".join(part.name for part in tree.parts)
