"""All measures by the words they are asked for with. A new one is listed here and in `plume/__init__.py`."""

from plume.mechanisms import count, histogram, mean, quantiles, users, variance, vector_sum
from plume.mechanisms import sum as sum_
from plume.mechanisms.measure import Form

FORMS: dict[str, Form] = {
    form.word: form
    for module in (count, users, sum_, mean, variance, quantiles, histogram, vector_sum)
    for form in module.FORMS
}
ALIASES = {form.alias: word for word, form in FORMS.items() if form.alias is not None}
"""The measures that others call otherwise."""
