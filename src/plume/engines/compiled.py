"""Loops that are compiled for this machine by numba, which is an extra; without it, or where it does not work, there are none.

What is compiled is kept for the next process. It is read back as a pickle, which is code, so it is kept in a folder that nobody but
this user can write to, and nowhere else: docs/decisions/0081-loops-in-numba.md.
"""

import hashlib
import os
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar, cast

_Loop = TypeVar("_Loop", bound=Callable[..., object])
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def is_there() -> bool:
    """Return whether numba is installed, where words begin with their lowest byte; whether it works, only importing it tells."""
    return find_spec("numba") is not None and sys.byteorder == "little"


def compiled(loop: _Loop) -> _Loop:
    """Compile a function when it is first called, or read back what was compiled; other threads of Python run meanwhile."""
    numba: Any = import_module("numba")  # an extra, which takes a while to import
    folder = private_folder()
    kept = None if folder is None else _kept(numba, loop, folder)
    return cast("_Loop", numba.njit(nogil=True)(loop) if kept is None else kept)


def _kept(numba: Any, loop: _Loop, folder: Path) -> Any:
    """Compile a function, and keep it in a folder; None if numba would keep it nowhere or elsewhere, where others may have put code.

    Where it cannot write it goes on to other folders, and it reads settings from the folder that a process is started in.
    """
    names = ("CACHE_DIR", "CACHE_LOCATOR_CLASSES")
    before = {name: getattr(numba.config, name, "") for name in names}
    # numba reads them when the function is wrapped, and nobody else's functions are to land there.
    numba.config.CACHE_DIR, numba.config.CACHE_LOCATOR_CLASSES = str(folder), "UserProvidedCacheLocator"
    try:
        made = numba.njit(nogil=True, cache=True)(loop)
    except RuntimeError:  # it can write to no folder that it may take
        return None
    finally:
        for name in names:
            setattr(numba.config, name, before[name])
    where = getattr(getattr(made, "stats", None), "cache_path", None)
    return made if where is not None and Path(where).is_relative_to(folder) else None


@cache
def private_folder() -> Path | None:
    """Make the folder in which compiled loops are kept; None where others could put something there."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    with suppress(OSError, RuntimeError):  # RuntimeError: this user has no home
        caches = Path(given) if Path(given).is_absolute() else Path.home() / ".cache"
        caches.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = caches.resolve()
        for name in ("plume", "compiled", _version()):
            folder = folder / name
            folder.mkdir(mode=0o700, exist_ok=True)
        return folder if is_private(folder) else None
    return None


def _version() -> str:
    """Name what is compiled by its text: numba looks at the file of a function, and not at those of the functions that it calls."""
    texts = (path.read_bytes() for path in sorted(Path(__file__).parent.glob("*_loops.py")))
    return hashlib.sha256(b"".join(texts)).hexdigest()[:16]


def is_private(folder: Path) -> bool:
    """Return whether nobody but this user and the administrator can write to a folder, to what is in it, or put another in its place."""
    if not hasattr(os, "geteuid"):
        return False  # not known on this system
    with suppress(OSError):
        within = [folder, *folder.rglob("*")]
        return all(map(_is_own, within)) and all(map(_keeps_what_is_ours, folder.parents))
    return False


def _is_own(path: Path) -> bool:
    status = path.lstat()
    return (
        status.st_uid == os.geteuid() and not stat.S_ISLNK(status.st_mode) and not status.st_mode & _WRITABLE_BY_OTHERS
    )


def _keeps_what_is_ours(parent: Path) -> bool:
    """Return whether nobody else can rename what this user has in a folder above; where it is sticky, only the owner can."""
    status = parent.stat()
    sticky = status.st_mode & stat.S_ISVTX
    return status.st_uid in {0, os.geteuid()} and (not status.st_mode & _WRITABLE_BY_OTHERS or bool(sticky))
