"""The site is built by one command, without a warning and without a network, and holds every page and every public name."""

import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest

import plume
from docs.pages import PAGES, ROOT
from docs.test_cli_page import options
from plume.cli.main import main

# To build it takes as long as hundreds of other tests.
pytestmark = pytest.mark.engines
SITE = [page.relative_to(ROOT).with_suffix(".html") for page in PAGES]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` builds it, elsewhere."""
    built = tmp_path_factory.mktemp("site")
    strictly = ("--fail-on-warning", "--keep-going", "--quiet")
    command = [sys.executable, "-m", "sphinx", *strictly, "-c", "docs", ".", str(built)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 - our own pages
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    return built


def test_make_docs_is_as_strict() -> None:
    assert "sphinx-build --fail-on-warning --keep-going --quiet -c docs . " in (ROOT / "Makefile").read_text()


def test_every_page_is_on_the_site(site: Path) -> None:
    assert [str(page) for page in SITE if not (site / page).exists()] == []
    assert (site / "index.html").exists()


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    reference = (site / "docs" / "reference.html").read_text(encoding="utf-8")
    names = [name for name in plume.__all__ if name != "__version__"]
    assert [name for name in names if f'id="plume.{name}"' not in reference] == []


def test_every_command_and_option_is_on_the_site(site: Path) -> None:
    told = unescape(re.sub(r"<[^>]*>", "", (site / "docs" / "cli.html").read_text(encoding="utf-8")))
    assert [command for command in main.commands if f"plume {command}" not in told] == []
    assert [option for command in main.commands for option in options(command) if option not in told] == []


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    loads = re.compile(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=\"(?:https?:)?//[^\"]+")
    assert [found for page in site.rglob("*.html") for found in loads.findall(page.read_text(encoding="utf-8"))] == []
