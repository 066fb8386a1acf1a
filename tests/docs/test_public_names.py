"""Every public name is in the reference, and nothing else claims to be public."""

import inspect
import re
from dataclasses import fields

import pytest

import plume
from docs.pages import ROOT
from plume import errors

REFERENCE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")


def public_members(described: type) -> list[str]:
    members = {field.name for field in fields(described)} | set(vars(described))
    return sorted(member for member in members if not member.startswith("_"))


@pytest.mark.parametrize("name", plume.__all__)
def test_a_public_name_is_in_the_reference(name: str) -> None:
    assert re.search(rf"`plume\.{name}\b", REFERENCE)


@pytest.mark.parametrize(
    "described",
    [
        plume.Query,
        plume.Budget,
        plume.DuckDB,
        plume.Release,
        plume.Explanation,
        plume.Ledger,
        plume.Audit,
        plume.Expectation,
        plume.NotPrivateTuning,
    ],
)
def test_every_member_is_in_the_reference(described: type) -> None:
    members = [member for member in public_members(described) if member != "open"]
    assert [member for member in members if not re.search(rf"\b{member}\b", REFERENCE)] == []


@pytest.mark.parametrize(
    "function",
    [
        plume.run,
        plume.explain,
        plume.sql,
        plume.explain_sql,
        plume.expect,
        plume.need,
        plume.tune,
        plume.audit,
        plume.count,
        plume.sum,
        plume.users,
    ],
)
def test_every_argument_is_in_the_reference(function: object) -> None:
    arguments = inspect.signature(function).parameters
    assert [argument for argument in arguments if not re.search(rf"\b{argument}\b", REFERENCE)] == []


def test_every_error_is_in_the_reference() -> None:
    raised = [name for name, made in inspect.getmembers(errors, inspect.isclass) if made.__module__ == errors.__name__]
    assert [name for name in raised if f"`{name}`" not in REFERENCE and f"`plume.{name}`" not in REFERENCE] == []


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`plume\.(\w+)", REFERENCE))))
def test_a_name_in_the_reference_is_public(name: str) -> None:
    assert name in {*plume.__all__, "errors", "synthetic"}
