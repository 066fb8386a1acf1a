"""One line of a ledger. Each holds the hash of the one before, so that none can be changed, taken out or put in unseen."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any

from plume.errors import LedgerDamaged
from plume.ledger.price import Price

BEGINNING = "0" * 64


class EntryKind(StrEnum):
    """What an entry says happened."""

    DATASET = "dataset"
    RESERVED = "reserved"
    DRAWING = "drawing"
    STAGED = "staged"
    RELEASED = "released"
    LOST = "lost"
    ABANDONED = "abandoned"


MOVES = {
    EntryKind.RESERVED: None,
    EntryKind.DRAWING: EntryKind.RESERVED,
    EntryKind.STAGED: EntryKind.DRAWING,
    EntryKind.RELEASED: EntryKind.STAGED,
    EntryKind.LOST: EntryKind.DRAWING,
    EntryKind.ABANDONED: EntryKind.RESERVED,
}
"""Which entry of a release each must follow."""

_RESERVED = ("epsilon", "delta", "pure", "mu", "passing", "total_epsilon", "total_delta", "charges_before")
_CONTENTS: dict[EntryKind, dict[str, type]] = {
    EntryKind.DATASET: {"epsilon": int, "delta": int},
    EntryKind.RESERVED: dict.fromkeys(_RESERVED, int) | {"request": str},
    EntryKind.STAGED: {"sha256": str},
}
"""What entries hold, by their kinds; those of the others hold nothing."""


@dataclass(frozen=True)
class Entry:
    """What happened, to which dataset and which release; `content` holds numbers and hashes, never anything read from data."""

    number: int
    kind: EntryKind
    dataset: str
    release_id: str | None
    at: str
    """When, in UTC."""
    content: Mapping[str, Any] = field(default_factory=dict)
    previous: str = BEGINNING
    hash: str = ""

    @property
    def price(self) -> Price:
        """What a reservation costs."""
        return Price(**{part.name: self.content[part.name] for part in fields(Price)})


_HASHED = tuple(part.name for part in fields(Entry) if part.name != "hash")


def canonical_json(content: Mapping[str, Any]) -> str:
    """Write content down in the one way that is hashed."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


def read_content(kind: EntryKind, text: str) -> Mapping[str, Any]:
    """Read what an entry holds; raises ValueError if no entry of its kind holds that."""
    content = json.loads(text)
    if not isinstance(content, dict) or {name: type(value) for name, value in content.items()} != _CONTENTS.get(
        kind, {}
    ):
        raise ValueError
    return content


def hash_of(entry: Entry) -> str:
    """Hash an entry together with the hash of the one before."""
    hashed = {name: getattr(entry, name) for name in _HASHED}
    return hashlib.sha256(canonical_json(hashed).encode()).hexdigest()


def refuse_broken_chain(entries: Iterable[Entry]) -> None:
    """Refuse a ledger whose entries do not follow from each other: by hash, by number, and by the steps of each release."""
    previous, states = BEGINNING, dict[str | None, EntryKind]()
    for number, entry in enumerate(entries, start=1):
        if (entry.number, entry.previous, entry.hash) != (number, previous, hash_of(entry)):
            raise LedgerDamaged(
                f"entry {number} does not follow from the one before it: the ledger was changed by hand."
            )
        if not _is_in_order(entry, states):
            raise LedgerDamaged(f"entry {number} is out of order: the ledger was changed by hand.")
        previous, states[entry.release_id] = entry.hash, entry.kind


def _is_in_order(entry: Entry, states: Mapping[str | None, EntryKind]) -> bool:
    if entry.kind == EntryKind.DATASET:
        return entry.release_id is None
    return entry.release_id is not None and states.get(entry.release_id) == MOVES[entry.kind]
