"""A call that does not fit says what it lacks, what that means, and what was meant."""

import copy
import pickle
import re
from collections.abc import Callable
from functools import reduce
from inspect import Parameter, isclass, signature
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import plume
from plume.arguments import MEANINGS
from plume.errors import ArgumentError
from plume.other_names import OF_QUERIES, OF_RELEASES

MADE_BY_CALLERS = {"Budget", "DuckDB", "Ledger", "Query", "Spark"}
CALLED = sorted(name for name in plume.__all__ if name in MADE_BY_CALLERS or not isclass(getattr(plume, name)))
CALLED.remove("__version__")


def required(name: str) -> list[str]:
    parameters = signature(getattr(plume, name)).parameters
    return [name for name, parameter in parameters.items() if parameter.default is Parameter.empty]


def refused(call: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    with pytest.raises(ArgumentError) as caught:
        call(*args, **kwargs)
    assert caught.value.__context__ is None
    return str(caught.value)


@pytest.mark.parametrize("name", [name for name in CALLED if required(name)])
def test_a_call_without_arguments_says_what_each_of_them_is(name: str) -> None:
    sentence = refused(getattr(plume, name))
    assert sentence.startswith(f"plume.{name} needs ")
    assert [one for one in required(name) if f" {one} is {MEANINGS.get(one, 'the ')}" not in sentence] == []


@pytest.mark.parametrize("name", CALLED)
def test_an_unknown_argument_is_answered_with_the_known_ones(name: str) -> None:
    known = list(signature(getattr(plume, name)).parameters)
    sentence = refused(getattr(plume, name), zzz=1)
    assert sentence.startswith(f"plume.{name} has no argument 'zzz'. Its arguments are ")
    assert [one for one in known if one not in sentence] == []


def test_only_what_is_missing_is_explained() -> None:
    assert refused(plume.mean, "x", low=0) == (
        "plume.mean needs high. high is the largest value that counts as it is, such as 60; larger ones are clamped to it. "
        "With high='auto' it is chosen within the budget."
    )


@pytest.mark.parametrize(
    ("call", "open_one"), [(plume.sum, "high_total"), (plume.count, "max_per_key"), (plume.Query, "max_keys_per_user")]
)
def test_what_may_be_left_to_auto_is_said_to(call: Callable[..., Any], open_one: str) -> None:
    assert f"With {open_one}='auto' it is chosen within the budget." in refused(call)


@pytest.mark.parametrize("call", [plume.variance, plume.median, plume.quantiles, plume.histogram, plume.vector_sum])
def test_what_may_not_be_left_to_auto_is_not_said_to(call: Callable[..., Any]) -> None:
    assert "auto" not in refused(call)


@pytest.mark.parametrize("bound", ["low", "high"])
def test_who_bounds_values_of_a_sum_is_told_that_totals_are_bounded_and_why(bound: str) -> None:
    assert refused(plume.sum, "x", **{bound: 0}) == (
        f"plume.sum has no argument '{bound}'; a sum has low_total and high_total, not low and high: "
        "they bound what one user adds to a key in total, not single values."
    )


@pytest.mark.parametrize(
    ("call", "given", "meant"),
    [
        (plume.Budget, "eps", "epsilon"),
        (plume.mean, "lower", "low"),
        (plume.sum, "max", "high_total"),
        (plume.Query, "group_by", "keys"),
        (plume.Query, "max_keys", "max_keys_per_user"),
        (plume.Query, "measure", "measures"),
        (plume.DuckDB, "memory", "memory_limit"),
        (plume.run, "pipline", "pipeline"),
    ],
)
def test_an_argument_that_is_called_otherwise_is_pointed_to(call: Callable[..., Any], given: str, meant: str) -> None:
    assert f"has no argument '{given}'; did you mean '{meant}'?" in refused(call, **{given: 1})


def test_a_query_with_epsilon_is_pointed_to_its_budget() -> None:
    assert "budget=plume.Budget(epsilon=1, delta=1e-6)" in refused(plume.Query, user="u", epsilon=1)


@pytest.mark.parametrize(
    ("call", "args", "sentence"),
    [
        (plume.users, ("x",), "plume.users takes no arguments by position; give name and where by name."),
        (
            plume.count,
            (3, "x"),
            "plume.count takes only max_per_key by position; give column, name and where by name.",
        ),
        (plume.Budget, (1, 0, 0), "plume.Budget takes only epsilon and delta by position."),
    ],
)
def test_arguments_without_a_name_are_told_theirs(call: Callable[..., Any], args: Any, sentence: str) -> None:
    assert refused(call, *args) == sentence


def test_an_argument_that_is_given_twice_is_named() -> None:
    assert "is given low twice" in refused(plume.mean, "x", 0, low=0, high=1)


def test_the_names_of_arguments_are_printed_harmlessly() -> None:
    assert "\x1b" not in refused(plume.users, **{"\x1b[31m" * 30: 1})


def test_a_misfit_is_still_a_type_error() -> None:
    with pytest.raises(TypeError, match="needs max_per_key"):
        plume.count()  # type: ignore[call-arg]


@pytest.fixture(scope="module")
def release() -> plume.Release:
    query = plume.Query(user="u", keys=[], measures=[plume.users()], budget=plume.Budget(1))
    return plume.run(query, pa.table({"u": ["a", "b"]}))


@pytest.mark.parametrize(
    ("method", "args", "sentence"),
    [
        ("top", (), "needs n and by. n is how many rows to keep. by is the column whose largest values are kept."),
        ("report", (), "needs path. path is where to write it."),
        ("intervals", (0.9, 0.95), "takes only level by position."),
    ],
)
def test_methods_explain_calls_that_do_not_fit(release: plume.Release, method: str, args: Any, sentence: str) -> None:
    assert refused(getattr(release, method), *args) == f"release.{method} {sentence}"


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        ((), "needs path. path is the path of the file, such as 'budget.ledger' of a ledger."),
        (("a", {}), "takes only path by position; give datasets by name."),
    ],
)
def test_what_makes_a_ledger_explains_calls_that_do_not_fit(args: Any, sentence: str) -> None:
    assert refused(plume.Ledger.create, *args) == f"plume.Ledger.create {sentence}"


