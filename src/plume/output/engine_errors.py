"""NOT PRIVATE: what engines say when they fail, in a file for the operator who may see data. Nobody else is told, and nowhere else."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from plume.arguments import call_checked
from plume.errors import PlumeError, printable, without_secrets
from plume.output.files import owned_file, with_not_private_suffix
from plume.redaction import listening, tell_operator

WARNING = "NOT PRIVATE: messages of the engine, which may quote data. Do not share this file."


@call_checked()
@contextmanager
def engine_errors_to(path: str | Path, *, overwrite: bool = False) -> Iterator[Path]:
    """NOT PRIVATE: write what engines say when they fail within the block to a file, for operators who may see the data.

    The file's name gets the words NOT-PRIVATE if it lacks them, and is returned. Only its owner can read it. A file that is there is
    replaced only with `overwrite=True`. Errors and releases stay as they are without it.

    >>> with engine_errors_to("/gone/x.txt"):
    ...     pass
    Traceback (most recent call last):
    plume.errors.OutputError: '/gone/x.NOT-PRIVATE.txt' could not be written; check that its folder exists, is writable and has free space.
    """
    target = with_not_private_suffix(Path(path))
    with (
        owned_file(target, _paragraph(WARNING), overwrite=overwrite) as add,
        listening(lambda text: add(_paragraph(text))),
    ):
        try:
            yield target
        except PlumeError:
            raise
        except Exception as error:
            tell_operator("".join(traceback.format_exception(error)))
            raise


def _paragraph(text: str) -> str:
    return printable(without_secrets(text), keep="\n").rstrip() + "\n\n"
