"""One release on its way through a ledger: reserved, drawn once, staged, released. Each step is on disk before the next begins.

    reserved ─ drawing ─ staged ─ released
       │          └ lost: noise was drawn and nobody may see it
       └ abandoned

Whatever was reserved stays spent, since a refund would tell that a run failed, and why may depend on the data.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from plume.errors import LedgerDamaged, LedgerError
from plume.ledger.charge import charge
from plume.ledger.entry import MOVES, Entry, EntryKind
from plume.ledger.price import Price
from plume.ledger.store import Refused, Store, append, entries_of
from plume.redaction import Redaction


@dataclass(frozen=True)
class Claim:
    """A release that this process, and no other, may work on."""

    store: Store
    dataset: str
    release_id: str
    request: str
    """A hash of what is asked: the same id never stands for two questions."""

    @property
    def state(self) -> EntryKind | None:
        """How far the release is, as the ledger has it."""
        entries = self._entries()
        return entries[-1].kind if entries else None

    @property
    def released_at(self) -> str | None:
        """When it was released, if it was."""
        return next((entry.at for entry in self._entries() if entry.kind == EntryKind.RELEASED), None)

    @property
    def price(self) -> Price | None:
        """What was charged for it, if anything was."""
        entries = self._entries()
        return entries[0].price if entries else None

    def reserve(self, price: Price) -> None:
        """Charge the dataset, once; a release that is reserved already is not charged again."""
        if self.state is None:
            with self._held(None):
                charge(self.store, self.dataset, self.release_id, request=self.request, price=price)

    def begin_drawing(self) -> Entry:
        """Write down that noise is drawn from here on: from now on a crash loses the release."""
        return self._append(EntryKind.DRAWING, {})

    def stage(self, content: bytes) -> None:
        """Write the release down where nobody sees it yet."""
        with self._held(EntryKind.DRAWING):
            self.store.shelf.stage(self.release_id, content)
        self._append(EntryKind.STAGED, {"sha256": _hash_of_bytes(content)})

    def publish(self) -> None:
        """Let everybody see it; again after a crash, if need be."""
        if self.store.shelf.is_staged(self.release_id):
            self.store.shelf.publish(self.release_id)
        self.read()
        self._append(EntryKind.RELEASED, {})

    def read(self) -> bytes:
        """Give the bytes that were released, the same ones for ever."""
        expected = next(entry.content["sha256"] for entry in self._entries() if entry.kind == EntryKind.STAGED)
        content = self.store.shelf.read(self.release_id)
        if _hash_of_bytes(content) != expected:
            raise LedgerDamaged(
                f"the file of release {self.release_id!r} is missing or was changed; {self.store.shelf.remedy(self.release_id)}"
            )
        return content

    def recover(self) -> EntryKind | None:
        """Bring a release that a crash left behind to where it belongs; doing it twice is doing it once."""
        match self.state:
            case EntryKind.DRAWING:
                self.store.shelf.drop_stage(self.release_id)
                self._append(EntryKind.LOST, {})
            case EntryKind.STAGED:
                self.publish()
        return self.state

    def abandon(self) -> None:
        """Give a reserved release up for good; what it cost stays spent."""
        if self.recover() != EntryKind.RESERVED:
            raise LedgerError(f"release {self.release_id!r} is {self.state}; only a reserved one can be abandoned.")
        self._append(EntryKind.ABANDONED, {})

    def _entries(self) -> tuple[Entry, ...]:
        return entries_of(self.store, self.release_id)

    def _append(self, kind: EntryKind, content: dict[str, str]) -> Entry:
        with self._held(MOVES[kind]):
            return append(self.store, kind, self.dataset, self.release_id, content)

    def _held(self, state: EntryKind | None) -> Redaction:
        """Say who is to blame if the database refuses the step from a state: another process, if the release has left that state."""
        taken = LedgerError(
            f"release {self.release_id!r} was taken over by another process, since this one had lost its connection to the ledger; "
            "ask again with the same release_id."
        )
        return Redaction((Refused,), lambda error: error if self.state == state else taken)


def claim_of(store: Store, reservation: Entry) -> Claim:
    """Look at a release as the process does that claims it."""
    return Claim(store, reservation.dataset, str(reservation.release_id), reservation.content["request"])


Earlier = Callable[[str, Claim], bool]
"""Returns whether what an earlier version wrote as the request of a release is the request of this claim."""


@contextmanager
def claimed(
    store: Store, dataset: str, release_id: str, request: str, *, earlier: Earlier | None = None
) -> Iterator[Claim]:
    """Claim a release for this process, and recover it if a crash left it behind."""
    with store.shelf.lock(release_id):
        claim = Claim(store, dataset, release_id, request)
        _refuse_another_question(entries_of(store, release_id), claim, earlier)
        if claim.recover() in (EntryKind.LOST, EntryKind.ABANDONED):
            raise LedgerError(
                f"release {release_id!r} is {claim.state}: its budget is spent and nothing of it was or will be shown; "
                "use another release_id, which is charged anew."
            )
        yield claim


def _refuse_another_question(entries: tuple[Entry, ...], claim: Claim, earlier: Earlier | None) -> None:
    if not entries:
        return
    written = entries[0].content["request"]
    known = written == claim.request or (earlier is not None and earlier(written, claim))
    if entries[0].dataset != claim.dataset or not known:
        raise LedgerError(
            f"release_id {claim.release_id!r} was used for another query or dataset, or by a version of Plume that cannot be compared; "
            "choose another one."
        )


def _hash_of_bytes(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
