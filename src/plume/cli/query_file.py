"""A query as a TOML file: the same words as in Python, under which the options of the command line stand."""

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from plume.errors import UsageError
from plume.redaction import Redaction


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_limit(value: Any) -> bool:
    return _is_whole(value) or value == "auto"


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_list(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(map(_is_text, value)) and bool(value))


def _is_weights(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_number, value.values()))


_UNREADABLE = (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError)
_TEXT, _WHOLE, _NUMBER = (_is_text, "text"), (_is_whole, "a whole number"), (_is_number, "a number")
_LIMIT = (_is_limit, 'a whole number or "auto"')
_LIST, _WEIGHTS = (_is_list, "text or a list of texts"), (_is_weights, "a table of numbers")
_SETTINGS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "user": _TEXT,
    "keys": _LIST,
    "measures": _LIST,
    "max_keys_per_user": _LIMIT,
    "epsilon": _NUMBER,
    "delta": _NUMBER,
    "where": _TEXT,
    "public_keys": _TEXT,
    "min_users": _WHOLE,
    "selection": _TEXT,
    "noise": _TEXT,
    "composition": _TEXT,
    "shares": _WEIGHTS,
    "pipeline": _TEXT,
    "data": _LIST,
}


def read_query_file(path: Path) -> dict[str, Any]:
    """Read a file as options by their names, or say which of its lines is wrong."""
    found = _parse(path)
    for name, value in found.items():
        if name not in _SETTINGS:
            raise UsageError(
                f"{path.name!r} says {name!r}, which is not a setting; the settings are {', '.join(_SETTINGS)}."
            )
        fits, wanted = _SETTINGS[name]
        if not fits(value):
            raise UsageError(f"{path.name!r} says {name} = {value!r}; it must be {wanted}.")
    return {("files" if name == "data" else name): _as_option(name, value) for name, value in found.items()}


def _parse(path: Path) -> dict[str, Any]:
    with Redaction(_UNREADABLE, lambda error: UsageError(f"{path.name!r} {_reason(error)}.")):
        return tomllib.loads(path.read_text(encoding="utf-8"))


def _reason(error: Exception) -> str:
    match error:
        case OSError():
            return "could not be read"
        case tomllib.TOMLDecodeError():
            return f"is not TOML: {error}"
        case _:
            return "is not TOML in UTF-8"


def _as_option(name: str, value: Any) -> Any:
    """Bring a value into the form in which the command line has it."""
    if isinstance(value, dict):
        return list(value.items())
    return [value] if _SETTINGS[name] is _LIST and isinstance(value, str) else value
