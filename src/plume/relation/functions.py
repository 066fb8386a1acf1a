"""The functions of one row by their names, and what to write in the place of those that only others have.

Nothing here is understood as what it stands for: all of it is refused, and the lists only choose the sentence.
"""

import re
from collections.abc import Mapping
from difflib import get_close_matches

from plume.relation.parsing import CALLS

_FORMS = ("arithmetic", "comparisons", "AND", "OR", "NOT", "IS NULL", "IN", "BETWEEN", "LIKE", "CASE")
_FUNCTIONS = (
    *("IF", "COALESCE", "NULLIF", "GREATEST", "LEAST", "CAST", "ABS", "ROUND", "FLOOR", "CEIL", "SQRT", "LN", "EXP"),
    *("LOWER", "UPPER", "TRIM", "SUBSTR", "LENGTH", "STARTS_WITH", "EXTRACT"),
)
_LAST = "DATE_TRUNC"
_UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
_MONTHS = "EXTRACT(MONTH FROM x), or DATE_TRUNC(x, MONTH) for the beginning of each month"
_ELSEWHERE: Mapping[str, str] = {
    **{unit: _MONTHS.replace("MONTH", unit).replace("month", unit.lower()) for unit in _UNITS},
    **dict.fromkeys(("DATE_PART", "DATEPART", "MONTHNAME"), _MONTHS),
    **dict.fromkeys(("STRFTIME", "TO_CHAR", "DATE_FORMAT", "FORMAT_DATE", "FORMAT_TIMESTAMP"), "DATE_TRUNC(x, MONTH)"),
    **dict.fromkeys(("LEFT", "MID", "SPLIT", "SPLIT_PART", "REGEXP_EXTRACT"), "SUBSTR(x, 1, 3)"),
    **dict.fromkeys(("WEEKDAY", "DAYOFWEEK", "DAYNAME"), "EXTRACT(DAYOFWEEK FROM x)"),
    **dict.fromkeys(("TO_DATE", "PARSE_DATE", "STRPTIME"), "CAST(x AS DATE) for dates such as 2026-01-31"),
    **dict.fromkeys(
        ("DATE_ADD", "DATE_SUB", "DATE_DIFF", "DATEDIFF"), "the date that is meant, as in x > DATE '2026-01-31'"
    ),
    **dict.fromkeys(("REGEXP_CONTAINS", "REGEXP_LIKE", "REGEXP_MATCHES", "CONTAINS", "INSTR"), "x LIKE '%word%'"),
    **dict.fromkeys(("REPLACE", "REGEXP_REPLACE"), "CASE WHEN x = 'old' THEN 'new' ELSE x END"),
    **dict.fromkeys(("CONCAT", "CONCAT_WS"), "each of them as a key of its own"),
}
"""Functions by their names elsewhere, and what comes nearest here."""
_CALLED = re.compile(r"\s*(\w+)\s*\(")
# Of names this much alike one is usually a slip of the other.
_ALIKE = 0.85


def written_instead(refused: str) -> str:
    """Say what to write in the place of a part of a statement, if anything is near, and what an expression may hold."""
    called = _CALLED.match(refused)
    name = called[1].upper() if called else "CONCAT" if "||" in refused else ""
    near = get_close_matches(name, (*_FUNCTIONS, _LAST, *CALLS), n=1, cutoff=_ALIKE)
    supported = f"{', '.join((*_FORMS, *_FUNCTIONS))} and {_LAST}"
    if name in _ELSEWHERE:
        return f"write {_ELSEWHERE[name]}; supported are {supported}"
    return f"did you mean {near[0]}? Supported are {supported}" if near else f"supported are {supported}"
