"""`plume ledger`: make a ledger, read it, check it, and tidy up after a crash."""

from pathlib import Path
from typing import Any

import click

from plume.cli.help import HelpfulGroup
from plume.cli.number_types import NUMBER
from plume.cli.options import (
    LEDGER,
    OneForm,
    optional_query_options,
    pipeline_option,
    table_options,
    text_layout_option,
)

_file = click.argument("file", type=LEDGER)


@click.group(
    cls=HelpfulGroup,
    examples=(
        "plume ledger create budget.ledger --dataset searches --epsilon 3 --delta 1e-5",
        (
            "plume run searches.parquet --user user_id --key recipe --measure 'count(3)' \\\n"
            "  --epsilon 1.1 --delta 1e-5 --max-keys-per-user 16 \\\n"
            "  --ledger budget.ledger --dataset searches --release-id monday"
        ),
        "plume ledger show budget.ledger",
    ),
)
def ledger() -> None:
    """Keep the budgets of datasets, and what was spent of them.

    A ledger is a file, or for a team a database, as postgresql://host/database. Leave passwords to ~/.pgpass or
    PGPASSWORD: others on the machine see the command line.

    `plume run --ledger FILE --dataset NAME` charges a release before its plan runs, and refuses if the budget does not allow it.
    """


@ledger.command(examples=("plume ledger create budget.ledger --dataset searches --epsilon 3 --delta 1e-5",))
@_file
@click.option("--dataset", required=True, metavar="NAME", help="Name of the dataset.")
@click.option(
    "--epsilon", type=NUMBER, required=True, metavar="NUMBER", help="The most that all its releases may spend together."
)
@click.option(
    "--delta",
    type=NUMBER,
    default=0.0,
    metavar="NUMBER",
    help="The largest delta of all its releases together; above 0 unless all keys are public.",
)
def create(*, file: Path | str, dataset: str, epsilon: float, delta: float) -> None:
    """Give a dataset a budget, in a new ledger or in an existing one."""
    from plume.cli.accounts import create_dataset  # noqa: PLC0415 - imports SQLite and more

    create_dataset(file, dataset, epsilon=epsilon, delta=delta)


@ledger.command(examples=("plume ledger show budget.ledger",))
@_file
@text_layout_option
def show(*, file: Path | str, layout: str) -> None:
    """Say what each dataset may spend, has spent and has left."""
    from plume.cli.accounts import show_datasets  # noqa: PLC0415 - imports SQLite and more

    show_datasets(file, layout)


@ledger.command(
    cls=OneForm,
    short_help="Say whether a query would fit.",
    examples=(
        (
            "plume ledger plan budget.ledger --dataset searches \\\n"
            "  --user user_id --key recipe --measure 'count(3)' \\\n"
            "  --epsilon 1.1 --delta 1e-5 --max-keys-per-user 16"
        ),
    ),
)
@_file
@click.argument("statement", metavar="[STATEMENT]", required=False)
@click.option("--dataset", required=True, metavar="NAME", help="Dataset in the ledger that would be charged.")
@optional_query_options
@table_options
@pipeline_option
@text_layout_option
def plan(**options: Any) -> None:
    """Say whether a query would fit, and the largest epsilon with which it would.

    Touches no data and charges nothing. The query is given as to `plume explain`. Ends with 3 if it does not fit.
    """
    from plume.cli.accounts import plan_query  # noqa: PLC0415 - imports engines

    plan_query(options)


@ledger.command(
    short_help="List what happened, when, and what it spent.", examples=("plume ledger history budget.ledger",)
)
@_file
@text_layout_option
def history(*, file: Path | str, layout: str) -> None:
    """List what happened, in order: what was asked, when, and what it spent.

    As JSON, every entry is listed with the same words, and as it is kept, with its hashes and units.
    """
    from plume.cli.accounts import show_history  # noqa: PLC0415 - imports SQLite and more

    show_history(file, layout)


@ledger.command(
    short_help="Check the file, its entries and the released files.", examples=("plume ledger verify budget.ledger",)
)
@_file
@click.option("--head", metavar="HASH", help="A head noted earlier, as `plume run` prints it.")
@text_layout_option
def verify(*, file: Path | str, head: str | None, layout: str) -> None:
    """Check the file, the chain of entries, the budgets and the released files.

    An older copy of a ledger is valid by itself; only a head noted earlier shows that it is old.
    """
    from plume.cli.accounts import verify_ledger  # noqa: PLC0415 - imports SQLite and more

    verify_ledger(file, head, layout)


@ledger.command(examples=("plume ledger recover budget.ledger",))
@_file
def recover(*, file: Path) -> None:
    """Finish what crashes left behind, and say what became of it."""
    from plume.cli.accounts import recover_releases  # noqa: PLC0415 - imports SQLite and more

    recover_releases(file)


@ledger.command(
    short_help="Give up a release that was never drawn.", examples=("plume ledger abandon budget.ledger monday",)
)
@_file
@click.argument("release_id")
def abandon(*, file: Path | str, release_id: str) -> None:
    """Give up a release that was reserved and never drawn; what it cost stays spent."""
    from plume.cli.accounts import abandon_release  # noqa: PLC0415 - imports SQLite and more

    abandon_release(file, release_id)
