"""What others call something that a release or a query has: a name that there is not is answered with what to write.

Python itself points to names that look alike, and only where an error is printed. Nothing here is understood as what it stands for.
"""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

T = TypeVar("T")

OF_RELEASES: Mapping[str, str] = {
    **dict.fromkeys(("df", "pandas", "to_df"), "release.to_pandas()"),
    **dict.fromkeys(("to_csv", "save"), "release.write_csv(path)"),
    **dict.fromkeys(("to_html", "plot"), "release.report(path)"),
    "to_parquet": "release.write_parquet(path)",
    "head": "release.top(n, by), or print(release)",
    "columns": "release.rows.column_names",
}
OF_QUERIES: Mapping[str, str] = {
    **{name: f"plume.{name}(query, data)" for name in ("run", "tune")},
    **{name: f"plume.{name}(query)" for name in ("explain", "expect", "audit")},
    "need": "plume.need(query, users=500, error=0.05)",
    **{name: f"query.budget.{name}" for name in ("epsilon", "delta")},
}


def column_held(release: Any, name: str) -> str | None:
    """Say how a column of a release is got."""
    return f'release["{name}"]' if name in release.rows.column_names else None


def names_pointed_to(
    called: str, elsewhere: Mapping[str, str], held: Callable[[Any, str], str | None] = lambda *_: None
) -> Callable[[type[T]], type[T]]:
    """Make objects of a class say what to write for a name that they do not have.

    `called` is what such an object is called in examples, and `held` says what to write for what an object holds under that name.
    """

    def pointing(self: Any, name: str) -> Any:
        known = [one for one in dir(type(self)) if not one.startswith("_")]
        hint = ""
        if not name.startswith("_") and name not in known:
            near = [f"{called}.{one}" for one in get_close_matches(name, known, n=1)]
            found = [elsewhere.get(name), held(self, name), *near]
            hint = next((f"; write {one}" for one in found if one), "")
        raise AttributeError(f"a {called} has no attribute {name!r}{hint}")

    def decorate(made: type[T]) -> type[T]:
        made.__getattr__ = pointing  # type: ignore[attr-defined]  # type checkers are to find names that there are not
        return made

    return decorate
