"""Where the number of users that keys are selected by is released as it is: what else may be asked there, and what is refused.

Apart from queries, which only ask; the proof holds for what passes here and for nothing else: docs/guarantees/released-users.md.
"""

from collections.abc import Sequence

from plume.errors import BoundError, MeasureError, PublicKeysError, shown
from plume.mechanisms.mechanism import Mechanism
from plume.mechanisms.users import counts_all_users
from plume.question import Question
from plume.selection.rule import rule_of
from plume.settings import AUTO


def releases_users(selection: str) -> bool:
    """Return whether keys are selected by the very number of users that is released."""
    return selection != AUTO and rule_of(selection).releases_users


def parts_to_share(selection: str, measures: Sequence[Mechanism]) -> tuple[str, ...]:
    """Name the measures that have a share of the budget of their own; `users()` has that of selection, if it is released by it."""
    released = releases_users(selection)
    return tuple(measure.name for measure in measures if not (released and counts_all_users(measure)))


def refuse_other_than_one_key(question: Question) -> None:
    """Refuse what keys cannot be selected for by a released number of users."""
    beside = f"beside selection = {question.selection!r}"
    if question.has_public_keys:
        raise PublicKeysError(
            f"there are no keys to select {beside}: public_keys is given, or keys is empty; leave selection out."
        )
    if question.max_keys_per_user != 1:
        raise BoundError(
            f"max_keys_per_user is {shown(question.max_keys_per_user)} {beside}, which is for users who count in one key each; "
            "set it to 1, or leave selection out."
        )
    if question.noise == "gaussian":
        raise MeasureError(f"noise is 'gaussian' {beside}, which draws discrete Laplace noise; leave noise out.")
    if not any(map(counts_all_users, question.measures)):
        raise MeasureError(
            f"no measure is users() {beside}, which selects keys by the number of users that it releases; add users() without a "
            "condition, or leave selection out."
        )
