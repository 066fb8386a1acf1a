"""The files beside a ledger: released rows, one file per release, each written whole, and the locks of those being made."""

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from plume.errors import LedgerError, ResourceError
from plume.ledger.store import sync_folder


@dataclass(frozen=True)
class Shelf:
    """The folder `<ledger>.releases`, for its owner only."""

    folder: Path

    def released(self, release_id: str) -> Path:
        """Where the bytes of a release are."""
        return self.folder / f"{release_id}.parquet"

    def staged(self, release_id: str) -> Path:
        """Where they are before they are released."""
        return self.folder / f".stage-{release_id}"

    def stage(self, release_id: str, content: bytes) -> str:
        """Write the bytes where nobody looks for them, make sure they are on disk, and return their hash."""
        with _room_for(release_id):
            descriptor = os.open(self.staged(release_id), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            sync_folder(self.folder)
        return hash_of_bytes(content)

    def publish(self, release_id: str) -> None:
        """Give the bytes their final name, in one go."""
        with _room_for(release_id):
            self.staged(release_id).replace(self.released(release_id))
            sync_folder(self.folder)

    def drop_stage(self, release_id: str) -> None:
        """Remove bytes that were drawn and must not be seen."""
        with suppress(FileNotFoundError):
            self.staged(release_id).unlink()
            sync_folder(self.folder)

    @contextmanager
    def lock(self, release_id: str) -> Iterator[None]:
        """Hold a release for this process, or refuse if another one does."""
        with self.lock_if_free(release_id) as held:
            if not held:
                raise LedgerError(
                    f"release {release_id!r} is being made by another process; wait for it, then ask again."
                )
            yield

    @contextmanager
    def lock_if_free(self, release_id: str) -> Iterator[bool]:
        """Hold a release for this process, and tell whether that worked; the system lets go of it if the process dies."""
        path = self.folder / f".lock-{release_id}"
        with _room_for(release_id):
            self.folder.mkdir(mode=0o700, exist_ok=True)
            descriptor = _held(path)
        if descriptor is None:
            yield False
            return
        try:
            yield True
        finally:
            path.unlink(missing_ok=True)
            os.close(descriptor)


def hash_of_bytes(content: bytes) -> str:
    """Hash the bytes of a release."""
    return hashlib.sha256(content).hexdigest()


def _held(path: Path) -> int | None:
    """Lock a file, and make sure that it is still the one of that name: its last holder removes it."""
    while True:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return descriptor
        os.close(descriptor)


@contextmanager
def _room_for(release_id: str) -> Iterator[None]:
    failed = False
    try:
        yield
    except OSError:
        failed = True
    if failed:
        raise ResourceError(
            f"release {release_id!r} could not be written beside its ledger; is the folder writable, and is there room?"
        )