def test_a_dataset_says_what_it_is_called_and_may_spend(tmp_path: Path) -> None:
    ledger = plume.Ledger.create(tmp_path / "budget.ledger")
    assert refused(ledger.add_dataset).startswith(
        "ledger.add_dataset needs name and budget. name is what the dataset is"
    )
    assert refused(ledger.dataset) == "ledger.dataset needs name. name is what the dataset is called."


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("to_csv", "; write release.write_csv(path)"),
        ("df", "; write release.to_pandas()"),
        ("users", '; write release["users"]'),
        ("write_cvs", "; write release.write_csv"),
        ("nothing_like_it", ""),
        ("_private", ""),
    ],
)
def test_a_name_that_a_release_does_not_have_is_answered_with_what_to_write(
    release: plume.Release, name: str, hint: str
) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(release, name)
    assert str(caught.value) == f"a release has no attribute {name!r}{hint}"


def test_a_query_says_how_it_is_run(release: plume.Release) -> None:
    with pytest.raises(AttributeError, match=r"a query has no attribute 'run'; write plume\.run\(query, data\)"):
        release.explanation.query.run  # noqa: B018 - looking is what fails


@pytest.mark.parametrize(
    ("name", "meant"),
    [("count_distinct", "users"), ("percentile", "quantiles"), ("p95", "quantiles"), ("size", "count")],
)
def test_names_that_others_have_for_measures_are_pointed_to(name: str, meant: str) -> None:
    with pytest.raises(AttributeError, match=rf"did you mean plume\.{meant}\?"):
        getattr(plume, name)


def test_whatever_is_pointed_to_is_there(release: plume.Release) -> None:
    for written in OF_RELEASES.values():
        assert reduce(getattr, re.match(r"release\.([\w.]+)", written)[1].split("."), release) is not None
    for written in OF_QUERIES.values():
        start, *names = re.match(r"[\w.]+", written)[0].split(".")
        assert reduce(getattr, names, plume if start == "plume" else release.explanation.query) is not None


def test_releases_and_queries_are_copied_and_pickled(release: plume.Release) -> None:
    query = release.explanation.query
    assert pickle.loads(pickle.dumps(query)) == copy.deepcopy(query) == query  # noqa: S301 - our own
    assert copy.copy(release).rows == release.rows
