"""A statement becomes a tree: the clause about privacy is cut out of the tokens, and sqlglot parses what is left.

The dialect is the engine's own. The names of aggregates are taken out of it, so that they may have arguments no engine knows.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from plume.errors import StatementError, type_in_words
from plume.relation.parsing import parse, select_before, tokens_of
from plume.relation.text import Text, Tree, start_of
from plume.statement import elsewhere

_LONGEST = 100_000
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
    _refuse_other_than_text(text)
    source = Text(text, dialect)
    if len(text) > _LONGEST:
        raise source.refusal(0, f"the statement is longer than {_LONGEST:,} characters.")
    tokens = _tokens(source, dialect)
    begin, end = _clause(source, tokens)
    _refuse_other_names(source, tokens)
    options = _options(source, tokens[begin + 2 : end], dialect)
    select = parse(source, [*tokens[:begin], *tokens[end:]], dialect)
    if not isinstance(select, exp.Select):
        raise source.refusal(
            tokens[begin].start, "the private SELECT must be the whole statement; UNION it afterwards."
        )
    return Parsed(source, select, options, tokens[begin].start, _words([*tokens[:begin], *_unsorted(tokens[end:])]))


def _refuse_other_than_text(text: Any) -> None:
    """Refuse what is not text, is empty or names a file."""
    if not isinstance(text, str):
        refused = f"the statement is {type_in_words(text)}; it must be text, such as {_FORM}"
    elif not text.strip():
        refused = f"the statement is empty; write {_FORM}"
    elif text.strip().lower().endswith(".sql") and len(text.split()) == 1:
        refused = f"the statement is {text.strip()!r}; give the text of the file, as in pathlib.Path({text.strip()!r}).read_text()."
    else:
        return
    raise StatementError(refused, line=1, column=1)


def _tokens(source: Text, dialect: str) -> list[Any]:
    tokens = tokens_of(source, dialect)
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens = tokens[:-1]
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            raise source.refusal(token.start, "there are several statements; give one.")
    return tokens


def _clause(source: Text, tokens: Sequence[Any]) -> tuple[int, int]:
    """Find the tokens of the clause, from WITH to the bracket that closes its options."""
    words = [_word(token) for token in tokens]
    _refuse_other_clauses(source, tokens)
    places = [place for place, word in enumerate(words) if word == "DIFFERENTIAL_PRIVACY"]
    if not places or words[max(places[0] - 2, 0) : places[0]] != ["SELECT", "WITH"]:
        raise source.refusal(tokens[places[0]].start if places else 0, f"there is no private SELECT; write {_FORM}")
    if len(places) > 1:
        raise source.refusal(
            tokens[places[1]].start, "there are two private SELECTs; each release is a statement of its own."
        )
    begin = places[0] - 1
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


def _refuse_other_clauses(source: Text, tokens: Sequence[Any]) -> None:
    for first, second, third in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if _word(third) in elsewhere.CLAUSES and (_word(first), _word(second)) == ("SELECT", "WITH"):
            raise source.refusal(third.start, f"{elsewhere.CLAUSES[_word(third)]}; write {_FORM}")


def _refuse_other_names(source: Text, tokens: Sequence[Any]) -> None:
    """Refuse calls of what has another name here, before the parser finds arguments that it does not know."""
    for token, behind in pairwise(tokens):
        word = _word(token)
        if word in elsewhere.FUNCTIONS and _word(behind) == "(":
            told = f"{word} is not supported here; in the private SELECT write {elsewhere.FUNCTIONS[word]}."
            raise source.refusal(token.start, told)


def _word(token: Any) -> str:
    """Give the word that a token is; what is quoted is not a word."""
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
    call = parse(source, [select_before(tokens[0]), *tokens], dialect).expressions[0]
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
