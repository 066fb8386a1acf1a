"""`plume synth`: the paper's synthetic data as a file."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from plume.cli.targets import check_target
from plume.cli.terminal import remarks
from plume.errors import OutputError
from plume.progress import on_terminal
from plume.redaction import redacting
from plume.synthetic.dataset import write_paper_data

OnBlock = Callable[[int], None]


def write_data(users: int, out: Path, *, seed: int, force: bool, quiet: bool) -> None:
    """Write the data; nothing about them is private, so their size is told."""
    check_target(out, [".parquet"], force=force)
    say = remarks(quiet=quiet)
    say(f"Making up {users:,} users")
    failure = OutputError(f"{str(out)!r} could not be written; check that there is free space.")
    with redacting(OSError, to=failure), _show_users(users, quiet=quiet) as on_block:
        rows = write_paper_data(out, users, seed=seed, on_block=on_block)
    say(f"{rows:,} rows written to {out}")


@contextmanager
def _show_users(users: int, *, quiet: bool) -> Iterator[OnBlock]:
    """Show a bar on a terminal; elsewhere the remarks before and after are enough."""
    if quiet or not on_terminal():
        yield lambda _: None
        return
    from rich.console import Console  # noqa: PLC0415 - only terminals need it
    from rich.progress import Progress  # noqa: PLC0415 - only terminals need it

    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("users", total=users)
        yield lambda done: progress.update(bar, completed=done)
