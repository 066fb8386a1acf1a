"""Text becomes trees: sqlglot's dialects of engines, in which the names of aggregates are functions like any other."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import TokenType

from plume.errors import StatementError
from plume.redaction import Redaction, redacting
from plume.relation.forms import UNITS
from plume.relation.text import Text, Tree

CALLS = frozenset(
    {"COUNT", "SUM", "AVG", "MIN", "MAX", "VAR_POP", "STDDEV_POP", "PERCENTILE_CONT", "RANK", "DENSE_RANK"}
)
"""Functions of many rows; everything else is a function of one."""
OF_A_UNIT = (exp.Extract, exp.TimestampTrunc, exp.DateTrunc)
"""Functions of time, one of whose arguments is a unit."""
KEYS = "keys"
"""The dialect of the expressions of keys, which is the same for all engines: DuckDB's, with bare units where BigQuery has them."""
_TAKEN_OUT = CALLS | {"VARIANCE_POP"}
# What sqlglot reads by a rule of its own drops their third argument.
_READ_AS_CALLS = frozenset({"CEIL", "CEILING", "FLOOR"})
_TOO_DEEP = "this is nested too deeply to be read."


@cache
def _dialect(name: str) -> Any:
    """Make the engine's dialect with quotes as BigQuery has them, in which aggregates are functions like any other."""
    base: Any = type(Dialect.get_or_raise("duckdb" if name == KEYS else name))

    quotes = [*dict.fromkeys([*base.Tokenizer.IDENTIFIERS, "`"])]
    tokenizer = type("Tokenizer", (base.Tokenizer,), {"IDENTIFIERS": quotes})
    left_out = {"FUNCTIONS": _TAKEN_OUT, "FUNCTION_PARSERS": _TAKEN_OUT | _READ_AS_CALLS}
    known = {
        table: {name: made for name, made in getattr(base.Parser, table).items() if name not in names}
        for table, names in left_out.items()
    }
    known["FUNCTIONS"] = {name: _with_all_arguments(name, made) for name, made in known["FUNCTIONS"].items()}
    known["FUNCTIONS"]["DATE_TRUNC"] = _truncating(
        known["FUNCTIONS"]["DATE_TRUNC"], _is_key_unit_last if name == KEYS else _is_unit_last
    )
    # What sqlglot does not know it writes to a log, to the letter: a statement could command the terminal of whoever reads it.
    silent = {"_warn_unsupported": lambda _: None}
    parser = type("Parser", (base.Parser,), known | silent)
    parts = {"Tokenizer": tokenizer, "Parser": parser, "STRICT_JSON_PATH_SYNTAX": False}
    return type("Statement", (base,), parts)()


def _with_all_arguments(name: str, make: Callable[..., Tree]) -> Callable[..., Tree]:
    """Let a call of which sqlglot would leave an argument out stay a call of a function that nobody knows."""

    def made(arguments: list[Tree], **settings: Any) -> Tree:
        tree = make(arguments, **settings)
        kept = {id(part) for part in tree.walk()}
        lost = [argument for argument in arguments if id(argument) not in kept]
        given = {id(part) for argument in arguments for part in argument.walk()}
        timed = next((part for part in tree.find_all(*OF_A_UNIT) if id(part) not in given), None)
        # The unit of a function of time is written anew.
        allowed = int(timed is not None and id(timed.args.get("unit", timed.this)) not in given)
        return tree if len(lost) <= allowed else exp.Anonymous(this=name, expressions=arguments)

    return made


def _truncating(
    make: Callable[[list[Any]], Tree], is_unit_last: Callable[[list[Any]], bool]
) -> Callable[[list[Any]], Tree]:
    """Read DATE_TRUNC(day, MONTH) as well, BigQuery's way to write DATE_TRUNC('month', day)."""
    return lambda given: make(given[::-1] if is_unit_last(given) else given)


def _is_unit_last(given: list[Any]) -> bool:
    return _is_key_unit_last(given) and not _is_bare_unit(given[0])


def _is_key_unit_last(given: list[Any]) -> bool:
    """Return the same where two bare units are a column and a unit, as nowhere else."""
    return len(given) == 2 and _is_bare_unit(given[1]) and not given[0].is_string  # noqa: PLR2004 - a value and a unit


def _is_bare_unit(tree: Tree) -> bool:
    bare = isinstance(tree, exp.Column) and not tree.table and not tree.this.args.get("quoted")
    return bare and tree.name.upper() in UNITS


def tokens_of(source: Text, dialect: str) -> list[Any]:
    """Cut a text into its tokens."""
    if "\0" in source.text:
        raise source.refusal(source.text.index("\0"), "a statement cannot hold the character with the number 0.")
    refusal = source.refusal(0, "this cannot be read as SQL; check that every quote and comment is closed.")
    with redacting(Exception, to=refusal):
        source.text.encode()
        tokens: list[Any] = _dialect(dialect).tokenize(source.text)
    return tokens


def select_before(beside: Any) -> Any:
    """Make the word SELECT, to stand before a token."""
    return type(beside)(
        TokenType.SELECT, "SELECT", line=beside.line, col=beside.col, start=beside.start, end=beside.start
    )


def parse(source: Text, tokens: Sequence[Any], dialect: str) -> Tree:
    """Parse tokens that are one statement."""
    with Redaction((Exception,), lambda error: _failure(source, error)):
        trees: list[Any] = _dialect(dialect).parser().parse(list(tokens), source.text)
    if len(trees) != 1 or trees[0] is None:
        raise source.refusal(0, _TOO_DEEP)
    return trees[0]


def _failure(source: Text, error: Exception) -> StatementError:
    match error:
        case ParseError():
            return _told(source, error)
        case RecursionError():
            return source.refusal(0, _TOO_DEEP)
        case _:  # sqlglot also fails with errors of Python's own on texts that are not SQL
            return source.refusal(0, "this cannot be read as SQL.")


def _told(source: Text, error: ParseError) -> StatementError:
    """Say what sqlglot found, and at which character."""
    first = error.errors[0] if error.errors else {}
    line, column = int(first.get("line") or 1), int(first.get("col") or 1)
    lines = source.text.split("\n")
    end = sum(len(before) + 1 for before in lines[: line - 1]) + column
    near = str(first.get("highlight") or "")
    described = str(first.get("description") or "unexpected").rstrip(".")
    if "Required keyword" in described:
        described = "something is missing"
    described = described.partition(" but got <")[0]  # the parser's own notes about a token
    return source.refusal(max(end - len(near), 0), f"this cannot be read as SQL near {near!r}: {described.lower()}.")
