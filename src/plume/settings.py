"""The settings of a query in one table: what each is called, what it may be, what it is by default, and what it means.

Checks, the command line, query files, records, reports, the ledger and OPTIONS of statements read this table. A new setting is one row
here and one field of `Query`, which lists it once more for type checkers; docs/api.md and docs/cli.md name it. The table imports nothing
that takes time, since `plume --help` reads it.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Any

from plume.limit_meaning import MEANING

AUTO = "auto"
"""What stands where a number or a name is left open."""
STRATEGIES = (
    "laplace_threshold",
    "truncated_geometric",
    "gaussian_threshold",
    "weighted_gaussian",
    "pooled_gaussian",
    "two_round_weighted_gaussian",
    "released_users",
    "two_round_pooled_gaussian",
)
"""The ways to select keys; each is a module of its name in `plume.selection`."""
NOISES = ("laplace", "gaussian")
"""The kinds of noise that "auto" chooses from."""
CORRELATED = "correlated"
"""Gaussian noise that keys share in part: by name only, and for public keys."""
# How costs of parts come together: by whatever states the whole most tightly, or by adding epsilons up as the paper does.
TIGHT, BASIC = "tight", "basic"


class SettingKind(Enum):
    """What a setting may be; its value says so in words."""

    NAME = "text"
    NAMES = "text or a list of texts"
    CONDITION = "a condition"
    KEYS = "a table of keys"
    WHOLE = "a whole number"
    SIZE = "a positive whole number"
    LIMIT = f'a whole number or "{AUTO}"'
    NUMBER = "a number"
    WORD = "one of the choices"
    WEIGHTS = "a table of numbers"
    EXPRESSIONS = "a table of texts"


@dataclass(frozen=True)
class Setting:
    """One row: a setting of a query, or of its budget."""

    name: str
    """What it is called in Python, in query files, in records and by the ledger."""
    kind: SettingKind
    help: str
    """What it means, for the command line."""
    default: Any = None
    required: bool = False
    choices: tuple[str, ...] = ()
    """The words it may be, if it is a word."""
    option: str | None = None
    """What it is called on the command line, if not as in Python; several values are given one by one there."""
    metavar: str | None = None
    sql: str | None = None
    """What it is called among the OPTIONS of a statement, if it is one of them."""
    sql_help: str = ""
    """What it means there, with an example."""
    sql_default: Any = None
    """What a statement means that leaves it out, if that is not the same as elsewhere."""

    @property
    def flag(self) -> str:
        """The option of the command line."""
        return f"--{self.option or self.name.replace('_', '-')}"

    @property
    def is_required_in_sql(self) -> bool:
        """Whether every statement must give it."""
        return self.required and self.sql_default is None


SETTINGS = (
    Setting(
        "user",
        SettingKind.NAME,
        "Column that identifies the user (the privacy unit).",
        required=True,
        metavar="COLUMN",
        sql="privacy_unit_column",
        sql_help="the column that identifies the user, as in privacy_unit_column = user_id",
    ),
    Setting(
        "keys",
        SettingKind.NAMES,
        "Column to group by; repeatable. Or give --key-as or --no-keys.",
        required=True,
        option="key",
        metavar="COLUMN",
    ),
    Setting(
        "measures",
        SettingKind.NAMES,
        "What to compute per key; repeatable: 'count(3)', 'users()', 'sum(seconds, 0, 60) AS time', 'mean(seconds, 0, 60)', ...",
        required=True,
        option="measure",
        metavar="MEASURE",
    ),
    Setting(
        "max_keys_per_user",
        SettingKind.LIMIT,
        f"{MEANING} '{AUTO}' chooses it within the budget.",
        required=True,
        metavar="NUMBER",
        sql="max_groups_contributed",
        sql_help="the limit on groups per user, as in max_groups_contributed = 8",
        sql_default=1,
    ),
    Setting(
        "epsilon",
        SettingKind.NUMBER,
        "The most to spend, such as 1.1.",
        required=True,
        metavar="NUMBER",
        sql="epsilon",
        sql_help="the most to spend, as in epsilon = 1",
    ),
    Setting(
        "delta",
        SettingKind.NUMBER,
        "Above 0 unless keys are public, such as 1e-5.",
        default=0.0,
        metavar="NUMBER",
        sql="delta",
    ),
    Setting(
        "where",
        SettingKind.CONDITION,
        "Which rows count at all, such as \"seconds > 3 AND country = 'DE'\".",
        metavar="CONDITION",
    ),
    Setting(
        "public_keys",
        SettingKind.KEYS,
        "A table of keys known without the data: all of them are released and no others.",
        metavar="FILE",
    ),
    Setting(
        "min_users",
        SettingKind.WHOLE,
        "Never release a key with fewer users.",
        default=1,
        metavar="N",
        sql="min_privacy_units_per_group",
    ),
    Setting(
        "selection",
        SettingKind.WORD,
        f"How keys are selected: {', '.join((AUTO, *STRATEGIES))}. auto is decided by the limit, the measures and the noise.",
        default=AUTO,
        choices=(AUTO, *STRATEGIES),
        metavar="NAME",
        sql="group_selection_strategy",
    ),
    Setting(
        "noise",
        SettingKind.WORD,
        f"Kind of noise; auto takes that of the default selection, or the one with the smaller error. {CORRELATED} is for public keys that "
        "are few.",
        default=AUTO,
        choices=(AUTO, *NOISES, CORRELATED),
    ),
    Setting(
        "composition",
        SettingKind.WORD,
        "How costs are composed; basic only adds epsilons up, as the paper does.",
        default=TIGHT,
        choices=(TIGHT, BASIC),
    ),
    Setting(
        "shares",
        SettingKind.WEIGHTS,
        "Weight of 'selection' or of a measure when the budget is divided; repeatable.",
        default=(),
        option="share",
        metavar="PART WEIGHT",
    ),
    Setting(
        "key_expressions",
        SettingKind.EXPRESSIONS,
        "A key that is computed: --key-as month 'DATE_TRUNC(day, MONTH)'; repeatable.",
        default=(),
        option="key-as",
        metavar="NAME EXPRESSION",
    ),
    Setting(
        "population",
        SettingKind.SIZE,
        "Number of people the users are drawn from, as you know it and not from the data; delta should be below 1 divided by it.",
        metavar="NUMBER",
    ),
)
REQUIRED = tuple(setting.name for setting in SETTINGS if setting.required)
"""What no query can do without."""


def values_of(query: Any) -> dict[str, Any]:
    """Give the settings of a query by their names, as it holds them; epsilon and delta are those of its budget."""
    return {
        setting.name: getattr(query if hasattr(query, setting.name) else query.budget, setting.name)
        for setting in SETTINGS
    }
