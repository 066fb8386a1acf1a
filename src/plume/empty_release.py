"""What an empty release says for itself: how many users a key needs, and which changes of the query would lower that most.

All of it is worked out from the query. That no key was shown is released already, so saying this tells nothing more about the data.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from plume.calibration.calibrated_query import CalibratedQuery
from plume.cautions import LARGEST_EPSILON, largest_delta, rounded_down
from plume.errors import PlumeError
from plume.explanation import Explanation
from plume.mechanisms.mechanism import Mechanism
from plume.mechanisms.open_bound import open_bounds
from plume.mechanisms.users import counts_all_users
from plume.planning import make_plan
from plume.privacy.budget import Budget
from plume.query import LIMIT, SELECTION, Query
from plume.released_number import releases_users
from plume.selection.chances import users_for_chance

_EVEN = 0.5
_SHOWN_CHANGES = 3


def describe_empty(explanation: Explanation) -> list[str]:
    """Say how many users a key needs, and what would lower that most; nothing where keys are public, since they need none."""
    rounds = explanation.calibrated.rounds
    if not rounds:
        return []
    limit = _keys_of_user(explanation.calibrated)
    needed, alone = (users_for_chance(rounds, _EVEN, keys_of_user=keys) for keys in (limit, 1))
    lines = [f"a key needs {needed:,} users to be shown half of the time{_if_alone(needed, alone, limit)}"]
    if changes := sorted(_lower(explanation, needed), key=lambda change: change[1])[:_SHOWN_CHANGES]:
        lines.append(f"it would need {', '.join(f'{users:,} with {what}' for what, users in changes)}")
    general = "with public_keys a key needs no users"
    if len(explanation.query.keys) > 1:
        general = f"with fewer key columns each key has more users; {general}"
    return [*lines, general]


def _if_alone(needed: int, alone: int, limit: int) -> str:
    """Weights make those help a key more who have few keys."""
    return f" if each of them has {limit:,} keys, and {alone:,} if they have no other key" if alone < needed else ""


def _users_needed(calibrated: CalibratedQuery) -> int:
    return users_for_chance(calibrated.rounds, _EVEN, keys_of_user=_keys_of_user(calibrated))


def _keys_of_user(calibrated: CalibratedQuery) -> int:
    """With as many as selection counts; of users with accounts, with no more than the limit, as `plume.expect` has it."""
    strategy = calibrated.rounds[-1]
    return strategy.max_keys_per_user if strategy.account is None else calibrated.never_cut.max_keys_per_user


def _lower(explanation: Explanation, needed: int) -> Iterator[tuple[str, int]]:
    """Try each change alone, and give those with which a key needs fewer users."""
    for what, changed in _changes(explanation.query):
        with suppress(PlumeError):  # a change that cannot be planned is not worth a word
            users = _users_needed(make_plan(changed, explanation.pipeline).calibrated)
            if users < needed:
                yield what, users


def _changes(query: Query) -> Iterator[tuple[str, Query]]:
    """Change one setting at a time, by as much as people do, and never to what is cautioned against."""
    epsilon, delta, limit = query.budget.epsilon, query.budget.delta, query.max_keys_per_user
    if (more := min(2 * epsilon, LARGEST_EPSILON)) > epsilon:
        yield f"epsilon = {more:g}", replace(query, budget=Budget(more, delta))
    if (more := min(float(f"{10 * delta:.3g}"), rounded_down(largest_delta(query), 3))) > delta:
        yield f"delta = {more:g}", replace(query, budget=Budget(epsilon, more))
    if isinstance(limit, int) and limit > 1:
        yield f"{LIMIT} = {limit // 2}", replace(query, max_keys_per_user=limit // 2)
    if len(query.measures) > 1:
        first = _first_measure(query)
        yield f"{first.name} as its only measure", _with_one_measure(query, first)
    if query.min_users > 1:
        yield "min_users = 1", replace(query, min_users=1)


def _first_measure(query: Query) -> Mechanism:
    """The first that the query can do with alone."""
    listed = filter(counts_all_users, query.measures) if releases_users(query.selection) else query.measures
    return next(iter(listed))


def _with_one_measure(query: Query, measure: Mechanism) -> Query:
    kept = {SELECTION, LIMIT, measure.name, *open_bounds((measure,))}
    return replace(query, measures=(measure,), shares=tuple(share for share in query.shares if share[0] in kept))
