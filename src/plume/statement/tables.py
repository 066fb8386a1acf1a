"""The tables that a statement may read: those the caller names, files whose paths it quotes, and on Spark those of the catalogue."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plume.engines.engine import DatabaseTable
from plume.errors import InputError
from plume.plan.dialect import SPARK, Dialect
from plume.statement.relations import Given
from plume.statement.text import Text, Tree

_DATABASES = (".duckdb", ".ddb", ".db")


@dataclass
class Tables:
    """The tables of one statement; each gets a name of ours in the engine, the same data the same name."""

    text: Text
    dialect: Dialect
    private: Mapping[str, Any] = field(default_factory=dict)
    public: Mapping[str, Any] = field(default_factory=dict)
    found: dict[str, Any] = field(default_factory=dict)
    """What was found: data by the names they have in the engine."""
    _known: dict[object, Given] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for what, tables in (("tables", self.private), ("public_tables", self.public)):
            if not isinstance(tables, Mapping) or not all(isinstance(name, str) and name for name in tables):
                raise InputError(
                    f"{what} must be a mapping of names to data, such as {what}={{'searches': 'searches.parquet'}}."
                )
        both = {name.casefold() for name in self.private} & {name.casefold() for name in self.public}
        if both:
            raise InputError(f"{min(both)!r} is in tables and in public_tables; a table is private or public.")

    def find(self, tree: Tree, written: str) -> Given:
        """Find the table behind a name."""
        for tables, public in ((self.private, False), (self.public, True)):
            name = next((name for name in tables if name.casefold() == written.casefold()), None)
            if name is not None:
                return self._given(tables[name], name, public=public)
        return self._given(self._unnamed(tree, written), written, public=False)

    def _unnamed(self, tree: Tree, written: str) -> Any:
        quoted = bool(tree.this.args.get("quoted"))
        if self.dialect == SPARK:
            return tree.name if quoted and tree.db.lower() == "parquet" else written
        if quoted and not tree.db:
            return written
        raise self.text.refusal(
            tree,
            f"there is no table {written!r}; name it in tables, as in tables={{{written!r}: 'file.parquet'}} or "
            f"--table {written}=file.parquet, or write the path of a file in quotes.",
        )

    def _given(self, data: Any, written: str, *, public: bool) -> Given:
        if isinstance(data, str | Path) and str(data).lower().endswith(_DATABASES):
            data = DatabaseTable(Path(data), written)
        same = _identity(data)
        known = self._known.get(same)
        if known is None:
            known = Given(f"given_{len(self._known) + 1}", written, public)
            self._known[same], self.found[known.name] = known, data
        if known.public != public:
            raise InputError(f"{written!r} and {known.written!r} are the same data, once private and once public.")
        return known


def _identity(data: Any) -> object:
    """Tell data apart: files by where they are, everything else as an object."""
    match data:
        case DatabaseTable(path, table):
            return os.path.realpath(path), table
        case str() | Path():
            return os.path.realpath(data)
        case list() | tuple() if all(isinstance(path, str | Path) for path in data):
            return tuple(sorted(os.path.realpath(path) for path in data))
        case _:
            return id(data)
