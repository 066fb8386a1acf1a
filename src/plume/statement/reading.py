"""A statement becomes a tree: the clause about privacy is cut out of the tokens, and sqlglot parses what is left.

The dialect is the engine's own. The names of aggregates are taken out of it, so that they may have arguments no engine knows.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import TokenType

from plume.errors import StatementError
from plume.redaction import Redaction, redacting
from plume.statement.text import Text, Tree, start_of

CALLS = frozenset(
    {"COUNT", "SUM", "AVG", "MIN", "MAX", "VAR_POP", "STDDEV_POP", "PERCENTILE_CONT", "RANK", "DENSE_RANK"}
)
"""Functions of many rows; everything else is a function of one."""
OF_A_UNIT = (exp.Extract, exp.TimestampTrunc, exp.DateTrunc)
"""Functions of time, one of whose arguments is a unit."""
_TAKEN_OUT = CALLS | {"VARIANCE_POP"}
# What sqlglot reads by a rule of its own drops their third argument.
_READ_AS_CALLS = frozenset({"CEIL", "CEILING", "FLOOR"})
_LONGEST = 100_000
_TOO_DEEP = "this is nested too deeply to be read."
_FORM = (
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, delta = 1e-6, max_groups_contributed = 8, "
    "privacy_unit_column = user_id) ..."
)


@dataclass(frozen=True)
class Option:
    """One entry of the clause about privacy: where it stands, and its value as a tree."""

    start: int
    value: Tree


@dataclass(frozen=True)
class Parsed:
    """A statement as a tree, without the clause about privacy, and that clause."""

    text: Text
    select: Tree
    options: Mapping[str, Option]
    clause: int
    """Where the clause stands."""
    words: str
    """What the statement asks for, its words one space apart: without comments, settings, and how the result is sorted and cut."""


def read(text: str, dialect: str) -> Parsed:
    """Parse a statement in the dialect of an engine."""
    if not isinstance(text, str) or not text.strip():
        raise StatementError("the statement is empty; write " + _FORM, line=1, column=1)
    source = Text(text, dialect)
    if len(text) > _LONGEST:
        raise source.refusal(0, f"the statement is longer than {_LONGEST:,} characters.")
    tokens = _tokens(source, dialect)
    begin, end = _clause(source, tokens)
    options = _options(source, tokens[begin + 2 : end], dialect)
    select = _parse(source, [*tokens[:begin], *tokens[end:]], dialect)
    if not isinstance(select, exp.Select):
        raise source.refusal(
            tokens[begin].start, "the private SELECT must be the whole statement; UNION it afterwards."
        )
    return Parsed(source, select, options, tokens[begin].start, _words([*tokens[:begin], *_unsorted(tokens[end:])]))


@cache
def _dialect(name: str) -> Any:
    """Make the engine's dialect with quotes as BigQuery has them, in which aggregates are functions like any other."""
    base: Any = type(Dialect.get_or_raise(name))

    quotes = [*dict.fromkeys([*base.Tokenizer.IDENTIFIERS, "`"])]
    tokenizer = type("Tokenizer", (base.Tokenizer,), {"IDENTIFIERS": quotes})
    left_out = {"FUNCTIONS": _TAKEN_OUT, "FUNCTION_PARSERS": _TAKEN_OUT | _READ_AS_CALLS}
    known = {
        table: {name: made for name, made in getattr(base.Parser, table).items() if name not in names}
        for table, names in left_out.items()
    }
    known["FUNCTIONS"] = {name: _with_all_arguments(name, made) for name, made in known["FUNCTIONS"].items()}
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


def _tokens(source: Text, dialect: str) -> list[Any]:
    if "\0" in source.text:
        raise source.refusal(source.text.index("\0"), "a statement cannot hold the character with the number 0.")
    refusal = source.refusal(0, "this cannot be read as SQL; is a quote or a comment left open?")
    with redacting(Exception, to=refusal):
        source.text.encode()
        tokens: list[Any] = _dialect(dialect).tokenize(source.text)
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens = tokens[:-1]
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            raise source.refusal(token.start, "there are several statements; give one.")
    return tokens


