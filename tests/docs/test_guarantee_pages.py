"""Whatever carries privacy has its page: a statement, a proof, and the tests that check it."""

import inspect
import pkgutil
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import plume.mechanisms
import plume.noise
import plume.selection
from docs.pages import ROOT

GUARANTEES = ROOT / "docs" / "guarantees"
NOT_STRATEGIES = {"strategy", "rule", "threshold", "user_threshold", "chances"}
LAWS = {"laplace": "discrete_laplace", "gaussian": "rounded_gaussian", "correlated": "correlated_noise"}


def modules(package: ModuleType) -> dict[str, ModuleType]:
    names = [module.name for module in pkgutil.iter_modules(package.__path__)]
    return {name: import_module(f"{package.__name__}.{name}") for name in names}


def defines(module: ModuleType, *, attribute: str) -> bool:
    """Tell whether a module has a class of its own with this attribute that is not just a protocol."""
    own = [made for _, made in inspect.getmembers(module, inspect.isclass) if made.__module__ == module.__name__]
    return any(hasattr(made, attribute) and not getattr(made, "_is_protocol", False) for made in own)


MECHANISMS = [name for name, module in modules(plume.mechanisms).items() if defines(module, attribute="combine_raw")]
STRATEGIES = [name for name in modules(plume.selection) if name not in NOT_STRATEGIES]
NOISES = [LAWS.get(name, name) for name, module in modules(plume.noise).items() if defines(module, attribute="tail")]


def test_mechanisms_and_strategies_are_found() -> None:
    assert {"count", "sum", "users"} <= set(MECHANISMS)
    assert {"laplace_threshold", "public_keys", "truncated_geometric", "weighted_gaussian"} <= set(STRATEGIES)
    assert set(NOISES) == {"correlated_noise", "discrete_laplace", "rounded_gaussian", "rounded_laplace"}


@pytest.mark.parametrize(
    "name", [*MECHANISMS, *STRATEGIES, *NOISES, "bounding", "gaussian_composition", "tight_composition"]
)
def test_it_has_a_page_named_after_it(name: str) -> None:
    assert (GUARANTEES / f"{name.replace('_', '-')}.md").exists()


@pytest.mark.parametrize("page", sorted(GUARANTEES.glob("*.md")), ids=lambda page: page.stem)
def test_a_page_has_a_statement_a_proof_and_tests(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "Statement" in text
    assert re.search(r"Proof", text)
    assert "∎" in text
    assert re.search(r"`tests/[\w/]+\.py`", text)


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_mechanism_names_its_page_in_its_docstring(name: str) -> None:
    source = (ROOT / "src" / "plume" / "mechanisms" / f"{name}.py").read_text(encoding="utf-8")
    assert f"docs/guarantees/{name.replace('_', '-')}.md" in source
