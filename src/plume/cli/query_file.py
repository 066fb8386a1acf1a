"""A query as a TOML file: the same words as in Python, under which the options of the command line stand."""

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from plume.errors import UsageError
from plume.redaction import Redaction
from plume.settings import AUTO, SETTINGS, SettingKind


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_limit(value: Any) -> bool:
    return _is_whole(value) or value == AUTO


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_list(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(map(_is_text, value)) and bool(value))


def _is_weights(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_number, value.values()))


def _is_expressions(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_text, value.values()))


def _is_keys(value: Any) -> bool:
    return value == [] or _is_list(value) or (_is_expressions(value) and bool(value))


_UNREADABLE = (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError)
_FITS: dict[SettingKind, Callable[[Any], bool]] = {
    SettingKind.NAME: _is_text,
    SettingKind.NAMES: _is_list,
    SettingKind.CONDITION: _is_text,
    SettingKind.KEYS: _is_text,
    SettingKind.WHOLE: _is_whole,
    SettingKind.SIZE: _is_whole,
    SettingKind.LIMIT: _is_limit,
    SettingKind.NUMBER: _is_number,
    SettingKind.WORD: _is_text,
    SettingKind.WEIGHTS: _is_weights,
    SettingKind.EXPRESSIONS: _is_expressions,
}
# The settings of a query, and what its run needs beside them.
_KINDS = {setting.name: setting.kind for setting in SETTINGS} | {
    "pipeline": SettingKind.WORD,
    "data": SettingKind.NAMES,
}
_WRITTEN = {SettingKind.CONDITION: "text", SettingKind.KEYS: "text", SettingKind.WORD: "text"}
"""What is written in a file where Python takes more than text."""


def read_query_file(path: Path) -> dict[str, Any]:
    """Read a file as options by their names, or say which of its lines is wrong."""
    settings = _parse(path)
    for name, value in settings.items():
        if name not in _KINDS:
            raise UsageError(
                f"{path.name!r} says {name!r}, which is not a setting; the settings are {', '.join(_KINDS)}."
            )
        kind = _KINDS[name]
        fits = _is_keys if name == "keys" else _FITS[kind]
        if not fits(value):
            raise UsageError(f"{path.name!r} says {name} = {value!r}; it must be {_WRITTEN.get(kind, kind.value)}.")
    if "key_expressions" in settings and isinstance(settings.get("keys"), dict):
        raise UsageError(f"{path.name!r} says keys and key_expressions, both as tables; give one of them.")
    return {option: value for name, given in settings.items() for option, value in _as_options(name, given).items()}


def _as_options(name: str, value: Any) -> dict[str, Any]:
    """Say which options a setting is: keys may be none, columns, or expressions."""
    if name == "keys" and not value:
        return {"no_keys": True}
    if name == "keys" and isinstance(value, dict):
        return {"key_expressions": _as_option(name, value)}
    return {("files" if name == "data" else name): _as_option(name, value)}


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
    return [value] if _KINDS[name] is SettingKind.NAMES and isinstance(value, str) else value
