"""What may have been meant where a column is missing: text in double quotes, as other languages have it, an expression, several columns.

Apart from conditions and statements, which take a parser to read, since every run may end with such an error.
"""

import re
from collections.abc import Iterable

from plume.errors import ColumnNotFound, shortened
from plume.redaction import Redaction

_CALL = re.compile(r"\s*\w+\s*\(.*\)\s*", re.DOTALL)


def pointing_to_names(texts: Iterable[str | None]) -> Redaction:
    """Say what may have been meant where a column is missing: text without single quotes, an expression, several columns."""
    written = [text for text in texts if text is not None]

    def becomes(error: Exception) -> Exception:
        name = getattr(error, "name", None)
        hint = "" if name is None else _meant_by(name, written)
        # A statement and its query may both have looked at it.
        return ColumnNotFound(f"{error}{hint}", name=name) if hint and hint not in str(error) else error

    return Redaction((ColumnNotFound,), becomes)


def _meant_by(name: str, written: Iterable[str]) -> str:
    if any(f'"{name}"' in text for text in written):
        return in_single_quotes(name)
    if any(re.search(rf"[=<>]\s*{re.escape(name)}\b", text) for text in written):
        return f" Text is written in single quotes: {_quoted(name)}."
    if _CALL.fullmatch(name):
        return f" Keys may be expressions, under names of their own: keys={{'name': {shortened(repr(name))}}}."
    if "," in name:
        listed = [part.strip() for part in name.split(",")]
        return f" If these are columns: several columns are a list: {shortened(repr(listed))}."
    return ""


def in_single_quotes(text: str) -> str:
    """Say that text is written in single quotes, and how this one is."""
    return f" Double quotes are for names of columns; text is written in single quotes: {_quoted(text)}."


def _quoted(text: str) -> str:
    return shortened("'" + text.replace("'", "''") + "'")
