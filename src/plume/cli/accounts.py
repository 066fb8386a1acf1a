"""What `plume ledger` does, as lines to read."""

from contextlib import suppress
from pathlib import Path

import click

from plume.errors import printable
from plume.ledger.entry import Entry, Kind
from plume.ledger.ledger import Ledger
from plume.ledger.price import DELTAS, EPSILONS
from plume.privacy.budget import Budget

_OTHERS_MAY_WRITE = 0o022


def create_dataset(file: Path, name: str, *, epsilon: float, delta: float) -> None:
    """Add a dataset to a ledger, which is made if there is none."""
    budget = Budget(epsilon, delta)
    if _exists(file):
        ledger = Ledger(file)
        ledger.add_dataset(name, budget)
    else:
        ledger = Ledger.create(file, datasets={name: budget})
    _say(f"dataset {name} may spend epsilon {epsilon:g} and delta {delta:g}; ledger head {ledger.head}")


def _exists(file: Path) -> bool:
    with suppress(OSError):  # a name that is too long; whoever makes the file says so
        return file.exists()
    return False


def show_datasets(file: Path) -> None:
    """Print one line per dataset, and what is unfinished."""
    ledger = Ledger(file)
    for name in ledger.datasets():
        dataset = ledger.dataset(name)
        budget, spent = dataset.budget, dataset.spent
        _say(
            f"{name}: spent epsilon {spent.epsilon:.9g} at delta {spent.delta:.3g}, "
            f"of epsilon {budget.epsilon:.9g} and delta {budget.delta:.3g}; epsilon {dataset.left:.9g} is left"
        )
    for release_id, state in ledger.unfinished().items():
        _say(f"release {release_id} is {state}; `plume ledger recover` tidies up, the same release id goes on")
    if file.stat().st_mode & _OTHERS_MAY_WRITE:
        click.echo(f"Others may change {printable(str(file))}; chmod 600 keeps them out.", err=True)


def show_history(file: Path) -> None:
    """Print one line per entry."""
    for entry in Ledger(file).history():
        _say(f"{entry.number:>4}  {entry.at}  {entry.kind:<9}  {entry.dataset}  {_about(entry)}".rstrip())


def verify_ledger(file: Path, head: str | None) -> None:
    """Print the head of a ledger that is as it should be."""
    _say(f"all is well; ledger head {Ledger(file).verify(head)}")


def recover_releases(file: Path) -> None:
    """Print what became of each unfinished release."""
    for release_id, state in Ledger(file).recover().items():
        _say(f"release {release_id} is {state}")


def abandon_release(file: Path, release_id: str) -> None:
    """Say that a release was given up."""
    Ledger(file).abandon(release_id)
    _say(f"release {release_id} is abandoned; what it cost stays spent")


def _about(entry: Entry) -> str:
    if entry.kind not in (Kind.DATASET, Kind.RESERVED):
        return str(entry.release_id)
    amount = f"epsilon {entry.content['epsilon'] / EPSILONS:.9g}, delta {entry.content['delta'] / DELTAS:.3g}"
    return f"{entry.release_id}  {amount}" if entry.release_id else amount


def _say(line: str) -> None:
    click.echo(printable(line))
