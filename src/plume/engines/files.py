"""Files by their ending: which ones a path means, and under which names an engine may see them. No file is opened here."""

import glob
import re
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from plume.errors import InputError, printable

_FORMATS = {
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".csv": "CSV",
    ".tsv": "CSV",
    ".json": "JSON",
    ".jsonl": "JSON lines",
    ".ndjson": "JSON lines",
}
_DATABASES = (".duckdb", ".ddb", ".db")
_COMPRESSIONS = (".gz", ".zst")
# DuckDB takes every path for a pattern and a backslash for a slash, and knows no name that is not Unicode.
_NOT_PLAIN = re.compile(r"[*?\[\]\\\ud800-\udfff]")


@dataclass(frozen=True)
class Files:
    """Files of one format that together are one table."""

    paths: tuple[Path, ...]
    format: str
    names: str
    """What to call them in a message."""
    partitions: frozenset[str] = frozenset()
    """The columns that stand in the names of folders below the one that was given, as in day=2026-01-31."""


def on_this_machine(path: str) -> str:
    """Give the path behind an address of a file on this machine, as Spark writes it; anything else stays as it is."""
    return re.sub(r"^file:/+", "/", path)


def is_table_of_spark(text: str) -> bool:
    """Return whether a text is to Spark the name of a table: a path has a slash or an ending."""
    return "/" not in text and not text.endswith((".parquet", ".pq"))


def find_files(given: Any) -> Files:
    """Find the files that a path, a pattern, a folder or a list of them means."""
    pairs = [path for one in (given if isinstance(given, list | tuple) else [given]) for path in _expand(one)]
    if not pairs:
        raise InputError("the list of files is empty; name at least one Parquet, CSV or JSON file.")
    formats = {_format(path) for path, _ in pairs}
    if len(formats) > 1:
        raise InputError(f"the files are of several formats ({', '.join(sorted(formats))}); give files of one.")
    [form] = formats
    below = pairs if form == "Parquet" else []
    partitions = frozenset(name for path, folder in below for name in columns_in_folders(path, below=folder))
    names = (
        printable(pairs[0][0].name) if len(pairs) == 1 else f"one of {len(pairs)} files (engine_errors_to says which)"
    )
    return Files(tuple(path.absolute() for path, _ in pairs), form, names, partitions)


def columns_in_folders(path: Path, *, below: Path) -> Iterable[str]:
    """Name the columns that stand in the names of a file's folders."""
    return (part.partition("=")[0] for part in path.relative_to(below).parts[:-1] if "=" in part)


def _expand(given: Any) -> list[tuple[Path, Path]]:
    """Find files, each with the folder it was found below."""
    if not isinstance(given, str | Path):
        raise InputError(f"a list of files holds a {type(given).__name__}; it must hold paths only.")
    text = str(given)
    if "\0" in text or "://" in text:
        raise InputError(f"{text!r} is not a path on this machine; download it first, or read it with its own library.")
    # A file may be called like a pattern, so the name itself comes first.
    pairs = _existing(Path(text)) if text else []
    pairs = pairs or [pair for name in sorted(glob.glob(text, recursive=True)) for pair in _existing(Path(name))]  # noqa: PTH207 - patterns may be absolute
    if not pairs:
        raise InputError(
            f"no file {text!r}; give the path of a Parquet, CSV or JSON file, a pattern, or a folder of such files."
        )
    return pairs


def _existing(path: Path) -> list[tuple[Path, Path]]:
    with suppress(OSError):  # a name that is too long, or in a folder that is closed to us, is not there
        if path.is_dir():
            return [(inside, path) for inside in _in_folder(path)]
        refuse_special_file(path)
        return [(path, path.parent)] if path.exists() else []
    return []


def refuse_special_file(path: Path) -> None:
    """Refuse a pipe, a socket or a device: it cannot be read twice, and waiting for it would not hear Ctrl-C."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise InputError(
            f"{path.name!r} is a pipe, a socket or a device; it must be a file. Write it to one first, or pipe it into standard input, -."
        )


def _in_folder(folder: Path) -> list[Path]:
    """List the files of a folder and those below it: Parquet files if there are any, else all whose endings are known."""
    below = {path.relative_to(folder): path for path in sorted(folder.rglob("*"))}
    return [
        below[name] for name in choose_files(name for name, path in below.items() if is_known(name) and path.is_file())
    ]


def choose_files(names: Iterable[Path]) -> list[Path]:
    """Choose the files of a folder, by their names below it: Parquet files if there are any, else all whose endings are known.

    None that its writer hides until it is done.
    """
    finished = [
        name for name in names if is_known(name) and not any(part.startswith((".", "_")) for part in name.parts)
    ]
    return [name for name in finished if is_parquet(name)] or finished


def is_known(path: Path) -> bool:
    """Return whether a file is of a format that Plume reads, by its ending."""
    return _form(path) is not None


def is_parquet(path: Path) -> bool:
    """Return whether a file is Parquet, by its ending."""
    return _FORMATS.get(path.suffix.lower()) == "Parquet"


def is_database(path: Path) -> bool:
    """Return whether a file is a database of DuckDB, by its ending."""
    return path.suffix.lower() in _DATABASES


def _format(path: Path) -> str:
    form = _form(path)
    if form is None and is_database(path):
        raise InputError(
            f"{path.name!r} is a database; give plume.DatabaseTable(path, table), or ask a statement, as plume sql --table NAME=FILE does."
        )
    if form is None:
        raise InputError(
            f"{path.name!r} has no ending Plume knows; use one of {', '.join(_FORMATS)}, CSV and JSON also as .gz or .zst."
        )
    return form


def _form(path: Path) -> str | None:
    """Say of which format a file is, by its ending."""
    found = ending(path)
    for compression in _COMPRESSIONS:
        found = found.removesuffix(compression)
    form = _FORMATS.get(found)
    return None if form == "Parquet" and found != ending(path) else form


def ending(path: Path) -> str:
    """Give the ending of a name, with that of a compression before it."""
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    return "".join(suffixes if suffixes and suffixes[-1] in _COMPRESSIONS else suffixes[-1:])


def with_plain_names(files: Files, folder: Path) -> Files:
    """Put a link into a folder of ours for each file whose own path DuckDB would misread."""
    return replace(files, paths=tuple(_plain(path, folder, files) for path in files.paths))


def _plain(path: Path, folder: Path, files: Files) -> Path:
    if not _NOT_PLAIN.search(str(path)) and path.name.endswith(ending(path)):
        return path
    if files.partitions:
        raise InputError(f"the path of {path.name!r} holds one of * ? [ ] \\, which folders of partitions must not.")
    link = Path(tempfile.mkdtemp(dir=folder)) / f"rows{ending(path)}"
    link.symlink_to(path)
    return link


def versions(files: Iterable[Path]) -> list[tuple[int, ...] | None]:
    """Say of files which they are and when they were written last, or None of one that is gone."""
    return [_version(file) for file in files]


def _version(file: Path) -> tuple[int, ...] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
