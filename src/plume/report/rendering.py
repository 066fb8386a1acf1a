"""Templates become HTML; the only place that does so, so that nothing can leave unescaped. Keys are strangers' words."""

import re
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from plume.errors import printable

# Browsers break a line behind its hyphen.
_SMALL_NUMBER = re.compile(r"\d(?:\.\d+)?e-\d+")
_PIECES = re.compile(r".{3,}?_(?=.)|.+", re.DOTALL)
_TEMPLATES = files("plume.report") / "templates"


def render(template: str, **facts: Any) -> str:
    """Fill a template; everything in it is escaped, also in attributes."""
    return _environment().get_template(template).render(**facts)


def read(name: str) -> str:
    """Read a file that lies beside the templates, as it is."""
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def cell(value: Any) -> str:
    """Write a released value for people."""
    match value:
        case bool():
            return str(value)
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.0f}" if 1e6 <= abs(value) < 1e15 else f"{value:,.6g}"  # noqa: PLR2004 - what fits a cell
        case None:
            return ""
        case _:
            return word(value)


def word(value: Any) -> str:
    """Write a key or a name as it is; control characters and those that turn the direction of writing are escaped."""
    return value.hex() if isinstance(value, bytes) else printable(str(value))


def sentence(value: Any) -> Markup:
    """Write a sentence; small numbers in it are not broken over two lines."""
    text = str(escape(word(value)))
    return Markup(_SMALL_NUMBER.sub(r'<span class="unbroken">\g<0></span>', text))  # noqa: S704 - escaped before


def heading(name: Any) -> Markup:
    """Write the name of a column, which may go on in the next line behind an underscore."""
    return Markup("<wbr>").join(_PIECES.findall(word(name)))


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("plume.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"cell": cell, "word": word, "sentence": sentence, "heading": heading}
    return environment
