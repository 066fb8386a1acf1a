"""Text in double quotes, as other languages have it, is a column here: where that may be what went wrong, errors say so.

Apart from conditions and statements, which take a parser to read, since every run may end with such an error.
"""

from collections.abc import Iterable

from plume.errors import ColumnNotFound, shortened
from plume.redaction import Redaction


def pointing_to_quotes(texts: Iterable[str | None]) -> Redaction:
    """Point to single quotes where a column that is missing stands in double quotes, as text does in other languages."""
    written = [text for text in texts if text is not None]

    def becomes(error: Exception) -> Exception:
        name = getattr(error, "name", None)
        hint = in_single_quotes(str(name))
        is_quoted = name is not None and any(f'"{name}"' in text for text in written)
        # A statement and its query may both have looked at it.
        return ColumnNotFound(f"{error}{hint}", name=name) if is_quoted and hint not in str(error) else error

    return Redaction((ColumnNotFound,), becomes)


def in_single_quotes(text: str) -> str:
    """Say that text is written in single quotes, and how this one is."""
    written = shortened("'" + text.replace("'", "''") + "'")
    return f" Double quotes are for names of columns; text is written in single quotes: {written}."
