"""Functions of many rows below the private SELECT: only those whose result does not depend on the order of rows.

That order depends on all users. So no ROW_NUMBER, no FIRST_VALUE and no frames of rows: among equals, they would pick by it.
"""

from collections.abc import Callable

from sqlglot import exp

from plume.relation.relations import Call
from plume.relation.text import Text, Tree
from plume.statement.clauses import refuse_others

_AGGREGATES = ("COUNT", "SUM", "AVG", "MIN", "MAX")
_RANKS = ("RANK", "DENSE_RANK")


def read_call(text: Text, tree: Tree, scalar: Callable[[Tree], Tree]) -> Call:
    """Read an aggregate or a window."""
    if not isinstance(tree, exp.Window):
        return _aggregate(text, tree, scalar)
    if any(value for name, value in tree.args.items() if name not in ("this", "partition_by", "order", "over")):
        raise text.refusal(
            tree, "frames of rows and named windows are not supported here; write OVER (PARTITION BY ... ORDER BY ...)."
        )
    partition = tuple(scalar(part) for part in tree.args.get("partition_by") or ())
    order = tree.args.get("order")
    ordered = tuple(_ordered(text, item, scalar) for item in (order.expressions if order else ()))
    inner = tree.this
    if not isinstance(inner, exp.Anonymous) or inner.name.upper() not in (*_AGGREGATES, *_RANKS):
        raise text.refusal(
            tree,
            f"{text.quote(inner)!r} depends on the order of rows that are equal, and so on other users; "
            f"windows may be {', '.join((*_RANKS, *_AGGREGATES))}.",
        )
    if inner.name.upper() in _RANKS:
        if not ordered or inner.expressions:
            raise text.refusal(tree, f"{inner.name.upper()}() needs ORDER BY, and no argument.")
        return Call(inner.name.upper(), None, partition=partition, order=ordered, tree=tree)
    call = _aggregate(text, inner, scalar)
    if call.distinct:
        raise text.refusal(tree, "DISTINCT inside a window is not supported here.")
    return Call(call.function, call.argument, partition=partition, order=ordered, tree=tree)


def _ordered(text: Text, item: Tree, scalar: Callable[[Tree], Tree]) -> tuple[Tree, bool, bool]:
    """Read what a window is ordered by; where the statement does not say where NULL comes, the parser notes what the dialect does."""
    refuse_others(text, item, frozenset({"this", "desc", "nulls_first"}))
    return scalar(item.this), bool(item.args.get("desc")), bool(item.args.get("nulls_first"))


def _aggregate(text: Text, tree: Tree, scalar: Callable[[Tree], Tree]) -> Call:
    function = tree.name.upper()
    if function not in _AGGREGATES:
        raise text.refusal(tree, f"{function} is not supported below the private SELECT; {', '.join(_AGGREGATES)} are.")
    if len(tree.expressions) != 1:
        raise text.refusal(
            tree, f"{function} takes one argument below the private SELECT; bounds belong in the private SELECT."
        )
    argument = tree.expressions[0]
    if isinstance(argument, exp.Star):
        if function != "COUNT":
            raise text.refusal(tree, f"{function}(*) has no meaning; name a column.")
        return Call(function, None, tree=tree)
    if isinstance(argument, exp.Distinct):
        if function != "COUNT" or len(argument.expressions) != 1:
            raise text.refusal(tree, "DISTINCT is known in COUNT(DISTINCT column) only.")
        return Call(function, scalar(argument.expressions[0]), distinct=True, tree=tree)
    return Call(function, scalar(argument), tree=tree)
