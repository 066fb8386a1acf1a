"""Tables and figures in pages that are copies of those in `docs/results/`.

`<!-- table: words -->` stands above a copy of the table in docs/results/words.md. Behind a figure, `0.21<!-- words | 64 | plume |
relative -->` names its cell: the row's first cells, then the column; two cells with ` / ` between them are a ratio. A figure has as many
decimals as it is written with. Run as a program, it writes these copies anew: `.venv/bin/python tests/docs/figures.py`.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"

_TABLE = re.compile(r"(?P<mark><!-- table: (?P<name>\w+) -->\n+)(?P<rows>(?:\|.*\n)*)")
_FIGURE = re.compile(r"(?P<figure>[\d.,]*\d)(?P<mark><!-- (?P<cells>\w+ \| [^>]*) -->)")
_MARK = re.compile(r"<!-- (?:table:|\w+ \|)")
_ROW = re.compile(r"^\|.*\n", re.MULTILINE)


def copied_anew(text: str) -> str:
    """Give a page's text with the tables and figures that the results have now."""
    # What follows a table that was not there before would become a row of it.
    with_tables = _TABLE.sub(lambda found: found["mark"] + table(found["name"]) + ("" if found["rows"] else "\n"), text)
    return _FIGURE.sub(lambda found: _figure(found["figure"], found["cells"]) + found["mark"], with_tables)


def marks(text: str) -> int:
    """Count the marks of a page, understood or not."""
    return len(_MARK.findall(text))


def understood_marks(text: str) -> int:
    """Count those that stand where they should."""
    return len(_TABLE.findall(text)) + len(_FIGURE.findall(text))


def table(name: str) -> str:
    """Read the table of a result."""
    return "".join(_ROW.findall((RESULTS / f"{name}.md").read_text(encoding="utf-8")))


def _figure(written: str, cells: str) -> str:
    over, *under = (_value(cell) for cell in cells.split(" / "))
    decimals = len(written.partition(".")[2])
    return f"{over / under[0] if under else over:,.{decimals}f}"


def _value(cell: str) -> float:
    name, *row, column = cell.split(" | ")
    columns, _, *rows = [line.strip("|").split("|") for line in table(name).splitlines()]
    [found] = [cells for cells in rows if [each.strip() for each in cells[: len(row)]] == row]
    text = found[[each.strip() for each in columns].index(column)]
    return float(text.partition("(±")[0].replace(",", ""))


if __name__ == "__main__":
    for page in map(Path, sys.argv[1:]) if sys.argv[1:] else [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        page.write_text(copied_anew(page.read_text(encoding="utf-8")), encoding="utf-8")
