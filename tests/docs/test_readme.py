"""The README keeps its word: its code runs, and prints what it shows."""

import re

import pytest

import plume
from docs.pages import README, Shown, alike, python_blocks, run_page
from plume.synthetic import RECIPES, recipe_searches


@pytest.fixture(scope="module")
def page() -> tuple[dict[str, object], list[Shown]]:
    return run_page(README)


@pytest.fixture(scope="module")
def recipes(page: tuple[dict[str, object], list[Shown]]) -> Shown:
    return page[1][0]


@pytest.fixture(scope="module")
def release(page: tuple[dict[str, object], list[Shown]]) -> plume.Release:
    made = page[0]["release"]
    assert isinstance(made, plume.Release)
    return made


def test_every_example_shows_what_it_prints(page: tuple[dict[str, object], list[Shown]]) -> None:
    assert len(page[1]) == len(python_blocks(README)) == 2


def test_the_first_example_has_twelve_lines() -> None:
    assert len(python_blocks(README)[0].code.splitlines()) == 12


def test_the_recipes_have_the_shape_shown(recipes: Shown) -> None:
    shown, printed = recipes.block.code.splitlines(), recipes.printed.splitlines()
    assert len(shown) == len(printed)
    assert shown[0].split() == printed[0].split()
    assert shown[-2:] == printed[-2:]


def test_the_recipes_have_the_numbers_shown_but_for_their_noise(recipes: Shown, release: plume.Release) -> None:
    # A recipe has a weight of 130 or more, 18 standard deviations of the noise above the threshold of 28.3. Numbers differ by the
    # noise and by which keys of users above the limit are kept, both far below a tenth of what is allowed.
    released = {row["recipe"]: (row["count"], row["users"]) for row in release.to_arrow().to_pylist()}
    rows = [re.fullmatch(r" *(.+?) +(\d+) +(\d+)", line) for line in recipes.block.code.splitlines()[1:11]]
    for recipe, *numbers in (row.groups() for row in rows if row):
        assert released[recipe] == pytest.approx([int(number) for number in numbers], abs=recipes.within)


def test_misspellings_are_not_released(release: plume.Release) -> None:
    # 2,559 misspellings pass with a probability of 3.2e-4 for all of them together: two or more do so with one below 1e-7.
    released = set(release.to_arrow()["recipe"].to_pylist())
    assert len(released - set(RECIPES)) <= 1


def test_every_recipe_is_released(release: plume.Release) -> None:
    assert set(release.to_arrow()["recipe"].to_pylist()) >= set(RECIPES)


def test_the_landmark_is_counted_by_half_and_in_full(page: tuple[dict[str, object], list[Shown]]) -> None:
    # 150 standard deviations of the noise, and eight of the choice between home and landmark. In each run about 5,000 homes may pass with
    # a probability of 1e-11 each.
    shown = page[1][1]
    assert alike(shown.block.code, shown.printed, within=shown.within)


def test_the_number_of_spellings_is_counted() -> None:
    spellings = recipe_searches(20_000, seed=1)["recipe"].unique()
    assert f"{len(RECIPES)} recipes in {len(spellings):,} spellings" in README.read_text(encoding="utf-8")
