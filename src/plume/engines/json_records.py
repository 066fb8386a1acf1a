"""JSON files with one record in each line: what DuckDB reads record by record, so that none of them can end a run.

DuckDB stops at the first value of an array that it cannot read, be it a lone surrogate that every JSON writer writes, and at every record
that is larger than its buffer. A line that it cannot read is NULL instead, as long as the line ends.
"""

import mmap
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa

from plume.engines.files import Files
from plume.errors import InputError
from plume.redaction import placed

LONGEST_RECORD = 2**24
"""A record of more bytes than this drops out, from CSV files as from JSON files."""
_JSON = ("JSON", "JSON lines")
_BLOCK = 2**20
_NEWLINE, _RETURN, _SPACE, _TAB = b"\n\r \t"
_BEGINNINGS = tuple(bytes([code]) for code in b'[{"-0123456789tfn')
_QUOTE, _BACKSLASH, _COMMA = b'"\\,'
_MARK = b"\xef\xbb\xbf"

Codes = Any
"""A block of bytes as an array of numbers, or an array of truths about them."""


def with_records_in_lines(files: Files, folder: Path) -> Files:
    """Write JSON files anew, into a folder of ours, in which some record has no line of its own, one too long, or one without an end."""
    if files.format not in _JSON:
        return files
    return replace(files, paths=tuple(_lined(path, files, folder) for path in files.paths), format="JSON lines")


def _lined(path: Path, files: Files, folder: Path) -> Path:
    with placed(str(path.resolve())):
        return path if files.format == "JSON lines" and _is_in_lines(path) else _rewritten(path, files, folder)


def _is_in_lines(path: Path) -> bool:
    """Return whether no line is too long, the first one begins with no mark of an encoding, and the last one ends.

    DuckDB loses a first one with such a mark, and a last one that does not end at some sizes of a file.
    """
    size, start = path.stat().st_size, 0
    if path.suffix.lower() in (".gz", ".zst"):
        return size > 0 and _are_lines(_blocks(path))  # of a compressed file DuckDB wants a byte at least
    if size == 0:
        return True
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if content[: len(_MARK)] == _MARK:
            return False
        while start + LONGEST_RECORD < size:
            # From the last end of a line that the longest record could have: all before it are shorter.
            end = content.rfind(b"\n", start, start + LONGEST_RECORD + 1)
            if end < 0:
                return False
            start = end + 1
        return content[size - 1] == _NEWLINE


def _are_lines(blocks: Iterator[bytes]) -> bool:
    length = 0
    for number, block in enumerate(blocks):
        if number == 0 and block.startswith(_MARK):
            return False
        first, last = block.find(b"\n"), block.rfind(b"\n")
        length += len(block) if first < 0 else first
        if length > LONGEST_RECORD:
            return False
        length = length if first < 0 else len(block) - last - 1
    return length == 0


def _blocks(path: Path) -> Iterator[bytes]:
    with pa.input_stream(str(path), compression="detect") as stream:
        while block := stream.read(_BLOCK):
            yield bytes(block)


def _unmarked(path: Path) -> Iterator[bytes]:
    """Give the blocks of a file without the mark that says that it is UTF-8."""
    for number, block in enumerate(_blocks(path)):
        yield block.removeprefix(_MARK) if number == 0 else block


def _rewritten(path: Path, files: Files, folder: Path) -> Path:
    written = Path(tempfile.mkdtemp(dir=folder)) / "rows.jsonl"
    with written.open("wb") as file:
        lines = _Lines(file)
        if files.format == "JSON lines":
            for block in _unmarked(path):
                lines.add(block, np.flatnonzero(np.frombuffer(block, np.uint8) == _NEWLINE))
        else:
            _write_values(path, files, lines)
        lines.end()
    return written


def _write_values(path: Path, files: Files, lines: "_Lines") -> None:
    """Write the values of an array, or values one after the other, a line each."""
    values = _Values()
    for block in _unmarked(path):
        lines.add(*values.apart(block))
        if values.is_broken:
            break
    if not values.is_complete:
        raise InputError(
            f"{files.names} could not be read as JSON; it must be an array of records, or records one after the other, and complete. "
            "If each record has its line, call it .jsonl."
        )


