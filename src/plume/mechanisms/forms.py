"""All measures by the words they are asked for with. `measure.py` says what a new one needs; its module is listed here."""

import re

from plume.mechanisms import count, histogram, mean, quantiles, users, variance, vector_sum
from plume.mechanisms import sum as sum_
from plume.mechanisms.measure import Form

FORMS: dict[str, Form] = {
    form.word: form
    for module in (count, users, sum_, mean, variance, quantiles, histogram, vector_sum)
    for form in module.FORMS
}
ALIASES = {form.alias: word for word, form in FORMS.items() if form.alias is not None}
"""What other systems call measures, and what these are called here."""
_NEAR = {
    **dict.fromkeys(("count_distinct", "distinct", "n_unique", "nunique"), "users"),
    **dict.fromkeys(("percentile", "percentiles"), "quantiles"),
    "size": "count",
}
_QUANTILE = re.compile(r"p\d\d?")


def nearest(name: str) -> str | None:
    """Name the measure that others may mean by this name, though it does not stand for it; None if there is none.

    >>> nearest("nunique"), nearest("p95"), nearest("laplace")
    ('users', 'quantiles', None)
    """
    return ALIASES.get(name) or _NEAR.get(name) or ("quantiles" if _QUANTILE.fullmatch(name) else None)
