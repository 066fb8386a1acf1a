"""Tables of a PostgreSQL database, looked up in its catalogue: all but plain tables are refused, since they might mix the rows of users."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from plume.engines.postgresql_types import COMPUTED, Found
from plume.errors import InputError, SettingError

Ask = Callable[..., list[tuple[Any, ...]]]
"""Answers a statement about the catalogue, with its parameters."""
_TABLES = """
SELECT c.oid, n.nspname, c.relname, c.relkind, row_security_active(c.oid)
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
  AND (c.relname = %s OR n.nspname || '.' || c.relname = %s)
"""
_OWN = "SELECT oid, 'pg_temp', relname, 'r', FALSE FROM pg_class WHERE oid = to_regclass(%s) AND to_regclass(%s) IS NOT NULL"
# Of a partitioned table all partitions, of any other those that inherit from it.
_PARTS = """
WITH RECURSIVE parts AS (
  SELECT inhrelid FROM pg_inherits WHERE inhparent = %s
  UNION SELECT i.inhrelid FROM pg_inherits AS i JOIN parts ON i.inhparent = parts.inhrelid
)
SELECT count(*) FROM parts JOIN pg_class AS c ON c.oid = parts.inhrelid WHERE c.relkind NOT IN ('r', 'p')
"""
_COLUMNS = """
SELECT a.attname, a.atttypid::int8, a.atttypmod, format_type(a.atttypid, a.atttypmod), coalesce(l.collisdeterministic, TRUE), a.attgenerated
FROM pg_attribute AS a LEFT JOIN pg_collation AS l ON l.oid = a.attcollation
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
"""
_NO_TABLES = {
    "v": "is a view, which might mix the rows of users, or fail on one",
    "m": "is a materialized view, which might mix the rows of users",
    "f": "is a foreign table, which another server answers",
}


@dataclass(frozen=True)
class Place:
    """A table where it lies."""

    number: int
    schema: str
    table: str
    columns: tuple[Found, ...]


def find_table(ask: Ask, name: str, *, temporary: bool = False) -> Place:
    """Find a table by its name, or one of the session's own by its quoted name."""
    found = ask(_OWN if temporary else _TABLES, (name, name))
    if len(found) != 1:
        raise InputError(f"the database has no table {name!r}, or several; write schema.table, such as public.visits.")
    [(number, schema, table, kind, has_policies)] = found
    if kind in _NO_TABLES:
        raise InputError(f"{name!r} {_NO_TABLES[kind]}; write its rows down, with CREATE TABLE ... AS SELECT.")
    if has_policies:
        raise InputError(f"{name!r} has row security policies for this role; give it a role that may see all rows.")
    if ask(_PARTS, (number,)) != [(0,)]:
        raise InputError(f"{name!r} has parts on other servers; write its rows down, with CREATE TABLE ... AS SELECT.")
    return Place(number, schema, table, tuple(_column(*described) for described in ask(_COLUMNS, (number,))))


def _column(name: str, kind: int, modifier: int, written: str, deterministic: bool, generated: Any) -> Found:  # noqa: FBT001
    computed = generated not in ("", "s", b"", b"s")
    return Found(name, COMPUTED if computed else kind, modifier, written, deterministic)


def refuse_unsound(ask: Ask) -> None:
    """Refuse a role that may make no temporary tables."""
    if ask("SELECT has_database_privilege(current_database(), 'TEMPORARY')") != [(True,)]:
        raise SettingError(
            "the role may make no temporary tables, in which a plan runs; GRANT TEMPORARY ON DATABASE ... to it."
        )
