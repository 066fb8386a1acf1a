"""The stages of a run on standard error: a spinner on a terminal, else plain lines. They tell where a run is and nothing about data."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

OnStep = Callable[[str], None]

STAGES = {
    "rows": "Reading and grouping by user",
    "keyed": "Choosing keys",
    "safe": "Keeping the chosen keys",
    "release": "Adding up, and adding noise",
}
"""What people read when a step of the plan begins; other steps say nothing."""


@contextmanager
def show_stages(*, quiet: bool) -> Iterator[OnStep]:
    """Give what a run tells its steps, and take the display away at the end."""
    if quiet:
        yield lambda _: None
    elif on_terminal():
        from rich.console import Console  # noqa: PLC0415 - only terminals need it

        with Console(stderr=True).status("Starting") as status:
            yield _of_stages(status.update)
    else:
        yield _of_stages(lambda stage: click.echo(stage, err=True))


def on_terminal() -> bool:
    """Return whether standard error can show something that moves."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def _of_stages(show: Callable[[str], None]) -> OnStep:
    return lambda step: show(STAGES[step]) if step in STAGES else None
