"""Markdown pages as something to run: their Python blocks, and below each the text it prints.

A ```text block right below a ```python block shows what that block prints, to the letter. ```text within=N allows each number to differ
by N, for what is drawn anew in each run. Run as a program, it prints these blocks anew: `.venv/bin/python tests/docs/pages.py`.
"""

import contextlib
import io
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pyarrow as pa

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]

_FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.])")


@dataclass(frozen=True)
class Block:
    """Code between fences, and where it stands in its page."""

    info: str
    code: str
    start: int
    end: int


@dataclass(frozen=True)
class Shown:
    """A text block below a Python block, and what the latter printed."""

    block: Block
    printed: str

    @property
    def within(self) -> float:
        """How far numbers may differ."""
        found = re.search(r"within=([\d.]+)", self.block.info)
        return float(found[1]) if found else 0.0


def blocks(page: Path) -> list[Block]:
    """Find the code blocks of a page."""
    text = page.read_text(encoding="utf-8")
    return [Block(found["info"].strip(), found["code"], *found.span()) for found in _FENCE.finditer(text)]


def python_blocks(page: Path) -> list[Block]:
    """Find the blocks that are run."""
    return [block for block in blocks(page) if block.info == "python"]


def run_page(page: Path) -> tuple[dict[str, object], list[Shown]]:
    """Run a page's Python blocks in order, in one namespace and an empty folder; return the namespace and what was shown."""
    text, listed = page.read_text(encoding="utf-8"), blocks(page)
    below = {
        one.start: other
        for one, other in pairwise(listed)
        if other.info.split()[:1] == ["text"] and not text[one.end : other.start].strip()
    }
    namespace: dict[str, object] = {"__name__": "page"}
    shown = []
    with _empty_folder(), _store_of_the_page(text):
        for block in python_blocks(page):
            printed = _run(block, page, namespace)
            if block.start in below:
                shown.append(Shown(below[block.start], printed))
    return namespace, shown


def alike(shown: str, printed: str, *, within: float) -> bool:
    """Tell whether two texts are the same but for the width of columns and a small difference in numbers."""
    if not within:
        return shown == printed
    words = [_NUMBER.sub("#", text).split() for text in (shown, printed)]
    numbers = [[float(number) for number in _NUMBER.findall(text)] for text in (shown, printed)]
    return words[0] == words[1] and all(abs(one - other) <= within for one, other in zip(*numbers, strict=True))


def _run(block: Block, page: Path, namespace: dict[str, object]) -> str:
    # Leading newlines make line numbers in a traceback those of the page.
    line = page.read_text(encoding="utf-8")[: block.start].count("\n") + 1
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("\n" * line + block.code, page, "exec"), namespace)  # noqa: S102 - our own pages
    return printed.getvalue()


@contextlib.contextmanager
def _empty_folder() -> Iterator[None]:
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


@contextlib.contextmanager
def _store_of_the_page(text: str) -> Iterator[None]:
    """Serve the bucket that a page reads, if it does: s3://shop/visits."""
    if '"s3://shop/' not in text:
        yield
        return
    from stores import emptied, put, served  # noqa: PLC0415 - most pages read no bucket

    rows = pa.table({"user_id": range(30_000), "country": ["DE", "FR", "JP"] * 10_000})
    with served() as address, emptied(address) as client:
        put(client, "visits/1.parquet", rows.slice(0, 10_000))
        put(client, "visits/2.parquet", rows.slice(10_000))
        yield


def _print_anew(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for shown in reversed(run_page(page)[1]):
        if not alike(shown.block.code, shown.printed, within=shown.within):
            block = f"```{shown.block.info}\n{shown.printed}```"
            text = text[: shown.block.start] + block + text[shown.block.end :]
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests"))
    for each in PAGES:
        _print_anew(each)
