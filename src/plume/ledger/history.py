"""What happened in a ledger, in words: who reads it need not know how entries are kept."""

from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any, Self

from plume.errors import printable
from plume.ledger.entry import Entry, EntryKind
from plume.ledger.price import DELTAS, EPSILONS, in_words

Describe = Callable[[str], str]
"""Says in words what a release answered."""


class History(tuple[Entry, ...]):  # noqa: SLOT001 - a tuple can have none beside its items
    """The entries of a ledger, in order; `print` it, and a notebook shows it as a table."""

    question: Describe

    def __new__(cls, entries: Iterable[Entry], question: Describe) -> Self:
        """Put the words behind releases beside their entries."""
        made = super().__new__(cls, entries)
        made.question = question
        return made

    def __getnewargs__(self) -> tuple[tuple[Entry, ...], Describe]:
        return tuple(self), self.question

    def lines(self) -> list[str]:
        """Say in a line each what happened; names stand in it as they are."""
        return [f"{when(entry)} UTC  {entry.dataset}: {tell(entry, self.question)}" for entry in self]

    def record(self) -> list[dict[str, Any]]:
        """Give every entry as it is kept, and before that what it says: what happened, and the amounts that its units stand for."""
        return [{"what": tell(entry, self.question)} | _amounts(entry) | asdict(entry) for entry in self]

    def __str__(self) -> str:
        return "\n".join(map(printable, self.lines())) or "nothing has happened yet"

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """Show itself in a notebook."""
        from plume.ledger.notebook import show_history  # noqa: PLC0415 - for notebooks only

        return show_history(self)


def when(entry: Entry) -> str:
    """Say when it happened, to the second, in UTC."""
    return entry.at[:19].replace("T", " ")


def tell(entry: Entry, question: Describe) -> str:
    """Say what happened."""
    match entry.kind:
        case EntryKind.DATASET:
            return f"may spend {in_words(entry.content['epsilon'], entry.content['delta'])}"
        case EntryKind.RESERVED:
            return f"{entry.release_id} was charged {in_words(entry.content['epsilon'], entry.content['delta'])}"
        case EntryKind.DRAWING:
            return f"{entry.release_id} began to draw noise"
        case EntryKind.STAGED:
            return f"{entry.release_id} was written"
        case EntryKind.RELEASED:
            return f"{entry.release_id} was released: {question(str(entry.release_id))}"
        case _:
            return f"{entry.release_id} was {entry.kind}; what it cost stays spent"


def _amounts(entry: Entry) -> dict[str, float]:
    units = {"epsilon": EPSILONS, "delta": DELTAS}
    return {name: entry.content[name] / one for name, one in units.items() if name in entry.content}
