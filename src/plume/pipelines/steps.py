"""The steps the three pipelines share, each named after the paper's dataset. Pipelines only choose and order them."""

from dataclasses import replace

from plume.pipelines.calibrated import CalibratedQuery
from plume.pipelines.columns import MeasureColumns
from plume.pipelines.noisers import WEIGHT, NoiseMeasures, SelectKeys
from plume.plan.aggregates import AddTallies, Aggregate, Max, Sum, SumButLargest
from plume.plan.expressions import (
    AllOf,
    AnyOf,
    Column,
    Comparator,
    Compare,
    Expression,
    Integer,
    IsNull,
    Literal,
    Not,
    NoTally,
    SecretOrder,
    Shrink,
    Times,
)
from plume.plan.nodes import (
    USER,
    Append,
    Clip,
    Combine,
    CountKeys,
    DropSelected,
    KeepFew,
    KeepSelected,
    Lookup,
    Map,
    Node,
    Noise,
    Scan,
    Size,
)
from plume.plan.trees import rename

INPUT = "input"
SELECTED_KEYS = "selected_keys"
KEYS_OF_USER = "keys_of_user"
KEY_ORDER = "key_order"
SELECTED = "selected"
# Adding up more numbers than this for all keys takes longer than reading the rows of selected keys again. Measured in docs/performance.md.
_MOST_CARRIED = 3

Named = tuple[tuple[str, Expression], ...]


def rows(asked: CalibratedQuery) -> Map:
    """The rows that count, with the plan's own column names; rows without a user or a key are nobody's and dropped."""
    query = asked.query
    columns = dict(zip((USER, *asked.keys), (query.user, *query.keys), strict=True))
    columns |= {value: column for column, value in asked.values.items()}
    present = tuple(Not(IsNull(Column(name))) for name in (query.user, *query.keys))
    condition = (query.condition,) if query.condition else ()
    return Map(
        "rows",
        Scan(INPUT, tuple(dict.fromkeys(columns.values())), public=False),
        tuple((name, Column(column)) for name, column in columns.items()),
        where=AllOf((*present, *condition)),
    )


def by_user(asked: CalibratedQuery, source: Node, *, name: str = "by_user", measured: bool = True) -> CountKeys:
    """D_0: one row per user and key, gathered by user, each knowing if its user is above the limit."""
    aggregates = _raw(asked) if measured else ()
    combined = Combine(f"{name}_combined", source, (USER, *asked.keys), aggregates, gather=(USER,))
    everybody = any(strategy.counts_all_keys for strategy in asked.rounds)
    above = 0 if everybody else asked.max_keys_per_user
    return CountKeys(name, combined, USER, KEYS_OF_USER, above)


def _raw(asked: CalibratedQuery) -> tuple[tuple[str, Aggregate], ...]:
    found = {
        measure.raw[name]: rename(aggregate, asked.values)
        for measure in asked.measures
        for name, aggregate in measure.mechanism.combine_raw().items()
    }
    return tuple(found.items())


def uncut(asked: CalibratedQuery, source: CountKeys, *, name: str = "uncut") -> Map:
    """Keep the rows of users within the limit, whom no bounding ever cuts."""
    within = Compare(Column(KEYS_OF_USER), Comparator.AT_MOST, Literal(asked.max_keys_per_user))
    return Map(name, source, as_they_are(source), where=AnyOf((IsNull(Column(KEYS_OF_USER)), within)))


def above_limit(asked: CalibratedQuery, source: CountKeys, *, name: str = "above_limit") -> Map:
    """Keep the rows of users above the limit, who must be cut, and put each user's keys in a secret order."""
    order = SecretOrder(tuple(Column(column) for column in (USER, *asked.keys)))
    above = Compare(Column(KEYS_OF_USER), Comparator.GREATER, Literal(asked.max_keys_per_user))
    return Map(name, source, (*as_they_are(source), (KEY_ORDER, order)), where=above)


def as_they_are(source: Node) -> Named:
    """Every column of a step."""
    return tuple((column, Column(column)) for column in source.columns)


def keep_few(asked: CalibratedQuery, source: Node, *, name: str) -> KeepFew:
    """Cut users to the limit: the paper's heap."""
    return KeepFew(name, source, USER, (KEY_ORDER, *asked.keys), asked.max_keys_per_user)


