"""Statements with a marker in one of their slots: whatever a caller writes there, no marker may be printed outside of quotes.

Every form of expression and clause is a template. A template is cut into its tokens, and one token at a time gives way to the marker: as a
name in double quotes or backticks, as a text, as a bare word, or as a comment beside the token. `make fuzz` goes on with made-up nestings.
"""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from random import Random

import pyarrow as pa

from plume.computed_keys import rows_of_query
from plume.engines.duckdb import DuckDB
from plume.engines.engine import Engine, Relation
from plume.engines.spark import Spark
from plume.errors import PlumeBug, PlumeError
from plume.mechanisms.users import users
from plume.privacy.budget import Budget
from plume.query import Query
from plume.running import explain
from plume.statement.answering import StatementQuery, ask

MARKER = "zqx"
# What breaks out of a name, a text, a unit, a type, a comment and a line, in both dialects.
HOSTILE = (
    MARKER,
    f"{MARKER} FROM d)) + (SELECT MAX({MARKER}) FROM given_1) + (EXTRACT(YEAR",
    f"18, 2)) + (SELECT {MARKER} FROM given_1) + CAST(0 AS DECIMAL(18, 2",
    f"{MARKER}' || {MARKER} || '",
    f'{MARKER}" + {MARKER} + "',
    f"{MARKER}` + {MARKER} + `",
    f"{MARKER}\\' + {MARKER} + '\\",
    f"{MARKER} */ + {MARKER} /* ",
    f"{MARKER} -- {MARKER}",
    f"{MARKER}\n{MARKER}",
)
EXPRESSIONS = (
    "{n} + {n}", "{n} - {n}", "{n} * {n}", "{n} / {n}", "{n} % {n}", "MOD({n}, {n})", "- {n}", "( {n} )", "ABS({n})", "SQRT({n})",
    "LN({n})", "EXP({n})", "ROUND({n})", "ROUND({n}, 2)", "ROUND({n}, - 2)", "FLOOR({n})", "FLOOR({n}, 2)", "FLOOR({n} TO DAY)",
    "CEIL({n})", "CEIL({n}, 1)", "CASE WHEN {c} THEN {n} ELSE {n} END", "CASE {n} WHEN {n} THEN {n} END", "IF({c}, {n}, {n})",
    "COALESCE({n}, {n}, {n})", "IFNULL({n}, {n})", "NVL({n}, {n})", "NULLIF({n}, {n})", "GREATEST({n}, {n}, {n})", "LEAST({n}, {n})",
    "CAST({n} AS INT)", "CAST({n} AS DECIMAL(18, 2))", "CAST({n} AS DECIMAL(18))", "TRY_CAST({n} AS BIGINT)", "CAST({n} AS DOUBLE)",
    "CAST({n} AS BOOLEAN)", "CAST({n} AS TIMESTAMP(3))", "CAST({t} AS DATE)", "CAST({t} AS TIMESTAMP)", "CAST({t} AS DATE FORMAT 'YYYY')",
    "CAST({n} AS VARCHAR(3))", "CAST({n} AS INT[3])", "CAST({n} AS STRUCT(a INT))", "CAST({n} AS ENUM('a', 'b'))", "CAST({n} AS u.v)",
    "{n} :: INT", "{n} :: DECIMAL(4, 2)", "EXTRACT(YEAR FROM {d})", "EXTRACT('year' FROM {d})", "EXTRACT(WEEK(MONDAY) FROM {d})",
    "DATE_PART('year', {d})", "YEAR({d})", "DATE_TRUNC('month', {d})", "DATE_TRUNC(MONTH, {d})", "TIMESTAMP_TRUNC({d}, DAY)",
    "DATE_TRUNC('month', {d}, 'UTC')", "TRUNC({d}, 'MONTH')", "DATE_TRUNC('day', CAST({d} AS DATE))", "LENGTH({t})", "LENGTH({t}, UTF8)",
    "LOWER({t})", "UPPER({t})", "TRIM({t})", "TRIM(BOTH 'x' FROM {t})", "TRIM(LEADING {t} FROM {t})", "LTRIM({t}, 'x')", "RTRIM({t})",
    "TRIM({t} COLLATE NOCASE)", "SUBSTR({t}, 1, 2)", "SUBSTRING({t} FROM 1 FOR 2)", "STARTS_WITH({t}, 'a')", "{t} COLLATE NOCASE",
    "{t} LIKE 'a%'", "{t} NOT LIKE 'a%'", "{t} ILIKE 'a%'", "{t} LIKE 'a' ESCAPE '!'", "{t} LIKE ANY ('a', 'b')", "{n} = {n}", "{n} <> {n}",
    "{n} < {n}", "{n} >= {n}", "{n} BETWEEN {n} AND {n}", "{n} BETWEEN SYMMETRIC {n} AND {n}", "{n} IN (1, 2)", "{t} NOT IN ('a', 'b')",
    "{c} AND {c}", "{c} OR {c}", "NOT {c}", "{n} IS NULL", "{c} IS NOT TRUE", "{n} IS DISTINCT FROM {n}", "DATE '2026-01-31'",
    "TIMESTAMP '2026-01-31 00:00:00'", "INTERVAL 1 DAY", "{d} AT TIME ZONE 'UTC'", "1.5", "1e3", "'a'", "TRUE", "NULL", "{n} || {t}",
    "COUNT(*) OVER (PARTITION BY u)", "RANK() OVER (PARTITION BY u ORDER BY {n} DESC NULLS FIRST)", "SUM({n}) OVER (PARTITION BY u, {t})",
    "SUM({n}) FILTER (WHERE {c})", "MAX({n}) OVER w", "ROW_NUMBER() OVER (ORDER BY {n})", "SUM({n}) OVER (PARTITION BY u ROWS 1 PRECEDING)",
    "FIRST({n})", "ANY_VALUE({n})", "{n} :: STRUCT(a DECIMAL(3))", "t.u", "rows.f", "f[1]", "f.g.h", "{{'a': 1}}", "[1, 2]", "x -> x",
    "ROUND({n}, 2, 'HALF_EVEN')", "LOG({n})", "{n} ** 2", "{n} // 2", "{n} & 1", "@ {n}", "f AS g", "CURRENT_DATE", "?", "f :: x.y",
)  # fmt: skip
LEAVES = {"n": ("f", "w", "1"), "t": ("t", "'x'"), "d": ("d", "DATE '2026-01-31'"), "c": ("b", "TRUE")}
HEAD = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, delta = 1e-5, max_groups_contributed = 2, privacy_unit_column = u)"
GROUPED = "SELECT u, t AS k, MAX({e}) AS x FROM rows GROUP BY u, t HAVING COUNT(*) > 1"
UNITED = "SELECT u, t, {e} AS x FROM rows UNION ALL SELECT u, t, {e} FROM rows"
STATEMENTS = (
    f"{HEAD} {{e}} AS k, COUNT(DISTINCT u) AS n FROM rows GROUP BY 1",
    f"{HEAD} t, SUM({{e}}, contribution_bounds_per_group => (0, 1)) AS s FROM rows GROUP BY t",
    f"{HEAD} t, AVG({{e}}, contribution_bounds_per_row => (0, 1)) FROM rows WHERE {{e}} GROUP BY t ORDER BY 2 DESC LIMIT 3 OFFSET 1",
    f"{HEAD} COUNT(*, contribution_bounds_per_group => (0, 3)) FROM (SELECT u, {{e}} AS x FROM rows WHERE {{e}}) AS r WHERE r.x IS NULL",
    f"{HEAD} k, COUNT(x, contribution_bounds_per_group => (0, AUTO)) FROM ({GROUPED}) GROUP BY k",
    f"{HEAD.replace('= u)', '= a.u)')} a.t, COUNT(DISTINCT a.u) FROM rows AS a JOIN rows AS b ON a.u = b.u AND {{e}} GROUP BY a.t",
    f"WITH c AS ({UNITED}) {HEAD} t, PERCENTILE_CONT(x, 0.5, contribution_bounds_per_row => (0, 1)) FROM c GROUP BY t",
    f"{HEAD} t, COUNT({{e}}), SUM({{e}}) AS s, AVG(f) AS m FROM rows GROUP BY t",
    f"{HEAD} t, COUNT(DISTINCT u) FROM (SELECT DISTINCT u, t FROM rows QUALIFY {{e}}) LEFT JOIN listed USING (t) GROUP BY t",
)
ROWS = pa.table(
    {"u": [1], "f": [1.0], "w": [1], "t": ["x"], "d": pa.array([0], pa.date32()), "b": [True], MARKER: [1.0]}
)
TABLES, PUBLIC = {"rows": ROWS, MARKER: ROWS}, {"listed": pa.table({"t": ["x"], MARKER: ["x"]})}

