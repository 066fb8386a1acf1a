"""One line of a ledger. Each holds the hash of the one before, so that none can be changed, taken out or put in unseen."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any

from plume.ledger.charge import Charge

BEGINNING = "0" * 64


class Kind(StrEnum):
    """What an entry says happened."""

    DATASET = "dataset"
    RESERVED = "reserved"
    DRAWING = "drawing"
    STAGED = "staged"
    RELEASED = "released"
    LOST = "lost"
    ABANDONED = "abandoned"


MOVES = {
    Kind.RESERVED: None,
    Kind.DRAWING: Kind.RESERVED,
    Kind.STAGED: Kind.DRAWING,
    Kind.RELEASED: Kind.STAGED,
    Kind.LOST: Kind.DRAWING,
    Kind.ABANDONED: Kind.RESERVED,
}
"""Which entry of a release each must follow."""


@dataclass(frozen=True)
class Entry:
    """What happened, to which dataset and which release; `content` holds numbers and hashes, never anything read from data."""

    number: int
    kind: Kind
    dataset: str
    release_id: str | None
    at: str
    """When, in UTC."""
    content: Mapping[str, Any] = field(default_factory=dict)
    previous: str = BEGINNING
    hash: str = ""

    @property
    def charge(self) -> Charge:
        """What a reservation costs."""
        return Charge(**{part.name: self.content[part.name] for part in fields(Charge)})


def written(content: Mapping[str, Any]) -> str:
    """Write content down in the one way that is hashed."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


def hash_of(entry: Entry) -> str:
    """Hash an entry together with the hash of the one before."""
    said = asdict(entry)
    del said["hash"]
    return hashlib.sha256(written(said).encode()).hexdigest()


def first_broken(entries: Iterable[Entry]) -> int | None:
    """Find the first entry that does not follow from those before, by hash and by number."""
    previous = BEGINNING
    for number, entry in enumerate(entries, start=1):
        if (entry.number, entry.previous, entry.hash) != (number, previous, hash_of(entry)):
            return number
        previous = entry.hash
    return None
