"""Where a statement comes from: the command line itself, a file, or standard input."""

import sys
from pathlib import Path

from plume.cli.standard_input import DASH
from plume.errors import InputError
from plume.redaction import redacting


def read_text(given: str) -> str:
    """Read a statement: - is standard input, what ends in .sql is a file, anything else is the statement."""
    if given != DASH and not is_statement_file(given):
        return given
    named = "standard input" if given == DASH else repr(given)
    refusal = InputError(f"{named} could not be read as a statement; check that the file exists and is text in UTF-8.")
    with redacting(OSError, ValueError, AttributeError, to=refusal):  # a closed standard input is None
        return sys.stdin.buffer.read().decode() if given == DASH else Path(given).read_text(encoding="utf-8")


def is_statement_file(given: str | None) -> bool:
    """Return whether a text names a file, by its ending."""
    return given is not None and given.lower().endswith(".sql")
