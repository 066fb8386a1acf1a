"""The paper's three systems in plain Python, straight from its pseudocode: heaps, maps and reduces. The oracle of all engine tests.

Nothing here is shared with the package. A measure is the paper's M without its noise: combine_raw, preprocess, combine_keyed.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

Key = tuple[Any, ...]
Total = dict[Any, int]


@dataclass(frozen=True)
class Record:
    user: Any
    key: Key
    values: dict[str, Any]


class Measure(Protocol):
    def combine_raw(self, records: Sequence[Record]) -> Any: ...
    def preprocess(self, state: Any) -> dict[Any, int]: ...


@dataclass(frozen=True)
class System:
    """What all three systems are given."""

    limit: int
    salt: str
    measures: tuple[Measure, ...]
    retain_key: Callable[[int], bool]
    weight: Callable[[int], int] = lambda keys: 1  # noqa: ARG005
    """What a user with so many keys gives to each; the paper counts users."""
    retain_again: Callable[[int], bool] | None = None
    """A second round among the keys that are left, which the paper does not have."""


@dataclass
class Heap:
    """Keeps what belongs to the first `key_limit` keys in a hash order that is the user's own."""

    user: Any
    key_limit: int
    salt: str
    content: dict[Key, list[Record]] = field(default_factory=lambda: defaultdict(list))

    def insert(self, record: Record) -> None:
        self.content[record.key].append(record)

    def top(self) -> list[tuple[Key, list[Record]]]:
        ordered = sorted(self.content, key=lambda key: (self._hash(key), key))
        return [(key, self.content[key]) for key in ordered[: self.key_limit]]

    def _hash(self, key: Key) -> str:
        *measured, last = [str(part) for part in (self.user, *key)]
        encoded = self.salt + "".join(f"{len(text)}:{text}" for text in measured) + last
        return hashlib.md5(encoded.encode(), usedforsecurity=False).hexdigest()[:12]


def contribution_bound(system: System, records: Iterable[Record]) -> list[Heap]:
    heaps: dict[Any, Heap] = {}
    for record in records:
        if record.user is None or any(part is None for part in record.key):
            continue
        heap = heaps.setdefault(record.user, Heap(record.user, system.limit, system.salt))
        heap.insert(record)
    return list(heaps.values())


def key_occurrences(system: System, heaps: Iterable[Heap]) -> dict[Key, int]:
    counts: dict[Key, int] = defaultdict(int)
    for heap in heaps:
        top = heap.top()
        for key, _ in top:
            counts[key] += system.weight(len(top))
    return counts


def apply_privacy(system: System, heaps: list[Heap]) -> set[Key]:
    selected = retained(system, heaps, system.retain_key)
    if system.retain_again is None:
        return selected
    records = [record for heap in heaps for of_key in heap.content.values() for record in of_key]
    left = contribution_bound(system, (record for record in records if record.key not in selected))
    return selected | retained(system, left, system.retain_again)


def retained(system: System, heaps: list[Heap], retain_key: Callable[[int], bool]) -> set[Key]:
    return {key for key, count in key_occurrences(system, heaps).items() if retain_key(count)}


def aggregate(system: System, heaps: Iterable[Heap], selected: set[Key]) -> dict[Key, tuple[Total, ...]]:
    totals = {key: [defaultdict(int) for _ in system.measures] for key in selected}  # the dummy value of each key of S
    for heap in heaps:
        for key, records in heap.top():
            if key not in selected:
                continue
            for position, measure in enumerate(system.measures):
                for name, said in measure.preprocess(measure.combine_raw(records)).items():
                    totals[key][position][name] += said
    return {key: tuple(total) for key, total in totals.items()}


def naive(system: System, records: Sequence[Record]) -> dict[Key, tuple[Total, ...]]:
    """Section 5: bound, select, join, bound again, aggregate."""
    selected = apply_privacy(system, contribution_bound(system, records))
    return of_public_keys(system, records, selected)


def runtime_optimized(system: System, records: Sequence[Record]) -> dict[Key, tuple[Total, ...]]:
    """Section 6: everything from one bounding."""
    heaps = contribution_bound(system, records)
    return aggregate(system, heaps, apply_privacy(system, heaps))


def plume(system: System, records: Sequence[Record]) -> dict[Key, tuple[Total, ...]]:
    """Section 7: the data gathered by user once, D_0, is bounded, and then filtered and bounded again."""
    gathered: dict[Any, list[Record]] = defaultdict(list)
    for record in records:
        gathered[record.user].append(record)
    again = [record for of_user in gathered.values() for record in of_user]
    selected = apply_privacy(system, contribution_bound(system, again))
    return aggregate(system, contribution_bound(system, (r for r in again if r.key in selected)), selected)


def of_public_keys(system: System, records: Sequence[Record], selected: set[Key]) -> dict[Key, tuple[Total, ...]]:
    """With S known, restrict to it, then bound and aggregate."""
    joined = [record for record in records if record.key in selected]
    return aggregate(system, contribution_bound(system, joined), selected)


PIPELINES = {"naive": naive, "runtime_optimized": runtime_optimized, "plume": plume}
