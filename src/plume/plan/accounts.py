"""The check that accounts pay for all that a plan spends: what selection gives out is what measures leave, of all rows that they read.

Beside `reach`, which follows weights to the accounts they are drawn from; here it is asked what these accounts are charged.
"""

from collections.abc import Mapping
from fractions import Fraction

from plume.plan.aggregates import Aggregate, Count
from plume.plan.analysis import noisers, spelled_out, steps
from plume.plan.expressions import Clamp, Column, Literal, Shrink
from plume.plan.nodes import USER, Account, Clip, Combine, CountKeys, Map, Noise, Plan, Scan, Size, sources
from plume.plan.reach import drawn_from
from plume.plan.trees import columns_of
from plume.privacy.cost import PooledCost

# Charges are exact and at least what they pay for; what a noiser spends is a floating-point number.
_SLACK = 1 + 1e-12
# Selections of one release that have a price together.
_ROUNDS = 2


def uncharged_noisers(plan: Plan) -> tuple[str, ...]:
    """Name the steps whose noise accounts should pay for and do not, and those whose weights are drawn from accounts of other rows."""
    listed = noisers(spelled_out(plan))
    selecting = [step for step in listed if step.noiser.account is not None]
    others = [step for step in listed if step.noiser.account is None]
    # What is priced by accounts that nobody has.
    without = [step.name for step in others if any(isinstance(cost, PooledCost) for cost in step.noiser.costs)]
    unpaid = [
        one.name for step in selecting for one in (step, *others) if not _is_charged(one, step, _whole(step, selecting))
    ]
    return (*without, *dict.fromkeys(unpaid))


def _whole(step: Noise, selecting: list[Noise]) -> Fraction:
    """Give what whole accounts move, in squares of mu: both rounds of a selection spend the same ones."""
    rounds = [one for one in selecting if one.noiser.account == step.noiser.account]
    spent = [cost for one in rounds for cost in one.noiser.costs if isinstance(cost, PooledCost)]
    alike = len(rounds) == len(selecting) <= _ROUNDS
    return sum((Fraction(cost.mu) ** 2 for cost in spent), Fraction()) if alike else Fraction()


def _is_charged(step: Noise, selecting: Noise, whole: Fraction) -> bool:
    account, counted = selecting.noiser.account, drawn_from(selecting)
    rows = None if counted is None else _all_rows(counted, (USER, *selecting.noiser.writes))
    if account is None or counted is None or rows is None or not whole or not _hands_on(step, counted, rows):
        return False
    if step == selecting:
        return _is_priced(account, selecting) and _takes_what_is_said(account, counted)
    return _reads_no_more(step, counted, rows) and _shrinks_by_size(account, step) and _pays(account, step, whole)


def _hands_on(step: Noise, counted: CountKeys, rows: Map) -> bool:
    """Return whether steps on the way leave keys alone, and what is known of them: parts are made of what was charged."""
    return all(
        expression == Column(name)
        for one in steps(step)
        if isinstance(one, Map) and one != rows
        for name, expression in one.expressions
        if name in counted.source.columns
    )


def _is_priced(account: Account, selecting: Noise) -> bool:
    """Return whether selection is priced for these charges, and for as many keys as it admits."""
    return all(
        isinstance(cost, PooledCost)
        and cost.novel.charges == tuple(charge for _, charge in account.charges)
        and cost.novel.max_keys_per_user >= selecting.noiser.max_keys_per_user
        for cost in selecting.noiser.costs
    )


def _takes_what_is_said(account: Account, counted: CountKeys) -> bool:
    """Return whether the least that charges are said to take for a key is what every row of a user takes."""
    combined = counted.source
    known = dict(combined.aggregates) if isinstance(combined, Combine) else {}
    return all(charge.least <= _least(size, known) for size, charge in account.charges)


def _least(size: Size, known: Mapping[str, Aggregate]) -> int:
    match size.of:
        case (Literal(1),):
            return 1
        case (Clamp(Column(records), 0, high),) if high >= 1 and known.get(records) == Count():
            return 1
        case _:
            return 0


def _all_rows(counted: CountKeys, by: tuple[str, ...]) -> Map | None:
    """Give the rows that an account is charged for, if they are all rows of the table that meet a condition, combined by user and key."""
    combined = counted.source
    rows = combined.source if isinstance(combined, Combine) and combined.by == by else None
    all_of_them = isinstance(rows, Map) and isinstance(rows.source, Scan) and not rows.source.public
    return rows if isinstance(rows, Map) and all_of_them else None


def _reads_no_more(step: Noise, counted: CountKeys, rows: Map) -> bool:
    """Return whether a noiser reads the table through the same rows alone, and knows of a user and key what the account knew."""
    below = steps(step)
    reads = [one for one in below for source in sources(one) if isinstance(source, Scan) and not source.public]
    combined = counted.source
    if any(one != rows for one in reads) or not isinstance(combined, Combine) or counted.account is None:
        return False
    charged = {name for size, _ in counted.account.charges for of in size.of for name in columns_of(of)}
    known = dict(combined.aggregates)
    by_user = [one for one in below if isinstance(one, Combine) and USER in one.by]
    return charged <= set(known) and all(
        one.by == combined.by and all(known.get(name) == aggregate for name, aggregate in one.aggregates)
        for one in by_user
    )


def _shrinks_by_size(account: Account, step: Noise) -> bool:
    """Return whether rows are clipped to what charges are made for, and each column by the size that it is in proportion to."""
    paid, below = dict(account.charges), steps(step)
    sizes = {column: part.size for part in step.noiser.moved or () for column in part.columns}
    clipped = all(
        size in paid and one.limit * size.squared == paid[size].whole
        for one in below
        if isinstance(one, Clip)
        for _, size in one.factors
    )
    return clipped and all(
        dict(one.source.factors).get(expression.factor.name) == sizes.get(column)
        for one in below
        if isinstance(one, Map) and isinstance(one.source, Clip)
        for column, expression in one.expressions
        if isinstance(expression, Shrink)
    )


def _pays(account: Account, step: Noise, whole: Fraction) -> bool:
    """Return whether charges pay for what a user moves, size by size."""
    if step.noiser.moved is None:
        return False
    moved: dict[Size, Fraction] = {}
    for part in step.noiser.moved:
        moved[part.size] = moved.get(part.size, Fraction()) + part.squared
    paid = dict(account.charges)
    limit = step.noiser.max_keys_per_user
    return all(
        size in paid
        and paid[size].whole == limit * size.squared
        and squared <= whole * paid[size].share * Fraction(_SLACK)
        for size, squared in moved.items()
    )
