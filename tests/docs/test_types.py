"""The examples are right in the eyes of type checkers: whoever copies one into a typed project sees no error."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import plume
from docs.pages import PAGES, README, ROOT, python_blocks

FIRST = python_blocks(README)[0].code
# A page is one program, as it is when it is run.
EXAMPLES = {
    re.sub(r"\W", "_", str(page.relative_to(ROOT).with_suffix(""))): "\n".join(block.code for block in blocks)
    for page in PAGES
    if (blocks := python_blocks(page))
}
# What else may be written: one measure, tuples, a mapping, open numbers, all settings.
SETTINGS = """
import plume

plume.Query(user="u", keys=("a", "b"), measures=plume.users(), max_keys_per_user="auto", budget=plume.Budget(epsilon=1, delta=1e-6))
plume.Query(user="u", keys=["a", "b"], measures=(plume.count("auto"), plume.sum("x", 0, "auto"), plume.mean("x", 0, 1)),
    max_keys_per_user=3, budget=plume.Budget(epsilon=1), where="x > 1", public_keys=[("a", 1)], min_users=3,
    selection="gaussian_threshold", noise="gaussian", composition="tight", shares={"selection": 2, "count": 1.5})
release = plume.run(plume.Query.paper(user="u", keys="a", measures=plume.median("x", 0, 1), max_keys_per_user=3,
    budget=plume.Budget(epsilon=1, delta=1e-6)), "rows.parquet")
measures = [plume.users()]
measures.append(plume.count(3))
frame_of = {row["a"]: row["x_median"] for row in release}
dataset = plume.Ledger("budget.ledger").dataset("searches")
largest: float | None = dataset.plan(plume.Query(user="u", keys="a", measures=measures, max_keys_per_user=3,
    budget=plume.Budget(1, 1e-6))).largest_epsilon
needed = plume.need(release.explanation.query, users=500, error=0.1, keys_of_user={5: 0.9, 40: 0.1}, limits=[5, 10])
cheapest: list[float | None] = [limit.epsilon for limit in needed.limits]
keys: tuple[str, ...] = release.explanation.calibrated.query.keys
"""
WRONG = FIRST.replace('keys="recipe"', "keys=3")
# Each line is wrong: functions that explain such calls when they run keep their signatures nevertheless.
MISFITS = """\
import plume
plume.sum("x")
plume.sum("x", low=0, high=60)
plume.mean("x", low=0)
plume.count(3, "x")
plume.variance("x", 0, "auto")
plume.Budget()
plume.Budget(eps=1)
plume.Query(user="u", keys="k", measures=plume.users(), max_keys_per_user=3)
plume.run(3, "rows.parquet")
plume.explain("query").spend
plume.avg("x", 0, 1)
"""
PROGRAMS = {f"{name}.py": code for name, code in EXAMPLES.items()} | {
    "settings.py": SETTINGS,
    "wrong.py": WRONG,
    "misfits.py": MISFITS,
}
# As strict as with ours, whose settings it reads and where `make check` left all of Plume read, but for functions of examples, which say
# no types; and at its defaults for strangers.
CHECKERS = {
    "mypy": (ROOT, ["--allow-untyped-defs", "--allow-untyped-calls"]),
    "pyright": (None, ["--pythonpath", sys.executable]),
}


@pytest.fixture(params=CHECKERS, scope="module")
def errors(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What a type checker finds wrong; all programs are checked at once, since each check reads all of Plume."""
    folder, (where, options) = tmp_path_factory.mktemp(request.param), CHECKERS[request.param]
    for name, program in PROGRAMS.items():
        (folder / name).write_text(program, encoding="utf-8")
    command = [sys.executable, "-m", request.param, *options, *(str(folder / name) for name in PROGRAMS)]
    done = subprocess.run(command, cwd=where or folder, capture_output=True, text=True, check=False)  # noqa: S603 - our own
    assert done.returncode == 1, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if re.search(r":\d+.* error: ", line)]


def test_checkers_of_strangers_may_believe_our_types() -> None:
    assert (Path(plume.__file__).parent / "py.typed").exists()


def test_type_checkers_find_nothing_wrong(errors: list[str]) -> None:
    assert [line for line in errors if not re.search(r"wrong\.py|misfits\.py", line)] == []


def test_the_examples_of_all_pages_are_checked() -> None:
    assert {"README", "docs_quickstart", "docs_api", "docs_how_to_count"} <= EXAMPLES.keys()


def test_type_checkers_find_what_is_wrong(errors: list[str]) -> None:
    assert any("wrong.py" in line and "keys" in line for line in errors)


def test_type_checkers_find_every_call_that_does_not_fit(errors: list[str]) -> None:
    found = {int(number[1]) for line in errors if (number := re.search(r"misfits\.py:(\d+)", line))}
    assert found == set(range(2, MISFITS.count("\n") + 1))
