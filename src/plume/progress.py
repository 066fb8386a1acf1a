"""Where a run is, for whoever waits for it: the stage, the time since it began and, of large files, a bar of the bytes that were read.

It is shown on a terminal or in a notebook, and gone when the run ends. It is never piped, written down or kept, since time and bytes may
tell of the data. There is never a count of rows, users or keys. docs/privacy.md. Where there is no terminal, the command line prints the
names of stages alone: `cli/progress.py`.
"""

import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any

from plume.engines.input_size import bytes_read

OnStep = Callable[[str], None]

STAGES = {
    "rows": "Reading and grouping by user",
    "keyed": "Selecting keys",
    "safe": "Keeping the selected keys",
    "release": "Adding up, and adding noise",
}
"""What people read when a step of the plan begins, in every run without public keys; other steps say nothing."""
_MORE_STAGES = {
    "clipped": STAGES["safe"],
    "keyed_selected": STAGES["safe"],
    "left_keyed": "Selecting keys once more",
    "keys_per_user_placed": "Choosing the limit on keys per user",
}
_BOUND = re.compile(r"sizes_\d+_placed")
_SMALLEST_FILES = 2**26
_READING = "rows"
_OPENING = "Opening the data"
_SECONDS = 0.5
_BAR = 24
_MINUTE, _HOUR = 60, 3600
_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")


def stage_of(step: str) -> str | None:
    """Say what people read when a step begins, if anything."""
    return "Choosing a bound" if _BOUND.fullmatch(step) else (STAGES | _MORE_STAGES).get(step)


def on_terminal() -> bool:
    """Return whether standard error can show something that moves."""
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


@contextmanager
def show_progress(steps: Iterable[str], size: int | None) -> Iterator[OnStep]:
    """Give what a run tells its steps, and take the display away at the end; `size` is how many bytes it will read, if known."""
    work = _Work([step for step in steps if stage_of(step)], size)
    shell = _notebook()
    if shell is not None:
        with _in_notebook(shell, work):
            yield work.begin
    elif on_terminal():
        with _on_terminal(work) as begin:
            yield begin
    else:
        yield lambda _: None


@dataclass(frozen=True)
class Progress:
    """What can be said at one time."""

    stage: str
    seconds: int
    read: int
    size: int | None
    """How many bytes this stage reads of files; None if that is not known, or if it reads none."""

    @property
    def share(self) -> float | None:
        """How much of the files is read; never more than all, though other files may be read beside them."""
        return None if self.size is None else min(self.read / self.size, 1)

    def __str__(self) -> str:
        told = f"{self.stage}, {_clock(self.seconds)}"
        return told if self.size is None else f"{told}, {_amount(min(self.read, self.size), self.size)} read"


@dataclass(frozen=True)
class _Stage:
    """A stage that a run is in: what it is called, how much had been read when it began, and how much it will read, if known."""

    text: str
    before: int | None
    size: int | None


class _Work:
    """A run that somebody waits for: which stage it is in, and since when it runs."""

    def __init__(self, steps: list[str], size: int | None) -> None:
        self._steps, self._began = steps, time.monotonic()
        # What Python itself reads in the meantime would show in small ones.
        self._stage = _Stage(_OPENING, bytes_read(), size if size is not None and size >= _SMALLEST_FILES else None)

    def begin(self, step: str) -> None:
        """Note that a step begins."""
        text = stage_of(step)
        if text is None:
            return
        number = f"Stage {self._steps.index(step) + 1} of {len(self._steps)}: " if step in self._steps else ""
        # Later stages read what this one wrote down, which is not in the files. At once, since another thread looks at it.
        self._stage = _Stage(f"{number}{text}", bytes_read(), self._stage.size if step == _READING else None)

    def now(self) -> Progress:
        """Say where the run is."""
        stage, seconds, read = self._stage, int(time.monotonic() - self._began), bytes_read()
        if read is None or stage.before is None:
            return Progress(stage.text, seconds, 0, None)
        return Progress(stage.text, seconds, read - stage.before, stage.size)


@contextmanager
def _on_terminal(work: _Work) -> Iterator[OnStep]:
    from rich.console import Console  # noqa: PLC0415 - only terminals need it
    from rich.live import Live  # noqa: PLC0415 - the same

    stream: Any = _Lossy(sys.stderr)
    with Live(
        get_renderable=lambda: _drawn(work.now()),
        console=Console(file=stream),
        refresh_per_second=1 / _SECONDS,
        transient=True,
        redirect_stdout=False,  # what is printed meanwhile may be piped
    ) as live:

        def begin(step: str) -> None:
            work.begin(step)
            live.refresh()

        yield begin


class _Lossy:
    """A terminal that may be closed while a run goes on, which may have been charged: what it does not take is lost."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _drawn(reached: Progress) -> Any:
    from rich.progress_bar import ProgressBar  # noqa: PLC0415 - only terminals need it
    from rich.table import Table  # noqa: PLC0415 - the same

    drawn = Table.grid(padding=(0, 1))
    # In one line: the bar takes what the words leave.
    drawn.add_column(no_wrap=True)
    drawn.add_column(max_width=_BAR)
    if reached.share is None:
        drawn.add_row(str(reached))
    else:
        drawn.add_row(str(reached), ProgressBar(total=1, completed=reached.share))
    return drawn


def _notebook() -> Any:
    """Give the shell of the notebook that this runs in, or None; also where it keeps all that is shown, as %%capture does."""
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell if hasattr(shell, "kernel") and hasattr(shell.display_pub, "session") else None


@contextmanager
def _in_notebook(shell: Any, work: _Work) -> Iterator[None]:
    """Show a line that is replaced while the run goes on, and by an empty one at the end: a notebook keeps what stands in it.

    The empty line is there after every run, however short, so that it does not tell a long one.
    """
    line, over = f"plume-{time.monotonic_ns()}", threading.Event()

    def publish(text: str, *, update: bool = True) -> None:
        with suppress(Exception):  # a notebook that does not answer ends no run
            shell.display_pub.publish({"text/plain": text}, transient={"display_id": line}, update=update)

    def keep_showing() -> None:
        while not over.wait(_SECONDS):
            publish(str(work.now()))

    publish(_OPENING, update=False)
    # What is shown belongs to a cell, which a thread knows by its context only.
    thread = threading.Thread(target=copy_context().run, args=(keep_showing,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        try:
            thread.join()
        finally:  # whoever interrupts a run may do so twice
            publish("")


def _clock(seconds: int) -> str:
    minutes = f"{seconds % _HOUR // _MINUTE:02}:{seconds % _MINUTE:02}"
    return f"{seconds // _HOUR}:{minutes}" if seconds >= _HOUR else minutes.removeprefix("0")


def _amount(read: int, size: int) -> str:
    """Write how much of a size, in the unit of the size.

    >>> _amount(1_260_000_000, 3_400_000_000)
    '1.3 of 3.4 GB'
    """
    power = min((len(str(size)) - 1) // 3, len(_UNITS) - 1)
    return f"{read / 1000**power:.1f} of {size / 1000**power:.1f} {_UNITS[power]}"
