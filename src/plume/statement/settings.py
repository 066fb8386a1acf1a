"""OPTIONS (...) of the private SELECT: the same settings as those of a query, under BigQuery's names."""

import difflib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from plume.privacy.budget import Budget
from plume.relation.text import Text, Tree
from plume.settings import AUTO, SETTINGS, SettingKind
from plume.statement import elsewhere
from plume.statement.reading import Option, Parsed

PUBLIC_GROUPS = "PUBLIC_GROUPS"
# Those that must be there come first, since people read the list from its start.
_KNOWN = dict(
    sorted(
        ((one.sql, one) for one in SETTINGS if one.sql), key=lambda named: (not named[1].is_required_in_sql, named[0])
    )
)
_SELECTION = "group_selection_strategy"


@dataclass(frozen=True)
class Settings:
    """What OPTIONS says."""

    unit: Tree
    budget: Budget
    others: dict[str, Any]
    """The other settings of a query that stand there, by their names in Python."""
    public_groups: bool


def read_settings(parsed: Parsed) -> Settings:
    """Read OPTIONS, or refuse it at the option that is wrong."""
    text, options = parsed.text, parsed.options
    _refuse_wrong_names(parsed)
    unit = options["privacy_unit_column"]
    if not isinstance(unit.value, exp.Column):
        raise text.refusal(unit.start, "privacy_unit_column must be the name of a column.")
    public = _SELECTION in options and _word(options[_SELECTION].value) == PUBLIC_GROUPS
    others = {one.name: one.sql_default for one in _KNOWN.values() if one.sql_default is not None} | {
        _KNOWN[name].name: _READ[_KNOWN[name].kind](text, name, option)
        for name, option in options.items()
        if _KNOWN[name].kind in _READ and not (public and name == _SELECTION)
    }
    return Settings(unit.value, _budget(text, options), others, public)


def _refuse_wrong_names(parsed: Parsed) -> None:
    text, options = parsed.text, parsed.options
    for name, option in options.items():
        if name not in _KNOWN:
            near = (
                [elsewhere.OPTIONS[name]] if name in elsewhere.OPTIONS else difflib.get_close_matches(name, _KNOWN, n=1)
            )
            meant = f"; did you mean {near[0]}?" if near else "."
            raise text.refusal(option.start, f"there is no option {name}{meant} There are: {', '.join(_KNOWN)}.")
    for name, setting in _KNOWN.items():
        if setting.is_required_in_sql and name not in options:
            raise text.refusal(parsed.clause, f"OPTIONS needs {name}: {setting.sql_help}.")


def _budget(text: Text, options: Mapping[str, Option]) -> Budget:
    numbers: dict[str, float] = {}
    for name in ("epsilon", "delta"):
        if name not in options:
            continue
        value = number(options[name].value)
        if value is None:
            raise text.refusal(options[name].start, f"{name} must be a number.")
        with text.placing(options[name].start):
            Budget(**{"epsilon": 1.0} | numbers | {name: value})
        numbers[name] = float(value)
    return Budget(**numbers)


def _limit(text: Text, name: str, option: Option) -> int | str:
    if is_auto(option.value):
        return AUTO
    return _whole(text, name, option, or_else=", or AUTO to have one chosen within the budget")


def _whole(text: Text, name: str, option: Option, *, or_else: str = "") -> int:
    value = number(option.value)
    if not isinstance(value, int) or value < 1:
        raise text.refusal(option.start, f"{name} must be a positive whole number{or_else}.")
    return value


def _choice(text: Text, name: str, option: Option) -> str:
    """Read one of the words of a setting; what is chosen by leaving it out has no word here."""
    setting, word = _KNOWN[name], _word(option.value)
    public = (PUBLIC_GROUPS,) if name == _SELECTION else ()
    words = {choice.upper(): choice for choice in setting.choices if choice != setting.default}
    if word not in words:
        raise text.refusal(option.start, f"{name} must be one of {', '.join((*public, *words))}.")
    return words[word]


def _word(tree: Tree) -> str:
    return str(tree.name.upper()) if isinstance(tree, exp.Column | exp.Literal) else ""


# Of each kind of setting that a query takes as it stands; the unit, epsilon and delta are read for themselves.
_READ: dict[SettingKind, Callable[[Text, str, Option], Any]] = {
    SettingKind.LIMIT: _limit,
    SettingKind.WHOLE: _whole,
    SettingKind.WORD: _choice,
}


def is_auto(tree: Tree) -> bool:
    """Return whether a number is left to be chosen within the budget: the word AUTO stands in its place."""
    return isinstance(tree, exp.Column | exp.Literal) and not tree.args.get("table") and tree.name.upper() == "AUTO"


def number(tree: Tree) -> Any:
    """Read a number; None if it is not one, or has more digits than Python reads."""
    negative = isinstance(tree, exp.Neg)
    literal = tree.this if negative else tree
    if isinstance(literal, exp.Literal) and not literal.is_string:
        with suppress(ValueError):
            value = int(literal.this) if str(literal.this).isdigit() else float(literal.this)
            return -value if negative else value
    return None
