"""A query as the Python that asks it: what a reader needs to ask the same again."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from fractions import Fraction
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

from plume.mechanisms.count import CountRecords, count
from plume.mechanisms.histogram import Histogram, histogram
from plume.mechanisms.mean import Mean, mean
from plume.mechanisms.mechanism import Mechanism
from plume.mechanisms.quantiles import Extreme, Quantiles, maximum, median, minimum, quantiles
from plume.mechanisms.sum import SumOfTotals
from plume.mechanisms.sum import sum as sum_of
from plume.mechanisms.users import CountUsers, users
from plume.mechanisms.variance import StandardDeviation, Variance, stddev, variance
from plume.mechanisms.vector_sum import VectorSum, vector_sum

_MAKERS: Mapping[type, Callable[..., Any]] = {
    CountUsers: users,
    CountRecords: count,
    SumOfTotals: sum_of,
    Mean: mean,
    Variance: variance,
    StandardDeviation: stddev,
    Histogram: histogram,
    VectorSum: vector_sum,
}
# What is asked for by leaving a setting out.
_UNSAID = {"where": None, "min_users": 1, "selection": "auto", "noise": "auto", "composition": "tight", "shares": ()}


def settings(query: Any) -> dict[str, str]:
    """Give what was set in a query, each as Python; what was left as it is by default is left out."""
    said = {name: _written(getattr(query, name)) for name, unsaid in _UNSAID.items() if getattr(query, name) != unsaid}
    if query.shares:
        said["shares"] = "{" + ", ".join(f"{_written(part)}: {_written(weight)}" for part, weight in query.shares) + "}"
    public = {} if query.public_keys is None else {"public_keys": _public(query.public_keys)}
    return {
        "user": _written(query.user),
        "keys": _written(query.keys[0] if len(query.keys) == 1 else query.keys),
        "measures": f"[{', '.join(map(measure_call, query.measures))}]",
        "max_keys_per_user": _written(query.max_keys_per_user),
        "budget": f"plume.Budget(epsilon={query.budget.epsilon!r}, delta={query.budget.delta!r})",
        **public,
        **said,
    }


def query_call(query: Any) -> str:
    """Write the call that makes a query."""
    said = settings(query)
    if len(query.measures) > 1:
        listed = "".join(f"        {measure_call(measure)},\n" for measure in query.measures)
        said["measures"] = f"[\n{listed}    ]"
    lines = (f"    {name}={value},\n" for name, value in said.items())
    return f"plume.Query(\n{''.join(lines)})"


def measure_call(measure: Mechanism) -> str:
    """Write the shortest call that makes a measure, as it was asked for."""
    make, arguments = _made_by(measure)
    asked = make(**arguments)
    parameters = signature(make).parameters
    for name, parameter in parameters.items():
        fewer = {other: value for other, value in arguments.items() if other != name}
        if parameter.default is not Parameter.empty and make(**fewer) == asked:
            arguments = fewer
    written = (f"{name}={_written(arguments[name])}" for name in parameters if name in arguments)
    return f"plume.{make.__name__}({', '.join(written)})"


def _made_by(measure: Any) -> tuple[Callable[..., Any], dict[str, Any]]:
    """Name the function that makes a measure, and all its arguments."""
    arguments = {field.name: getattr(measure, field.name) for field in fields(measure)}
    match measure:
        case Quantiles():
            return _made_as_quantiles(measure, arguments)
        case VectorSum():
            return vector_sum, {"columns": arguments.pop("coordinates"), **arguments}
        case _:
            return _MAKERS[type(measure)], arguments


def _made_as_quantiles(measure: Quantiles, arguments: dict[str, Any]) -> tuple[Callable[..., Any], dict[str, Any]]:
    names = arguments.pop("names")
    if names != (measure.name,):
        return quantiles, arguments | {"name": measure.name.removesuffix("_quantiles")}
    (rank,) = arguments.pop("quantiles")
    if not isinstance(measure, Extreme):
        return median, arguments
    return (maximum if rank else minimum), arguments


def _public(keys: Any) -> str:
    """A file is named; keys that were given as a list or table may be millions, so their name stands for them."""
    return _written(str(keys)) if isinstance(keys, Path) else "public_keys"


def _written(value: Any) -> str:
    """Write a value as Python, which escapes the characters that could mislead a reader."""
    match value:
        case tuple():
            return f"[{', '.join(map(_written, value))}]"
        case Fraction():
            return str(int(value)) if value.denominator == 1 else repr(float(value))
        case _:
            return repr(value)
