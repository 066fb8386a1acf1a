"""What a ledger's schema in PostgreSQL consists of: made once, and compared before a charge, as in `sqlite_schema.py`."""

import hashlib
from importlib.resources import files

from plume.ledger.store import Book, refuse_unless_unchanged

MARK = "Plume ledger, version "
VERSION = "1"
# Of what the catalogues say of a new ledger, which PostgreSQL 15 was asked for. `tests/unit/ledger/test_postgresql.py` prints another one.
_MADE_WITH = "b7a417e229be27ee9a82ba945aab2d1b2b112e7abbaa64fd6453d0880d63a1f3"

_OBJECTS = """
SELECT concat_ws(' ', 'relation', relname, relkind, relpersistence, relrowsecurity, relhassubclass, relowner = nspowner)
FROM pg_class JOIN pg_namespace ON relnamespace = pg_namespace.oid WHERE nspname = 'plume_ledger'
UNION ALL
SELECT concat_ws(' ', 'column', attrelid::regclass, attnum, attname, format_type(atttypid, atttypmod), attcollation::regcollation,
                 attnotnull, atthasdef, attidentity, attgenerated, attisdropped)
FROM pg_attribute JOIN pg_class ON attrelid = pg_class.oid
WHERE relnamespace = 'plume_ledger'::regnamespace AND relkind = 'r' AND attnum > 0
UNION ALL
SELECT concat_ws(' ', 'constraint', conrelid::regclass, pg_get_constraintdef(oid), convalidated)
FROM pg_constraint WHERE connamespace = 'plume_ledger'::regnamespace AND contype <> 'n'
UNION ALL
SELECT concat_ws(' ', 'index', pg_get_indexdef(indexrelid), indisunique, indisvalid, indisready)
FROM pg_index JOIN pg_class ON indexrelid = pg_class.oid WHERE relnamespace = 'plume_ledger'::regnamespace
UNION ALL
SELECT concat_ws(' ', 'trigger', pg_get_triggerdef(pg_trigger.oid), tgenabled)
FROM pg_trigger JOIN pg_class ON tgrelid = pg_class.oid WHERE relnamespace = 'plume_ledger'::regnamespace AND NOT tgisinternal
UNION ALL
SELECT concat_ws(' ', 'function', proname, pg_get_function_arguments(pg_proc.oid), prorettype::regtype, prokind, lanname, prosecdef,
                 provolatile, proconfig, proowner = nspowner, prosrc)
FROM pg_proc JOIN pg_namespace ON pronamespace = pg_namespace.oid JOIN pg_language ON prolang = pg_language.oid
WHERE nspname = 'plume_ledger'
UNION ALL
SELECT concat_ws(' ', 'rule', ev_class::regclass, rulename)
FROM pg_rewrite JOIN pg_class ON ev_class = pg_class.oid WHERE relnamespace = 'plume_ledger'::regnamespace
UNION ALL
SELECT concat_ws(' ', 'operator', oprname) FROM pg_operator WHERE oprnamespace = 'plume_ledger'::regnamespace
"""


def tables() -> str:
    """Give the statements that make an empty ledger."""
    return (files("plume.ledger") / "postgresql_schema.sql").read_text(encoding="utf-8")


def refuse_changed_schema(book: Book) -> None:
    """Refuse a ledger whose tables, indexes, triggers and functions are not, to the letter, the ones it was made with."""
    lines = sorted(line for (line,) in book.execute(_OBJECTS))
    refuse_unless_unchanged(hashlib.sha256("\n".join(lines).encode()).hexdigest() == _MADE_WITH)
