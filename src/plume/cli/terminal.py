"""What people see: results on standard output, and remarks beside them on standard error."""

import sys
from collections.abc import Callable

import click

from plume.errors import printable

Say = Callable[[str], None]


def put(piece: str | bytes) -> None:
    """Print a piece of a result as it is, whatever the locale; but on a terminal nothing that could command it."""
    text = piece if isinstance(piece, str) else piece.decode(errors="replace")
    # In colour, since click would otherwise take out of names what looks like one.
    click.echo(printable(text, keep="\n") if sys.stdout.isatty() else piece, nl=False, color=True)


def remarks(*, quiet: bool) -> Say:
    """Give a way to say something on standard error, or to say nothing."""
    return _say_nothing if quiet else _say


def _say(text: str) -> None:
    click.echo(printable(text), err=True)


def _say_nothing(text: str) -> None:
    del text
