"""Nothing in the package but `noise` draws randomness; `synthetic` may use NumPy's generator."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import plume

PACKAGE = Path(plume.__file__).parent
ALLOWED = {"noise": {"os.urandom"}, "synthetic": {"numpy.random"}}
# One file names random functions in order to refuse them, and one asks for a random value, of no table, to find out whether it is kept.
NAMING = {"engines/spark_reading.py": {"sql"}, "engines/spark_keeping.py": {"sql"}}

MODULES = {"random", "secrets", "uuid", "numpy.random"}
MEMBERS = {
    "random": "numpy.random",  # np.random, and pyarrow.compute.random
    "rand": "numpy.random",
    "default_rng": "numpy.random",
    "urandom": "os.urandom",
    "getrandom": "os.urandom",
}
RANDOM_SQL = re.compile(
    r"\b(rand|randn|random|uuid|uuidv4|uuidv7|newid|shuffle)\s*\("
    r"|gen_random_uuid|random_normal|setseed|tablesample|using\s+sample",
    re.IGNORECASE,
)


def randomness(source: str) -> set[str]:
    """Name every source of randomness that a module's code mentions."""
    tree = ast.parse(source)
    documentation = {id(docstring) for docstring in docstrings(tree)}
    return {name for node in ast.walk(tree) if id(node) not in documentation for name in randomness_of_node(node)}


def docstrings(tree: ast.Module) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        match node:
            case ast.Module() | ast.ClassDef() | ast.FunctionDef() if ast.get_docstring(node) is not None:
                statement = node.body[0]
                assert isinstance(statement, ast.Expr)
                yield statement.value


def randomness_of_node(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Import(names=names):
            yield from (module for name in names for module in modules_in(name.name))
        case ast.ImportFrom(module=str(module), names=names, level=0):
            yield from modules_in(module)
            yield from (found for name in names for found in modules_in(f"{module}.{name.name}"))
            yield from (MEMBERS[name.name] for name in names if name.name in MEMBERS)
        case ast.Call(
            func=ast.Name("__import__") | ast.Attribute(attr="import_module"),
            args=[ast.Constant(str(name)), *_],
        ):
            yield from modules_in(name)
        case ast.Attribute(attr=member) if member in MEMBERS:
            yield MEMBERS[member]
        case ast.Constant(value=str(text)) if RANDOM_SQL.search(text):
            yield "sql"


def modules_in(dotted: str) -> Iterator[str]:
    yield from (module for module in MODULES if f"{dotted}.".startswith(f"{module}."))


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_randomness_comes_from_where_it_may(path: Path) -> None:
    relative = path.relative_to(PACKAGE)
    allowed = ALLOWED.get(relative.parts[0], set()) | NAMING.get(relative.as_posix(), set())
    assert randomness(path.read_text(encoding="utf-8")) <= allowed


def test_the_package_is_really_read() -> None:
    assert randomness((PACKAGE / "noise" / "entropy.py").read_text(encoding="utf-8")) == {"os.urandom"}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import random", "random"),
        ("import secrets as quiet", "secrets"),
        ("def later():\n    from uuid import uuid4", "uuid"),
        ("from random import choice", "random"),
        ("import numpy.random as noise", "numpy.random"),
        ("from numpy import random", "numpy.random"),
        ("from numpy.random import default_rng", "numpy.random"),
        ("import numpy as np\nnp.random.default_rng(1)", "numpy.random"),
        ("import os\nos.urandom(8)", "os.urandom"),
        ("from os import urandom", "os.urandom"),
        ("__import__('random')", "random"),
        ("import importlib\nimportlib.import_module('secrets')", "secrets"),
        ("sql = 'SELECT Random() FROM t'", "sql"),
        ("sql = 'ORDER BY rand ( 7 )'", "sql"),
        ("sql = f'SELECT {column}, uuid() FROM t'", "sql"),
        ("sql = 'SELECT gen_random_uuid()'", "sql"),
        ("sql = 'SELECT setseed(0.5)'", "sql"),
        ("sql = 'FROM t tablesample 10%'", "sql"),
        ("sql = 'FROM t USING SAMPLE 10'", "sql"),
    ],
)
def test_planted_randomness_is_found(source: str, found: str) -> None:
    assert found in randomness(source)


@pytest.mark.parametrize(
    "source",
    [
        "import os\nimport numpy as np\nnp.log(2)",
        '"""Never calls random() or TABLESAMPLE."""',
        "def f():\n    '''Not random().'''",
        "sql = 'SELECT brand(x), operand, random_order FROM t'",
        "from plume.noise.entropy import SystemEntropy",
        "from . import random_order",
    ],
)
def test_harmless_code_is_left_alone(source: str) -> None:
    assert randomness(source) == set()