@dataclass
class _Lines:
    """Writes records, a line each; for one that is too long, null."""

    file: IO[bytes]
    _held: list[bytes] = field(default_factory=list)
    _length: int = 0

    def add(self, block: bytes, ends: Codes) -> None:
        """Write a block whose records end at the ends of lines in these places; a record within one block is never too long."""
        if not len(ends):
            self._hold(block)
            return
        self._hold(block[: ends[0]])
        self.end()
        self.file.write(block[ends[0] + 1 : ends[-1] + 1])
        self._hold(block[ends[-1] + 1 :])

    def end(self) -> None:
        """End the record that was begun; of a line end of two characters neither belongs to it."""
        record = b"".join(self._held).removesuffix(b"\r")
        is_long = self._length > LONGEST_RECORD + 1 or len(record) > LONGEST_RECORD
        self.file.write(b"null\n" if is_long else record + b"\n")
        self._held, self._length = [], 0

    def _hold(self, part: bytes) -> None:
        self._length += len(part)
        self._held = [] if self._length > LONGEST_RECORD + 1 else [*self._held, part]


@dataclass
class _Values:
    """Finds where the values of a file end: only quotes, backslashes, brackets and commas matter, whatever else is in a value."""

    _in_array: bool | None = None
    """Whether the values stand in one array, or one after the other; None if nothing but spaces was seen."""
    _in_text: bool = False
    _escaping: int = 0
    """Whether the next character is escaped, 0 or 1."""
    _depth: int = 0
    is_broken: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether all that was opened is closed."""
        return self._depth == 0 and not self._in_text and not self.is_broken

    def apart(self, block: bytes) -> tuple[bytes, Codes]:
        """Give a block with an end of line behind each value, nothing else between values, and the places of these."""
        if self._in_array is None:
            block = block.lstrip()
            if not block:
                return b"", ()
            self._in_array = block[:1] == b"["
            self.is_broken = block[:1] not in _BEGINNINGS
        codes = np.frombuffer(block, np.uint8)
        outside = ~self._texts(codes)
        opens = outside & ((codes == ord("{")) | (codes == ord("[")))
        closes = outside & ((codes == ord("}")) | (codes == ord("]")))
        depth = np.cumsum(opens.astype(np.int8) - closes.astype(np.int8), dtype=np.int32) + self._depth
        self._depth, self.is_broken = int(depth[-1]), self.is_broken or bool(depth.min() < 0)
        is_space = (codes == _SPACE) | (codes == _TAB) | (codes == _NEWLINE) | (codes == _RETURN)
        written = np.where((codes == _NEWLINE) | (codes == _RETURN), np.uint8(_SPACE), codes)
        closed = closes & (depth == 0)
        if self._in_array:
            written[closed | (outside & (codes == _COMMA) & (depth == 1))] = _NEWLINE
            # What stands around a record must not count for its size.
            written = written[~((is_space & outside & (depth <= 1)) | (opens & (depth == 1)))]
        else:
            written[is_space & outside & (depth == 0)] = _NEWLINE
            written = np.insert(written, np.flatnonzero(closed) + 1, _NEWLINE)
        return written.tobytes(), np.flatnonzero(written == _NEWLINE)

    def _texts(self, codes: Codes) -> Codes:
        """Find what lies in texts, from the quote that opens one up to the one that closes it."""
        quotes = (codes == _QUOTE) & ~self._escaped(codes)
        inside = np.bitwise_xor.accumulate(quotes) ^ self._in_text
        self._in_text = bool(inside[-1])
        return inside

    def _escaped(self, codes: Codes) -> Codes:
        """Find the characters behind an odd number of backslashes."""
        escaped = np.zeros(len(codes), bool)
        escaped[0] = self._escaping
        places = np.flatnonzero(codes == _BACKSLASH)
        if not len(places):
            self._escaping = 0
            return escaped
        begins = np.append(True, np.diff(places) != 1)
        first = places[np.maximum.accumulate(np.where(begins, np.arange(len(places)), 0))]
        # A row of backslashes may have begun in the block before.
        odd = (places - first + np.where(first == 0, self._escaping, 0)) % 2 == 0
        behind = places[odd] + 1
        self._escaping = int(len(behind) > 0 and behind[-1] == len(codes))
        escaped[behind[behind < len(codes)]] = True
        return escaped
