"""The plan that a release was charged for, where the default has changed since: a question does not say what the default is.

Its own file because a ledger keeps questions and prices, never plans: which plan it was follows from the price.
docs/guarantees/ledger.md.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from plume.calibration.default import earlier_defaults
from plume.errors import LedgerError, PlumeError
from plume.explanation import Explanation
from plume.ledger.claim import Claim
from plume.ledger.entry import EntryKind
from plume.ledger.publishing import price_for
from plume.pipelines.pipeline import PlannedQuery
from plume.planning import make_plan


def as_charged(explanation: Explanation, claim: Claim) -> Explanation:
    """Explain the plan that a release was charged for: today's if it was not charged yet, else the one with exactly that price.

    Guarantee: what is drawn under a release id costs no more, in any of its parts, than was charged. docs/guarantees/ledger.md.
    """
    charged = claim.price
    if charged is None:
        return explanation
    for one in ever_explained(explanation):
        if price_for(one) == charged:
            return one
    if claim.state == EntryKind.RELEASED or price_for(explanation).within(charged):
        return explanation
    raise LedgerError(
        f"release {claim.release_id!r} was charged by another version of Plume, for less than what this version would draw; "
        "finish it with that version, or abandon it and use another release_id, which is charged anew."
    )


def ever_explained(explanation: Explanation) -> Iterator[Explanation]:
    """Explain the same question as this version answers it, and then as earlier ones did."""
    yield explanation
    for settings in earlier_defaults(explanation.query):
        if planned := _planned(explanation, settings):
            yield Explanation(planned)


def _planned(explanation: Explanation, settings: dict[str, Any]) -> PlannedQuery | None:
    """Plan a question with what its default was; it is still the question that was asked."""
    query = explanation.query
    with suppress(PlumeError):
        planned = make_plan(replace(query, **settings), explanation.pipeline)
        return replace(planned, query=query, calibrated=replace(planned.calibrated, query=query))
    return None
