"""What lies in a real PostgreSQL: which tables and types are let in, what is refused, and that no value of a row makes a run fail."""

import math
from datetime import date
from typing import Any

import psycopg
import pyarrow as pa
import pytest

import plume
from exact import exact_release
from plume.errors import ColumnTypeError, InputError, UsageError
from postgresql_servers import Server
from questions import asking


@pytest.fixture
def database(server: Server) -> Any:
    """A database with nothing in it but what the test makes."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        yield connection
        connection.execute("DROP SCHEMA public CASCADE; DROP SCHEMA IF EXISTS s, evil CASCADE; CREATE SCHEMA public")


pytestmark = pytest.mark.starts("postgresql")


def at(database: Any, table: str = "public.t") -> plume.PostgreSQL:
    return plume.PostgreSQL(f"host=127.0.0.1 port={database.info.port} user=plume dbname=postgres", table)


def answer(database: Any, query: plume.Query, table: str = "public.t") -> dict[str, list[Any]]:
    given = at(database, table)
    return exact_release(query, given, engine=given).to_pydict()


COUNTING = asking(measures=[plume.users()], public_keys=["x"])


@pytest.mark.quick_on("postgresql")
def test_a_table_is_read_where_it_lies(database: Any) -> None:
    database.execute("CREATE TABLE t AS SELECT i::text AS u, 'k' || i % 2 AS k FROM generate_series(1, 2000) AS i")
    released = plume.run(asking(measures=[plume.users()], budget=plume.Budget(epsilon=5, delta=1e-6)), at(database))
    assert released.to_arrow().column("k").to_pylist() == ["k0", "k1"]
    assert all(900 < users < 1100 for users in released.to_arrow().column("users").to_pylist())


@pytest.mark.parametrize("name", ["t", "public.t"])
def test_a_table_goes_by_its_name_if_there_is_one_of_it(database: Any, name: str) -> None:
    database.execute("CREATE TABLE t AS SELECT 1 AS u, 'x' AS k")
    assert answer(database, COUNTING, name) == {"k": ["x"], "users": [1]}


def test_one_of_several_tables_of_a_name_is_named_with_its_schema(database: Any) -> None:
    database.execute("CREATE TABLE t AS SELECT 1 AS u, 'x' AS k; CREATE SCHEMA s; CREATE TABLE s.t AS SELECT * FROM t")
    with pytest.raises(InputError, match="no table 't', or several; write schema"):
        answer(database, COUNTING, "t")


ELSEWHERE = "CREATE EXTENSION IF NOT EXISTS file_fdw; DROP SERVER IF EXISTS f CASCADE; CREATE SERVER f FOREIGN DATA WRAPPER file_fdw"
PART = "CREATE FOREIGN TABLE part PARTITION OF t DEFAULT SERVER f OPTIONS (filename '/dev/null')"
REFUSED = {
    "view": ("CREATE VIEW t AS SELECT * FROM base", "is a view, which might mix the rows of users"),
    "materialized": ("CREATE MATERIALIZED VIEW t AS SELECT * FROM base", "is a materialized view"),
    "foreign": (
        f"{ELSEWHERE}; CREATE FOREIGN TABLE t (u text, k text) SERVER f OPTIONS (filename '/dev/null')",
        "is a foreign table, which another server answers",
    ),
    "partly foreign": (
        f"{ELSEWHERE}; CREATE TABLE t (u text, k text) PARTITION BY LIST (k); {PART}",
        "has parts on other servers",
    ),
}


@pytest.mark.quick_on("postgresql")
@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_plain_table_is_refused(database: Any, kind: str) -> None:
    statement, said = REFUSED[kind]
    database.execute("CREATE TABLE base (u text, k text)")
    database.execute(statement)
    with pytest.raises(InputError, match=said):
        answer(database, COUNTING)


def test_partitions_are_read_as_one_table(database: Any) -> None:
    database.execute("CREATE TABLE t (u int, k text) PARTITION BY LIST (u)")
    database.execute("CREATE TABLE one PARTITION OF t FOR VALUES IN (1); CREATE TABLE two PARTITION OF t DEFAULT")
    database.execute("INSERT INTO t VALUES (1, 'x'), (2, 'x'), (3, 'x')")
    assert answer(database, COUNTING)["users"] == [3]


@pytest.mark.quick_on("postgresql")
def test_a_role_sees_all_rows_or_none(database: Any) -> None:
    database.execute("CREATE TABLE t AS SELECT 'a' AS u, 'x' AS k; ALTER TABLE t ENABLE ROW LEVEL SECURITY")
    database.execute("CREATE POLICY p ON t USING (1 / length(u) > 0)")
    database.execute("DROP ROLE IF EXISTS seer; CREATE ROLE seer LOGIN; GRANT SELECT ON t TO seer")
    given = plume.PostgreSQL(f"host=127.0.0.1 port={database.info.port} user=seer dbname=postgres", "public.t")
    with pytest.raises(InputError, match="has row security policies for this role"):
        exact_release(COUNTING, given, engine=given)


def test_a_role_that_may_not_read_is_told_before_anything_runs(database: Any) -> None:
    database.execute("CREATE TABLE t AS SELECT 'a' AS u, 'x' AS k")
    database.execute("DROP ROLE IF EXISTS stranger; CREATE ROLE stranger LOGIN")
    given = plume.PostgreSQL(f"host=127.0.0.1 port={database.info.port} user=stranger dbname=postgres", "public.t")
    with pytest.raises(InputError, match="the role has SELECT on all columns"):
        exact_release(COUNTING, given, engine=given)


TYPES = {
    "citext": "CREATE EXTENSION citext",
    "character(5)": "",
    "a_domain": "CREATE DOMAIN a_domain AS text CHECK (1 / length(VALUE) > 0)",
    "text COLLATE nocase": (
        "CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
    ),
    "an_enum": "CREATE TYPE an_enum AS ENUM ('a', 'b')",
    "name": "",
    "jsonb": "",
    "text[]": "",
    "bytea": "",
    "inet": "",
    "money": "",
    "interval": "",
    "xid": "",
    '"char"': "",
}


@pytest.mark.quick_on("postgresql")
@pytest.mark.parametrize("role", ["user", "key"])
@pytest.mark.parametrize("kind", TYPES)
def test_types_outside_of_the_list_are_refused(database: Any, kind: str, role: str) -> None:
    database.execute(TYPES[kind] or "SELECT 1")
    columns = f"u {kind}, k text" if role == "user" else f"u text, k {kind}"
    database.execute(f"CREATE TABLE t ({columns})")
    with pytest.raises(ColumnTypeError, match=f"{role} column '{role[0]}' is "):
        answer(database, asking())


@pytest.mark.parametrize("kind", TYPES)
def test_of_other_types_it_is_known_whether_there_is_a_value(database: Any, kind: str) -> None:
    database.execute(TYPES[kind] or "SELECT 1")
    database.execute(f"CREATE TABLE t (u int, k text, v {kind}); INSERT INTO t VALUES (1, 'x', NULL), (2, 'x', NULL)")
    query = asking(
        measures=[plume.users(where="v IS NULL"), plume.users(name="none", where="v IS NOT NULL")], public_keys=["x"]
    )
    assert answer(database, query) == {"k": ["x"], "users": [2], "none": [0]}


def test_a_type_that_is_called_as_one_of_the_list_is_another(database: Any) -> None:
    database.execute("CREATE DOMAIN public.bigint AS text; CREATE TABLE t (u public.bigint, k text)")
    with pytest.raises(ColumnTypeError, match="user column 'u' is "):
        answer(database, COUNTING)


@pytest.mark.quick_on("postgresql")
def test_functions_and_operators_of_others_are_not_found(database: Any) -> None:
    """As the first places to look in, which a role may have by default."""
    database.execute(
        "CREATE SCHEMA evil; CREATE TABLE t AS SELECT i AS u, 'x'::text AS k FROM generate_series(1, 3) AS i"
    )
    database.execute("CREATE FUNCTION evil.md5(text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT 'same' $$")
    database.execute("CREATE FUNCTION evil.no(text, text) RETURNS bool LANGUAGE sql IMMUTABLE AS $$ SELECT FALSE $$")
    database.execute("CREATE OPERATOR evil.= (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.no)")
    database.execute("ALTER ROLE plume SET search_path = evil, pg_catalog, public")
    try:
        query = asking(measures=[plume.users(where="k = 'x'")], public_keys=["x"])
        assert answer(database, query)["users"] == [3]
    finally:
        database.execute("ALTER ROLE plume RESET search_path")


NUMBERS = {
    "numeric": ["NaN", "Infinity", "-Infinity", "1e131071", "-1e131071", "1e-16383", "-1e-16383", "0." + "0" * 9000 + "1", "3"],
    "numeric(1000, 500)": ["NaN", "9" * 500, "1e-500", "-1e-324", "3"],
    "numeric(5, 2)": ["NaN", "999.99", "0.01", "3"],
    "double precision": ["NaN", "Infinity", "-Infinity", "1.7976931348623157e308", "5e-324", "-5e-324", "2.3e-308", "-0", "3"],
    "real": ["NaN", "Infinity", "3.4e38", "1e-45", "3"],
    "bigint": ["9223372036854775807", "-9223372036854775808", "3"],
    "integer": ["2147483647", "-2147483648", "3"],
    "smallint": ["32767", "-32768", "3"],
    "boolean": ["true", "false"],
}  # fmt: skip
BOUNDS = [(-1e150, 1e150), (-1e-150, 1e-150), (0, 1e9), (-1e9, -1), (1e149, 1e150)]


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("kind", NUMBERS)
def test_no_number_makes_a_measure_fail(database: Any, kind: str, bounds: tuple[float, float]) -> None:
    database.execute(f"CREATE TABLE t (u int, k text, v {kind})")
    for number, value in enumerate([*NUMBERS[kind], None]):
        database.execute("INSERT INTO t VALUES (%s, 'x', %s), (1, 'x', %s)", (number, value, value))
    measures = [
        plume.sum("v", *bounds),
        plume.mean("v", *bounds, max_per_key=2),
        plume.variance("v", *bounds, max_per_key=2, name="spread"),
        plume.quantiles("v", [0.5], *bounds, max_per_key=2),
        plume.histogram("v", list(bounds), max_per_key=2),
        plume.vector_sum(["v"], norm=max(map(abs, bounds))),
    ]
    found = answer(database, asking(measures=measures, public_keys=["x"]))
    assert all(math.isfinite(of[0]) for of in found.values() if isinstance(of[0], float))


CONDITIONS = [
    "v > 0.5",
    "v = 3",
    "v < 1e300",
    "v IN (1, 2.5)",
    "v BETWEEN -9223372036854775808 AND 9223372036854775807",
]


@pytest.mark.parametrize("kind", [kind for kind in NUMBERS if kind != "boolean"])
def test_no_number_makes_a_condition_fail(database: Any, kind: str) -> None:
    database.execute(f"CREATE TABLE t (u int, k text, v {kind})")
    for number, value in enumerate([*NUMBERS[kind], None]):
        database.execute("INSERT INTO t VALUES (%s, 'x', %s)", (number, value))
    for where in CONDITIONS:
        assert answer(database, asking(measures=[plume.users(where=where)], public_keys=["x"]))["users"][0] >= 0


MOMENTS = {
    "date": ["infinity", "-infinity", "4713-01-01 BC", "5874897-12-31", "294277-01-01", "2026-01-31"],
    "timestamp": ["infinity", "-infinity", "4713-01-01 BC", "294276-12-31 23:59:59.999999", "2026-01-31"],
    "timestamptz": ["infinity", "-infinity", "4713-01-01 BC", "294276-12-31 23:59:59.999999+00", "2026-01-31"],
}


@pytest.mark.parametrize("kind", MOMENTS)
def test_no_moment_makes_a_run_fail(database: Any, kind: str) -> None:
    database.execute(f"CREATE TABLE t (u int, k text, v {kind})")
    for number, value in enumerate([*MOMENTS[kind], None]):
        database.execute("INSERT INTO t VALUES (%s, 'x', %s)", (number, value))
    bounds = date(2000, 1, 1), date(2030, 1, 1)
    where = "v > TIMESTAMP '2000-01-01'" if kind != "date" else "v > DATE '2000-01-01'"
    measures = [plume.mean("v", *bounds), plume.median("v", *bounds, name="middle"), plume.users(where=where)]
    assert answer(database, asking(measures=measures, public_keys=["x"]))["users"] == [1]
    keyed = asking(keys="v", measures=[plume.users()])
    # Each moment has one user, and one of them is kept at these budgets; nothing fails on the way.
    assert set(answer(database, keyed)) == {"v", "users"}


def test_the_longest_texts_are_nobodys(database: Any) -> None:
    database.execute("CREATE TABLE t AS SELECT repeat('a', 20000000) AS u, 'x' AS k UNION ALL SELECT 'b', 'x'")
    database.execute("INSERT INTO t VALUES ('c', repeat('x', 300000000))")
    assert answer(database, COUNTING)["users"] == [1]


def test_numbers_of_a_numeric_without_digits_are_read_as_doubles_and_are_no_keys(database: Any) -> None:
    database.execute("CREATE TABLE t AS SELECT 1 AS u, 1.50::numeric AS k")
    with pytest.raises(ColumnTypeError, match="key column 'k' is floating-point"):
        answer(database, asking())


def test_texts_are_users_by_their_bytes_in_any_collation(database: Any) -> None:
    """The database's own sorts by language."""
    database.execute("""CREATE TABLE t (u text COLLATE "en-x-icu", k text)""")
    for user in ("bob", "Bob", "bob ", "é", "e\u0301", "\u00df", "ss"):
        database.execute("INSERT INTO t VALUES (%s, 'x'), (%s, 'x')", (user, user))
    assert answer(database, COUNTING)["users"] == [7]


