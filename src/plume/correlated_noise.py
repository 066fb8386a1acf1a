"""Where noise may be shared by keys: which queries its proof is for, and what is refused.

Apart from queries, which only ask; the proof holds for what passes here and for nothing else: docs/guarantees/correlated-noise.md.
"""

from plume.errors import BoundError, BudgetError, MeasureError, PublicKeysError
from plume.mechanisms.mechanism import Mechanism
from plume.plan.signs import BOTH, signs_of
from plume.privacy.correlated import share_of_independent_noise
from plume.question import Question
from plume.settings import AUTO, BASIC, CORRELATED

_BESIDE = f"beside noise = {CORRELATED!r}"
_INSTEAD = "take noise = 'gaussian', or leave noise out"
_GAIN = 0.01
"""Noise that lessens by less is not worth totals that are far noisier."""


def refuse_what_cannot_share_noise(question: Question) -> None:
    """Refuse queries whose keys cannot share noise, and those where it would not help."""
    if question.budget.delta == 0:
        raise BudgetError(f"delta is 0 {_BESIDE}; Gaussian noise needs a delta above 0, such as 1e-6.")
    if question.composition == BASIC:
        raise MeasureError(
            f"composition is {BASIC!r} {_BESIDE}; it adds epsilons up, and Gaussian noise has none; leave it out."
        )
    for choice in question.choices:
        raise BoundError(
            f"{choice} is {AUTO!r} {_BESIDE}, which needs every number to be given; give one, or {_INSTEAD}."
        )
    _refuse_unknown_keys(question)
    for measure in question.measures:
        _refuse_signed(measure)
    _refuse_no_gain(question)


def _refuse_unknown_keys(question: Question) -> None:
    if not question.keys:
        raise PublicKeysError(f"keys is empty {_BESIDE}; one row has nothing to share noise with: {_INSTEAD}.")
    if not question.has_public_keys:
        raise PublicKeysError(
            f"public_keys is missing {_BESIDE}, which is for keys that are known without the data; list them, or {_INSTEAD}."
        )
    if question.selection != AUTO:
        raise PublicKeysError(
            f"selection is {question.selection!r} {_BESIDE}: there are no keys to select; leave selection out."
        )
    if question.known_keys is None:
        raise PublicKeysError(
            f"public_keys is a file {_BESIDE}, which needs the number of keys before anything is read; "
            f"give them as a list or a table, or {_INSTEAD}."
        )
    if question.known_keys == 1:
        raise PublicKeysError(f"public_keys holds 1 key {_BESIDE}; it takes 2 or more to share noise: {_INSTEAD}.")


def _refuse_signed(measure: Mechanism) -> None:
    """Refuse numbers to which one user may add in one key and take away in another, and several numbers in a key."""
    if any(part.spread for part in measure.parts()) or None in measure.columns.values():
        raise MeasureError(
            f"{measure.name} is made of several noised numbers {_BESIDE}, which is for users(), count and sum; "
            "ask for it in a query of its own with noise = 'gaussian'."
        )
    if any(signs_of(contribution) == BOTH for contribution in measure.preprocess().values()):
        raise MeasureError(
            f"{measure.name} has contributions above 0 and below 0 {_BESIDE}, which hides changes in one direction only; "
            f"set low_total to 0 or high_total to 0, or {_INSTEAD}."
        )


def _refuse_no_gain(question: Question) -> None:
    keys, limit = question.known_keys, question.max_keys_per_user
    if not isinstance(keys, int) or not isinstance(limit, int):
        return
    gain = 1 - share_of_independent_noise(keys, limit)
    if gain < _GAIN:
        raise BoundError(
            f"max_keys_per_user is {limit} and public_keys holds {keys} keys {_BESIDE}, where noise would be only {max(gain, 0.0):.2%} "
            f"narrower and totals over keys much noisier; it helps where users may be in many of the keys: {_INSTEAD}."
        )
