"""The paper's three systems in plain Python, straight from its pseudocode: heaps, maps and reduces. The oracle of all engine tests.

Nothing here is shared with the package. A measure is the paper's M without its noise: combine_raw, preprocess, combine_keyed.
"""

import hashlib
import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Protocol

Key = tuple[Any, ...]
Total = dict[Any, int]


@dataclass(frozen=True)
class Record:
    user: Any
    key: Key
    values: dict[str, Any]


class Measure(Protocol):
    @property
    def most(self) -> int: ...
    def sizes(self, state: Any) -> list[int]: ...
    def largest(self, name: Any) -> int: ...
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
    left_out: int = 0
    """How many of the largest weights of a key do not count, where it needs more users than that."""
    retain_again: Callable[[int], bool] | None = None
    """A second round among the keys that are left, which the paper does not have."""
    charges: tuple[tuple[int, Fraction], ...] = ()
    """Which measures take which share of a user's account, if weights are drawn from what is left; the paper has no such thing."""
    keys_when_selecting: int = 0
    """In how many keys a user counts when keys are selected, if that is not the limit."""
    clips: bool = False
    """Whether users above the limit count in all of their keys, and are clipped; nor does the paper have this."""


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


def selection_bound(system: System, records: Iterable[Record]) -> list[Heap]:
    return contribution_bound(replace(system, limit=system.keys_when_selecting or system.limit), records)


def second_bound(system: System, records: Iterable[Record]) -> list[Heap]:
    """Where users are clipped, nothing is cut, and `shrinking` bounds what they say."""
    return contribution_bound(system, records, key_limit=sys.maxsize if system.clips else system.limit)


def contribution_bound(system: System, records: Iterable[Record], *, key_limit: int | None = None) -> list[Heap]:
    heaps: dict[Any, Heap] = {}
    for record in records:
        if record.user is None or any(part is None for part in record.key):
            continue
        heap = heaps.setdefault(record.user, Heap(record.user, key_limit or system.limit, system.salt))
        heap.insert(record)
    return list(heaps.values())


def key_occurrences(system: System, heaps: Iterable[Heap], everything: Iterable[Heap] | None = None) -> dict[Key, int]:
    """The weights of all keys in the heaps; accounts are charged for everything that users have."""
    charged = None if everything is None else {heap.user: heap for heap in everything}
    weights: dict[Key, list[int]] = defaultdict(list)
    for heap in heaps:
        top = heap.top()
        for key, _ in top:
            paying = charged[heap.user] if charged else heap
            weights[key].append(drawn(system, paying, len(top)) if system.charges else system.weight(len(top)))
    return {key: sum(sorted(given, reverse=True)[system.left_out :]) for key, given in weights.items()}


def drawn(system: System, heap: Heap, keys: int) -> int:
    """What a user gives to each key, out of what measures leave of the account: they take their part by all keys, cut or not."""
    left = 2**30
    for number, share in system.charges:
        measure = system.measures[number]
        states = [measure.combine_raw(records) for records in heap.content.values()]
        squares = sum(part**2 for state in states for part in measure.sizes(state))
        rate = float(2**30 * share / (system.limit * measure.most**2))
        left -= min(math.floor(squares * rate) + 2, math.ceil(2**30 * share))
    return math.isqrt(2**10 * left // keys)


def apply_privacy(system: System, heaps: list[Heap]) -> set[Key]:
    selected = retained(system, heaps, system.retain_key)
    if system.retain_again is None:
        return selected
    records = [record for heap in heaps for of_key in heap.content.values() for record in of_key]
    left = selection_bound(system, (record for record in records if record.key not in selected))
    return selected | retained(system, left, system.retain_again, heaps)


def retained(
    system: System, heaps: list[Heap], retain_key: Callable[[int], bool], everything: list[Heap] | None = None
) -> set[Key]:
    return {key for key, count in key_occurrences(system, heaps, everything).items() if retain_key(count)}


def aggregate(system: System, heaps: Iterable[Heap], selected: set[Key]) -> dict[Key, tuple[Total, ...]]:
    totals = {key: [defaultdict(int) for _ in system.measures] for key in selected}  # the dummy value of each key of S
    for heap in heaps:
        of_user = [(key, records) for key, records in heap.top() if key in selected]
        for position, measure in enumerate(system.measures):
            raw = {key: measure.combine_raw(records) for key, records in of_user}
            factor = shrinking(system, measure, list(raw.values()))
            for key, state in raw.items():
                for name, value in measure.preprocess(state).items():
                    fine = value << finer(system, measure, name)
                    totals[key][position][name] += int(Fraction(fine * factor, 2**30))
    return {key: tuple(total) for key, total in totals.items()}


def shrinking(system: System, measure: Measure, states: list[Any]) -> int:
    """By which part of 2**30 all that a user says must shrink to be no more than `limit` keys can be, in Euclidean norm."""
    size = sum(part**2 for state in states for part in measure.sizes(state))
    most = system.limit * measure.most**2
    return 2**30 if size <= most else math.floor(2**30 * math.sqrt(float(most) / float(size))) - 1


def finer(system: System, measure: Measure, name: Any) -> int:
    """How many bits are added so that what shrinks does not vanish: 2**20 steps or more to the largest contribution."""
    return max(0, 21 - measure.largest(name).bit_length()) if system.clips else 0


def leave_fine_steps(system: System, totals: tuple[Total, ...]) -> tuple[Total, ...]:
    """Round what was counted in finer steps, half up."""
    found = []
    for measure, total in zip(system.measures, totals, strict=True):
        left: Total = defaultdict(int)
        for name, value in total.items():
            left[name] = math.floor(Fraction(value, 2 ** finer(system, measure, name)) + Fraction(1, 2))
        found.append(left)
    return tuple(found)


def naive(system: System, records: Sequence[Record]) -> dict[Key, tuple[Total, ...]]:
    """Section 5: bound, select, join, bound again, aggregate."""
    selected = apply_privacy(system, selection_bound(system, records))
    return of_public_keys(system, records, selected)


def runtime_optimized(system: System, records: Sequence[Record]) -> dict[Key, tuple[Total, ...]]:
    """Section 6: everything from one bounding."""
    both = replace(system, limit=min(system.limit, system.keys_when_selecting or system.limit))
    heaps = contribution_bound(both, records)
    return aggregate(system, heaps, apply_privacy(system, heaps))


def plume(system: System, records: Sequence[Record]) -> dict[Key, tuple[Total, ...]]:
    """Section 7: the data gathered by user once, D_0, is bounded, and then filtered and bounded again."""
    gathered: dict[Any, list[Record]] = defaultdict(list)
    for record in records:
        gathered[record.user].append(record)
    again = [record for of_user in gathered.values() for record in of_user]
    selected = apply_privacy(system, selection_bound(system, again))
    safe = second_bound(system, (r for r in again if r.key in selected))
    return aggregate(system, safe, selected)


def of_public_keys(system: System, records: Sequence[Record], selected: set[Key]) -> dict[Key, tuple[Total, ...]]:
    """With S known, restrict to it, then bound and aggregate."""
    joined = [record for record in records if record.key in selected]
    return aggregate(system, second_bound(system, joined), selected)


PIPELINES = {"naive": naive, "runtime_optimized": runtime_optimized, "plume": plume}