def test_keys_come_back_sorted_by_their_bytes(database: Any) -> None:
    database.execute(
        "CREATE TABLE t AS SELECT i AS u, k FROM generate_series(1, 9) AS i, unnest(ARRAY['b', 'B', 'a', 'é', '~']) AS k"
    )
    assert answer(database, asking(measures=[plume.users()]))["k"] == ["B", "a", "b", "~", "é"]


@pytest.mark.parametrize("name", ["xmin", "n" * 70, 'quo"te', "ü" * 40])
def test_a_measure_may_have_any_name(database: Any, name: str) -> None:
    database.execute("CREATE TABLE t AS SELECT 1 AS u, 'x' AS k")
    query = asking(measures=[plume.users(name=name), plume.count(1)], public_keys=["x"])
    assert answer(database, query) == {"k": ["x"], name: [1], "count": [1]}


def test_a_missing_column_is_named_with_those_there_are(database: Any) -> None:
    database.execute("CREATE TABLE t (person int, k text)")
    with pytest.raises(UsageError, match=r"no column 'u' in this PostgreSQL\. Columns: person, k"):
        answer(database, asking())


@pytest.mark.quick_on("postgresql")
def test_statements_and_computed_keys_are_refused(database: Any) -> None:
    database.execute("CREATE TABLE t AS SELECT 1 AS u, 'x' AS k")
    with pytest.raises(UsageError, match="PostgreSQL takes no statements and computes no keys"):
        answer(database, asking(keys={"c": "upper(k)"}))
    with pytest.raises(UsageError, match="PostgreSQL takes no statements and computes no keys"):
        plume.sql("SELECT WITH DIFFERENTIAL_PRIVACY k, COUNT(*) FROM t GROUP BY k", tables={"t": at(database)})


def test_tables_in_memory_are_refused(database: Any) -> None:
    with pytest.raises(InputError, match="this engine reads tables of its own database only"):
        exact_release(COUNTING, pa.table({"u": [1], "k": ["x"]}), engine=at(database))


def test_public_keys_with_a_zero_byte_are_refused(database: Any) -> None:
    database.execute("CREATE TABLE t AS SELECT 1 AS u, 'x' AS k")
    with pytest.raises(InputError, match="public_keys holds what PostgreSQL has no value for"):
        answer(database, asking(measures=[plume.users()], public_keys=["a\0b"]))
