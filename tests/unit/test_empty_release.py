"""What an empty release says: how many users a key needs, and what would lower that most, from the query alone."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import plume

NOBODY = pa.table({"u": pa.array([], pa.int64()), "k": pa.array([], pa.string()), "j": pa.array([], pa.string())})


def query(**settings: Any) -> plume.Query:
    usual = {"user": "u", "keys": "k", "measures": [plume.users()], "max_keys_per_user": 8}
    return plume.Query(**usual | {"budget": plume.Budget(1, 1e-6)} | settings)


def said(**settings: Any) -> list[str]:
    return str(plume.run(query(**settings), NOBODY)).splitlines()


def needed(asked: plume.Query) -> int:
    return plume.expect(asked, users=[1]).prospects[0].users_for_even_chance


def test_it_says_how_many_users_a_key_needs() -> None:
    assert f"a key needs {needed(query())} users to be shown half of the time if each of them has 8 keys" in said()[4]


def test_it_says_how_many_are_enough_if_they_have_no_other_key() -> None:
    alone = plume.expect(query(), users=[1], keys_of_user=1).prospects[0].users_for_even_chance
    assert said()[4].endswith(f", and {alone} if they have no other key")
    assert said(max_keys_per_user=1)[4].endswith("users to be shown half of the time")


def test_each_change_is_said_with_the_users_that_a_key_then_needs() -> None:
    changes = {
        "epsilon = 2": query(budget=plume.Budget(2, 1e-6)),
        "max_keys_per_user = 4": query(max_keys_per_user=4),
        "delta = 1e-05": query(budget=plume.Budget(1, 1e-5)),
    }
    numbers = {what: needed(asked) for what, asked in changes.items()}
    listed = ", ".join(f"{numbers[what]} with {what}" for what in sorted(numbers, key=lambda what: numbers[what]))
    assert f"it would need {listed}" in said()


def test_no_more_than_three_changes_are_said_and_those_that_bring_most_come_first() -> None:
    (line,) = (line for line in said(measures=[plume.users(), plume.count(3)], min_users=500) if "would need" in line)
    numbers = [int(number) for number in re.findall(r"(\d+) with", line)]
    assert len(numbers) == 3
    assert numbers == sorted(numbers)
    assert "with min_users = 1" in line


def test_fewer_measures_are_one_of_the_changes() -> None:
    shares = {"selection": 1, "users": 1, "count": 8}
    (line,) = (
        line
        for line in said(
            measures=[plume.users(), plume.count(3)],
            shares=shares,
            max_keys_per_user=1,
            budget=plume.Budget(9, 1e-5),
        )
        if "would need" in line
    )
    assert "users as its only measure" in line


def test_nothing_is_proposed_that_would_be_cautioned_against() -> None:
    printed = "\n".join(said(budget=plume.Budget(10, 1e-5), max_keys_per_user=1))
    assert "a key needs" in printed
    assert "it would need" not in printed
    assert "delta =" not in "\n".join(said(budget=plume.Budget(1, 1e-6), population=10**6))


def test_the_delta_that_is_proposed_is_not_cautioned_against() -> None:
    proposed = re.search(r"delta = ([^,\n]+)", "\n".join(said(population=150_000)))
    assert proposed is not None
    assert float(proposed[1]) == 6.66e-6


@pytest.mark.parametrize(("keys", "expected"), [("k", False), (["k", "j"], True)])
def test_fewer_key_columns_are_proposed_where_there_are_several(keys: Any, *, expected: bool) -> None:
    assert ("with fewer key columns each key has more users" in "\n".join(said(keys=keys))) == expected


def test_a_limit_that_is_chosen_is_not_proposed() -> None:
    printed = "\n".join(said(max_keys_per_user="auto"))
    assert "if each of them has 64 keys" in printed
    assert "with max_keys_per_user" not in printed


def test_public_keys_need_no_users_so_nothing_is_said() -> None:
    nothing = replace(plume.run(query(public_keys=["x"]), NOBODY), rows=NOBODY.select(["k"]))
    assert "a key needs" not in str(nothing)


def test_a_release_with_keys_says_nothing_of_it() -> None:
    rows = pa.table({"u": range(5000), "k": ["x"] * 5000, "j": ["y"] * 5000})
    assert "a key needs" not in str(plume.run(query(), rows))


def test_it_depends_on_the_query_alone() -> None:
    """Either of two keys of one user is shown with a probability of 2.3e-7: a false alarm in 2 million."""
    few = pa.table({"u": [1, 2], "k": ["x", "y"], "j": ["x", "y"]})
    assert str(plume.run(query(), few)).splitlines()[1:] == said()[1:]


def test_pages_say_the_same(tmp_path: Path) -> None:
    name = "<script>alert(1)</script>\x1b"
    release = plume.run(query(measures=[plume.users(name=name), plume.count(3)]), NOBODY)
    release.report(tmp_path / "page.html")
    for page in ((tmp_path / "page.html").read_text(), release._repr_html_()):
        assert f"a key needs {needed(query())} users" in page
        assert "<script>alert" not in page
        assert "\x1b" not in page
