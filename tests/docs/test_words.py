"""Pages, help texts and errors use the words that docs/glossary.md decided, and say one thing in one way."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

import plume
from docs.words import NAMES, PAGES, ROOT, SOURCES, TEMPLATES, poor_names, slips
from plume.cli.main import main
from plume.limit_meaning import MEANING

SHRUNK = "users above it count in all of their keys, shrunk together to the Euclidean norm of 10 keys"
EXPLAINING_THE_LIMIT = ("api.md", "cli.md", "sql.md", "glossary.md", "guarantees/bounding.md")


def in_one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).lower()


@pytest.mark.parametrize("page", EXPLAINING_THE_LIMIT)
def test_the_limit_is_explained_in_the_same_words_on_every_page(page: str) -> None:
    assert MEANING.rstrip(".").lower() in in_one_line((ROOT / "docs" / page).read_text(encoding="utf-8"))


@pytest.mark.parametrize("command", ["run", "explain", "expect", "need", "tune", "audit"])
def test_the_limit_is_explained_in_the_same_words_by_every_command(command: str) -> None:
    assert in_one_line(MEANING) in in_one_line(CliRunner().invoke(main, [command, "--help"]).output)


def test_the_limit_is_explained_in_the_same_words_where_it_is_set() -> None:
    source = (ROOT / "src" / "plume" / "query.py").read_text(encoding="utf-8")
    assert in_one_line(MEANING) in in_one_line(source)


def test_the_words_about_the_limit_are_true() -> None:
    query = plume.Query(
        user="user_id",
        keys="recipe",
        measures=plume.users(),
        max_keys_per_user=10,
        budget=plume.Budget(epsilon=1, delta=1e-6),
        noise="gaussian",
    )
    assert "they count in all of their keys" in MEANING
    assert SHRUNK in str(plume.explain(query))
    assert "unless the pipeline runtime_optimized selects the keys" in MEANING
    optimized = str(plume.explain(query, pipeline="runtime_optimized"))
    assert "users above it are cut to it" in optimized
    assert "shrunk" not in optimized
    known = str(plume.explain(replace(query, public_keys=["pie"]), pipeline="runtime_optimized"))
    assert SHRUNK in known


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", [*SOURCES, *TEMPLATES, *PAGES], ids=name)
def test_texts_use_the_words_that_were_decided(path: Path) -> None:
    assert list(map(str, slips(path))) == []


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_names_say_what_a_thing_is(path: Path) -> None:
    assert {found: NAMES[found] for found in poor_names(path)} == {}


@pytest.mark.parametrize(
    "text",
    [
        "'x' is no ledger of Plume",
        "keys with so many users",
        "one user changes at most so much",
        "So much is left",
        "it is never made by the way",
        "Tell a Polars LazyFrame.",
        "tells whether a key is there",
        "a whole number from 1 on",
        "refused where it is none",
        "HAVING is not known here",
        "columns meet by their places",
        "bounds belong into it",
        "what others call otherwise",
        "how keys are chosen",
        "Keys that were chosen",
        "selects a limit",
        "clip that row",
        "clamp each user",
        "what a row says to the measures",
        "the sum of what users say",
        "shares of all that users say",
        "what everybody else says",
        "a row of the histogram",
        "a date or a moment",
        "Moments without a time zone",
        "data are read",
    ],
)
def test_a_slip_is_seen(text: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"{text}\n", encoding="utf-8")
    assert len(slips(page)) == 1


@pytest.mark.parametrize(
    "source",
    [
        'def f():\n    """Tell it."""\n',
        'raise UsageError(f"{x} is no thing")\n',
        'raise text.refusal(tree, "this is no thing")\n',
        'option("--a", help="so many")\n',
        "x = 1  # this is no thing\n",
        "# a comment whose words are so\n# many\nx = 1\n",
        'STEPS = 2\n"""Steps, so many."""\n',
        'def f():\n    return f"moments between {x} and {y}"\n',
        'def f():\n    return [g(x), "this is no thing"]\n',
        'def f():\n    yield "this is no thing"\n',
        'raise PlumeBug("this is no thing")\n',
        'TOLD = {"windows": "this is no thing"}\n',
        'def f():\n    yield Finding("B", f"{x} is no thing", 1)\n',
    ],
)
def test_a_slip_in_code_is_seen(source: str, tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(source, encoding="utf-8")
    assert len(slips(module)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "there is no column",
        "a session where there is none",
        "this is none of the measures",
        "so many keys that it ends",
        "by so much more that it ends",
        "killed at random moments",
        "`is no code`",
        "is no longer",
    ],
)
def test_plain_english_is_left_alone(text: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"{text}\n", encoding="utf-8")
    assert slips(page) == []
