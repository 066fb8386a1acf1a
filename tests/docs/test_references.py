"""What pages, comments and docstrings name is there: files, names in the code, and the targets of links."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from docs.words import ROOT

ENDINGS = "py|md|sql|html|js|css|svg|toml|txt|tex"
FOLDERS = ("src", "tests", "docs", "experiments", "benchmarks", "examples")
MADE = {"__pycache__", ".ipynb_checkpoints"}
FILES = [
    path.relative_to(ROOT).as_posix()
    for path in (*ROOT.iterdir(), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*")))
    if path.is_file() and not MADE & set(path.parts)
]
PATHS = {*FILES, *(folder.as_posix() for path in FILES for folder in Path(path).parents)}
FILE_NAMES = {Path(path).name for path in FILES}
CHECKED = [path for path in FILES if path.endswith((".md", ".py")) and not path.startswith("docs/results/")]
ABOVE = ("", "src/", "src/plume/", "tests/", "docs/")
ELSEWHERE = {
    "for_selection": "decision 70: what it replaced",
    "privacy/calibration.py": "decision 70: what it replaced",
    "job.py": "a program of the reader's",
    "plume.sql": "a function of Plume, and no file",
    "seconds_p50": "a column that a query makes up",
    "seconds_p99": "a column that a query makes up",
    "DP_RETAIN_KEY": "a function of the paper",
    "cloneSession": "a function of Spark",
    "md5_number_upper": "a function of DuckDB",
    "common_subexpressions": "an optimizer of DuckDB",
    "in_clause": "an optimizer of DuckDB",
    "type_pushdown": "an optimizer of DuckDB",
    "scalar_fn_pushdown": "an optimizer of DuckDB",
}
"""What is named and is not there, with the reason."""


@cache
def texts(path: str) -> tuple[tuple[int, str], ...]:
    """Give the prose of a file by lines: of a page all but its blocks of code, of a module its comments and docstrings."""
    text = (ROOT / path).read_text(encoding="utf-8")
    if path.endswith(".md"):
        prose = re.sub(r"(?ms)^```.*?^```$", lambda block: "\n" * block[0].count("\n"), text)
        return tuple(enumerate(prose.splitlines(), start=1))
    return (*_comments(text), *((line, text) for line, text in _docstrings(ast.parse(text)).items()))


def _comments(text: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def _docstrings(tree: ast.Module) -> dict[int, str]:
    """Give what stands alone as a text, line by line."""
    alone = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    said = [node for node in alone if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return {node.lineno + place: line for node in said for place, line in enumerate(str(node.value).splitlines())}


@cache
def names_in_code() -> frozenset[str]:
    """All words of the code, its texts and its SQL, but not of what is said about it."""
    found: set[str] = set()
    for path in FILES:
        if path.endswith(".py"):
            found |= _words_of_code((ROOT / path).read_text(encoding="utf-8"))
        elif path.endswith((".sql", ".html", ".js", ".css", ".toml", ".txt", "Makefile")):
            found |= set(re.findall(r"\w+", (ROOT / path).read_text(encoding="utf-8")))
    return frozenset(found)


def _words_of_code(text: str) -> set[str]:
    said = _docstrings(ast.parse(text))
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return {
        word
        for token in tokens
        if token.type != tokenize.COMMENT and not (token.type == tokenize.STRING and token.start[0] in said)
        for word in re.findall(r"\w+", token.string)
    }


def quoted(path: str) -> Iterator[tuple[int, str]]:
    """Give what stands in backticks."""
    for line, text in texts(path):
        yield from ((line, name) for name in re.findall(r"`([^`\n]+)`", text) if name not in ELSEWHERE)


def is_there(name: str, path: str) -> bool:
    beside = (Path(path).parent / name).as_posix()
    return beside in PATHS or any(f"{above}{name}".rstrip("/") in PATHS for above in ABOVE)


def test_files_that_are_named_are_there() -> None:
    alone, within = rf"[\w./-]+\.(?:{ENDINGS})", rf"(?<![\w/.-])(?:{'|'.join(FOLDERS)})/[\w./-]+\.(?:{ENDINGS})"
    named = [(path, line, name) for path in CHECKED for line, name in quoted(path) if re.fullmatch(alone, name)]
    cited = [(path, line, name) for path in CHECKED for line, text in texts(path) for name in re.findall(within, text)]
    assert [one for one in (*named, *cited) if not is_there(one[2], one[0]) and one[2] not in FILE_NAMES] == []


def test_names_of_the_code_are_in_the_code() -> None:
    """Those with an underscore or a capital letter inside, which no other word has."""
    named = [one for path in CHECKED for one in ((path, *found) for found in quoted(path))]
    words = [
        (path, line, word)
        for path, line, name in named
        if re.fullmatch(r"[A-Za-z_][\w.]*", name)
        for word in name.split(".")
        if re.search(r"\w_\w|[a-z][A-Z]", word)
    ]
    assert [one for one in words if one[2] not in names_in_code()] == []


def test_links_lead_to_files_and_headings() -> None:
    links = [
        (path, line, *found)
        for path in CHECKED
        if path.endswith(".md")
        for line, text in texts(path)
        for found in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)", text)
        if "://" not in found[0] and not found[0].startswith("mailto:")
    ]
    assert [link for link in links if not leads_somewhere(*link)] == []


def leads_somewhere(path: str, _: int, target: str, anchor: str) -> bool:
    page = (ROOT / path).parent / target if target else ROOT / path
    return page.exists() and (not anchor or page.suffix != ".md" or anchor in headings(page))


@cache
def headings(page: Path) -> frozenset[str]:
    """The anchors of a page, as GitHub and the site make them."""
    said = re.findall(r"(?m)^#+ (.*)$", page.read_text(encoding="utf-8"))
    return frozenset(re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in said)


def test_what_is_excused_is_named_and_is_not_there() -> None:
    said = {name for path in CHECKED for _, text in texts(path) for name in re.findall(r"`([^`\n]+)`", text)}
    assert ELSEWHERE.keys() - said == set()
    assert [name for name in ELSEWHERE if is_there(name, "docs/index.md")] == []


def test_the_layout_in_contributing_names_every_folder_and_module() -> None:
    layout = {name for _, name in quoted("CONTRIBUTING.md")}
    entries = (entry for entry in (ROOT / "src" / "plume").iterdir() if not entry.name.startswith("_"))
    named = [f"{entry.name}/" if entry.is_dir() else entry.name for entry in entries if entry.suffix in ("", ".py")]
    assert sorted(set(named) - layout - {"version.py"}) == []
