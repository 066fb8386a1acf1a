"""What users read, and the words in it that docs/glossary.md decided against.

Users read the texts in the package, its templates, and the prose of pages; who reads the code reads its comments too. Run as a program,
it lists every place where another word would be better: `.venv/bin/python tests/docs/words.py`.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "plume"
SOURCES = sorted(SOURCE.rglob("*.py"))
TEMPLATES = sorted(SOURCE.rglob("*.html"))
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]

_COMPARED = "longer|more|less|fewer|larger|smaller|better|worse|likelier|easier|further|other"
UNIDIOMATIC = {
    "is not a": rf"(?<!here )\b(?:is|are) no (?!(?:{_COMPARED})\b)[a-z]",
    "the number itself, as much or that much": r"\b[Ss]o (?:many|much)\b(?!(?: \w+)? that\b)",
    "(leave it out)": r"\bby the way\b",
    "return whether, say whether": r"^Tell |\b[Tt]ells? whether\b",
    "a positive whole number": r"\bfrom 1 on\b",
    "is not one": r"(?<!there )\b(?:is|are) none\b(?! of\b)",
    "is not supported": r"\b(?:is|are) not known (?:here|below)\b",
    "by position": r"\bby their places?\b",
    "belongs in": r"\bbelongs? into\b",
    "another name": r"\b(?:call|name|know)(?:s|n|ed)?(?: \w+)? otherwise\b",
    "data is": r"\bdata (?:are|have|tell|show|stand|come|outgrow)\b",
}
DECIDED = {
    "select (keys)": r"(?i)\bkeys? (?:that )?(?:is|are|was|were) chosen\b|\b(?:cho(?:ose|oses|osing)|chosen|choice of) keys\b",
    "choose (numbers)": r"\bselect(?:s|ed|ing)? (?:the |a )?(?:limit|bound|range)s?\b",
    "clamp (one row)": r"\bclip(?:s|ped)? (?:that|a|the|each|one|every) (?:row|value|total|number)\b",
    "clip (one user)": r"\bclamp(?:s|ed)? (?:a|the|each|one|every) users?\b",
    "contribution": (
        r"\bsays? to (?:the |a |each )?(?:measures?|selection|round)\b"
        r"|\b(?:what|all that) (?:these |the )?users? says?\b|\beverybody(?: else)? says?\b"
    ),
    "bucket": r"\brows? of (?:the|a|that|its|this) (?:noised )?histograms?\b",
    "timestamp": r"(?i)\b(?<!at the )(?<!at that )(?<!random )(?<!at any )moments?\b",
}
FORBIDDEN = UNIDIOMATIC | DECIDED
NAMES = {
    "asked": "calibrated, or what was asked",
    "said": "contribution",
    "moment": "timestamp",
    "moments": "timestamps",
}
"""Names that say what happened to a thing, and words that say better what it is."""


@dataclass(frozen=True)
class Slip:
    """A word that another one was decided for."""

    path: Path
    line: int
    better: str
    text: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.text!r}; better: {self.better}"


def slips(path: Path) -> list[Slip]:
    """Find the words in a file that were decided against."""
    return [
        Slip(path, line, better, _around(text, found))
        for line, text in read(path)
        for better, pattern in FORBIDDEN.items()
        for found in re.finditer(pattern, text)
    ]


def poor_names(path: Path) -> set[str]:
    """Find the names that a file gives and that say nothing."""
    given: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                given.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                given.add(name.lstrip("_").lower())
    return given & NAMES.keys()


def read(path: Path) -> Iterator[tuple[int, str]]:
    """Give the texts of a file that users read, each with its line."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield from _messages(ast.parse(text))
        yield from _comments(text)
        return
    prose = re.sub(r"(?ms)^```.*?^```$|`[^`\n]*`|<!--.*?-->", lambda found: "\n" * found[0].count("\n"), text)
    yield from enumerate(prose.splitlines(), start=1)


def _messages(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Give all texts of a module that are more than a word, wherever they stand; none of them is taken apart."""
    if isinstance(tree, ast.expr) and (text := _text(tree)):
        if " " in text.strip():
            yield tree.lineno, re.sub(r"\s+", " ", text.strip())
        return
    for part in ast.iter_child_nodes(tree):
        yield from _messages(part)


def _comments(source: str) -> Iterator[tuple[int, str]]:
    """Give the comments of a module; those of lines that follow each other are one."""
    begun, last, words = 0, 0, ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        line, text = token.start[0], token.string.lstrip("#").strip()
        if line == last + 1:
            last, words = line, f"{words} {text}"
            continue
        if words:
            yield begun, words
        begun, last, words = line, line, text
    if words:
        yield begun, words


def _text(node: ast.expr) -> str:
    """Put a text together, with {} for what is computed."""
    match node:
        case ast.Constant(value=str() as value):
            return value
        case ast.JoinedStr(values):
            return "".join(_text(value) or "{}" for value in values)
        case ast.BinOp(left=left, right=right):
            return _text(left) + _text(right)
        case _:
            return ""


def _around(text: str, found: re.Match[str]) -> str:
    return text[max(found.start() - 40, 0) : found.end() + 20]


if __name__ == "__main__":
    found = [slip for path in (*SOURCES, *TEMPLATES, *PAGES) for slip in slips(path)]
    sys.stdout.writelines(f"{slip}\n" for slip in found)
