"""What notebooks show of ledgers: how full each budget is, what was asked of it, and what happened."""

from collections.abc import Callable, Iterator

from plume.errors import PlumeError
from plume.ledger.entry import Entry, EntryKind
from plume.ledger.history import History, tell, when
from plume.ledger.ledger import Dataset, Ledger
from plume.ledger.price import DELTAS, EPSILONS, Price
from plume.ledger.room import BudgetPlan
from plume.report.sheet import ROWS, Gauge, Listing, Sheet, show_sheet

_LATEST = 50
_WHEN = "when (UTC)"
_LESS = "Releases cost less together than added up; dataset.plan(query) says whether a query still fits."


def show_ledger(ledger: Ledger) -> str:
    """Show how full the budget of each dataset is, and what is unfinished."""
    return _shown(f"ledger {ledger.store}", lambda head: _sheet_of_ledger(head, ledger))


def show_dataset(dataset: Dataset) -> str:
    """Show how full a budget is, and the releases that were charged to it."""
    return _shown(f"dataset {dataset.name}", lambda head: _sheet_of_dataset(head, dataset))


def show_history(history: History) -> str:
    """Show what happened as a table in words."""
    return _shown("history of a ledger", lambda head: _sheet_of_history(head, history))


def show_plan(plan: BudgetPlan) -> str:
    """Show how full a budget would be."""
    before = plan.spent.epsilon / plan.budget.epsilon
    after = plan.spent_after.epsilon / plan.budget.epsilon if plan.spent_after else None
    beside = f"epsilon {plan.budget.epsilon:.9g} in all, {plan.spent.epsilon:.9g} spent"
    head, *lines = str(plan).splitlines()
    return show_sheet(Sheet(head, gauges=[Gauge(plan.dataset, before, after, beside)], notes=lines))


def _shown(head: str, make: Callable[[str], Sheet]) -> str:
    """Show a sheet; a ledger that cannot be read any more says so in its place, since no cell may fail for it."""
    try:
        return show_sheet(make(head))
    except PlumeError as error:
        return show_sheet(Sheet(head, warning=str(error)))


def _sheet_of_ledger(head: str, ledger: Ledger) -> Sheet:
    datasets = [ledger.dataset(name) for name in ledger.datasets()]
    unfinished = [
        f"Release {release_id} is {state}; ledger.recover() tidies up, and the same release id finishes it at no further cost."
        for release_id, state in ledger.unfinished().items()
    ]
    notes = [*unfinished, _LESS] if datasets else ["The ledger has no dataset yet; ledger.add_dataset() gives it one."]
    return Sheet(head, facts={"head": ledger.head}, gauges=[_gauge(dataset) for dataset in datasets], notes=notes)


def _gauge(dataset: Dataset) -> Gauge:
    budget, spent = dataset.budget, dataset.spent
    share = spent.epsilon / budget.epsilon
    left = max(budget.epsilon - spent.epsilon, 0)
    beside = (
        f"epsilon {spent.epsilon:.9g} of {budget.epsilon:.9g} is spent, {left:.9g} is left when added up, "
        f"at delta {budget.delta:.3g}"
    )
    return Gauge(dataset.name, share, share, beside)


def _sheet_of_dataset(head: str, dataset: Dataset) -> Sheet:
    history = dataset.ledger.history()
    releases = {entry.release_id: entry for entry in history if entry.dataset == dataset.name and entry.release_id}
    prices = {entry.release_id: entry.price for entry in history if entry.kind == EntryKind.RESERVED}
    latest = list(releases.values())[-_LATEST:]
    title = f"releases, the latest {_LATEST} of {len(releases)}" if len(releases) > _LATEST else "releases"
    lines = [_release(entry, prices[entry.release_id], history) for entry in latest]
    listings = [Listing(title, lines, frozenset(("release", "state", "what was asked")))] if lines else []
    notes = [_LESS] if lines else ["Nothing was charged yet."]
    return Sheet(head, gauges=[_gauge(dataset)], listings=listings, notes=notes)


def _release(last: Entry, price: Price, history: History) -> dict[str, str]:
    question = history.question(str(last.release_id)) if last.kind == EntryKind.RELEASED else ""
    return {
        "release": str(last.release_id),
        "state": str(last.kind),
        "epsilon": f"{price.epsilon / EPSILONS:.9g}",
        "delta": f"{price.delta / DELTAS:.3g}",
        _WHEN: when(last),
        "what was asked": question,
    }


def _sheet_of_history(head: str, history: History) -> Sheet:
    lines = list(_happened(history))
    notes = [] if lines else ["Nothing has happened yet."]
    title = f"the latest {ROWS} of {len(history)} entries" if len(history) > ROWS else ""
    return Sheet(head, listings=[Listing(title, lines, frozenset(("dataset", "what happened")))], notes=notes)


def _happened(history: History) -> Iterator[dict[str, str]]:
    for entry in history[-ROWS:]:
        yield {_WHEN: when(entry), "dataset": entry.dataset, "what happened": tell(entry, history.question)}
