"""The steps the three pipelines share, each named after the paper's dataset. Pipelines only choose and order them."""

from plume.pipelines.calibrated import CalibratedQuery
from plume.pipelines.noisers import WEIGHT, NoiseMeasures, SelectKeys
from plume.plan.expressions import (
    AddTallies,
    Aggregate,
    AllOf,
    AnyOf,
    Column,
    Comparator,
    Compare,
    Expression,
    Integer,
    IsNull,
    Literal,
    Max,
    Not,
    NoTally,
    SecretOrder,
    Sum,
    rename,
)
from plume.plan.nodes import (
    USER,
    Append,
    Combine,
    CountKeys,
    KeepFew,
    KeepSelected,
    Lookup,
    Map,
    Node,
    Noise,
    Scan,
)
from plume.selection.strategy import SelectionStrategy

INPUT = "input"
SELECTED_KEYS = "selected_keys"
KEYS_OF_USER = "keys_of_user"
KEY_ORDER = "key_order"
SELECTED = "selected"

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
    everybody = asked.selection is not None and asked.selection.counts_all_keys
    above = 0 if everybody else asked.query.max_keys_per_user
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
    within = Compare(Column(KEYS_OF_USER), Comparator.AT_MOST, Literal(asked.query.max_keys_per_user))
    return Map(name, source, _as_they_are(source), where=AnyOf((IsNull(Column(KEYS_OF_USER)), within)))


def above_limit(asked: CalibratedQuery, source: CountKeys, *, name: str = "above_limit") -> Map:
    """Keep the rows of users above the limit, who must be cut, and put each user's keys in a secret order."""
    order = SecretOrder(tuple(Column(column) for column in (USER, *asked.keys)))
    above = Compare(Column(KEYS_OF_USER), Comparator.GREATER, Literal(asked.query.max_keys_per_user))
    return Map(name, source, (*_as_they_are(source), (KEY_ORDER, order)), where=above)


def _as_they_are(source: Node) -> Named:
    return tuple((column, Column(column)) for column in source.columns)


def keep_few(asked: CalibratedQuery, source: Node, *, name: str) -> KeepFew:
    """Cut users to the limit: the paper's heap."""
    return KeepFew(name, source, USER, (KEY_ORDER, *asked.keys), asked.query.max_keys_per_user)


def bound(asked: CalibratedQuery, source: CountKeys, *, name: str) -> Append:
    """Contribution bounding of all users: those within the limit as they are, the others cut to it."""
    few = keep_few(asked, above_limit(asked, source, name=f"{name}_above_limit"), name=f"{name}_few")
    cut = Map(f"{name}_cut", few, _as_they_are(source))
    return Append(name, (uncut(asked, source, name=f"{name}_uncut"), cut))


def restrict(asked: CalibratedQuery, source: Node, selected: Node, lookup: Lookup) -> KeepSelected:
    """D_S: the rows whose key was selected."""
    return KeepSelected("selected_rows", source, selected, asked.keys, lookup)


def keys(asked: CalibratedQuery) -> Named:
    """Which key a row is about."""
    return tuple((name, Column(name)) for name in asked.keys)


def weight(strategy: SelectionStrategy) -> Named:
    """What a row says to selection."""
    return ((WEIGHT, strategy.weight(Column(KEYS_OF_USER))),)


def contributions(asked: CalibratedQuery) -> Named:
    """What a row says to the measures, clipped to bounded sensitivity."""
    found = {
        measure.state[name]: rename(expression, measure.raw)
        for measure in asked.measures
        for name, expression in measure.mechanism.preprocess().items()
    }
    return tuple(found.items())


def contributed_numbers(asked: CalibratedQuery) -> Named:
    """Of what a row says to the measures, the plain integers."""
    return tuple(pair for pair in contributions(asked) if pair[0] not in tallies(asked))


def contributed_tallies(asked: CalibratedQuery) -> Named:
    """Of what a row says to the measures, the tallies."""
    return tuple(pair for pair in contributions(asked) if pair[0] in tallies(asked))


def no_numbers(asked: CalibratedQuery) -> Named:
    """What a row says to the measures whose contribution counts elsewhere."""
    return tuple((name, Literal(0)) for name, _ in contributed_numbers(asked))


def tallies(asked: CalibratedQuery) -> frozenset[str]:
    """Name the states that are no plain integers."""
    return frozenset(name for name, aggregate in _keyed(asked) if isinstance(aggregate, AddTallies))


def combine_by_key(asked: CalibratedQuery, source: Node, *, name: str) -> Combine:
    """All rows of a key become one, with its weight and what the rows say to the measures."""
    said = tuple(pair for pair in _keyed(asked) if pair[0] in source.columns)
    return Combine(name, source, asked.keys, ((WEIGHT, Sum(Column(WEIGHT))), *said), gather=asked.keys)


def _keyed(asked: CalibratedQuery) -> tuple[tuple[str, Aggregate], ...]:
    found = {
        measure.state[name]: rename(aggregate, measure.state)
        for measure in asked.measures
        for name, aggregate in measure.mechanism.combine_keyed().items()
    }
    return tuple(found.items())


def select_keys(asked: CalibratedQuery, strategy: SelectionStrategy, keyed: Combine) -> Noise:
    """S: the keys that may be shown, drawn once and written down."""
    weighed = Map("key_weights", keyed, (*keys(asked), (WEIGHT, Integer(Column(WEIGHT)))))
    return Noise(SELECTED_KEYS, weighed, SelectKeys(strategy, asked.keys))


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
    safe = bound(asked, by_user(asked, restricted), name="safe")
    return aggregate(asked, (Map("contributions", safe, (*keys(asked), *contributions(asked))),), selected)


def noise_measures(asked: CalibratedQuery, source: Node, *, where: Expression | None = None) -> Noise:
    """Noise what is known of each key: the only rows that leave."""
    states = tuple(
        (name, Column(name) if name in tallies(asked) else Integer(Column(name))) for name, _ in _keyed(asked)
    )
    exact = Map("exact", source, (*keys(asked), *states), where=where)
    noiser = NoiseMeasures(asked.measures, asked.parts, asked.keys, asked.query.max_keys_per_user)
    return Noise("release", exact, noiser)
