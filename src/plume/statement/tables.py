"""The tables that a statement may read: those the caller names.

Where the owner declares none, also files whose paths the statement quotes and, on Spark, tables of the catalogue.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from plume.declaration import PrivateTable, PublicTable
from plume.engines.engine import DatabaseTable
from plume.engines.files import is_database
from plume.errors import InputError, without_secrets
from plume.plan.dialect import Dialect
from plume.relation.relations import BaseTable
from plume.relation.text import Text, Tree
from plume.statement.identity import Identity, identify, is_same


@dataclass
class Tables:
    """The tables of one statement; each gets a name of ours in the engine, the same data the same name."""

    text: Text
    dialect: Dialect
    private: Mapping[str, Any] = field(default_factory=dict)
    public: Mapping[str, Any] = field(default_factory=dict)
    found: dict[str, Any] = field(default_factory=dict)
    """What was found: data by the names they have in the engine."""
    _known: dict[Identity, BaseTable] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for what, tables in (("tables", self.private), ("public_tables", self.public)):
            if not isinstance(tables, Mapping) or not all(isinstance(name, str) and name for name in tables):
                raise InputError(
                    f"{what} must be a mapping of names to data, such as {what}={{'searches': 'searches.parquet'}}."
                )
        both = {name.casefold() for name in self.private} & {name.casefold() for name in self.public}
        if both:
            raise InputError(f"{min(both)!r} is in tables and in public_tables; a table is private or public.")
        if any(isinstance(data, PrivateTable) for data in self.public.values()):
            raise InputError("public_tables holds a table that plume.private declares; a table is private or public.")

    @property
    def _declared(self) -> bool:
        """Whether the owner said of any table what it is; then every table is declared, and the statement names no others."""
        return any(
            isinstance(data, PrivateTable | PublicTable) for data in (*self.private.values(), *self.public.values())
        )

    def find(self, tree: Tree, written: str) -> BaseTable:
        """Find the table behind a name."""
        for tables, public in ((self.private, False), (self.public, True)):
            name = next((name for name in tables if name.casefold() == written.casefold()), None)
            if name is not None:
                return self._named(tree, name, tables[name], public=public)
        if self._declared:
            known = ", ".join((*self.private, *self.public))
            raise self.text.refusal(
                tree,
                f"there is no table {written!r}; tables are declared here, and a statement can name no others: {known}.",
            )
        return self._base_table(self._unnamed(tree, written), written, public=False)

    def _named(self, tree: Tree, name: str, data: Any, *, public: bool) -> BaseTable:
        match data:
            case PrivateTable():
                return self._base_table(data.data, name, public=False, unit=data.unit)
            case PublicTable():
                return self._base_table(data.data, name, public=True)
            case _ if self._declared and not public:
                raise self.text.refusal(
                    tree,
                    f"the table {name!r} is not declared and others are; declare every table, with plume.private(data, unit=...) or "
                    f"plume.public(data), or on the command line with --unit {name}=COLUMN or --public-table.",
                )
            case _:
                return self._base_table(data, name, public=public)

    def _unnamed(self, tree: Tree, written: str) -> Any:
        quoted = bool(tree.this.args.get("quoted"))
        if self.dialect.statements.has_catalogue:
            return tree.name if quoted and tree.db.lower() == "parquet" else written
        if quoted and "://" in written:
            raise self.text.refusal(
                tree,
                f"{without_secrets(written)!r} is an address; the text of a statement names none. Give it a name, as in "
                "tables={'visits': ...} or --table visits=ADDRESS.",
            )
        if quoted and not tree.db:
            return written
        raise self.text.refusal(
            tree,
            f"there is no table {written!r}; name it in tables, as in tables={{{written!r}: 'file.parquet'}} or "
            f"--table {written}=file.parquet, or write the path of a file in quotes.",
        )

    def _base_table(self, data: Any, written: str, *, public: bool, unit: str | None = None) -> BaseTable:
        if isinstance(data, str | Path) and is_database(Path(data)):
            data = DatabaseTable(Path(data), written)
        identity = identify(data, self.dialect)
        for other, known in self._known.items():
            if known.public != public and is_same(identity, other):
                raise InputError(f"{written!r} and {known.written!r} are the same data, once private and once public.")
        same = self._known.get(identity)
        if same is None or not is_same(identity, identity) or same.unit != unit:
            same = BaseTable(f"given_{len(self.found) + 1}", written, public, unit)
            self._known[identity], self.found[same.name] = same, data
        return same

    def refuse_two_units(self, units: Iterable[tuple[BaseTable, str]], tree: Tree) -> None:
        """Refuse a table whose rows would belong to one user here and to another there, or not to whom its owner says."""
        listed = list(dict.fromkeys(units))
        for table, column in listed:
            if table.unit is not None and table.unit != column:
                raise self.text.refusal(
                    tree,
                    f"rows of {table.written} belong to the user in {table.unit!r}, as declared, and not to the one in {column!r}.",
                )
        for (table, column), (other, another) in combinations(listed, 2):
            # Letter by letter: a file of JSON may hold two names that differ only in letters which Python or an engine takes for one.
            if column != another and self._overlap(table, other):
                raise self.text.refusal(tree, _two_units(table, column, other, another))

    def _overlap(self, one: BaseTable, other: BaseTable) -> bool:
        """Return whether two tables can hold the same rows; of those that are both declared, whether they certainly do."""
        if one.name == other.name:
            return True
        mine, its = (identify(self.found[table.name], self.dialect) for table in (one, other))
        if one.unit is not None and other.unit is not None:
            return is_same(mine, its)
        return mine.overlaps(its) or its.overlaps(mine)


def _two_units(table: BaseTable, column: str, other: BaseTable, another: str) -> str:
    if table.written == other.written:
        return f"rows of {table.written} would belong to the user in {column!r} and to the one in {another!r}."
    return (
        f"{table.written} and {other.written} may hold the same rows, which would belong to the user in {column!r} and to the one in "
        f"{another!r}; if they are different tables, declare their units, with plume.private or on the command line with --unit."
    )