ENGINES: dict[str, Engine] = {"duckdb": DuckDB(threads=1), "spark": Spark()}

_TOKEN = re.compile(r"""'[^']*'|"[^"]*"|`[^`]*`|[A-Za-z_0-9.]+|=>|::|<>|>=|<=|\|\||->|[^\s]""")
_QUOTED = {
    "duckdb": re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*\""""),
    "spark": re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`]|``)*`""", re.DOTALL),
}
# Of how many cases the expression is the key of a query.
_KEYS = 0.3
_QUOTES = ("'", '"', "`", "", "/*", "--", "$$")


@dataclass(frozen=True)
class Case:
    """A statement in a dialect."""

    text: str
    dialect: str


def slots(text: str) -> int:
    """Count the tokens of a text."""
    return len(_TOKEN.findall(text))


def put(text: str, place: int, random: Random) -> str:
    """Put some marker in some quotes in the place of a token; a comment stands beside the token."""
    token = list(_TOKEN.finditer(text))[place]
    marker, quote = random.choice(HOSTILE), random.choice(_QUOTES)
    match quote:
        case "/*":
            shown = f"{token[0]} /* {marker} */"
        case "--":
            shown = f"{token[0]} -- {marker}\n"
        case "":
            shown = marker
        case _:
            shown = f"{quote}{marker.replace(quote, quote * 2)}{quote}"
    return text[: token.start()] + shown + text[token.end() :]


