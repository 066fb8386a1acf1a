"""OPTIONS (...) of the private SELECT: the same settings as those of a query, under BigQuery's names."""

import difflib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from plume.mechanisms.open_bound import AUTO
from plume.privacy.budget import Budget
from plume.query import STRATEGIES
from plume.statement.reading import Option, Parsed
from plume.statement.text import Text, Tree

PUBLIC_GROUPS = "PUBLIC_GROUPS"
_REQUIRED = {
    "epsilon": "the most to spend, as in epsilon = 1",
    "max_groups_contributed": "the limit on groups per user, as in max_groups_contributed = 8",
    "privacy_unit_column": "the column that identifies the user, as in privacy_unit_column = user_id",
}
_KNOWN = (*_REQUIRED, "delta", "group_selection_strategy", "min_privacy_units_per_group")


@dataclass(frozen=True)
class Settings:
    """What OPTIONS says."""

    budget: Budget
    max_keys_per_user: int | str
    unit: Tree
    min_users: int
    selection: str
    public_groups: bool


def read_settings(parsed: Parsed) -> Settings:
    """Read OPTIONS, or refuse it at the option that is wrong."""
    text, options = parsed.text, parsed.options
    for name, option in options.items():
        if name not in _KNOWN:
            near = difflib.get_close_matches(name, _KNOWN, n=1)
            raise text.refusal(
                option.start,
                f"there is no option {name}; {f'did you mean {near[0]}? ' if near else ''}There are: {', '.join(_KNOWN)}.",
            )
    for name, meaning in _REQUIRED.items():
        if name not in options:
            raise text.refusal(parsed.clause, f"OPTIONS needs {name}: {meaning}.")
    unit = options["privacy_unit_column"]
    if not isinstance(unit.value, exp.Column):
        raise text.refusal(unit.start, "privacy_unit_column must be the name of a column.")
    strategy = _strategy(text, options)
    return Settings(
        budget=_budget(text, options),
        max_keys_per_user=_limit(text, options),
        unit=unit.value,
        min_users=_whole(text, options, "min_privacy_units_per_group")
        if "min_privacy_units_per_group" in options
        else 1,
        selection=AUTO if strategy == PUBLIC_GROUPS else strategy.lower(),
        public_groups=strategy == PUBLIC_GROUPS,
    )


def _budget(text: Text, options: Mapping[str, Option]) -> Budget:
    numbers: dict[str, float] = {}
    for name in ("epsilon", "delta"):
        if name not in options:
            continue
        found = number(options[name].value)
        if found is None:
            raise text.refusal(options[name].start, f"{name} must be a number.")
        with text.placing(options[name].start):
            Budget(**{"epsilon": 1.0} | numbers | {name: found})
        numbers[name] = float(found)
    return Budget(**numbers)


def _limit(text: Text, options: Mapping[str, Option]) -> int | str:
    name = "max_groups_contributed"
    if is_auto(options[name].value):
        return AUTO
    return _whole(text, options, name, or_else=", or AUTO to have one chosen within the budget")


def _whole(text: Text, options: Mapping[str, Option], name: str, *, or_else: str = "") -> int:
    value = number(options[name].value)
    if not isinstance(value, int) or value < 1:
        raise text.refusal(options[name].start, f"{name} must be a positive whole number{or_else}.")
    return value


def _strategy(text: Text, options: Mapping[str, Option]) -> str:
    if "group_selection_strategy" not in options:
        return AUTO
    option, known = options["group_selection_strategy"], [PUBLIC_GROUPS, *(name.upper() for name in STRATEGIES)]
    named = isinstance(option.value, exp.Column | exp.Literal)
    name = option.value.name.upper() if named else ""
    if name not in known:
        raise text.refusal(option.start, f"group_selection_strategy must be one of {', '.join(known)}.")
    return str(name)


def is_auto(tree: Tree) -> bool:
    """Return whether a number is left to be chosen within the budget: the word AUTO stands in its place."""
    return isinstance(tree, exp.Column | exp.Literal) and not tree.args.get("table") and tree.name.upper() == "AUTO"


def number(tree: Tree) -> Any:
    """Read a number; None if it is none, or has more digits than Python reads."""
    negative = isinstance(tree, exp.Neg)
    literal = tree.this if negative else tree
    if isinstance(literal, exp.Literal) and not literal.is_string:
        with suppress(ValueError):
            value = int(literal.this) if str(literal.this).isdigit() else float(literal.this)
            return -value if negative else value
    return None
