"""Every page keeps its word: code runs, links lead somewhere, and files that are named are there."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pyarrow.parquet
import pytest
from click.testing import CliRunner

from docs.pages import PAGES, README, ROOT, alike, blocks, python_blocks, run_page
from ledgers import empty_database
from loading import load
from plume.cli.main import main
from plume.synthetic import recipe_searches
from postgresql_servers import OWNER, Server

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
NAMED_FILE = re.compile(r"`((?:src|tests|docs|examples|benchmarks|experiments)/[\w./-]+)`")
NAMED_CONTENT = re.compile(r"`(src/plume/[\w/]+\.py)`: ((?:`\w+`(?:, )?)+)")
IN_SOURCE = re.compile(r"docs/[\w/-]+\.md")

ON_POSTGRESQL = ROOT / "docs" / "how-to" / "team-ledger.md"
ON_SPARK, IN_POSTGRESQL = ROOT / "docs" / "spark.md", ROOT / "docs" / "postgresql.md"
GUIDES = [ROOT / "docs" / "quickstart.md", *sorted((ROOT / "docs" / "how-to").glob("*.md"))]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def commands(page: Path) -> list[str]:
    """Find the commands of Plume in a page, each on one line."""
    shown = (block.code.replace("\\\n", " ") for block in blocks(page) if block.info == "sh")
    return [line for code in shown for line in code.splitlines() if line.startswith("plume ")]


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """Pair each file a page links to with the heading it links to."""
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" not in link:
            target, _, heading = link.partition("#")
            yield (page.parent / target if target else page), heading


def headings(page: Path) -> set[str]:
    """Write a page's headings as they stand in links."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.replace("*", "")).lower().replace(" ", "-") for title in titles}


def check_code(page: Path) -> None:
    for shown in run_page(page)[1]:
        if shown.within:
            assert alike(shown.block.code, shown.printed, within=shown.within)
        else:
            assert shown.block.code == shown.printed


@pytest.fixture
def its_server(page: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start the server that a page is about, with an empty database of the name on that page."""
    if page == ON_POSTGRESQL:
        server = request.getfixturevalue("ledger_server")
        empty_database(server.url, "budgets")
        for name, value in {"PGHOST": "127.0.0.1", "PGPORT": str(server.port), "PGUSER": OWNER}.items():
            monkeypatch.setenv(name, value)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page not in (README, ON_SPARK, IN_POSTGRESQL) and python_blocks(page)], ids=name
)
@pytest.mark.usefixtures("its_server")
def test_code_runs_and_prints_what_is_shown(page: Path) -> None:
    check_code(page)


@pytest.mark.starts("spark")
def test_code_for_spark_runs_and_prints_what_is_shown() -> None:
    """In a process of its own: the page stops its session, which would be that of other tests."""
    code = "import sys; sys.path.insert(0, sys.argv[1]); from docs.test_docs_code import ON_SPARK, check_code; check_code(ON_SPARK)"
    command = [sys.executable, "-c", code, str(ROOT / "tests")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own
    assert done.returncode == 0, done.stderr


@pytest.mark.starts("postgresql")
@pytest.mark.quick_on("postgresql")
def test_code_for_postgresql_runs_and_prints_what_is_shown(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page leaves the address to the environment, which here leads to a server with the table that it reads."""
    for name, value in {"HOST": "127.0.0.1", "PORT": str(server.port), "USER": OWNER, "DATABASE": "postgres"}.items():
        monkeypatch.setenv(f"PG{name}", value)
    with psycopg.connect("", autocommit=True) as connection:
        load(connection, "public.searches", recipe_searches(200, seed=1))
        check_code(IN_POSTGRESQL)
        connection.execute("DROP TABLE public.searches")


@pytest.mark.parametrize("page", [page for page in GUIDES if commands(page)], ids=name)
@pytest.mark.usefixtures("its_server")
def test_commands_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pyarrow.parquet.write_table(recipe_searches(200, seed=1), "searches.parquet")
    for command in commands(page):
        result = CliRunner().invoke(main, shlex.split(command)[1:])
        assert (command, result.exit_code) == (command, 0)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    lost = [
        f"{name(page)} -> {target}#{heading}"
        for target, heading in links(page)
        if not target.exists() or (heading and heading not in headings(target))
    ]
    assert lost == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_files_that_are_named_are_there(page: Path) -> None:
    named = NAMED_FILE.findall(page.read_text(encoding="utf-8"))
    assert [path for path in named if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_what_is_said_to_be_in_a_module_is_in_it(page: Path) -> None:
    said = [
        (path, word)
        for path, words in NAMED_CONTENT.findall(page.read_text(encoding="utf-8"))
        for word in re.findall(r"\w+", words)
    ]
    missing = [(path, word) for path, word in said if not re.search(rf"\b{word}\b", (ROOT / path).read_text())]
    assert missing == []


def test_every_page_can_be_reached_from_the_index() -> None:
    index = ROOT / "docs" / "index.md"
    linked = {target.resolve() for target, _ in links(index)} | {index}
    assert [name(page) for page in (ROOT / "docs").rglob("*.md") if page not in linked] == []


def test_the_index_calls_each_decision_as_its_page_does() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    listed = re.findall(r"(?m)^(\d+)\. \[(.*)\]\(decisions/(.*)\)$", index)
    pages = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    titles = {page.name: page.read_text(encoding="utf-8").splitlines()[0] for page in pages}
    assert {page: f"# {number}. {title}" for number, title, page in listed} == titles


def test_pages_that_the_code_names_are_there() -> None:
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]
    named = {page for source in sources for page in IN_SOURCE.findall(source)}
    assert sorted(page for page in named if not (ROOT / page).exists()) == []
