"""A statement as text and tokens: where things stand in it, and how it is refused."""

from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from plume.errors import StatementError, UsageError
from plume.redaction import Redaction

Tree = Any
"""A part of a statement, as sqlglot parsed it."""

_LONGEST_QUOTE = 60


@dataclass(frozen=True)
class Text:
    """A statement as it was written; trees parsed from it know at which character they stand."""

    text: str
    language: str
    """The name of the dialect that it is written in."""

    def refusal(self, where: Tree | int, sentence: str) -> StatementError:
        """Say why the statement is refused, and at which part of it."""
        start = where if isinstance(where, int) else start_of(where)
        line, column = self.place(start)
        return StatementError(sentence, line=line, column=column)

    def placing(self, where: Tree | int) -> Redaction:
        """Say at which part of the statement an error is, unless the error says so itself."""
        return Redaction(
            (UsageError,),
            lambda error: error if isinstance(error, StatementError) else self.refusal(where, str(error)),
        )

    def place(self, start: int) -> tuple[int, int]:
        """Say in which line and column a character is, counted from 1."""
        before = self.text[:start]
        return before.count("\n") + 1, start - before.rfind("\n")

    def quote(self, tree: Tree) -> str:
        """Quote a part as it was written, shortened."""
        starts = [part.meta["start"] for part in tree.walk() if "start" in part.meta]
        ends = [part.meta["end"] for part in tree.walk() if "end" in part.meta]
        quoted = self._closed(min(starts), max(ends) + 1) if starts else _named(tree)
        return quoted if len(quoted) <= _LONGEST_QUOTE else f"{quoted[: _LONGEST_QUOTE - 3]}..."

    def _closed(self, start: int, end: int) -> str:
        """Cut a part out with the parentheses that close it, whose places are not noted."""
        while (
            self.text.count("(", start, end) > self.text.count(")", start, end) and self.text[end:].lstrip()[:1] == ")"
        ):
            end = self.text.index(")", end) + 1
        return self.text[start:end]


def _named(tree: Tree) -> str:
    return str(tree.sql_name()) if isinstance(tree, exp.Func) else type(tree).__name__.upper()


def start_of(tree: Tree) -> int:
    """Find where a part begins: at the first of its names and constants, for sqlglot notes the places of these only."""
    starts = [part.meta["start"] for part in tree.walk() if "start" in part.meta]
    if starts:
        return int(min(starts))
    return start_of(tree.parent) if tree.parent is not None else 0
