"""ORDER BY and LIMIT of the private SELECT: they act on released rows, which costs nothing."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from plume.errors import OutputError
from plume.redaction import redacting
from plume.relation.text import Text, Tree
from plume.statement.settings import number


@dataclass(frozen=True)
class Ordering:
    """Which columns of a release are shown, in which order, and which rows."""

    columns: tuple[str, ...]
    by: tuple[tuple[str, bool, bool], ...] = ()
    """Columns; for each whether it falls, and whether NULL comes first."""
    limit: int | None = None
    offset: int = 0

    def places(self, rows: pa.Table) -> pa.Array:
        """Sort and cut: say which rows are shown, in which order; nothing but released rows is read."""
        failure = OutputError("ORDER BY names a column whose type has no order; leave it out.")
        with redacting(pa.ArrowException, to=failure):
            order = self._sorted(rows) if self.by else pa.array(range(rows.num_rows), pa.int64())
        first, most = (
            min(cut, rows.num_rows) for cut in (self.offset, rows.num_rows if self.limit is None else self.limit)
        )
        return order.slice(first, most)

    def _sorted(self, rows: pa.Table) -> pa.Array:
        """Sort by whether a column is NULL before sorting by its value: pyarrow has NULL at one end of all columns alike."""
        columns: dict[str, pa.ChunkedArray] = {}
        keys: list[tuple[str, str]] = []
        for place, (name, falls, nulls_first) in enumerate(self.by):
            columns |= {f"null_{place}": pc.is_null(rows[name]), f"value_{place}": rows[name]}
            keys += [
                (f"null_{place}", "descending" if nulls_first else "ascending"),
                (f"value_{place}", "descending" if falls else "ascending"),
            ]
        return pc.sort_indices(pa.table(columns), sort_keys=keys)


def read_ordering(text: Text, select: Tree, columns: list[tuple[str, Tree]]) -> Ordering:
    """Read ORDER BY, LIMIT and OFFSET; `columns` are those of the result, with what they were written as."""
    order = select.args.get("order")
    by = tuple(_by(text, item, columns) for item in (order.expressions if order is not None else ()))
    limit = select.args.get("limit")
    if limit is not None and not isinstance(limit, exp.Limit):
        raise text.refusal(limit, "write LIMIT and a number.")
    cut = {name: _whole(text, select.args.get(name), name) for name in ("limit", "offset")}
    return Ordering(tuple(name for name, _ in columns), by, cut["limit"], cut["offset"] or 0)


def _by(text: Text, item: Tree, columns: list[tuple[str, Tree]]) -> tuple[str, bool, bool]:
    """Read what is sorted by; where the statement does not say where NULL comes, the parser notes what the dialect does."""
    way = bool(item.args.get("desc")), bool(item.args.get("nulls_first"))
    place = number(item.this)
    if isinstance(place, int) and 1 <= place <= len(columns):
        return columns[place - 1][0], *way
    for name, written in columns:
        own = written.this if isinstance(written, exp.Alias) else written
        named = (
            isinstance(item.this, exp.Column) and not item.this.table and item.this.name.casefold() == name.casefold()
        )
        if named or own == item.this:
            return name, *way
    raise text.refusal(
        item, "ORDER BY must name a column of the result, or its number; only released rows can be sorted."
    )


def _whole(text: Text, clause: Tree | None, name: str) -> int | None:
    if clause is None:
        return None
    value = number(clause.expression)
    if not isinstance(value, int) or value < 0:
        raise text.refusal(clause, f"{name.upper()} must be a whole number.")
    return value
