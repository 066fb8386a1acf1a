"""Whether a ledger is what it was: the database, the chain, the order of every release, the budgets, and the released bytes."""

from plume.errors import LedgerDamaged
from plume.ledger.claim import claim_of
from plume.ledger.composition import total
from plume.ledger.entry import BEGINNING, Entry, EntryKind, refuse_broken_chain
from plume.ledger.price import DatasetBudget, Price
from plume.ledger.store import Store, read_entries


def verify(store: Store, head: str | None) -> str:
    """Raise LedgerDamaged at the first thing that is wrong; return the head."""
    store.refuse_damaged()
    entries = read_entries(store)
    refuse_broken_chain(entries)
    hashes = [BEGINNING, *(entry.hash for entry in entries)]
    if head is not None and head not in hashes:
        raise LedgerDamaged("the given head is not in the ledger: this is an older copy, or another ledger.")
    _refuse_overspending(entries)
    for entry in entries:
        if entry.kind == EntryKind.RELEASED:
            claim_of(store, _reservation(entries, entry)).read()
    return hashes[-1]


def _refuse_overspending(entries: tuple[Entry, ...]) -> None:
    """Compose anew what was charged, after each charge, and compare with the budgets."""
    budgets: dict[str, DatasetBudget] = {}
    charges: dict[str, list[Price]] = {}
    for entry in entries:
        if entry.kind == EntryKind.DATASET:
            budgets[entry.dataset], charges[entry.dataset] = DatasetBudget(**entry.content), []
        elif entry.kind == EntryKind.RESERVED:
            charges[entry.dataset].append(entry.price)
    for dataset, charged in charges.items():
        if not total(charged, budgets[dataset]).within(budgets[dataset]):
            raise LedgerDamaged(
                f"dataset {dataset!r} was charged more than its budget: the ledger was changed by hand, "
                "or charged by Plume 0.1.0, which composed many charges to slightly too little."
            )


def unfinished(entries: tuple[Entry, ...]) -> dict[str, EntryKind]:
    """Find the releases that were begun and neither finished nor given up."""
    states = {entry.release_id: entry.kind for entry in entries if entry.release_id is not None}
    open_states = (EntryKind.RESERVED, EntryKind.DRAWING, EntryKind.STAGED)
    return {release_id: kind for release_id, kind in states.items() if kind in open_states}


def _reservation(entries: tuple[Entry, ...], entry: Entry) -> Entry:
    return next(one for one in entries if one.release_id == entry.release_id)
