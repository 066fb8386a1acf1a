"""Keys that are computed: the rows of a query become a relation, as those of a statement are, with a column for each of them.

Its own file, above engines and queries, because it needs both: what is computed is the query's, and how it is printed the engine's.
"""

from collections.abc import Iterable
from typing import Any

from plume.engines.engine import Relation, Table
from plume.plan.dialect import Dialect
from plume.plan.types import Kind
from plume.query import Query
from plume.relation.key_expression import LABEL, TABLE, KeyExpression, read_key
from plume.relation.names import qualified
from plume.relation.printing import print_relation
from plume.relation.relations import BaseTable, Select, Source
from plume.schema import described, kinds_expected


def rows_of_query(query: Query, data: Any, dialect: Dialect) -> Relation:
    """Make the rows of a query of its table: every column that it reads as it is, and the keys that are computed.

    Guarantee: each row is a deterministic function of one row of the table, and belongs to the same user; what fails on a row is NULL.
    docs/guarantees/sql.md.
    """
    texts = dict(query.key_expressions)
    computed = {
        column: read_key(name, texts[name], dialect.name)
        for name, column in zip(query.keys, query.key_columns, strict=True)
        if name in texts
    }
    given = {name: kind for name, kind in kinds_expected(query).items() if name not in computed}
    outputs = {name: qualified(LABEL, name) for name in given} | {name: key.tree for name, key in computed.items()}
    table = BaseTable(TABLE, described(data), public=False)
    return Relation(
        tables={TABLE: Table(data, _kinds(computed.values()) | given, stated=True)},
        written={TABLE: table.written},
        select=print_relation(Select((Source(LABEL, table),), outputs=tuple(outputs.items())), dialect),
        units=((TABLE, query.user),),
    )


def _kinds(keys: Iterable[KeyExpression]) -> dict[str, Kind]:
    """Say how to read the columns of expressions where a file does not say; what several say of one, the first decides."""
    kinds: dict[str, Kind] = {}
    for key in keys:
        for name, kind in key.columns.items():
            if kind is not None:
                kinds.setdefault(name, kind)
    return dict.fromkeys((name for key in keys for name in key.columns), Kind.TEXT) | kinds
