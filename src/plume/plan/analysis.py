"""What can be said of a plan without running it: its steps, what is read twice, its shuffles, what it spends."""

from collections import Counter
from typing import TypeGuard

from plume.errors import PlumeBug
from plume.plan.aggregates import AddTallies
from plume.plan.expressions import UsersWithin
from plume.plan.nodes import (
    Append,
    Clip,
    Combine,
    CountKeys,
    DropUsers,
    KeepFew,
    KeepSelected,
    KeepUsers,
    Lookup,
    Made,
    Map,
    Node,
    Noise,
    OnePass,
    Plan,
    Scan,
    reading,
    roots,
    sources,
)
from plume.plan.trees import columns_of
from plume.privacy.cost import Cost


def steps(plan: Plan) -> tuple[Node, ...]:
    """List the steps of a plan, each once, sources before those that read them."""
    listed: dict[str, Node] = {}
    for root in (*_ends(plan), *roots(plan)):
        _list_steps(root, listed)
    return tuple(listed.values())


def _ends(plan: Plan) -> tuple[Node, ...]:
    """Name the stages that no later stage reads; the others are listed where they are read."""
    ends: list[Node] = []
    read: dict[str, Node] = {}
    for root in reversed(roots(plan)):
        if root.name not in read:
            ends.append(root)
            _list_steps(root, read)
    return tuple(reversed(ends))


def noisers(plan: Plan) -> tuple[Noise, ...]:
    """List the steps at which rows leave: each ends a stage."""
    return tuple(step for step in steps(plan) if isinstance(step, Noise))


def _list_steps(node: Node, listed: dict[str, Node]) -> None:
    if node.name in listed:
        if listed[node.name] != node:
            raise PlumeBug(f"two steps of a plan are called {node.name}")
        return
    for source in sources(node):
        _list_steps(source, listed)
    listed[node.name] = node


def read_twice(plan: Plan) -> frozenset[str]:
    """Name the steps that more than one step reads; engines keep these instead of computing them again, except where a step says so."""
    readers = Counter(source.name for step in steps(plan) for source in _kept_for(step))
    return frozenset(name for name, count in readers.items() if count > 1)


def _kept_for(step: Node) -> tuple[Node, ...]:
    return (step.users,) if isinstance(step, KeepUsers | DropUsers) else sources(step)


def spelled_out(plan: Plan) -> Plan:
    """Give a plan with all its steps one by one, those that are made in one pass too; these are what checks look at.

    Guarantee: a pass that would not make a step, or read other rows than the step does, is refused. docs/guarantees/bounding.md.
    """
    done: dict[int, Node] = {}
    if isinstance(plan, tuple):
        return tuple(reading(stage, _sources_spelled_out(stage, done)) for stage in plan)
    return _spelled_out(plan, done)


def _spelled_out(node: Node, done: dict[int, Node]) -> Node:
    """Spell a node out once, however many read it; `done` has those that are, by identity, since trees take long to compare."""
    if id(node) not in done:
        if isinstance(node, Made) and not _is_of_its_pass(node):
            raise PlumeBug(f"step {node.name} is not one that {node.source.name} makes")
        done[id(node)] = node.step if isinstance(node, Made) else reading(node, _sources_spelled_out(node, done))
    return done[id(node)]


def _sources_spelled_out(node: Node, done: dict[int, Node]) -> dict[str, Node]:
    return {source.name: _spelled_out(source, done) for source in sources(node)}


def _is_of_its_pass(made: Made) -> bool:
    """Return whether a pass makes a step, which reads no table but through the rows that the pass reads."""
    rows, read = [made.step], made.source.source
    while rows and not isinstance(rows[-1], Scan):
        rows += [source for source in sources(rows.pop()) if source != read]
    return not rows and made.step in made.source.makes


def steps_in(one: OnePass) -> tuple[Node, ...]:
    """List the steps that a pass takes the place of, as SQL would run them: those that it makes, and all between them and its source."""
    before = {step.name for step in steps(one.source)}
    inside = {step.name: step for made in one.makes for step in steps(made) if step.name not in before}
    return tuple(inside.values())


def readers_of(node: Node, plan: Plan) -> list[Node]:
    """List the steps of a plan that read a step."""
    return [step for step in steps(plan) if node.name in {source.name for source in sources(step)}]


def adds_tallies(step: Node) -> TypeGuard[Combine]:
    """Return whether a step adds tallies; then it reads its rows once for their numbers, and once for each tally."""
    return isinstance(step, Combine) and any(isinstance(aggregate, AddTallies) for _, aggregate in step.aggregates)


def limit_of_uncounted(step: Node, counted: CountKeys) -> int | None:
    """Give the limit within which a step keeps users, if it need not know how many keys they have."""
    if not (
        isinstance(step, Map) and isinstance(step.where, UsersWithin) and step.where.counted.name == counted.column
    ):
        return None
    reading = [expression for _, expression in step.expressions if counted.column in columns_of(expression)]
    passed_on = all(expression == step.where.counted for expression in reading) and step.where.limit <= counted.above
    return step.where.limit if passed_on or not reading else None


def costs(plan: Plan) -> tuple[Cost, ...]:
    """List what each noiser of a plan spends."""
    return tuple(cost for step in noisers(plan) for cost in step.noiser.costs)


def shuffles(plan: Plan) -> int:
    """Count how often rows must be brought together anew: the paper's measure of cost."""
    return sum(shuffled_by(step) is not None for step in steps(plan))


def shuffled_by(step: Node) -> tuple[str, ...] | None:
    """Name the columns a step gathers its rows by, or None if they already lie together."""
    match step:
        case Combine():
            together, wanted = step.by, step.gather
        case CountKeys() | KeepFew() | Clip():
            together, wanted = (step.user,), (step.user,)
        case OnePass():
            together, wanted = (step.user,), (step.user,)
        case Made(step=made):
            return shuffled_by(made)
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
        case Made(step=step):
            return gathered_by(step)
        case Append():
            everywhere = {gathered_by(source) for source in node.sources}
            return everywhere.pop() if len(everywhere) == 1 else None
        case _:
            return shuffled_by(node) or gathered_by(node.source)
