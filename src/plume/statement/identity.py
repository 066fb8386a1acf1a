"""Which tables of a statement are the same data, whatever they are called: a table has one unit, under all of its names.

Files are told apart by device and inode, after patterns and folders were expanded. What cannot be told apart counts as the same.
"""

import glob
import os
import re
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plume.engines.buckets import is_address
from plume.engines.engine import DatabaseTable
from plume.engines.files import find_files, is_table_of_spark
from plume.engines.frames import is_spark_frame
from plume.engines.pinned import PinnedTable
from plume.engines.pinning import pinned
from plume.errors import InputError
from plume.plan.dialect import Dialect

Inode = tuple[int, int]
Address = tuple[str, str]
"""A store, and where in it."""

# What Spark takes for a pattern, splits into a host and a path, or cannot hold may be other files there than it is here.
_PLAIN = r"(?!//)[^*?\[\]{}\\\0\ud800-\udfff]*"
_PLAIN_PATH = re.compile(rf"(?=/){_PLAIN}")
_FILE_URL = re.compile(r"file:(?=/(?!/))|file://(?=/)")
# Stores that know no links. A file: of another machine may be one, and two mounts may be of one store.
_PLAIN_ADDRESS = re.compile(rf"((?:s3|s3a|s3n|gs|abfs|abfss|wasb|wasbs|hdfs)://[^/]+)((?:/{_PLAIN})?)")


@dataclass(frozen=True)
class FileSet:
    """The files of a table; those of a DuckDB database together with the table's name."""

    inodes: frozenset[Inode]
    table: str = ""
    paths: tuple[str, ...] = ()
    """The paths, if Spark may find other files there than were found here; then no other table is certainly another one."""

    def overlaps(self, other: "Identity") -> bool:
        """Return whether both can hold the same rows."""
        return isinstance(other, FileSet) and (bool(self.paths or other.paths) or self.shares(other))

    def shares(self, other: "FileSet") -> bool:
        """Return whether both hold rows of the same file."""
        return bool(self.inodes & other.inodes) and (
            not self.table or not other.table or _is_same_name(self.table, other.table)
        )


@dataclass(frozen=True)
class Elsewhere:
    """What is not on this machine: a table or view of Spark's catalogue, a DataFrame, or what lies at an address.

    A view and a DataFrame may be made of any others, which Spark does not say before it opens them. So they are not told apart.
    """

    what: str | int | tuple[str, ...]
    addresses: frozenset[Address] = frozenset()
    """Where it lies, if its text says so."""

    def overlaps(self, other: "Identity") -> bool:
        """Return whether both can hold the same rows."""
        if not isinstance(other, Elsewhere) or not (self.addresses and other.addresses):
            return True
        return any(_can_meet(one, another) for one in self.addresses for another in other.addresses)


@dataclass(frozen=True)
class InMemory:
    """An object of the caller's."""

    number: int

    def overlaps(self, other: "Identity") -> bool:
        """Return whether both can hold the same rows."""
        return self == other


Identity = FileSet | Elsewhere | InMemory


def is_same(one: Identity, other: Identity) -> bool:
    """Return whether two tables certainly share rows; files that are not there share nothing."""
    return one.shares(other) if isinstance(one, FileSet) and isinstance(other, FileSet) else one == other


def identify(data: Any, dialect: Dialect) -> Identity:
    """Say which data a table is, without opening it."""
    if isinstance(data, DatabaseTable):
        return FileSet(_inodes([Path(data.path)]), data.table)
    if isinstance(found := pinned(data), PinnedTable):
        return _identify_pinned(found)
    if not _is_path(data):
        return Elsewhere(id(data)) if is_spark_frame(data) else InMemory(id(data))
    if dialect.statements.has_catalogue:
        return _identify_on_spark([str(path) for path in (data if isinstance(data, list | tuple) else [data])])
    if is_address(data):
        return _identify_addresses(list(map(str, data if isinstance(data, list | tuple) else [data])))
    # What is not there is refused when it is opened.
    with suppress(InputError):
        return FileSet(_inodes(find_files(data).paths))
    return FileSet(frozenset())


def _identify_pinned(table: PinnedTable) -> FileSet:
    """Say which data a version of a table is: all versions of it may hold the same rows, so all files in its folder count."""
    below = frozenset[Inode]() if table.root is None else _below(str(table.root))[0]
    return FileSet(below | _inodes(file.path for file in table.files))


def _is_path(data: Any) -> bool:
    listed = data if isinstance(data, list | tuple) else [data]
    return bool(listed) and all(isinstance(path, str | Path) for path in listed)


def _identify_addresses(named: list[str]) -> Elsewhere:
    """Say which data lies at addresses."""
    addresses = frozenset(filter(None, map(_address, named)))
    return Elsewhere(tuple(named), addresses if all(map(_address, named)) else frozenset())


def _inodes(paths: Iterable[Path]) -> frozenset[Inode]:
    inodes = set()
    for path in paths:
        with suppress(OSError, ValueError):
            inodes.add(_inode(os.stat(path)))  # noqa: PTH116 - of whatever the path leads to
    return frozenset(inodes)


def _inode(status: os.stat_result) -> Inode:
    return status.st_dev, status.st_ino


def _is_same_name(one: str, other: str) -> bool:
    """Return whether two names can be of one table: t, main.t and database.main.t can."""
    short, long = sorted((one.casefold(), other.casefold()), key=len)
    return long == short or long.endswith(f".{short}")


def _identify_on_spark(named: list[str]) -> Identity:
    """Say which data a name or paths are to Spark, whose folder, patterns and links may be others than ours."""
    if len(named) == 1 and is_table_of_spark(named[0]):
        return Elsewhere(named[0])
    addresses = frozenset(filter(None, map(_address, named)))
    if all(map(_address, named)):
        return Elsewhere(tuple(named), addresses)
    here = [_FILE_URL.sub("", path, count=1) for path in named]
    below = [_below(path) for path in here]
    plain = all(_PLAIN_PATH.fullmatch(path) and ".." not in path.split("/") for path in here)
    inodes = frozenset(inode for each, _ in below for inode in each)
    return FileSet(inodes, paths=() if plain and all(complete for _, complete in below) else tuple(named))


def _address(path: str) -> Address | None:
    """Give the address of a place that no other text leads to but one in the same store; None if that is not certain."""
    address = _PLAIN_ADDRESS.fullmatch(path.casefold())
    if address is None or ".." in path.split("/"):
        return None
    return address[1], "".join(f"/{part}" for part in address[2].split("/") if part not in ("", "."))


def _can_meet(one: Address, other: Address) -> bool:
    """Return whether two places can hold the same files: two names may be of one store, and one place may lie in the other."""
    short, long = sorted((f"{one[1]}/", f"{other[1]}/"), key=len)
    return one[0] != other[0] or long.startswith(short)


def _below(path: str) -> tuple[frozenset[Inode], bool]:
    """Find a path, or what matches it as a pattern, with all that lies below, of any ending; and say if all of that could be seen."""
    inodes: set[Inode] = set()
    waiting, complete = [path], True
    with suppress(ValueError):  # no file has a name with a zero byte
        waiting += glob.glob(path)  # noqa: PTH207 - patterns may be absolute
    while waiting:
        try:
            status = os.stat(next_one := waiting.pop())  # noqa: PTH116 - of whatever the path leads to
            if _inode(status) not in inodes and stat.S_ISDIR(status.st_mode):
                waiting += [entry.path for entry in os.scandir(next_one)]
            inodes.add(_inode(status))
        except (OSError, ValueError):
            complete = False
    return frozenset(inodes), complete
