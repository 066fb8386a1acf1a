"""`plume.Ledger`: datasets with a total budget, and what was spent of it. A release is charged in `charge.py` beside this file."""

import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from plume.arguments import making_checked, methods_checked
from plume.errors import LedgerDamaged, LedgerError, printable
from plume.explanation import Explanation
from plume.ledger import verification
from plume.ledger.charge import account_of_dataset
from plume.ledger.claim import Claim, Earlier, claim_of, claimed
from plume.ledger.composition import least_total
from plume.ledger.entry import BEGINNING, EntryKind, refuse_broken_chain
from plume.ledger.history import History
from plume.ledger.places import store_at
from plume.ledger.price import DELTAS, EPSILONS, dataset_budget
from plume.ledger.request import describe, recorded
from plume.ledger.room import BudgetPlan, DatasetAccount, charge_or_name_largest, plan_charge
from plume.ledger.sqlite import SQLite
from plume.ledger.store import Book, Shelf, Store, add_entry, append, entries_of, read_entries
from plume.planning import refuse_other_than_query
from plume.privacy.budget import Budget, refuse_other_than_budget
from plume.privacy.cost import Spent
from plume.query import Query

_RELEASE_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LONGEST_NAME = 200


@making_checked()
@methods_checked("ledger", name="what the dataset is called", release_id="what the release is called")
@dataclass(frozen=True)
class Ledger:
    """A file that holds the budgets of datasets and every release charged to them.

    Guarantee: no crash, retry or race releases more noise draws than were charged, and no dataset is charged more than its budget.
    docs/guarantees/ledger.md.
    """

    store: Store
    """Where it is kept."""

    def __init__(self, path: str | Path) -> None:
        object.__setattr__(self, "store", store_at(path))
        self.store.refuse_other()

    @classmethod
    def create(cls, path: str | Path, *, datasets: Mapping[str, Budget] | None = None) -> Self:
        """Create a ledger where there is none, with the given datasets or empty; it is created whole or not at all."""
        store = store_at(path)
        contents = {name: _dataset(name, budget) for name, budget in (datasets or {}).items()}

        def fill(book: Book) -> None:
            for name, content in contents.items():
                add_entry(book, EntryKind.DATASET, name, None, content)

        store.make(fill)
        return cls(path)

    def add_dataset(self, name: str, budget: Budget) -> "Dataset":
        """Give a dataset a budget, once and for all."""
        content = _dataset(name, budget)
        if name in self.datasets():
            raise LedgerError(f"dataset {name!r} is in the ledger already; its budget cannot be changed.")
        append(self.store, EntryKind.DATASET, name, None, content)
        return Dataset(self, name)

    def dataset(self, name: str) -> "Dataset":
        """Give the dataset of that name, to be charged for a run."""
        account_of_dataset(read_entries(self.store), name)
        return Dataset(self, name)

    def datasets(self) -> tuple[str, ...]:
        """Name all datasets."""
        return tuple(entry.dataset for entry in self.history() if entry.kind == EntryKind.DATASET)

    def history(self) -> History:
        """Give everything that happened, in order; it prints and shows itself in words."""
        return History(read_entries(self.store), self.question)

    def question(self, release_id: str) -> str:
        """Say in words what a release answered, as its file records it; the ledger itself keeps a hash of it."""
        check_release_id(release_id)
        claim = self._claim(release_id)
        if claim.state != EntryKind.RELEASED:
            return "not released; what was asked is kept as a hash only"
        with suppress(LedgerDamaged):
            return printable(describe(recorded(claim.read())["query"]))
        return "its file is missing or was changed"

    @property
    def head(self) -> str:
        """The hash of the last entry; whoever has noted it can tell an older copy from the ledger."""
        entries = self.history()
        return entries[-1].hash if entries else BEGINNING

    def verify(self, head: str | None = None) -> str:
        """Check everything that can be checked, and that a head noted earlier is in the ledger; return the current head."""
        return verification.verify(self.store, head)

    def recover(self) -> dict[str, str]:
        """Finish what crashes left behind: staged releases are released, half-drawn ones are lost. Running ones are left alone."""
        refuse_broken_chain(self.history())
        return {release_id: self._recover(release_id) for release_id in self.unfinished()}

    def unfinished(self) -> dict[str, str]:
        """Name the releases that were begun and neither finished nor given up, each with its state."""
        return {release_id: str(kind) for release_id, kind in verification.unfinished(self.history()).items()}

    def _recover(self, release_id: str) -> str:
        with self.shelf.lock_if_free(release_id) as held:
            return str(self._claim(release_id).recover()) if held else "being made by another process"

    def abandon(self, release_id: str) -> None:
        """Give up a release that was reserved and never drawn; what it cost stays spent."""
        check_release_id(release_id)
        with self.shelf.lock(release_id):
            self._claim(release_id).abandon()

    def _claim(self, release_id: str) -> Claim:
        entries = entries_of(self.store, release_id)
        if not entries:
            raise LedgerError(f"the ledger has no release {release_id!r}.")
        return claim_of(self.store, entries[0])

    def _repr_html_(self) -> str:
        """Show itself in a notebook: how full each budget is."""
        from plume.ledger.notebook import show_ledger  # noqa: PLC0415 - for notebooks only

        return show_ledger(self)

    @property
    def path(self) -> Path:
        """The file that holds it, if a file does."""
        if not isinstance(self.store, SQLite):
            raise LedgerError(f"the ledger {str(self.store)!r} is in a database; it has no path.")
        return self.store.path

    @property
    def shelf(self) -> Shelf:
        """Where released rows are kept."""
        return self.store.shelf


