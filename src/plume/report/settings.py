"""A query as the Python that asks it: what a reader needs to ask the same again."""

from fractions import Fraction
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

from plume.mechanisms.forms import FORMS
from plume.mechanisms.mechanism import Mechanism
from plume.settings import SETTINGS, values_of


def settings(query: Any) -> dict[str, str]:
    """Give what was set in a query, each as Python; what was left as it is by default is left out."""
    values = values_of(query)
    arguments = {one.name: _argument(one.name, values[one.name]) for one in SETTINGS if values[one.name] != one.default}
    arguments["epsilon"] = f"plume.Budget(epsilon={query.budget.epsilon!r}, delta={query.budget.delta!r})"
    return {"budget" if name == "epsilon" else name: text for name, text in arguments.items() if name != "delta"}


def _argument(name: str, value: Any) -> str:
    """Write the value of a setting, in the short form that Python takes where there is one."""
    match name:
        case "keys" if len(value) == 1:
            return _written(value[0])
        case "key_expressions":
            return "{" + ", ".join(f"{_written(key)}: {_written(text)}" for key, text in value) + "}"
        case "measures":
            return f"[{', '.join(map(measure_call, value))}]"
        case "public_keys":
            return _public(value)
        case "shares":
            return "{" + ", ".join(f"{_written(part)}: {_written(weight)}" for part, weight in value) + "}"
        case _:
            return _written(value)


def query_call(query: Any) -> str:
    """Write the call that makes a query."""
    arguments = settings(query)
    if len(query.measures) > 1:
        listed = "".join(f"        {measure_call(measure)},\n" for measure in query.measures)
        arguments["measures"] = f"[\n{listed}    ]"
    lines = (f"    {name}={value},\n" for name, value in arguments.items())
    return f"plume.Query(\n{''.join(lines)})"


def measure_call(measure: Mechanism) -> str:
    """Write the shortest call that makes a measure, as it was asked for."""
    word, arguments = measure.call()
    make = FORMS[word].make
    whole = make(**arguments)
    parameters = signature(make).parameters
    for name, parameter in parameters.items():
        fewer = {other: value for other, value in arguments.items() if other != name}
        if parameter.default is not Parameter.empty and make(**fewer) == whole:
            arguments = fewer
    written = (f"{name}={_written(arguments[name])}" for name in parameters if name in arguments)
    return f"plume.{word}({', '.join(written)})"


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
