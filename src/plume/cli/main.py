"""The `plume` command, and how it ends: every outcome becomes one sentence and one exit code.

Apart from the commands themselves, so that none of them can end with a traceback, which may quote data.
"""

import errno
import io
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import click

from plume.cli.choosing import expect, need, tune
from plume.cli.commands import audit, completion, demo, explain, run, sql, synth
from plume.cli.help import HelpfulGroup
from plume.cli.ledger import ledger
from plume.cli.wording import in_options
from plume.errors import BudgetExceeded, PlumeError, UsageError, printable, without_secrets
from plume.version import __version__

_ANYTHING_ELSE, _WRONG_USE, _OVER_BUDGET, _INTERRUPTED = 1, 2, 3, 130
_UNEXPECTED = (
    "something unexpected went wrong; the details are withheld, since they may quote data. "
    "This is a bug in Plume: please report it as SECURITY.md says."
)


class _Commands(HelpfulGroup):
    """A group of commands that end with a sentence, never with a traceback."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        for number, arg in enumerate(args, start=1):
            if any("\ud800" <= char <= "\udfff" for char in arg):
                ctx.fail(f"argument {number} is not valid UTF-8 text.")
        with _printable_refusals():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with _printable_refusals():
                return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt:
            sentence, code = "interrupted.", _INTERRUPTED
        except PlumeError as error:
            sentence, code = in_options(str(error)), _code_of(error)
        except Exception as error:
            if isinstance(error, OSError) and error.errno == errno.EPIPE:
                raise  # the reader has seen enough; click ends quietly
            sentence, code = _UNEXPECTED, _ANYTHING_ELSE
        click.echo(f"Error: {sentence}", err=True)
        raise click.exceptions.Exit(code)


@contextmanager
def _printable_refusals() -> Iterator[None]:
    """Escape what click quotes from the command line when it refuses it, and leave passwords of addresses out."""
    try:
        yield
    except click.ClickException as error:
        error.message = printable(without_secrets(error.message), keep="\n")  # type: ignore[misc]  # click offers no other way in
        raise


def _code_of(error: PlumeError) -> int:
    match error:
        case UsageError():
            return _WRONG_USE
        case BudgetExceeded():
            return _OVER_BUDGET
        case _:
            return _ANYTHING_ELSE


@click.group(
    cls=_Commands,
    commands=[run, sql, explain, expect, need, tune, ledger, audit, synth, demo, completion],
    examples=(
        "plume demo",
        (
            "plume run searches.parquet --user user_id --key recipe --measure 'count(3)' \\\n"
            "  --epsilon 1.1 --delta 1e-5 --max-keys-per-user 16"
        ),
    ),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done, 2 wrong use, 3 the budget does not allow it, 130 interrupted, 1 anything else.",
)
@click.version_option(__version__, prog_name="plume", message="%(prog)s %(version)s")
def main() -> None:
    """Differentially private GROUP BY at any scale."""
    if threading.current_thread() is threading.main_thread():
        _end_as_if_interrupted()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that does not know a letter shows its number; that is not a reason to fail.
        sys.stdout.reconfigure(errors="backslashreplace")


# Whoever asks politely, a terminal that is closed, and the key that would also write all memory to a file.
_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def _end_as_if_interrupted() -> None:
    """Give whoever ends the command the same as Ctrl-C: nothing half-written and nothing left behind."""
    for number in _ENDING:
        # What the caller had ignored, as nohup does, stays ignored.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Interrupt once: a terminal and its shell both say that they close, and the second must not stop the tidying up."""
    for other in (*_ENDING, signal.SIGINT):
        signal.signal(other, signal.SIG_IGN)
    signal.default_int_handler(number, frame)
