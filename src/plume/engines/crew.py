"""Threads that work on pieces of one thing, and end with it; and the memory that they have together."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Self, TypeVar

_Done = TypeVar("_Done")


class Crew:
    """A number of threads, which end with the work that is begun when the one that waits is interrupted."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._pool = ThreadPoolExecutor(number)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def each(self, tasks: Iterable[Callable[[], _Done]]) -> list[_Done]:
        """Do tasks, as many at a time as there are threads."""
        begun = [self._pool.submit(task) for task in tasks]
        return [one.result() for one in begun]


class Room:
    """How many bytes are left for what threads keep."""

    def __init__(self, left: int) -> None:
        self._left, self._lock = left, Lock()
        self.is_enough = left >= 0

    def take(self, size: int) -> None:
        """Take some of it; there may not be enough."""
        with self._lock:
            self._left -= size
            self.is_enough = self.is_enough and self._left >= 0

    def refuse(self) -> None:
        """Let nobody have any more."""
        self.is_enough = False
