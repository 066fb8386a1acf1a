"""Walks through expressions and aggregates: which columns they read, and the same with other names."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

from plume.plan.aggregates import Aggregate
from plume.plan.expressions import Column, Expression

_Tree = TypeVar("_Tree", bound=Expression | Aggregate)


def columns_of(tree: Expression | Aggregate) -> frozenset[str]:
    """Name the columns an expression reads."""
    if isinstance(tree, Column):
        return frozenset({tree.name})
    return frozenset().union(*(columns_of(child) for child in _children(tree)))


def rename(tree: _Tree, names: Mapping[str, str]) -> _Tree:
    """Replace column names throughout an expression."""
    if isinstance(tree, Column):
        return replace(tree, name=names[tree.name])
    changes = {field.name: _renamed(getattr(tree, field.name), names) for field in fields(tree)}
    return replace(tree, **changes)


def walk(tree: Expression | Aggregate) -> Iterator[Expression | Aggregate]:
    """Yield an expression and everything inside it."""
    yield tree
    for child in _children(tree):
        yield from walk(child)


def _children(tree: Expression | Aggregate) -> Iterator[Expression | Aggregate]:
    for field in fields(tree):
        value = getattr(tree, field.name)
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, Expression | Aggregate):
                yield item


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, tuple):
        return tuple(_renamed(item, names) for item in value)
    return rename(value, names) if isinstance(value, Expression | Aggregate) else value
