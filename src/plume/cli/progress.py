"""What a run shows on standard error while it goes on: on a terminal where it is, else the names of its stages as plain lines."""

from typing import Any

import click

from plume.progress import on_terminal, stage_of


def showing(*, quiet: bool) -> dict[str, Any]:
    """Give the settings of `plume.run` by which it shows where it is. Lines may be kept, so they hold no time and no bytes."""
    if quiet:
        return {}
    return {"progress": True} if on_terminal() else {"on_step": _say_stage}


def _say_stage(step: str) -> None:
    stage = stage_of(step)
    if stage is not None:
        click.echo(stage, err=True)
