"""All measures by the words they are asked for with. `measure.py` says what a new one needs; its module is listed here."""

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
