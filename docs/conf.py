"""How `make docs` makes a site of these pages: docs/decisions/0039-documentation-site.md."""

import re
from typing import Any

import plume

project = "Plume"
author = "the authors of Plume"
copyright = "the authors of Plume"  # noqa: A001 - Sphinx's name
release = plume.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
# The root of the repository is the source, so that pages link to README.md as they do where the code is hosted.
include_patterns = ["*.md", "docs/**.md"]
exclude_patterns = [".*", "build", "src", "tests", "benchmarks", "examples", "experiments"]
root_doc = "docs/index"
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints = "none"
default_role = "code"

html_theme = "furo"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#6d47b3", "color-brand-content": "#6d47b3"},
    "dark_css_variables": {"color-brand-primary": "#c2a8f5", "color-brand-content": "#c2a8f5"},
}
html_title = f"Plume {release}"
html_additional_pages = {"index": "start.html"}
templates_path = ["site"]
html_show_sphinx = False
html_copy_source = False

_SECTION = re.compile(r"^\*\*(?P<caption>[^*]+)\*\*.*?\n(?P<listed>.*?)(?=^\*\*|\Z)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?P<page>[\w./-]+)\.md\)")


def complete_page(app: object, docname: str, source: list[str]) -> None:
    """Give the index a menu, made of its own links, and the reference the docstrings of all public names."""
    del app
    if docname == root_doc:
        source[0] += "".join(_menu(found) for found in _SECTION.finditer(source[0]))
    if docname == "docs/reference":
        source[0] += "".join(_described(name) for name in plume.__all__ if name != "__version__")


def _menu(section: re.Match[str]) -> str:
    pages = dict.fromkeys(_LINK.findall(section[0]))
    listed = "\n".join(pages)
    return f"\n\n```{{toctree}}\n:hidden:\n:maxdepth: 1\n:caption: {section['caption']}\n\n{listed}\n```\n"


def _described(name: str) -> str:
    described = getattr(plume, name)
    if not isinstance(described, type):
        directive, options = "autofunction", ""
    elif issubclass(described, Exception):
        directive, options = "autoexception", ""
    else:
        directive, options = "autoclass", "   :members:\n"
    return f"\n\n```{{eval-rst}}\n.. {directive}:: plume.{name}\n{options}```\n"


def setup(app: Any) -> None:
    """Let Sphinx call it."""
    app.connect("source-read", complete_page)
