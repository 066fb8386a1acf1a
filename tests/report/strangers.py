"""Words that strangers may choose as keys, to become something else than words on a page; and releases that hold them."""

import pyarrow as pa

import plume
from plume.release import Release
from questions import ENGINE, people

OPENINGS = (
    "",
    '">',
    "'>",
    "</script>",
    "</style>",
    "</title>",
    "</td>",
    "</code></pre>",
    "-->",
    "]]>",
    "</text></svg>",
)
ELEMENTS = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<iframe src='javascript:alert(1)'></iframe>",
    "<a href='javascript:alert(1)'>here</a>",
    "<meta http-equiv=refresh content='0;url=http://localhost:1/'>",
    "<link rel=stylesheet href=http://localhost:1/a.css>",
    "<style>body{display:none}</style>",
    "<base href=http://localhost:1/>",
)
OTHERS = (
    '" onmouseover="alert(1)',
    "' autofocus onfocus='alert(1)",
    "javascript:alert(1)",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;",
    "&quot;&amp;&nbsp;",
    "{{ 7 * 7 }}",
    "{% include 'report.html' %}",
    "{# gone #}",
    "${alert(1)}",
    "`",
    "\\",
    "__proto__",
    "constructor",
    "datum.label",
    "<!--",
    "<![CDATA[",
    "<?xml",
    "%3Cscript%3E",
    "=1+1",
    "0",
    "-1e999",
    "NaN",
    "null",
    "",
    " ",
    "two\nlines",
    "tab\there",
    "red\x1b[31m",
    "nothing\x00more",
    "turned\u202egnp.exe",
    "\u2066hidden\u2069",
    "\u2028",
    "\ufeffmark",
    "مرحبا",
    "你好 🎉",
    "e\u0301" * 40,
    "x" * 3_000,
)
KEYS = (*(opening + element for opening in OPENINGS for element in ELEMENTS), *OTHERS)


def releasing(keys: list[str] | tuple[str, ...] = KEYS, *, measures: int = 1, name: str = "count") -> Release:
    """A release of these keys with numbers that fall from one to the next, without running anything over them."""
    named = [name, *(f"more_{number}" for number in range(1, measures))]
    query = plume.Query(
        user="u",
        keys="k",
        measures=[plume.count(2, name=each) for each in named],
        max_keys_per_user=3,
        budget=plume.Budget(1, 1e-6),
    )
    falling = [100 * (len(keys) - place) for place in range(len(keys))]
    rows = pa.table({"k": list(keys)} | dict.fromkeys(named, falling))
    return Release(rows, plume.explain(query), private=True)


def answering(query: plume.Query, **columns: list[object]) -> Release:
    """A release of real rows."""
    return plume.run(query, people(**columns), engine=ENGINE)
