"""What people see beside the results: remarks on standard error."""

from collections.abc import Callable

import click

from plume.errors import printable

Say = Callable[[str], None]


def remarks(*, quiet: bool) -> Say:
    """Give a way to say something on standard error, or to say nothing."""
    return _say_nothing if quiet else _say


def _say(text: str) -> None:
    click.echo(printable(text), err=True)


def _say_nothing(text: str) -> None:
    del text
