"""The second look at a printed query: it is parsed again, and must be the tree that it was printed from.

The printer writes only words of ours and quoted text. Should a text ever break out of its quotes nevertheless, the parser sees another
tree than the one that was checked, and the query never reaches an engine.
"""

from contextlib import suppress
from enum import Enum
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect as Parsing
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from plume.errors import PlumeBug
from plume.plan.dialect import Dialect
from plume.relation import query_sql, scalar_sql
from plume.relation.text import Tree

Shape = tuple[Any, ...]
_QUOTED = (TokenType.IDENTIFIER, TokenType.STRING, TokenType.NUMBER)
_WORDS = query_sql.WORDS | scalar_sql.WORDS


def proofread(printed: str, tree: Tree, dialect: Dialect) -> None:
    """Compare a printed query, as the engine's parser sees it, with the tree it was printed from."""
    if read_again(printed, dialect) != [shape(tree)]:
        raise PlumeBug("a printed query is another one than was checked")


def read_again(printed: str, dialect: Dialect) -> list[Shape] | None:
    """Parse a printed text into the shapes of its statements; None if it cannot be read, or holds a word that no printer has."""
    language = Parsing.get_or_raise(dialect.name)
    with suppress(SqlglotError):
        tokens = language.tokenize(printed)
        # The parser leaves out arguments that it does not know, and writes some words anew. So the words are looked at, too.
        if all(token.token_type in _QUOTED or _WORDS.issuperset(token.text.split()) for token in tokens):
            return [shape(tree) for tree in language.parser().parse(tokens, printed) if tree is not None]
    return None


def shape(tree: Tree) -> Shape:
    """Give a tree as plain data: kinds of nodes, all that they hold, and comments.

    sqlglot's own equality is blind to comments and to capital letters. Brackets are left out, since the tree has what they say.
    """
    if isinstance(tree, exp.Paren) and not tree.comments:
        return shape(tree.this)
    held = {
        name: _held(value)
        for name, value in tree.args.items()
        if value is not None and value is not False and value != []
    }
    return type(tree).__name__, tuple(sorted(held.items())), tuple(tree.comments or ())


def _held(value: Any) -> Any:
    match value:
        case exp.Expression():
            return shape(value)
        case list():
            return tuple(map(_held, value))
        case Enum():
            return value.name
        case bool() | int() | str():
            return type(value).__name__, value
        case _:
            raise PlumeBug("a tree holds something that cannot be compared")
