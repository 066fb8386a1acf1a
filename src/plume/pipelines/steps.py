"""The steps the three pipelines share; both boundings are here. Pipelines only choose and order them.

A step has the name of the paper's dataset where the paper has one: docs/paper-map.md.

The first bounding, before keys are selected, is `bound`. No bounding cuts users within the limit, so `plume.py` leaves their rows alone and
calls `keep_few` in its place, for the other users. With two rounds of selection, `bound` runs once more before the second round, on the
keys that are left (`_select_again`). The second bounding, after keys are selected, is `safe_contributions`: it bounds the original rows
again, restricted to the selected keys, and not what the first one left. `plume.py` beside this file shows both in their order; in
`naive.py`, and after numbers are chosen, `bounded_contributions` calls the second one.

With public keys there is nothing to select, and the second bounding is the only one, in every pipeline. Otherwise `runtime_optimized.py`
has only the first. So has every pipeline where selection releases all that is asked for (`released_with_keys`).
"""

from dataclasses import dataclass, replace

from plume.calibration.calibrated_query import CalibratedQuery
from plume.calibration.columns import MeasureColumns
from plume.pipelines.noisers import WEIGHT, NoiseMeasures, SelectAndReleaseUsers, SelectKeys
from plume.plan.aggregates import AddTallies, Aggregate, Max, Sum, SumButLargest
from plume.plan.expressions import (
    AllOf,
    Clamp,
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
    UsersAbove,
    UsersWithin,
    When,
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
from plume.plan.trees import columns_of, rename

INPUT = "input"
SELECTED_KEYS = "selected_keys"
KEYS_OF_USER = "keys_of_user"
KEY_ORDER = "key_order"
SELECTED = "selected"
# With more numbers than this, it pays to wait for the selected keys: docs/decisions/0059-carried-numbers.md.
_MOST_CARRIED = 3

Named = tuple[tuple[str, Expression], ...]


@dataclass(frozen=True)
class SelectedRows:
    """D_S, one row per user and key, gathered by user, and S itself: what later stages read if a stage of its own selects keys."""

    gathered: Node
    selected: Node


def rows(calibrated: CalibratedQuery) -> Map:
    """The rows that count, with the plan's own column names; rows without a user or a key are nobody's and dropped."""
    query = calibrated.query
    identified: dict[str, Expression] = {USER: Column(query.user)} | calibrated.key_inputs
    values = {value: Column(column) for column, value in calibrated.values.items()}
    present = tuple(Not(IsNull(given)) for given in identified.values() if columns_of(given))
    condition = (query.condition,) if query.condition else ()
    columns = (query.user, *query.key_columns, *calibrated.values)
    return Map(
        "rows",
        Scan(INPUT, tuple(dict.fromkeys(columns)), public=False),
        (*identified.items(), *values.items()),
        where=AllOf((*present, *condition)),
    )


def by_user(calibrated: CalibratedQuery, source: Node, *, name: str = "by_user", measured: bool = True) -> CountKeys:
    """D_0: one row per user and key, gathered by user; each says if its user is above the limit, and what is left of the account."""
    account = next((strategy.account for strategy in calibrated.rounds), None)
    counted = _counted_by_user(calibrated, source, name=name, measured=measured or account is not None)
    return replace(counted, account=account)


def by_user_again(calibrated: CalibratedQuery, source: Node) -> CountKeys:
    """The same of selected keys, which takes no account: weights are drawn by then."""
    return _counted_by_user(calibrated, source, name="by_user_again", measured=True)


def _counted_by_user(calibrated: CalibratedQuery, source: Node, *, name: str, measured: bool) -> CountKeys:
    aggregates = _raw(calibrated) if measured else ()
    combined = Combine(f"{name}_combined", source, (USER, *calibrated.keys), aggregates, gather=(USER,))
    everybody = any(strategy.counts_all_keys for strategy in calibrated.rounds)
    above = 0 if everybody else calibrated.max_keys_per_user
    return CountKeys(name, combined, USER, KEYS_OF_USER, above)


def _raw(calibrated: CalibratedQuery) -> tuple[tuple[str, Aggregate], ...]:
    found = {
        measure.raw[name]: rename(aggregate, calibrated.values)
        for measure in calibrated.measures
        for name, aggregate in measure.mechanism.combine_raw().items()
    }
    return tuple(found.items())


def uncut(calibrated: CalibratedQuery, source: CountKeys, *, name: str = "uncut") -> Map:
    """Keep the rows of users within the limit, whom no bounding ever cuts."""
    within = UsersWithin(Column(KEYS_OF_USER), calibrated.max_keys_per_user)
    return Map(name, source, as_they_are(source), where=within)


def above_limit(
    calibrated: CalibratedQuery, source: CountKeys, *, name: str = "above_limit", cut_above: int | None = None
) -> Map:
    """Keep the rows of users above the limit, and put each user's keys in a secret order, if they are more than `cut_above`.

    Nobody asks for the order of other users, and it takes as long as all else that is known of a row.
    """
    order: Expression = SecretOrder(tuple(Column(column) for column in (USER, *calibrated.keys)))
    if cut_above is not None and cut_above > calibrated.max_keys_per_user:
        order = When(UsersAbove(Column(KEYS_OF_USER), cut_above), order)
    above = UsersAbove(Column(KEYS_OF_USER), calibrated.max_keys_per_user)
    return Map(name, source, (*as_they_are(source), (KEY_ORDER, order)), where=above)


def as_they_are(source: Node) -> Named:
    """Every column of a step."""
    return tuple((column, Column(column)) for column in source.columns)


def keep_few(calibrated: CalibratedQuery, source: Node, *, name: str) -> KeepFew:
    """Cut users to the limit of what it is for, which may be another one for selection than for measures: the paper's heap."""
    return KeepFew(name, source, USER, (KEY_ORDER, *calibrated.keys), calibrated.max_keys_per_user)


def safe_contributions(calibrated: CalibratedQuery, selected_rows: Node) -> Map:
    """The second bounding: users above the limit are cut to it, or, where all noise is Gaussian, clipped together to its norm.

    D_safe has their rows beside those of users within the limit, whom nothing cuts.
    """
    if not calibrated.clips:
        safe = keep_few(calibrated, selected_rows, name="safe")
        return Map("safe_contributions", safe, (*keys(calibrated), *contributions(calibrated)))
    clipped = Clip("clipped", selected_rows, USER, _factors(calibrated), calibrated.max_keys_per_user)
    return Map("safe_contributions", clipped, (*keys(calibrated), *_shrunk_contributions(calibrated)))


def bound(calibrated: CalibratedQuery, source: CountKeys, *, name: str) -> Append:
    """Contribution bounding of all users: those within the limit as they are, the others cut to it."""
    few = keep_few(calibrated, above_limit(calibrated, source, name=f"{name}_above_limit"), name=f"{name}_few")
    cut = Map(f"{name}_cut", few, as_they_are(source))
    return Append(name, (uncut(calibrated, source, name=f"{name}_uncut"), cut))


def restrict(calibrated: CalibratedQuery, source: Node, selected: Node, lookup: Lookup) -> KeepSelected:
    """D_S: the rows whose key was selected."""
    return KeepSelected("selected_rows", source, selected, calibrated.keys, lookup)


def keys(calibrated: CalibratedQuery) -> Named:
    """Which key a row is about."""
    return tuple((name, Column(name)) for name in calibrated.keys)


def weight(calibrated: CalibratedQuery, *, number: int = 1) -> Named:
    """The weight that a row gives its key in a round of selection."""
    strategy, limit = calibrated.rounds[number - 1], calibrated.max_keys_per_user
    counted: Expression = Column(KEYS_OF_USER)
    if limit < strategy.max_keys_per_user:
        counted = Clamp(counted, 1, limit)
    return ((WEIGHT, strategy.weight(counted)),)


def contributions(calibrated: CalibratedQuery) -> Named:
    """The contribution of a row to the measures, clamped to bounded sensitivity."""
    return tuple((column, expression) for _, column, expression in _contributions(calibrated))


def nothing_is_left(calibrated: CalibratedQuery) -> bool:
    """Return whether selection releases all that is asked for, so that nothing is left to be done once keys are selected."""
    return not calibrated.noised_parts


def _contributions(calibrated: CalibratedQuery) -> list[tuple[MeasureColumns, str, Expression]]:
    """The contribution of a row to each measure, in the plan's steps; what several measures have in common is listed once."""
    bits = {column: part.bits for part in calibrated.parts for column in part.columns}
    found: dict[str, tuple[MeasureColumns, str, Expression]] = {}
    for measure in calibrated.measures:
        for name, expression in measure.mechanism.preprocess().items():
            column = measure.state[name]
            if column in calibrated.released_by_selection:
                continue
            contribution = _times(rename(expression, measure.raw), 1 << bits[column])
            found.setdefault(column, (measure, column, contribution))
    return list(found.values())


def _times(expression: Expression, factor: int) -> Expression:
    return expression if factor == 1 else Times(expression, factor)


def _shrunk_contributions(calibrated: CalibratedQuery) -> Named:
    names = {size: name for name, size in _factors(calibrated)}
    return tuple(
        (column, Shrink(contribution, Column(names[measure.size])))
        for measure, column, contribution in _contributions(calibrated)
    )


def _factors(calibrated: CalibratedQuery) -> tuple[tuple[str, Size], ...]:
    """Name the factor that goes with each size; measures of equal size shrink together."""
    sizes = dict.fromkeys(measure.size for measure in calibrated.measures)
    return tuple((f"factor_{number}", size) for number, size in enumerate(sizes, start=1))


def carried(calibrated: CalibratedQuery) -> Named:
    """The contribution of a row, if it has few enough numbers to be added up for every key before keys are selected."""
    contribution = contributions(calibrated)
    return contribution if len(contribution) <= _MOST_CARRIED and not tallies(calibrated) else ()


def tallies(calibrated: CalibratedQuery) -> frozenset[str]:
    """Name the states that are not plain integers."""
    return frozenset(name for name, aggregate in _keyed(calibrated) if isinstance(aggregate, AddTallies))


def combine_by_key(calibrated: CalibratedQuery, source: Node, *, name: str) -> Combine:
    """All rows of a key become one, with its weight and its contributions to the measures."""
    contributed = tuple(pair for pair in _keyed(calibrated) if pair[0] in source.columns)
    return Combine(
        name, source, calibrated.keys, ((WEIGHT, _weighed(calibrated)), *contributed), gather=calibrated.keys
    )


def _weighed(calibrated: CalibratedQuery) -> Aggregate:
    left_out = max(strategy.left_out for strategy in calibrated.rounds)
    return SumButLargest(Column(WEIGHT), left_out) if left_out else Sum(Column(WEIGHT))


def _keyed(calibrated: CalibratedQuery) -> tuple[tuple[str, Aggregate], ...]:
    found = {
        measure.state[name]: rename(aggregate, measure.state)
        for measure in calibrated.measures
        for name, aggregate in measure.mechanism.combine_keyed().items()
    }
    return tuple(found.items())


def select_bounded(calibrated: CalibratedQuery, by_user: CountKeys) -> Node:
    """Bound everybody, and select keys by that alone."""
    bounded = bound(calibrated, by_user, name="bounded")
    weights = Map("weights", bounded, (*keys(calibrated), *weight(calibrated)))
    return select_keys(calibrated, combine_by_key(calibrated, weights, name="keyed"), by_user)


def released_with_keys(calibrated: CalibratedQuery) -> Noise:
    """Select keys, where the number of users that they are selected by is all that is asked for: one bounding, one draw."""
    counted = by_user(calibrated, rows(calibrated), measured=False)
    bounded = bound(calibrated, counted, name="bounded")
    weights = Map("weights", bounded, (*keys(calibrated), *weight(calibrated)))
    return _select_round(calibrated, combine_by_key(calibrated, weights, name="keyed"), name="release")


def select_keys(calibrated: CalibratedQuery, keyed: Combine, by_user: CountKeys) -> Node:
    """S: the keys that may be shown, drawn once and written down; further rounds select among the rows of keys that are left."""
    if len(calibrated.rounds) == 1:
        return _select_round(calibrated, keyed, name=SELECTED_KEYS)
    first = _select_round(calibrated, keyed, name="selected_first")
    return Append(SELECTED_KEYS, (first, _select_again(calibrated.selecting, by_user, first)))


def _select_round(calibrated: CalibratedQuery, keyed: Combine, *, name: str, number: int = 1) -> Noise:
    weighed = Map(f"{keyed.name}_weights", keyed, (*keys(calibrated), (WEIGHT, Integer(Column(WEIGHT)))))
    if calibrated.releasing:
        columns = _released_columns(calibrated)
        return Noise(
            name, weighed, SelectAndReleaseUsers(strategy=calibrated.releasing, keys=calibrated.keys, columns=columns)
        )
    return Noise(name, weighed, SelectKeys(calibrated.rounds[number - 1], calibrated.keys))


def _released_columns(calibrated: CalibratedQuery) -> tuple[str, ...]:
    """What selection calls the numbers that it releases: as the query does if they are all of it, else as later steps do."""
    if nothing_is_left(calibrated):
        return tuple(column for measure in calibrated.measures for column in measure.released.values())
    return calibrated.released_by_selection


def _select_again(calibrated: CalibratedQuery, by_user: CountKeys, selected: Noise) -> Noise:
    """Let everybody spread their weight over the keys that are not selected yet (DP-SIPS, Swanberg et al. 2023)."""
    left: Node = DropSelected("left", by_user.source, selected, calibrated.keys)
    if by_user.account:
        # What measures leave of an account is what they leave by all keys, selected ones among them.
        rows = DropSelected("left", by_user, selected, calibrated.keys)
        columns = (USER, *calibrated.keys, by_user.account.column)
        left = Map("left_with_accounts", rows, tuple((column, Column(column)) for column in columns))
    bounded = bound(calibrated, CountKeys("left_by_user", left, USER, KEYS_OF_USER, above=0), name="left_bounded")
    weights = Map("left_weights", bounded, (*keys(calibrated), *weight(calibrated, number=2)))
    return _select_round(
        calibrated, combine_by_key(calibrated, weights, name="left_keyed"), name="selected_again", number=2
    )


def public_keys(calibrated: CalibratedQuery) -> Scan:
    """S, where it is known without looking at the data."""
    return Scan(SELECTED_KEYS, calibrated.keys, public=True, rows=calibrated.query.known_keys)


def aggregate(calibrated: CalibratedQuery, sources: tuple[Node, ...], selected: Node) -> Noise:
    """Apply the measures to exactly the selected keys: each gets a row of zeros beside its data, and no other key passes.

    Numbers that were released when keys were selected stand in that row, and nowhere else.
    """
    marked = tuple(Map(f"{source.name}_marked", source, _marked(calibrated, source.columns, 0)) for source in sources)
    dummies = Map("missing_keys", selected, _marked(calibrated, selected.columns, 1))
    everything = Append("with_missing_keys", (*marked, dummies))
    summed = Combine(
        "aggregates",
        everything,
        calibrated.keys,
        (*_keyed(calibrated), (SELECTED, Max(Column(SELECTED)))),
        gather=calibrated.keys,
    )
    return noise_measures(calibrated, summed, where=Compare(Column(SELECTED), Comparator.EQUAL, Literal(1)))


def _marked(calibrated: CalibratedQuery, columns: tuple[str, ...], mark: int) -> Named:
    states = tuple((name, Column(name) if name in columns else _nothing(a)) for name, a in _keyed(calibrated))
    return (*keys(calibrated), *states, (SELECTED, Literal(mark)))


def _nothing(aggregate: Aggregate) -> Expression:
    return NoTally() if isinstance(aggregate, AddTallies) else Literal(0)


def aggregate_public_keys(calibrated: CalibratedQuery) -> Noise:
    """Plan a query whose keys are known: data in other keys is dropped before bounding, so bounding once is enough."""
    counted, selected = _public_rows(calibrated)
    return aggregate(calibrated, bounded_contributions(calibrated, counted), selected)


def select_public_rows(calibrated: CalibratedQuery) -> SelectedRows:
    """The rows of keys that are known."""
    counted, selected = _public_rows(calibrated)
    return SelectedRows(counted.source, selected)


def _public_rows(calibrated: CalibratedQuery) -> tuple[CountKeys, Scan]:
    selected = public_keys(calibrated)
    return by_user(calibrated, restrict(calibrated, rows(calibrated), selected, Lookup.BROADCAST)), selected


def bounded_contributions(calibrated: CalibratedQuery, source: CountKeys) -> tuple[Map, Map]:
    """The contributions of everybody: for users within the limit all they have, for the others as much as the noise covers."""
    of_uncut = Map("uncut_contributions", uncut(calibrated, source), (*keys(calibrated), *contributions(calibrated)))
    return of_uncut, safe_contributions(calibrated, above_limit(calibrated, source))


def noise_measures(calibrated: CalibratedQuery, source: Node, *, where: Expression | None = None) -> Noise:
    """Noise what is known of each key: the only rows that leave."""
    states = tuple(
        (name, Column(name) if name in tallies(calibrated) else Integer(Column(name))) for name, _ in _keyed(calibrated)
    )
    exact = Map("exact", source, (*keys(calibrated), *states), where=where)
    noiser = NoiseMeasures(
        calibrated.measures,
        calibrated.noised_parts,
        calibrated.keys,
        calibrated.max_keys_per_user,
        passes=calibrated.released_by_selection,
    )
    return Noise("release", exact, noiser)
