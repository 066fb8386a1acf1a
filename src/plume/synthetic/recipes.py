"""Made-up recipe searches, for demonstrations.

All of it is invented: the users, what they searched for and how long they stayed. It has what makes
searches hard to release: a few favourites, a long tail, and misspellings that only one person typed.
"""

import numpy as np
import pyarrow as pa
from numpy.random import Generator, default_rng  # noqa: TID251 - a demonstration must be repeatable
from numpy.typing import NDArray

from plume.synthetic.zipf_mandelbrot import ZipfMandelbrot

RECIPES = (
    "lasagna",
    "pancakes",
    "banana bread",
    "chicken curry",
    "chocolate cake",
    "pizza dough",
    "guacamole",
    "spaghetti carbonara",
    "apple pie",
    "meatballs",
    "chili con carne",
    "fried rice",
    "mashed potatoes",
    "pad thai",
    "beef stew",
    "tiramisu",
    "french toast",
    "caesar salad",
    "pumpkin soup",
    "mac and cheese",
    "shakshuka",
    "ratatouille",
    "butter chicken",
    "falafel",
    "hummus",
    "cheesecake",
    "risotto",
    "tomato soup",
    "fish tacos",
    "ramen",
    "potato salad",
    "crepes",
    "moussaka",
    "paella",
    "goulash",
    "cinnamon rolls",
    "bibimbap",
    "clam chowder",
    "gnocchi",
    "eggplant parmesan",
    "sourdough bread",
    "lentil soup",
    "shepherd's pie",
    "beef wellington",
    "tzatziki",
    "miso soup",
    "carrot cake",
    "pulled pork",
    "gazpacho",
    "quiche lorraine",
    "dumplings",
    "chimichurri",
    "baklava",
    "jambalaya",
    "borscht",
    "coq au vin",
    "enchiladas",
    "panna cotta",
    "pierogi",
    "beef bourguignon",
)
"""The recipes as a good speller types them, the most popular first."""

_POPULARITY = ZipfMandelbrot(size=len(RECIPES), exponent=1.2, shift=2)
_SEARCHES_PER_USER = ZipfMandelbrot(size=1_000, exponent=3.5, shift=12)
_TYPICAL_SECONDS = np.linspace(60, 240, num=len(RECIPES))  # rare dishes take longer to read about
_LONGEST_SECONDS = 1_800
_REPEATED = 0.2
_MISSPELT = 0.02
_MOST_SLIPS = 3  # with one slip only, many people would share the few misspellings of a favourite
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def recipe_searches(users: int, *, seed: int) -> pa.Table:
    """Make up the searches of `users` people: columns `user_id`, `recipe` and `seconds` spent on the page.

    The rows are in random order, about nine for each user; the same seed gives the same table.
    """
    if users < 0:
        raise ValueError(f"users is {users}; it must be at least 0, the number of people to make up.")
    generator = default_rng(seed)
    searchers = np.repeat(np.arange(users), _SEARCHES_PER_USER.sample(users, generator))
    recipes = _POPULARITY.sample(len(searchers), generator) - 1
    spellings, typed = _misspell_some(recipes, generator)
    repeated = _search_repeated(searchers, generator)
    searches = pa.table(
        {
            "user_id": pa.array([f"u{user:06}" for user in range(users)], pa.string()).take(searchers),
            "recipe": pa.array(spellings).take(typed[repeated]),
            "seconds": _seconds_on_page(recipes[repeated], generator),
        }
    )
    return searches.take(generator.permutation(len(searchers)))


def _misspell_some(recipes: NDArray[np.int64], generator: Generator) -> tuple[list[str], NDArray[np.int64]]:
    """Return all spellings, the right ones first, and for each search the one that was typed."""
    misspelt = np.flatnonzero(generator.random(len(recipes)) < _MISSPELT)
    misspellings = [_misspell(RECIPES[recipe], generator) for recipe in recipes[misspelt]]
    typed = recipes.copy()
    typed[misspelt] = len(RECIPES) + np.arange(len(misspelt))
    return [*RECIPES, *misspellings], typed


def _misspell(recipe: str, generator: Generator) -> str:
    typed = recipe
    for _ in range(generator.integers(1, _MOST_SLIPS, endpoint=True)):
        typed = _slip(typed, generator)
    return _misspell(recipe, generator) if typed == recipe else typed


def _slip(word: str, generator: Generator) -> str:
    """Type a word with one mistake: a wrong letter, one too many, one left out, or two swapped."""
    place, other, kind = generator.integers([len(word), len(_LETTERS), 4])
    before, letter, after = word[:place], word[place], word[place + 1 :]
    wrong = _LETTERS[other]
    mistakes = (wrong + after, wrong + letter + after, after, after[:1] + letter + after[1:])
    return before + mistakes[kind]


def _search_repeated(searchers: NDArray[np.int64], generator: Generator) -> NDArray[np.int64]:
    """Return for each search, sorted by searcher, the earlier one it repeats, or itself if it is new."""
    is_new = generator.random(len(searchers)) >= _REPEATED
    is_first = np.diff(searchers, prepend=-1) != 0
    return np.maximum.accumulate(np.where(is_new | is_first, np.arange(len(searchers)), 0))


def _seconds_on_page(recipes: NDArray[np.int64], generator: Generator) -> NDArray[np.float64]:
    seconds = generator.gamma(2.0, _TYPICAL_SECONDS[recipes] / 2)
    return np.minimum(seconds, _LONGEST_SECONDS).round(1)
