"""Engines for the tests that run on every one of them: `pytest --engines=duckdb`."""

import pytest

from plume.engines.duckdb import DuckDB
from plume.engines.engine import Engine

ENGINES = {"duckdb": lambda: DuckDB(threads=1)}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--engines", default="duckdb", help="comma-separated: " + ", ".join(ENGINES))
    parser.addoption("--update-plans", action="store_true", help="rewrite the golden plans in tests/plans")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "engine" in metafunc.fixturenames:
        metafunc.parametrize(
            "engine", metafunc.config.getoption("--engines").split(","), indirect=True, scope="session"
        )


@pytest.fixture(scope="session")
def engine(request: pytest.FixtureRequest) -> Engine:
    return ENGINES[request.param]()
