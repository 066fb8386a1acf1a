"""The default: which way to select keys a query takes that names none, and which noise. The one place that says so.

It is made from the query alone, never from data; by which kinds of users it was decided, and why: docs/decisions/0078-which-default.md.
"""

from collections.abc import Iterator
from typing import Any

from plume.query import Query
from plume.settings import AUTO, BASIC, NOISES

# Up to here, where no accounts are charged, the best rule without Gaussian noise needs fewer users for a key than the best one with it
# (docs/decisions/0009-two-families.md).
_FEW_KEYS = 2


def default_selection(query: Query) -> str | None:
    """Name the way to select keys that a query takes as if it asked for it; None where it names one, or the errors decide.

    With two keys or more these are accounts, which all measures must be charged to when keys are selected. A limit of one key mostly means
    that users have one key each, and then errors decide: Laplace noise is narrower.
    """
    if query.selection != AUTO or query.has_public_keys or query.choices or query.composition == BASIC:
        return None
    return "pooled_gaussian" if query.selection_limit > 1 and query.noise != "laplace" else None


def kinds_of_noise(query: Query) -> list[str]:
    """List the kinds of noise of which the one with the smaller error is taken."""
    if query.budget.delta == 0 or query.composition == BASIC:
        return ["laplace"]
    return [query.noise] if query.noise != AUTO else list(NOISES)


def selection_beside(query: Query, noise: str) -> str | None:
    """Name the way that was asked for, or the one that keeps most keys beside a kind of noise, where no accounts are charged."""
    if query.has_public_keys:
        return None
    if query.selection != AUTO:
        return query.selection
    if query.composition == BASIC or (noise == "laplace" and query.selection_limit <= _FEW_KEYS):
        return "truncated_geometric"
    return "weighted_gaussian"


def earlier_defaults(query: Query) -> Iterator[dict[str, Any]]:
    """Give the settings that name in full what 0.1.0 took, where it took anything else than today's version.

    That was the better of two. Ledgers keep releases that were charged for it (src/plume/ledger/charged_plan.py).
    """
    if default_selection(query) is None:
        return
    yield {"selection": "weighted_gaussian", "noise": "gaussian"}
    if query.selection_limit <= _FEW_KEYS and query.noise == AUTO:
        # Adding epsilons up, as it did there; else dp-accounting would compose the same noise to a little more.
        yield {"selection": "truncated_geometric", "noise": "laplace", "composition": BASIC}