def safe_contributions(asked: CalibratedQuery, above_limit: Node) -> Map:
    """What users above the limit say to the measures: cut to the limit or, where noise is paid in squares, to more keys and clipped."""
    safe = KeepFew("safe", above_limit, USER, (KEY_ORDER, *asked.keys), asked.keys_before_clipping)
    if not asked.clips:
        return Map("safe_contributions", safe, (*keys(asked), *contributions(asked)))
    clipped = Clip("clipped", safe, USER, _factors(asked), asked.max_keys_per_user)
    return Map("safe_contributions", clipped, (*keys(asked), *_shrunk_contributions(asked)))


def bound(asked: CalibratedQuery, source: CountKeys, *, name: str) -> Append:
    """Contribution bounding of all users: those within the limit as they are, the others cut to it."""
    few = keep_few(asked, above_limit(asked, source, name=f"{name}_above_limit"), name=f"{name}_few")
    cut = Map(f"{name}_cut", few, as_they_are(source))
    return Append(name, (uncut(asked, source, name=f"{name}_uncut"), cut))


def restrict(asked: CalibratedQuery, source: Node, selected: Node, lookup: Lookup) -> KeepSelected:
    """D_S: the rows whose key was selected."""
    return KeepSelected("selected_rows", source, selected, asked.keys, lookup)


def keys(asked: CalibratedQuery) -> Named:
    """Which key a row is about."""
    return tuple((name, Column(name)) for name in asked.keys)


def weight(asked: CalibratedQuery, *, number: int = 1) -> Named:
    """What a row says to a round of selection."""
    return ((WEIGHT, asked.rounds[number - 1].weight(Column(KEYS_OF_USER))),)


def contributions(asked: CalibratedQuery) -> Named:
    """What a row says to the measures, clipped to bounded sensitivity."""
    return tuple((column, expression) for _, column, expression in _said(asked))


def _said(asked: CalibratedQuery) -> list[tuple[MeasureColumns, str, Expression]]:
    """What a row says to each measure, in the plan's steps; what several measures are told, they are told once."""
    bits = {column: part.bits for part in asked.parts for column in part.columns}
    found: dict[str, tuple[MeasureColumns, str, Expression]] = {}
    for measure in asked.measures:
        for name, expression in measure.mechanism.preprocess().items():
            column = measure.state[name]
            said = _times(rename(expression, measure.raw), 1 << bits[column])
            found.setdefault(column, (measure, column, said))
    return list(found.values())


def _times(expression: Expression, factor: int) -> Expression:
    return expression if factor == 1 else Times(expression, factor)


def _shrunk_contributions(asked: CalibratedQuery) -> Named:
    names = {size: name for name, size in _factors(asked)}
    return tuple((column, Shrink(said, Column(names[size(measure)]))) for measure, column, said in _said(asked))


def _factors(asked: CalibratedQuery) -> tuple[tuple[str, Size], ...]:
    """Name the factor that goes with each size; measures of equal size shrink together."""
    sizes = dict.fromkeys(size(measure) for measure in asked.measures)
    return tuple((f"factor_{number}", size) for number, size in enumerate(sizes, start=1))


def size(measure: MeasureColumns) -> Size:
    """How large a row is for a measure, in the plan's columns."""
    found = measure.mechanism.size()
    return replace(found, of=tuple(rename(expression, measure.raw) for expression in found.of))


def carried(asked: CalibratedQuery) -> Named:
    """What a row says to the measures, if that is little enough to be added up for all keys before it is known which are selected."""
    said = contributions(asked)
    return said if len(said) <= _MOST_CARRIED and not tallies(asked) else ()


def tallies(asked: CalibratedQuery) -> frozenset[str]:
    """Name the states that are no plain integers."""
    return frozenset(name for name, aggregate in _keyed(asked) if isinstance(aggregate, AddTallies))


def combine_by_key(asked: CalibratedQuery, source: Node, *, name: str) -> Combine:
    """All rows of a key become one, with its weight and what the rows say to the measures."""
    said = tuple(pair for pair in _keyed(asked) if pair[0] in source.columns)
    return Combine(name, source, asked.keys, ((WEIGHT, _weighed(asked)), *said), gather=asked.keys)


def _weighed(asked: CalibratedQuery) -> Aggregate:
    left_out = max(strategy.left_out for strategy in asked.rounds)
    return SumButLargest(Column(WEIGHT), left_out) if left_out else Sum(Column(WEIGHT))


def _keyed(asked: CalibratedQuery) -> tuple[tuple[str, Aggregate], ...]:
    found = {
        measure.state[name]: rename(aggregate, measure.state)
        for measure in asked.measures
        for name, aggregate in measure.mechanism.combine_keyed().items()
    }
    return tuple(found.items())


