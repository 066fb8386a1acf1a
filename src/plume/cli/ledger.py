"""`plume ledger`: make a ledger, read it, check it, and tidy up after a crash."""

from pathlib import Path

import click

from plume.cli.help import HelpfulGroup

_file = click.argument("file", type=click.Path(path_type=Path))


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

    `plume run --ledger FILE --dataset NAME` charges a release before its plan runs, and refuses if the budget does not allow it.
    """


@ledger.command(examples=("plume ledger create budget.ledger --dataset searches --epsilon 3 --delta 1e-5",))
@_file
@click.option("--dataset", required=True, metavar="NAME", help="What to call it.")
@click.option(
    "--epsilon", type=float, required=True, metavar="NUMBER", help="The most all its releases may spend together."
)
@click.option(
    "--delta", type=float, default=0.0, metavar="NUMBER", help="The same; above 0 unless all keys are public."
)
def create(*, file: Path, dataset: str, epsilon: float, delta: float) -> None:
    """Give a dataset a budget, in a new ledger or in an existing one."""
    from plume.cli.accounts import create_dataset  # noqa: PLC0415 - imports SQLite and more

    create_dataset(file, dataset, epsilon=epsilon, delta=delta)


@ledger.command(examples=("plume ledger show budget.ledger",))
@_file
def show(*, file: Path) -> None:
    """Say what each dataset may spend, has spent and has left."""
    from plume.cli.accounts import show_datasets  # noqa: PLC0415 - imports SQLite and more

    show_datasets(file)


@ledger.command(examples=("plume ledger history budget.ledger",))
@_file
def history(*, file: Path) -> None:
    """List everything that happened, in order."""
    from plume.cli.accounts import show_history  # noqa: PLC0415 - imports SQLite and more

    show_history(file)


@ledger.command(examples=("plume ledger verify budget.ledger",))
@_file
@click.option("--head", metavar="HASH", help="A head that was remembered, as `plume run` prints it.")
def verify(*, file: Path, head: str | None) -> None:
    """Check the file, the chain of entries, the budgets and the released files.

    An older copy of a ledger is a good ledger by itself; only a remembered head tells.
    """
    from plume.cli.accounts import verify_ledger  # noqa: PLC0415 - imports SQLite and more

    verify_ledger(file, head)


@ledger.command(examples=("plume ledger recover budget.ledger",))
@_file
def recover(*, file: Path) -> None:
    """Finish what crashes left behind, and say what became of it."""
    from plume.cli.accounts import recover_releases  # noqa: PLC0415 - imports SQLite and more

    recover_releases(file)


@ledger.command(examples=("plume ledger abandon budget.ledger monday",))
@_file
@click.argument("release_id")
def abandon(*, file: Path, release_id: str) -> None:
    """Give up a release that was reserved and never drawn; what it cost stays spent."""
    from plume.cli.accounts import abandon_release  # noqa: PLC0415 - imports SQLite and more

    abandon_release(file, release_id)
