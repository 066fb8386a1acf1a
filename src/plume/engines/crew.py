"""Threads that work on pieces of one thing, and end with it."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
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