def select_bounded(asked: CalibratedQuery, by_user: CountKeys) -> Node:
    """Bound everybody, and select keys by that alone."""
    bounded = bound(asked, by_user, name="bounded")
    weights = Map("weights", bounded, (*keys(asked), *weight(asked)))
    return select_keys(asked, combine_by_key(asked, weights, name="keyed"), by_user)


def select_keys(asked: CalibratedQuery, keyed: Combine, by_user: CountKeys) -> Node:
    """S: the keys that may be shown, drawn once and written down; further rounds choose among the rows of keys that are left."""
    if len(asked.rounds) == 1:
        return _select_round(asked, keyed, name=SELECTED_KEYS)
    first = _select_round(asked, keyed, name="selected_first")
    return Append(SELECTED_KEYS, (first, _select_again(asked, by_user, first)))


def _select_round(asked: CalibratedQuery, keyed: Combine, *, name: str, number: int = 1) -> Noise:
    weighed = Map(f"{keyed.name}_weights", keyed, (*keys(asked), (WEIGHT, Integer(Column(WEIGHT)))))
    return Noise(name, weighed, SelectKeys(asked.rounds[number - 1], asked.keys))


def _select_again(asked: CalibratedQuery, by_user: CountKeys, selected: Noise) -> Noise:
    """Let everybody spread their weight over the keys that are not selected yet (DP-SIPS, Swanberg et al. 2023)."""
    left = DropSelected("left", by_user.source, selected, asked.keys)
    bounded = bound(asked, CountKeys("left_by_user", left, USER, KEYS_OF_USER, above=0), name="left_bounded")
    weights = Map("left_weights", bounded, (*keys(asked), *weight(asked, number=2)))
    return _select_round(asked, combine_by_key(asked, weights, name="left_keyed"), name="selected_again", number=2)


def public_keys(asked: CalibratedQuery) -> Scan:
    """S, where it is known without looking at the data."""
    return Scan(SELECTED_KEYS, asked.keys, public=True)


def aggregate(asked: CalibratedQuery, sources: tuple[Node, ...], selected: Node) -> Noise:
    """Apply the measures to exactly the selected keys: each gets a row of zeros beside its data, and no other key passes."""
    marked = tuple(Map(f"{source.name}_marked", source, _marked(asked, source.columns, 0)) for source in sources)
    dummies = Map("missing_keys", selected, _marked(asked, asked.keys, 1))
    everything = Append("with_missing_keys", (*marked, dummies))
    summed = Combine(
        "aggregates",
        everything,
        asked.keys,
        (*_keyed(asked), (SELECTED, Max(Column(SELECTED)))),
        gather=asked.keys,
    )
    return noise_measures(asked, summed, where=Compare(Column(SELECTED), Comparator.EQUAL, Literal(1)))


def _marked(asked: CalibratedQuery, columns: tuple[str, ...], mark: int) -> Named:
    states = tuple((name, Column(name) if name in columns else _nothing(a)) for name, a in _keyed(asked))
    return (*keys(asked), *states, (SELECTED, Literal(mark)))


def _nothing(aggregate: Aggregate) -> Expression:
    return NoTally() if isinstance(aggregate, AddTallies) else Literal(0)


def aggregate_public_keys(asked: CalibratedQuery) -> Noise:
    """Plan a query whose keys are known: data in other keys is dropped before bounding, so bounding once is enough."""
    selected = public_keys(asked)
    restricted = restrict(asked, rows(asked), selected, Lookup.BROADCAST)
    return aggregate(asked, bounded_contributions(asked, by_user(asked, restricted)), selected)


def bounded_contributions(asked: CalibratedQuery, source: CountKeys) -> tuple[Map, Map]:
    """What everybody says to the measures: users within the limit all they have, the others as much as noise covers."""
    of_uncut = Map("uncut_contributions", uncut(asked, source), (*keys(asked), *contributions(asked)))
    return of_uncut, safe_contributions(asked, above_limit(asked, source))


def noise_measures(asked: CalibratedQuery, source: Node, *, where: Expression | None = None) -> Noise:
    """Noise what is known of each key: the only rows that leave."""
    states = tuple(
        (name, Column(name) if name in tallies(asked) else Integer(Column(name))) for name, _ in _keyed(asked)
    )
    exact = Map("exact", source, (*keys(asked), *states), where=where)
    noiser = NoiseMeasures(asked.measures, asked.parts, asked.keys, asked.max_keys_per_user)
    return Noise("release", exact, noiser)
