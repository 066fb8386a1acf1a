"""A printed query is parsed again: whatever was changed in it, it is another tree than the one that was checked."""

import pytest

from plume.engines.duckdb import DuckDB
from plume.engines.engine import Relation
from plume.engines.spark import Spark
from plume.errors import PlumeBug, StatementError
from plume.plan.dialect import Dialect
from plume.plan.printing.duckdb import DUCKDB
from plume.plan.printing.spark import SPARK
from plume.relation import query_sql, scalar_sql
from plume.relation.proofreading import read_again
from plume.statement.answering import ask

HEAD = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, delta = 1e-5, max_groups_contributed = 2, privacy_unit_column = u)"
TABLES = {"rows": "rows.parquet", "more": "more.parquet"}
ENGINES = {"duckdb": DuckDB(threads=1), "spark": Spark()}
DIALECTS = {"duckdb": DUCKDB, "spark": SPARK}
STATEMENT = f"""{HEAD} EXTRACT(YEAR FROM d) AS k, COUNT(*, contribution_bounds_per_group => (0, 3)) FROM (
  SELECT u, CAST(d AS DATE) AS d, f - 1 - 2 AS x FROM rows WHERE f = 1 AND f < 2 OR t LIKE 'a%'
  UNION ALL SELECT u, d, RANK() OVER (PARTITION BY u ORDER BY f DESC) FROM more) WHERE x > 0 GROUP BY 1"""


def printed(engine: str, text: str = STATEMENT) -> str:
    asked = ask(text, engine=ENGINES[engine], tables=TABLES).data
    assert isinstance(asked, Relation)
    return asked.select


CHANGES = {
    "a unit in small letters": ("EXTRACT(YEAR", "EXTRACT(year"),
    "another unit": ("EXTRACT(YEAR", "EXTRACT(MONTH"),
    "a comment": ("WHERE", "WHERE /* + */"),
    "a comment at the end of a line": ("\nFROM", " -- and\nFROM"),
    "another type": ("AS DATE)", "AS TIMESTAMP)"),
    "a union without repetitions": ("UNION ALL", "UNION"),
    "an order of rows": ("NULLS LAST)", "NULLS FIRST)"),
    "another name": ("AS {q}k{q}", "AS {q}K{q}"),
    "a name without quotes": ("AS {q}k{q}", "AS k"),
    "brackets elsewhere": (" - 1 - 2", " - (1 - 2)"),
    "another pattern": ("'a%'", "'A%'"),
    "one more output": ("SELECT ", "SELECT 1, "),
    "one more argument": (" LIKE 'a%'", " LIKE 'a%' ESCAPE '!'"),
    "a function of others": ("EXTRACT(YEAR", "RANDOM() + EXTRACT(YEAR"),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("change", CHANGES)
def test_every_change_is_seen(engine: str, change: str) -> None:
    dialect = DIALECTS[engine]
    before, after = (text.format(q=dialect.quote) for text in CHANGES[change])
    text = printed(engine)
    assert before in text
    as_it_was = read_again(text, dialect)
    assert as_it_was is not None
    assert read_again(text.replace(before, after, 1), dialect) != as_it_was


@pytest.mark.parametrize("engine", ENGINES)
def test_a_second_statement_is_seen(engine: str) -> None:
    text, dialect = printed(engine), DIALECTS[engine]
    assert read_again(f"{text}; SELECT 1", dialect) != read_again(text, dialect)


def test_on_duckdb_an_expression_that_is_not_tried_is_seen() -> None:
    text = printed("duckdb")
    tried = 'TRY(EXTRACT(YEAR FROM "s1"."d"))'
    assert tried in text
    assert read_again(text.replace(tried, tried[4:-1]), DUCKDB) != read_again(text, DUCKDB)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("module", [query_sql, scalar_sql])
def test_a_printer_that_does_not_quote_is_caught(engine: str, module: object, monkeypatch: pytest.MonkeyPatch) -> None:
    def raw(name: str, dialect: Dialect) -> str:
        return f"{dialect.quote}{name}{dialect.quote}"

    monkeypatch.setattr(module, "identifier", raw)
    quote = DIALECTS[engine].quote
    hostile = f"x{quote * 2}, (SELECT MAX(f) FROM given_1) AS {quote * 2}y"
    named = f"{quote}{hostile}{quote}"
    text = f"{HEAD} t, COUNT(DISTINCT u) FROM (SELECT u, t, f AS {named} FROM rows) WHERE {named} + 1 > 0 GROUP BY t"
    with pytest.raises(PlumeBug, match="another one than was checked"):
        printed(engine, text)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("word", ["OR", "+", "*", "AND"])
def test_a_long_chain_is_read_again(engine: str, word: str) -> None:
    chain = f" {word} ".join(["f > 1" if word in ("OR", "AND") else "f"] * 140)
    assert printed(engine, f"{HEAD} COUNT(DISTINCT u) FROM (SELECT u, {chain} AS x FROM rows) WHERE x IS NOT NULL")


@pytest.mark.parametrize("engine", ENGINES)
def test_what_cannot_be_read_again_for_its_depth_is_refused(engine: str) -> None:
    def is_read(depth: int) -> bool:
        deep = "CASE WHEN f > 1 THEN 1 + " * depth + "1" + " END" * depth
        try:
            return bool(printed(engine, f"{HEAD} COUNT(DISTINCT u) FROM (SELECT u, {deep} AS x FROM rows) WHERE x > 0"))
        except StatementError as error:
            return "nested" not in str(error)

    depths = [is_read(depth) for depth in range(1, 60, 2)]
    assert depths[0]
    assert not depths[-1]
    assert sorted(depths, reverse=True) == depths
