"""docs/cli.md tells every command and option, and its examples run."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from plume.cli.main import main
from plume.synthetic import recipe_searches

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"(?ms)^## `plume (\w+)`\n(.*?)(?=^## |\Z)", PAGE))
EXAMPLES = [block.replace("\\\n", " ") for block in re.findall(r"(?s)```sh\n(.*?)```", PAGE)]


def options(command: str) -> Iterator[str]:
    """The options of a command, and of the commands below it."""
    found = main.commands[command]
    for one in (found, *getattr(found, "commands", {}).values()):
        for parameter in one.params:
            if isinstance(parameter, click.Option):
                yield from (*parameter.opts, *parameter.secondary_opts)


def told(command: str) -> str:
    """What the page says about a command; others refer to what `run` says: four about asking, `sql` about all the rest."""
    asking = (
        SECTIONS["run"].partition("Where results go")[0]
        if command in ("explain", "expect", "need", "tune", "audit")
        else ""
    )
    engine = SECTIONS["run"].partition("Who does the work")[2] if command in ("audit", "sql") else ""
    return SECTIONS[command] + asking + engine


def test_every_command_has_a_section_and_every_section_a_command() -> None:
    assert SECTIONS.keys() == main.commands.keys()


@pytest.mark.parametrize(
    ("command", "option"), [(command, option) for command in main.commands for option in options(command)]
)
def test_every_option_is_told(command: str, option: str) -> None:
    assert re.search(rf"`{option}[ `]", told(command))


@pytest.mark.parametrize("command", main.commands)
def test_every_option_told_is_there(command: str) -> None:
    said = set(re.findall(r"`(--?[a-z][a-z-]*)[ `]", SECTIONS[command]))
    assert said <= set(options(command))


@pytest.mark.parametrize("command", main.commands["ledger"].commands)
def test_every_command_of_the_ledger_is_told(command: str) -> None:
    assert f"`plume ledger {command} FILE" in SECTIONS["ledger"]


def test_the_options_of_the_command_itself_are_told() -> None:
    assert all(option in PAGE for option in ("--version", "`--help`", "`-h`"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.split()[1])
def test_examples_run(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(recipe_searches(200, seed=1), "searches.parquet")
    program, *args = shlex.split(example)
    assert (program, CliRunner().invoke(main, args).exit_code) == ("plume", 0)


def test_every_command_has_an_example() -> None:
    assert {example.split()[1] for example in EXAMPLES} == main.commands.keys()
