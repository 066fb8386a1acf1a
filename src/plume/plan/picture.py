"""A plan as something to draw: one row per step, and lanes in which rows flow down from step to step."""

from collections.abc import Mapping
from dataclasses import dataclass

from plume.plan.analysis import read_twice, shuffled_by, steps
from plume.plan.explain import AS_PLANNED, doing
from plume.plan.nodes import Append, Map, Node, Noise, Plan, Scan, sources


@dataclass(frozen=True)
class Stop:
    """A step in its place."""

    name: str
    doing: str
    lane: int
    shuffled_by: tuple[str, ...] | None
    kept: bool
    """Whether several steps read it."""
    public: bool
    """Whether anybody may see its rows: they were noised, or known before."""


@dataclass(frozen=True)
class Flow:
    """Rows on their way, from a stop to another, as indices of both."""

    source: int
    target: int


@dataclass(frozen=True)
class Picture:
    """The stops of a plan from the top down, and the flows between them."""

    stops: tuple[Stop, ...]
    flows: tuple[Flow, ...]

    @property
    def lanes(self) -> int:
        """How many flows lie side by side, at most."""
        return 1 + max(stop.lane for stop in self.stops)


def draw(plan: Plan, called: Mapping[str, str] = AS_PLANNED) -> Picture:
    """Draw a plan, with columns as the caller calls them where that is told.

    Steps that only rename columns or put rows together are left out; what they read flows on.
    """
    shown = tuple(step for step in steps(plan) if _is_shown(step))
    places = {step.name: place for place, step in enumerate(shown)}
    flows = tuple(
        Flow(places[source.name], place)
        for place, step in enumerate(shown)
        for source in dict.fromkeys(_shown_sources(step))
    )
    kept = read_twice(plan)
    stops = tuple(
        Stop(step.name, doing(step, called), lane, _shuffled_by(step, called), step.name in kept, _is_public(step))
        for step, lane in zip(shown, _lanes(len(shown), flows), strict=True)
    )
    return Picture(stops, flows)


def _is_shown(step: Node) -> bool:
    return not isinstance(step, Append) and not (isinstance(step, Map) and step.where is None)


def _shown_sources(step: Node) -> tuple[Node, ...]:
    """Find the shown steps that a step reads, through those that are not."""
    return tuple(
        shown for source in sources(step) for shown in ((source,) if _is_shown(source) else _shown_sources(source))
    )


def _shuffled_by(step: Node, called: Mapping[str, str]) -> tuple[str, ...] | None:
    columns = shuffled_by(step)
    return None if columns is None else tuple(called.get(name, name) for name in columns)


def _is_public(step: Node) -> bool:
    return isinstance(step, Noise) or (isinstance(step, Scan) and step.public)


def _lanes(stops: int, flows: tuple[Flow, ...]) -> list[int]:
    """Give each stop a lane that is its own until its last reader: the first that is free, best one that ends here."""
    ends = {flow.source: max(other.target for other in flows if other.source == flow.source) for flow in flows}
    lanes: list[int] = []
    taken: dict[int, int] = {}
    for place in range(stops):
        taken = {lane: stop for lane, stop in taken.items() if ends[stop] > place}
        lane = next(lane for lane in range(stops) if lane not in taken)
        taken[lane] = place
        ends.setdefault(place, place)
        lanes.append(lane)
    return lanes
