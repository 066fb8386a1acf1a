"""Which tables of a statement are the same data, whatever they are called: a table has one unit, under all of its names.

Files are told apart by device and inode, after patterns and folders were expanded. What cannot be told apart counts as the same.
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plume.engines.engine import DatabaseTable
from plume.engines.files import find_files
from plume.errors import InputError
from plume.plan.dialect import Dialect

Inode = tuple[int, int]


@dataclass(frozen=True)
class FileSet:
    """The files of a table; those of a DuckDB database together with the table's name."""

    inodes: frozenset[Inode]
    table: str = ""

    def overlaps(self, other: "Identity") -> bool:
        """Return whether both can hold the same rows."""
        return (
            isinstance(other, FileSet)
            and bool(self.inodes & other.inodes)
            and (not self.table or not other.table or _is_same_name(self.table, other.table))
        )


@dataclass(frozen=True)
class SparkName:
    """A table of Spark's catalogue or a path that Spark reads, which may be the place where such a table lies."""

    name: str

    def overlaps(self, other: "Identity") -> bool:
        """Return whether both can hold the same rows; only two names of tables, or two plain paths, can be told apart."""
        if not isinstance(other, SparkName) or ("/" in self.name) != ("/" in other.name):
            return True
        return _is_same_path(self.name, other.name) if "/" in self.name else _is_same_name(self.name, other.name)


@dataclass(frozen=True)
class InMemory:
    """An object of the caller's."""

    number: int

    def overlaps(self, other: "Identity") -> bool:
        """Return whether both can hold the same rows; a frame of Spark's may read a table of the catalogue."""
        return self == other or isinstance(other, SparkName)


Identity = FileSet | SparkName | InMemory


def is_same(one: Identity, other: Identity) -> bool:
    """Return whether two tables certainly share rows; files that are not there share nothing."""
    return one.overlaps(other) if isinstance(one, FileSet) else one == other


def identify(data: Any, dialect: Dialect) -> Identity:
    """Say which data a table is, without opening it."""
    if isinstance(data, DatabaseTable):
        return FileSet(_inodes([data.path]), data.table)
    if not _is_path(data):
        return InMemory(id(data))
    listed = data if isinstance(data, list | tuple) else [data]
    if dialect.statements.has_catalogue and not all(os.path.exists(path) for path in listed):  # noqa: PTH110 - text or paths
        return SparkName(str(listed[0]) if len(listed) == 1 else "/*")
    # What is not there is refused when it is opened.
    with suppress(InputError):
        return FileSet(_inodes(find_files(data).paths))
    return FileSet(frozenset())


def _is_path(data: Any) -> bool:
    listed = data if isinstance(data, list | tuple) else [data]
    return bool(listed) and all(isinstance(path, str | Path) for path in listed)


def _inodes(paths: list[Path] | tuple[Path, ...]) -> frozenset[Inode]:
    found = set()
    for path in paths:
        with suppress(OSError, ValueError):
            status = os.stat(path)  # noqa: PTH116 - of whatever the path leads to
            found.add((status.st_dev, status.st_ino))
    return frozenset(found)


def _is_same_path(one: str, other: str) -> bool:
    """Return whether two paths can lead to the same files: one is a pattern, or lies in the other, or they are of two file systems."""
    schemes = {path.partition("://")[0] if "://" in path else "" for path in (one, other)}
    if any(sign in one + other for sign in ("*", "?", "[", "{", "..", "./")) or len(schemes) > 1:
        return True
    short, long = sorted((one.rstrip("/"), other.rstrip("/")), key=len)
    return long == short or long.startswith(f"{short}/")


def _is_same_name(one: str, other: str) -> bool:
    """Return whether two names can be of one table: t, main.t and database.main.t can."""
    short, long = sorted((one.casefold(), other.casefold()), key=len)
    return long == short or long.endswith(f".{short}")
