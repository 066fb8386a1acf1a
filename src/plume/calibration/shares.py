"""One budget over all parts of a query: which share each part may spend."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from plume.errors import BudgetError
from plume.mechanisms.users import counts_all_users
from plume.query import SELECTION, Query
from plume.released_number import releases_users
from plume.selection.rule import rule_of
from plume.settings import AUTO

# Of the whole budget, for each number that is chosen, unless the shares say otherwise.
SHARE_OF_CHOICE = Fraction(1, 100)


@dataclass(frozen=True)
class Shares:
    """Which part of the budget each part of a query may spend; they add up to at most one."""

    selection: Fraction
    measures: tuple[Fraction, ...]
    """Of each measure, or of each part of a measure. Where selection releases `users()`, it has selection's share, which counts once."""
    choices: tuple[Fraction, ...] = ()
    """Of each number that is chosen."""


def shares_of(query: Query) -> Shares:
    """Share the budget out among selection, choices of numbers, and measures."""
    if releases_users(query.selection):
        return _shares_with_released_users(query)
    names = tuple(measure.name for measure in query.measures)
    selects_keys = not query.has_public_keys
    selection = rule_of(query.selection).weight(query.selection_limit) if query.selection != AUTO else Fraction(1)
    return share(dict(query.shares), names, selects_keys=selects_keys, choices=query.choices, selection=selection)


def _shares_with_released_users(query: Query) -> Shares:
    """Give `users()` what selection has: both are one part, which is paid once."""
    released = [counts_all_users(measure) for measure in query.measures]
    others = tuple(one.name for one in query.measures if not counts_all_users(one))
    weights = dict(query.shares)
    if not others:
        weights.setdefault(SELECTION, Fraction(1))
    shared = share(weights, others, selects_keys=True)
    of_others, of_each = iter(shared.measures), shared.selection / sum(released)
    return Shares(shared.selection, tuple(of_each if is_released else next(of_others) for is_released in released))


def share(
    weights: Mapping[str, Fraction],
    measures: tuple[str, ...],
    *,
    selects_keys: bool,
    choices: tuple[str, ...] = (),
    selection: Fraction = Fraction(1),
) -> Shares:
    """Share a budget out by weight: 1 for a measure that has none, for selection as much as all measures together, times `selection`.

    Public keys need no selection and leave everything to the measures. Each number that is chosen takes a small share of the whole.
    """
    of_measures = [weights.get(name, Fraction(1)) for name in measures]
    of_selection = weights.get(SELECTION, selection * sum(of_measures, Fraction())) if selects_keys else Fraction()
    others = sum(of_measures, of_selection)
    of_choices = [weights[name] if name in weights else _small(others, choices) for name in choices]
    whole = sum(of_choices, others)
    of_each = (tuple(weight / whole for weight in weights) for weights in (of_measures, of_choices))
    return Shares(of_selection / whole, *of_each)


def _small(others: Fraction, choices: tuple[str, ...]) -> Fraction:
    """The weight of a choice that has none, beside that of everything else."""
    left = 1 - SHARE_OF_CHOICE * len(choices)
    if left <= 0:
        raise BudgetError(
            f"{len(choices)} numbers are left to be chosen within the budget, each for a share of {float(SHARE_OF_CHOICE):g}, which leaves "
            f"nothing to the measures; leave fewer than {1 / SHARE_OF_CHOICE} open, or give each a share with shares=."
        )
    return others * SHARE_OF_CHOICE / left
