"""`plume demo`: private numbers beside exact ones, which only made-up data may show."""

from collections import Counter
from dataclasses import dataclass

import pyarrow as pa
from rich.console import Console
from rich.table import Table
from rich.text import Text

from plume.cli.progress import showing
from plume.explanation import limit
from plume.mechanisms.count import count
from plume.mechanisms.users import users as count_users
from plume.plan.analysis import costs
from plume.privacy.budget import Budget
from plume.privacy.cost import shares_spent
from plume.query import Query
from plume.release import Release
from plume.running import run
from plume.synthetic.recipes import RECIPES, recipe_searches

QUERY = Query(
    user="user_id",
    keys=("recipe",),
    measures=(count_users(name="people"), count(max_per_key=3, name="searches")),
    max_keys_per_user=16,
    budget=Budget(epsilon=1.1, delta=1e-5),
)
IN_PYTHON = """\
import plume
query = plume.Query(user="user_id", keys="recipe", measures=plume.count(3),
                    max_keys_per_user=16, budget=plume.Budget(1.1, delta=1e-5))
print(plume.run(query, "searches.parquet"))"""
IN_A_SHELL = """\
plume run searches.parquet --user user_id --key recipe --measure 'count(3)' \\
  --max-keys-per-user 16 --epsilon 1.1 --delta 1e-5"""

_SHOWN_RECIPES = 12
_SHOWN_MISSPELLINGS = 6
_BAR = 20


@dataclass(frozen=True)
class Exact:
    """What is true of the made-up searches. Nobody may ask this of real ones."""

    searches: Counter[str]
    people: Counter[str]

    @property
    def misspellings(self) -> set[str]:
        """What people typed that is not a recipe."""
        return self.searches.keys() - set(RECIPES)


def show_demo(users: int, *, seed: int, quiet: bool) -> None:
    """Make up searches, release them privately, and show both sides."""
    searches = recipe_searches(users, seed=seed)
    release = run(QUERY, searches, **showing(quiet=quiet))
    print_demo(release, count_exactly(searches), Console(highlight=False))


def count_exactly(searches: pa.Table) -> Exact:
    """Count without privacy."""
    pairs = searches.group_by(["recipe", "user_id"]).aggregate([])
    return Exact(_tally(searches), _tally(pairs))


def _tally(rows: pa.Table) -> Counter[str]:
    counted = rows["recipe"].value_counts()
    return Counter(dict(zip(counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True)))


def print_demo(release: Release, exact: Exact, console: Console) -> None:
    """Print the release beside the truth, what was kept back, what was spent, and how to do it with other data."""
    console.print(f"{exact.searches.total():,} recipe searches, made up on the spot: nobody real is in them.\n")
    console.print(_table(release, exact, console))
    console.print(_paragraph("Released", _released(release, exact)))
    console.print(_paragraph("Kept back", _kept_back(release, exact)))
    console.print(_paragraph("Spent", _spent(release)))
    console.print(_paragraph("Your own data", "in Python, or in a shell:"))
    # Never wrapped, so that the lines can be copied.
    console.print(Text(f"{IN_PYTHON}\n\n{IN_A_SHELL}"), soft_wrap=True)


def _table(release: Release, exact: Exact, console: Console) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for header in ("\nrecipe", "people\nprivate", "\nexact", "searches\nprivate", "\nexact"):
        table.add_column(header, justify="left" if "recipe" in header else "right", no_wrap=True)
    table.add_column("")
    top = release.to_arrow().sort_by([("people", "descending")]).slice(0, _SHOWN_RECIPES).to_pylist()
    block = "█" if console.encoding.startswith("utf") else "#"
    for row in top:
        recipe, people, searches = row["recipe"], row["people"], row["searches"]
        numbers = (people, exact.people[recipe], searches, exact.searches[recipe])
        bar = block * round(_BAR * max(people, 0) / max(top[0]["people"], 1))
        table.add_row(Text(recipe), *(f"{number:,}" for number in numbers), Text(bar, style="cyan"))
    return table


def _paragraph(title: str, text: str) -> Text:
    return Text.assemble("\n", (f"{title}: ", "bold"), text)


def _released(release: Release, exact: Exact) -> str:
    released = _spellings(release)
    recipes = exact.searches.keys() & set(RECIPES)
    noise = " and ".join(f"{noise.standard_deviation:.0f} ({noise.measure})" for noise in release.noise)
    return (
        f"{len(released & recipes)} of {len(recipes)} recipes, the most popular above, and "
        f"{len(released & exact.misspellings)} of {len(exact.misspellings):,} misspellings. "
        f"Private numbers have noise with a standard deviation of {noise}. There is a {limit(release.explanation)}; "
        "of each person at most 3 searches per recipe count. Exact numbers can be shown only because the data is made up."
    )


def _kept_back(release: Release, exact: Exact) -> str:
    alone = sorted(spelling for spelling in exact.misspellings - _spellings(release) if exact.people[spelling] == 1)
    examples = alone[:: -(-len(alone) // _SHOWN_MISSPELLINGS) or 1]
    return (
        f"{len(alone):,} misspellings that only one person typed, and that could identify this person"
        f"{': ' if examples else ''}{', '.join(examples)}."
    )


def _spellings(release: Release) -> set[str]:
    return set(release.to_arrow()["recipe"].to_pylist())


def _spent(release: Release) -> str:
    parts = shares_spent(costs(release.explanation.plan)).items()
    return f"{release.guarantee}. Of it, {', '.join(f'{share:.0%} on {what}' for what, share in parts)}."
