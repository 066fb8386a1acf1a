"""Where a statement comes from: the command line itself, a file, or standard input."""

import sys
from contextlib import suppress
from pathlib import Path

from plume.cli.standard_input import DASH
from plume.errors import InputError


def read_text(given: str) -> str:
    """Read a statement: - is standard input, what ends in .sql is a file, anything else is the statement."""
    if given != DASH and not is_statement_file(given):
        return given
    text: str | None = None
    with suppress(OSError, ValueError, AttributeError):  # a closed standard input is None
        text = sys.stdin.buffer.read().decode() if given == DASH else Path(given).read_text(encoding="utf-8")
    if text is None:
        named = "standard input" if given == DASH else repr(given)
        raise InputError(f"{named} could not be read as a statement; is it there, as text in UTF-8?")
    return text


def is_statement_file(given: str | None) -> bool:
    """Tell a file from a statement, by its ending."""
    return given is not None and given.lower().endswith(".sql")
