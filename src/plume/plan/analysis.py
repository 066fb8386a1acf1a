"""What can be said of a plan without running it: its steps, what is read twice, its shuffles, what it spends."""

from collections import Counter

from plume.errors import PlumeBug
from plume.plan.nodes import (
    Append,
    Clip,
    Combine,
    CountKeys,
    KeepFew,
    KeepSelected,
    Lookup,
    Map,
    Node,
    Noise,
    Scan,
    sources,
)
from plume.privacy.cost import Cost


def steps(plan: Node) -> tuple[Node, ...]:
    """List the steps of a plan, each once, sources before those that read them."""
    listed: dict[str, Node] = {}
    _list_steps(plan, listed)
    return tuple(listed.values())


def _list_steps(node: Node, listed: dict[str, Node]) -> None:
    if node.name in listed:
        if listed[node.name] != node:
            raise PlumeBug(f"two steps of a plan are called {node.name}")
        return
    for source in sources(node):
        _list_steps(source, listed)
    listed[node.name] = node


def read_twice(plan: Node) -> frozenset[str]:
    """Name the steps that more than one step reads; engines keep these instead of computing them again."""
    readers = Counter(source.name for step in steps(plan) for source in sources(step))
    return frozenset(name for name, count in readers.items() if count > 1)


def costs(plan: Node) -> tuple[Cost, ...]:
    """List what each noiser of a plan spends."""
    return tuple(cost for step in steps(plan) if isinstance(step, Noise) for cost in step.noiser.costs)


def shuffles(plan: Node) -> int:
    """Count how often rows must be brought together anew: the paper's measure of cost."""
    return sum(shuffled_by(step) is not None for step in steps(plan))


def shuffled_by(step: Node) -> tuple[str, ...] | None:
    """Name the columns a step gathers its rows by, or None if they already lie together."""
    match step:
        case Combine():
            together, wanted = step.by, step.gather
        case CountKeys() | KeepFew() | Clip():
            together, wanted = (step.user,), (step.user,)
        case KeepSelected(lookup=Lookup.JOIN):
            together, wanted = step.keys, step.keys
        case _:
            return None
    found = gathered_by(step.source)
    return None if found and set(found) <= set(together) else wanted


def gathered_by(node: Node) -> tuple[str, ...] | None:
    """Name the columns by which equal rows of a node are known to lie together."""
    match node:
        case Scan() | Noise():
            return None
        case Map(source=source):
            found = gathered_by(source)
            return found if found and set(found) <= set(node.columns) else None
        case Append():
            everywhere = {gathered_by(source) for source in node.sources}
            return everywhere.pop() if len(everywhere) == 1 else None
        case _:
            return shuffled_by(node) or gathered_by(node.source)
