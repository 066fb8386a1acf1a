"""The files beside a ledger in a file: released rows, one file per release, each written whole, and the locks of those being made."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from plume.errors import ResourceError
from plume.ledger.store import Shelf
from plume.output.files import OWNER_ONLY, sync_folder, write_new
from plume.redaction import Redaction, redacting


@dataclass(frozen=True)
class FolderShelf(Shelf):
    """The folder `<ledger>.releases`, for its owner only."""

    folder: Path

    def released(self, release_id: str) -> Path:
        """Where the bytes of a release are."""
        return self.folder / f"{release_id}.parquet"

    def staged(self, release_id: str) -> Path:
        """Where they are before they are released."""
        return self.folder / f".stage-{release_id}"

    def stage(self, release_id: str, content: bytes) -> None:
        """Write the bytes where nobody looks for them, and make sure they are on disk."""
        with _room_for(release_id):
            write_new(self.staged(release_id), lambda file: file.write(content), OWNER_ONLY)
            sync_folder(self.folder)

    def is_staged(self, release_id: str) -> bool:
        """Return whether the bytes wait for their final name."""
        return self.staged(release_id).exists()

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

    def read(self, release_id: str) -> bytes:
        """Give the bytes under their final name, or nothing if there are none."""
        released = self.released(release_id)
        return released.read_bytes() if released.exists() else b""

    def remedy(self, release_id: str) -> str:
        """Name the file, and where it may be."""
        return (
            f"put it back from a copy, as {str(self.released(release_id))!r}. "
            "Earlier versions kept it beside the link, if the ledger was reached by one."
        )

    @contextmanager
    def lock_if_free(self, release_id: str) -> Iterator[bool]:
        """Hold a release for this process, and return whether that worked; the system lets go of it if the process dies."""
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


def _held(path: Path) -> int | None:
    """Lock a file, and make sure that it is still the one of that name: its last holder removes it."""
    while True:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR, OWNER_ONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return descriptor
        os.close(descriptor)


def _room_for(release_id: str) -> Redaction:
    failure = ResourceError(
        f"release {release_id!r} could not be written beside its ledger; check that the folder is writable and has free space."
    )
    return redacting(OSError, to=failure)
