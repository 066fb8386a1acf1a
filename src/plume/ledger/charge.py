"""Where a release is charged to its dataset: `charge` does it once, before noise is drawn, and only if the budget of the dataset allows it.

`running.py` asks for it when the data is open and before the first step runs, by way of `ledger.py`, `room.py`, `publishing.py` and
`claim.py`. A release id that was charged before is not charged again. If its rows were released, it gets them; if the run ended before
noise was drawn, it goes on; if rows were drawn and are lost, or the release was given up, it gets an error. A unique index of the
database makes sure that no id is charged twice. `publishing.py` reads off the plan what is charged, `price.py` says
how it is written down, and `composition.py` how charges add up.
"""

from dataclasses import asdict

from plume.errors import BudgetExceeded, LedgerError
from plume.ledger.composition import least_total, total
from plume.ledger.entry import Entry, EntryKind
from plume.ledger.price import DatasetBudget, Price, in_words
from plume.ledger.store import Refused, Store, append, read_entries


def charge(store: Store, dataset: str, release_id: str, *, request: str, price: Price) -> Entry:
    """Charge a dataset if its budget allows it.

    The total is worked out first, and written only if no other charge was written meanwhile; otherwise it is worked out again.
    """
    while True:
        budget, charges = account_of_dataset(read_entries(store), dataset)
        after = total([*charges, price], budget)
        if not after.within(budget):
            raise BudgetExceeded(_refusal(dataset, price, budget, charges))
        content = asdict(price) | {
            "request": request,
            "total_epsilon": after.epsilon,
            "total_delta": after.delta,
            "charges_before": len(charges),
        }
        try:
            return append(store, EntryKind.RESERVED, dataset, release_id, content)
        except Refused:
            if len(account_of_dataset(read_entries(store), dataset)[1]) == len(charges):
                raise


def account_of_dataset(entries: tuple[Entry, ...], dataset: str) -> tuple[DatasetBudget, list[Price]]:
    """Give the budget of a dataset, and what was charged to it."""
    budgets = {entry.dataset: DatasetBudget(**entry.content) for entry in entries if entry.kind == EntryKind.DATASET}
    if dataset not in budgets:
        known = ", ".join(map(repr, budgets)) or "none yet"
        raise LedgerError(f"the ledger has no dataset {dataset!r}; it has {known}.")
    return budgets[dataset], [
        entry.price for entry in entries if entry.kind == EntryKind.RESERVED and entry.dataset == dataset
    ]


def _refusal(dataset: str, price: Price, budget: DatasetBudget, charges: list[Price]) -> str:
    spent = least_total(charges, budget)
    added = sum(charged.delta for charged in charges)
    needed = in_words(price.epsilon, price.delta)
    left = in_words(budget.epsilon - spent.epsilon, max(budget.delta - added, 0))
    return (
        f"this release needs {needed}; dataset {dataset!r} has {left} left of {in_words(budget.epsilon, budget.delta)}."
    )
