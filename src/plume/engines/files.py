"""Files by their ending: which ones a path means, and how DuckDB reads them. Text only; nothing is opened here."""

import glob
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plume.errors import InputError
from plume.plan.dialect import DUCKDB, constant, identifier
from plume.plan.types import Kind

_FORMATS = {
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".csv": "CSV",
    ".tsv": "CSV",
    ".json": "JSON",
    ".jsonl": "JSON",
    ".ndjson": "JSON",
}
_COMPRESSIONS = frozenset({".gz", ".zst"})
_TYPES = {
    Kind.TEXT: "VARCHAR",
    Kind.FLOAT: "DOUBLE",
    Kind.INTEGER: "DOUBLE",
    Kind.BOOLEAN: "BOOLEAN",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
}


@dataclass(frozen=True)
class Files:
    """Files of one format that together are one table."""

    paths: tuple[Path, ...]
    format: str

    @property
    def typed(self) -> bool:
        """Whether the files say of which type their columns are."""
        return self.format == "Parquet"

    @property
    def names(self) -> str:
        """What to call them in a message."""
        return self.paths[0].name if len(self.paths) == 1 else f"one of {len(self.paths)} files"


def find_files(given: Any) -> Files:
    """Find the files that a path, a pattern, a folder or a list of them means."""
    listed = given if isinstance(given, list | tuple) else [given]
    paths = tuple(path for one in listed for path in _expand(one))
    if not paths:
        raise InputError("the list of files is empty; name at least one Parquet, CSV or JSON file.")
    formats = {_format(path) for path in paths}
    if len(formats) > 1:
        raise InputError(f"the files are of several formats ({', '.join(sorted(formats))}); give files of one.")
    return Files(paths, formats.pop())


def _expand(given: Any) -> list[Path]:
    if not isinstance(given, str | Path):
        raise InputError(f"a list of files holds a {type(given).__name__}; it must hold paths only.")
    text = str(given)
    if "\0" in text or "://" in text:
        raise InputError(f"{text!r} is not a path on this machine; download it first, or read it with its own library.")
    path = Path(text)
    if path.is_dir():
        found = sorted(path.rglob("*.parquet"))
    elif path.exists():
        found = [path]
    else:
        found = [Path(name) for name in sorted(glob.glob(text, recursive=True))]  # noqa: PTH207 - patterns may be absolute
    if not found:
        raise InputError(
            f"no file {text!r}; give the path of a Parquet, CSV or JSON file, a pattern, or a folder of Parquet files."
        )
    return [one.absolute() for one in found]


def _format(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    ending = suffixes[-2] if len(suffixes) > 1 and suffixes[-1] in _COMPRESSIONS else "".join(suffixes[-1:])
    if ending not in _FORMATS:
        raise InputError(
            f"{path.name!r} has no ending Plume knows; use one of {', '.join(_FORMATS)}, CSV and JSON also as .gz or .zst."
        )
    return _FORMATS[ending]


def reading(files: Files, columns: Mapping[str, Kind] | None = None) -> str:
    """Print the table function that reads the files; JSON needs to know the columns, or it would guess their types."""
    # DuckDB takes every path for a pattern; escaped, it means just itself.
    paths = ", ".join(constant(glob.escape(str(path)), DUCKDB) for path in files.paths)
    match files.format:
        case "Parquet":
            return f"read_parquet([{paths}], hive_types_autocast=false)"
        case "CSV":
            return f"read_csv([{paths}], header=true, all_varchar=true, ignore_errors=true)"
        case _:
            texts = ", ".join(f"{constant(name, DUCKDB)}: 'VARCHAR'" for name in columns or ())
            return f"read_json([{paths}]{f', columns={{{texts}}}' if texts else ''}{_json_lines(files)})"


def _json_lines(files: Files) -> str:
    lines = all(".json" not in path.suffixes for path in files.paths)
    return ", format='newline_delimited', ignore_errors=true" if lines else ""


def casting(columns: Mapping[str, Kind]) -> str:
    """Print the columns of files without types, each read as its kind; what does not fit is NULL, never an error."""
    return ", ".join(
        f"TRY_CAST({identifier(name, DUCKDB)} AS {_TYPES[kind]}) AS {identifier(name, DUCKDB)}"
        for name, kind in columns.items()
    )