def plain(expression: str) -> str:
    """Fill the holes of a template with columns."""
    return expression.format(**{name: leaves[0] for name, leaves in LEAVES.items()})


def nested(random: Random, depth: int = 3) -> str:
    """Nest templates at random."""
    holes = {
        name: nested(random, depth - 1) if depth and random.random() < 0.4 else random.choice(leaves)
        for name, leaves in LEAVES.items()
    }
    return random.choice(EXPRESSIONS).format(**holes)


def every_slot(dialect: str, random: Random) -> Iterator[Case]:
    """Put a marker into every slot of every expression and every statement."""
    for expression in map(plain, EXPRESSIONS):
        for place in range(slots(expression)):
            yield Case(random.choice(STATEMENTS).format(e=put(expression, place, random)), dialect)
    for statement in STATEMENTS:
        text = statement.format(e="f")
        for place in range(slots(text)):
            yield Case(put(text, place, random), dialect)


def every_slot_of_keys(random: Random) -> Iterator[str]:
    """Put a marker into every slot of every expression, as the key of a query."""
    for expression in map(plain, EXPRESSIONS):
        for place in range(slots(expression)):
            yield put(expression, place, random)


def key_printed_raw(text: str, dialect: str) -> str | None:
    """Print the rows of a query whose key has this name and expression, and give what is outside of quotes; None if nothing is."""
    try:
        query = Query(
            user="u",
            keys={f"{text} key": text, text[:9] or "k": "t"},
            measures=users(),
            max_keys_per_user=1,
            budget=Budget(1, 1e-5),
        )
        printed = rows_of_query(query, ROWS, ENGINES[dialect].dialect).select
    except PlumeBug as bug:
        return str(bug)
    except PlumeError:
        return None
    except Exception as error:  # noqa: BLE001 - whoever wrote it is owed a sentence
        return type(error).__name__
    found = unquoted(printed, dialect)
    return found if MARKER in found.lower() else None


def check_keys(random: Random) -> str | None:
    """Make up a nested expression of a key with markers in one to three of its slots."""
    text = nested(random)
    for _ in range(random.randint(1, 3)):
        text = put(text, random.randrange(slots(text)), random)
    dialect = random.choice(list(ENGINES))
    with logged() as records:
        raw = key_printed_raw(text, dialect)
    if raw is not None:
        return f"printed outside of quotes on {dialect}:\n{text}\n\n{raw}"
    return f"written to a log on {dialect}:\n{text}\n\n{records[0]}" if records else None


def check(random: Random) -> str | None:
    """Make up a nested expression in a statement with markers in one to three of its slots, and print it on one of the dialects."""
    if random.random() < _KEYS:
        return check_keys(random)
    text = random.choice(STATEMENTS).replace("{e}", nested(random))
    for _ in range(random.randint(1, 3)):
        text = put(text, random.randrange(slots(text)), random)
    case = Case(text, random.choice(list(ENGINES)))
    with logged() as records:
        raw = printed_raw(case)
    if raw is not None:
        return f"printed outside of quotes on {case.dialect}:\n{text}\n\n{raw}"
    return f"written to a log on {case.dialect}:\n{text}\n\n{records[0]}" if records else None


@contextmanager
def logged() -> Iterator[list[str]]:
    """Hear what is written to logs, which is nobody's to fill with a statement."""
    heard: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: heard.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)
    try:
        yield heard
    finally:
        logging.getLogger().removeHandler(handler)


def printed_raw(case: Case) -> str | None:
    """Print a statement as far as that goes without data, and give what is outside of quotes and holds the marker; None if nothing does."""
    try:
        stated = ask(case.text, engine=ENGINES[case.dialect], tables=TABLES, public_tables=PUBLIC)
    except PlumeBug as bug:  # what was printed is not what was checked, which nobody may bring about
        return str(bug)
    except PlumeError:
        return None
    except Exception as error:  # noqa: BLE001 - whoever wrote it is owed a sentence
        return type(error).__name__
    texts = (unquoted(sql, case.dialect) for sql in _printed(stated, case.dialect))
    return next((text for text in texts if MARKER in text.lower()), None)


def _printed(stated: StatementQuery, dialect: str) -> Iterator[str]:
    """Print the relation or, where the statement is a query about a table, the plan; a relation's plan has names of ours only."""
    if isinstance(stated.data, Relation):
        yield stated.data.select
        return
    with suppress(PlumeError):  # a budget or bound that no plan can have
        yield explain(stated.query).sql(dialect)


def unquoted(sql: str, dialect: str) -> str:
    """Leave out names and texts, by the lexical rules of an engine."""
    return _QUOTED[dialect].sub(" ", sql)
