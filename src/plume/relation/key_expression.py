"""A key that is computed: the text of an expression becomes a tree of the closed forms that statements have, over columns of one table."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from plume.errors import ExpressionError, StatementError, shortened
from plume.plan.types import Kind
from plume.redaction import Redaction
from plume.relation.forms import refuse_unread
from plume.relation.names import Scope, Uses
from plume.relation.parsing import KEYS, parse, select_before, tokens_of
from plume.relation.relations import BaseTable, Source
from plume.relation.text import Text, Tree

LABEL = "rows"
"""What the table is called in a tree."""
TABLE = "given_1"
"""What it is called in an engine."""
_LONGEST = 100_000
_EXAMPLE = 'write an expression, such as "DATE_TRUNC(day, MONTH)" or "LOWER(country)"'


@dataclass(frozen=True)
class KeyExpression:
    """An expression that was read and checked."""

    tree: Tree
    columns: Mapping[str, Kind | None]
    """The columns that it reads, and how to read them from a file that does not say their types."""

    @property
    def is_column(self) -> bool:
        """Whether it is a column as it is."""
        return isinstance(self.tree.unnest(), exp.Column)


def read_key(name: str, text: Any, language: str = "duckdb") -> KeyExpression:
    """Read the expression of a key, or raise ExpressionError saying what is wrong with it.

    The text is the same on all engines; `language` names the one whose units and patterns it must keep to.

    >>> list(read_key("month", "DATE_TRUNC(day, MONTH)").columns)
    ['day']
    """
    if not isinstance(text, str) or not text.strip():
        raise ExpressionError(f"key {name!r} is {shortened(repr(text))}; {_EXAMPLE}.")
    if len(text) > _LONGEST:
        raise ExpressionError(f"the expression of key {shortened(repr(name))} is longer than {_LONGEST:,} characters.")
    told = Redaction(
        (StatementError,), lambda error: ExpressionError(f"key {name!r} is {shortened(repr(text))}; {error}")
    )
    with told:
        return _read(text, language)


@lru_cache
def _read(text: str, language: str) -> KeyExpression:
    """Read a text once: queries are copied again and again, and a tree never changes."""
    source, uses = Text(text, language), Uses()
    tokens = tokens_of(source, KEYS)
    if not tokens or any(token.token_type is TokenType.SEMICOLON for token in tokens):
        raise source.refusal(0, "this is not one expression.")
    select = parse(source, [select_before(tokens[0]), *tokens], KEYS)
    others = isinstance(select, exp.Select) and [
        name for name, value in select.args.items() if value and name != "expressions"
    ]
    if not isinstance(select, exp.Select) or others or len(select.expressions) != 1:
        raise source.refusal(0, "this is not one expression.")
    if isinstance(select.expressions[0], exp.Alias):
        raise source.refusal(0, "AS is not supported here; the name of a key stands before its expression.")
    scope = Scope(source, uses)
    # Under no name: columns are written as they are.
    scope.add("", Source(LABEL, BaseTable(TABLE, LABEL, public=False)), select)
    tree = scope.scalar(select.expressions[0])
    refuse_unread(source, select)
    return KeyExpression(tree, uses.kinds.get(TABLE, {}))
