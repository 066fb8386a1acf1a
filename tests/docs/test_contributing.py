"""CONTRIBUTING.md promises what is true: how long files and functions are, and which folders and modules there are."""

import ast
import re
from pathlib import Path

import pytest

from docs.words import ROOT, SOURCE, SOURCES

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
MOST_LINES, MOST_LINES_OF_A_FUNCTION = 400, 40
TABLE = PAGE.partition("*Layout.*")[2].partition("| to find")[0]
UNLISTED = {"__init__.py", "__main__.py", "version.py"}


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_the_page_states_the_sizes() -> None:
    assert f"At most {MOST_LINES_OF_A_FUNCTION} lines a function, {MOST_LINES} a file" in PAGE


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_files_and_functions_are_no_longer_than_that(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    functions = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef))
    longer = {node.name for node in functions if (node.end_lineno or 0) - node.lineno >= MOST_LINES_OF_A_FUNCTION}
    assert (len(text.splitlines()) <= MOST_LINES, longer) == (True, set())


def test_each_folder_and_module_is_in_the_table() -> None:
    listed = set(re.findall(r"`([\w/.]+)`", TABLE))
    there = {path.name if path.is_file() else f"{path.name}/" for path in SOURCE.iterdir()}
    modules = {entry for entry in there if entry.endswith((".py", "/")) and entry != "__pycache__/"} - UNLISTED
    assert modules - listed == set()