def _clause(source: Text, tokens: Sequence[Any]) -> tuple[int, int]:
    """Find the tokens of the clause, from WITH to the bracket that closes its options."""
    words = [_word(token) for token in tokens]
    found = [place for place, word in enumerate(words) if word == "DIFFERENTIAL_PRIVACY"]
    if not found or words[max(found[0] - 2, 0) : found[0]] != ["SELECT", "WITH"]:
        raise source.refusal(tokens[found[0]].start if found else 0, f"there is no private SELECT; write {_FORM}")
    if len(found) > 1:
        raise source.refusal(
            tokens[found[1]].start, "there are two private SELECTs; each release is a statement of its own."
        )
    begin = found[0] - 1
    if words[: begin - 1].count("(") != words[: begin - 1].count(")"):
        raise source.refusal(tokens[begin].start, "the private SELECT is inside another one; it must be the outermost.")
    if words[begin + 2 : begin + 4] != ["OPTIONS", "("]:
        raise source.refusal(tokens[begin + 1].start, f"OPTIONS (...) must follow DIFFERENTIAL_PRIVACY: {_FORM}")
    depth = 0
    for place in range(begin + 3, len(tokens)):
        depth += {"(": 1, ")": -1}.get(words[place], 0)
        if depth == 0:
            return begin, place + 1
    raise source.refusal(tokens[begin + 3].start, "the brackets of OPTIONS ( are not closed.")


def _word(token: Any) -> str:
    """Give the word that a token is; what is quoted is none."""
    quoted = token.token_type in (TokenType.STRING, TokenType.IDENTIFIER)
    return "" if quoted else str(token.text).upper()


def _words(tokens: Iterable[Any]) -> str:
    return " ".join(map(_written, tokens))


def _unsorted(tokens: Iterable[Any]) -> Iterator[Any]:
    """Leave out ORDER BY, LIMIT and OFFSET of the private SELECT, which come last and only concern what was released."""
    depth = 0
    for token in tokens:
        word = _word(token)
        depth += {"(": 1, ")": -1}.get(word, 0)
        if depth == 0 and word in ("ORDER BY", "LIMIT", "OFFSET"):
            return
        yield token


def _written(token: Any) -> str:
    """Write a token so that no other one is written like it."""
    quote = {TokenType.STRING: "'", TokenType.IDENTIFIER: '"'}.get(token.token_type, "")
    text = str(token.text)
    return f"{quote}{text.replace(quote, quote * 2)}{quote}" if quote else text


def _options(source: Text, tokens: Sequence[Any], dialect: str) -> dict[str, Option]:
    """Read OPTIONS (name = value, ...) by parsing it as a call, whose arguments are comparisons."""
    call = _parse(source, [_select(tokens[0]), *tokens], dialect).expressions[0]
    options: dict[str, Option] = {}
    for part in call.expressions:
        named = isinstance(part, exp.EQ | exp.PropertyEQ) and isinstance(
            part.this, exp.Column | exp.Identifier | exp.Var
        )
        if not named or part.this.args.get("table"):
            raise source.refusal(
                part, f"{source.quote(part)!r} is not an option; write name = value, as in epsilon = 1."
            )
        name = part.this.name.lower()
        if name in options:
            raise source.refusal(part, f"option {name} is given twice.")
        options[name] = Option(start_of(part.this), part.expression)
    return options


def _select(beside: Any) -> Any:
    """Make the word SELECT, to stand before a token."""
    return type(beside)(
        TokenType.SELECT, "SELECT", line=beside.line, col=beside.col, start=beside.start, end=beside.start
    )


def _parse(source: Text, tokens: list[Any], dialect: str) -> Tree:
    with Redaction((Exception,), lambda error: _failure(source, error)):
        trees: list[Any] = _dialect(dialect).parser().parse(tokens, source.text)
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
    found = error.errors[0] if error.errors else {}
    line, column = int(found.get("line") or 1), int(found.get("col") or 1)
    lines = source.text.split("\n")
    end = sum(len(before) + 1 for before in lines[: line - 1]) + column
    near = str(found.get("highlight") or "")
    described = str(found.get("description") or "unexpected").rstrip(".")
    if "Required keyword" in described:
        described = "something is missing"
    return source.refusal(max(end - len(near), 0), f"this cannot be read as SQL near {near!r}: {described.lower()}.")
