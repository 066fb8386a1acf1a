"""What people see beside the results: remarks on standard error, and strangers' words made harmless for a terminal."""

from collections.abc import Callable

import click

Say = Callable[[str], None]


def printable(text: str, *, keep: str = "") -> str:
    r"""Escape all characters that could command a terminal, but for those in `keep`.

    >>> printable("red\x1b[31m")
    'red\\x1b[31m'
    """
    return "".join(
        char if char.isprintable() or char in keep else char.encode("unicode_escape").decode() for char in text
    )


def remarks(*, quiet: bool) -> Say:
    """Give a way to say something on standard error, or to say nothing."""
    return _say_nothing if quiet else _say


def _say(text: str) -> None:
    click.echo(printable(text), err=True)


def _say_nothing(text: str) -> None:
    del text
