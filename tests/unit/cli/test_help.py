"""What `--help` shows: options in groups, and examples that can be copied."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from plume.cli.help import GROUPS, MOST_NEEDED, HelpfulCommand
from plume.cli.main import main
from plume.ledger.ledger import Ledger
from plume.ledger.price import Price
from plume.privacy.budget import Budget
from plume.synthetic import recipe_searches

WIDTHS = (80, 120)


def commands(group: click.Group = main, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], HelpfulCommand]]:
    yield path, group
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


ALL = dict(commands())
EXAMPLES = list(dict.fromkeys(example for command in ALL.values() for example in command.examples))


def help_of(path: tuple[str, ...], width: int = 80) -> str:
    done = CliRunner(env={"COLUMNS": str(width)}).invoke(main, [*path, "-h"], terminal_width=min(width, 100))
    assert done.exit_code == 0
    return done.stdout


def flags(text: str) -> list[str]:
    """The options that a help lists, one by one."""
    return re.findall(r"(?m)^  (?:-\w, )?(--[a-z-]+)", text)


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_every_command_has_an_example(path: tuple[str, ...]) -> None:
    assert ALL[path].examples


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_examples_are_shown_to_the_letter_and_nothing_is_wider_than_the_terminal(
    path: tuple[str, ...], width: int
) -> None:
    shown = help_of(path, width)
    for example in ALL[path].examples:
        assert "".join(f"  {line}\n" for line in example.splitlines()) in shown
    assert "\b" not in shown
    assert r"\b" not in shown
    assert max(map(len, shown.splitlines())) <= width


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_every_option_is_shown_once(path: tuple[str, ...]) -> None:
    options = [param for param in ALL[path].params if isinstance(param, click.Option)]
    assert sorted(flags(help_of(path))) == sorted([*(max(option.opts, key=len) for option in options), "--help"])


def test_the_ten_options_that_most_people_need_come_first() -> None:
    first = help_of(("run",)).split(f"{MOST_NEEDED}:\n")[1].split("\n\n")[0]
    assert flags(first) == list(GROUPS[MOST_NEEDED])
    assert len(GROUPS[MOST_NEEDED]) == 10


def test_only_help_itself_is_in_no_group_of_run() -> None:
    assert flags(help_of(("run",)).split("Other options:\n")[1]) == ["--help"]


def test_an_option_is_in_one_group_at_most() -> None:
    names = [name for names in GROUPS.values() for name in names]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: " ".join(example.split()[1:3]))
def test_examples_run(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(recipe_searches(200, seed=1), "searches.parquet")
    if "budget.ledger" in example and "ledger create" not in example:
        Ledger.create("budget.ledger", datasets={"searches": Budget(3, 1e-5)})
    # The shell would do the rest.
    words = shlex.split(example.split(">", maxsplit=1)[0] if "completion" in example else example.replace("\\\n", " "))
    if words[1:3] == ["ledger", "abandon"]:
        with Ledger("budget.ledger").dataset("searches").claimed(words[-1], "q") as claim:
            claim.reserve(Price(10**9, 10**9, 0, 10**8, 0))
    done = CliRunner().invoke(main, words[1:])
    assert (words[0], done.exit_code) == ("plume", 0), done.stderr
