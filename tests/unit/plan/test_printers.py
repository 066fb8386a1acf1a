"""An engine is what its file says: no module asks for its name, and one more engine is one more file and a line."""

import ast
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest

import plume
from plume.cli.options import ENGINES
from plume.cli.query_and_engine import ENGINES as MAKERS
from plume.plan.dialect import Dialect
from plume.plan.printing.duckdb import DUCKDB, DuckDBPrinter
from plume.plan.printing.registry import PRINTERS

SOURCES = Path(plume.__file__).parent
QUERY = plume.Query(
    user="user_id",
    keys="recipe",
    measures=[plume.count(max_per_key=1)],
    max_keys_per_user=8,
    budget=plume.Budget(epsilon=1.0, delta=1e-5),
)


@dataclass(frozen=True)
class ThirdPrinter(DuckDBPrinter):
    """An engine like DuckDB that quotes otherwise and divides by a word."""

    dialect: ClassVar[Dialect] = replace(DUCKDB, name="third", quote="`", divide="{} DIV {}")

    def microseconds(self, when: str) -> str:
        return f"micros({when})"


def test_a_third_engine_is_a_file_and_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PRINTERS, "third", ThirdPrinter)
    explained = plume.explain(QUERY)
    assert explained.sql("third") == explained.sql().replace('"', "`").replace("//", "DIV")


def test_printers_are_known_by_the_names_of_their_dialects() -> None:
    assert {name: printer.dialect.name for name, printer in PRINTERS.items()} == {name: name for name in PRINTERS}


def test_no_module_asks_which_dialect_it_is() -> None:
    found = [
        f"{path.relative_to(SOURCES)}:{node.lineno}"
        for path in SOURCES.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Compare) and any(map(_is_dialect, ast.walk(node)))
    ]
    assert not found


def test_the_command_line_offers_each_engine_and_can_make_it() -> None:
    assert (*PRINTERS,) == ENGINES == (*MAKERS,)


def _is_dialect(part: ast.AST) -> bool:
    match part:
        case ast.Name(id=name):
            return name in {"DUCKDB", "SPARK"}
        case ast.Constant(value=value):
            return value in PRINTERS
        case _:
            return False