@methods_checked("dataset")
@dataclass(frozen=True)
class Dataset:
    """One dataset of a ledger."""

    ledger: Ledger
    name: str

    @property
    def budget(self) -> Budget:
        """The most all releases may spend together."""
        budget, _ = account_of_dataset(self.ledger.history(), self.name)
        return Budget(budget.epsilon / EPSILONS, budget.delta / DELTAS)

    @property
    def spent(self) -> Spent:
        """What was spent so far: an epsilon, and the delta it holds at."""
        budget, charges = account_of_dataset(self.ledger.history(), self.name)
        spent = least_total(charges, budget)
        return Spent(spent.epsilon / EPSILONS, spent.delta / DELTAS)

    @property
    def left(self) -> float:
        """The budget's epsilon less the epsilon spent; a query may fit with more than that, since releases compose to less than their sum.

        `plan(query)` names the largest epsilon with which a query fits.
        """
        budget, charges = account_of_dataset(self.ledger.history(), self.name)
        return max(budget.epsilon - least_total(charges, budget).epsilon, 0) / EPSILONS

    def plan(self, query: Query, *, pipeline: str = "plume") -> BudgetPlan:
        """Say whether a query would fit, and the largest epsilon with which it would; nothing is read or charged."""
        refuse_other_than_query(query)
        return plan_charge(self.name, self._account(), query, pipeline)

    def charged(self, charge: Callable[[], None], explanation: Explanation) -> None:
        """Let a run charge this dataset; a refusal names the largest epsilon with which its query still fits."""
        charge_or_name_largest(charge, explanation, self._account)

    def _account(self) -> DatasetAccount:
        return DatasetAccount(*account_of_dataset(self.ledger.history(), self.name))

    def _repr_html_(self) -> str:
        """Show itself in a notebook: how full its budget is, and the releases it paid for."""
        from plume.ledger.notebook import show_dataset  # noqa: PLC0415 - for notebooks only

        return show_dataset(self)

    def claimed(
        self, release_id: str, request: str, *, earlier: Earlier | None = None
    ) -> AbstractContextManager[Claim]:
        """Claim a release for this process."""
        check_release_id(release_id)
        return claimed(self.ledger.store, self.name, release_id, request, earlier=earlier)


def _dataset(name: Any, budget: Any) -> Mapping[str, int]:
    """Check a name and a budget, and give what the entry of a dataset holds."""
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= _LONGEST_NAME:
        raise LedgerError(f"the dataset's name is {name!r}; it must be a line of 1 to {_LONGEST_NAME} characters.")
    refuse_other_than_budget(budget)
    return asdict(dataset_budget(budget))


def check_release_id(release_id: Any) -> None:
    """Refuse an id that could be anything but the name of a file."""
    if not isinstance(release_id, str) or not _RELEASE_ID.fullmatch(release_id):
        raise LedgerError(
            f"release_id is {release_id!r}; it must be 1 to 64 letters without accents, digits, hyphens or underscores."
        )
