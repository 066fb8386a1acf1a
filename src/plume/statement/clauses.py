"""How clauses are written: conditions split at AND, names and numbers that mean columns of the list, and what no clause may hold."""

from typing import Any

from sqlglot import exp

from plume.relation.text import Text, Tree
from plume.statement.settings import number

_TOLD = {
    "limit": "LIMIT keeps some rows and drops others, and which ones depends on the rows of all users",
    "offset": "OFFSET drops rows, and which ones depends on the rows of all users",
    "order": "ORDER BY has no meaning below the private SELECT",
    "windows": "named windows are not supported here; write OVER (PARTITION BY ...)",
    "laterals": "LATERAL is not supported here",
    "sample": "a sample is drawn at random, and again each time rows are read",
    "joins": "joins inside of joins are not supported here; write a subquery",
    "pivots": "PIVOT is not supported here",
}


def refuse_others(text: Text, tree: Tree, known: frozenset[str]) -> None:
    """Refuse what sqlglot notes beside what is read here, since leaving it out would change the meaning."""
    for name, value in tree.args.items():
        if value and name not in known:
            at = value if isinstance(value, exp.Expression) else tree
            raise text.refusal(at, f"{_TOLD.get(name, f'{name.upper()} is not supported here')}.")


def conjuncts(tree: Tree | None) -> list[Any]:
    """Split a condition at its ANDs, however many there are."""
    conditions: list[Any] = []
    left = [] if tree is None else [tree]
    while left:
        part = left.pop().unnest()
        if isinstance(part, exp.And):
            left += [part.right, part.left]
        else:
            conditions.append(part)
    return conditions


def meant(text: Text, item: Tree, outputs: list[Tree]) -> Tree:
    """Find what GROUP BY means by a number or by the name of an output."""
    if isinstance(item, exp.Literal) and not item.is_string:
        place = number(item)
        if not isinstance(place, int) or not 1 <= place <= len(outputs):
            raise text.refusal(item, f"there is no column {text.quote(item)} in the list of this SELECT.")
        chosen = outputs[place - 1]
        return chosen.this if isinstance(chosen, exp.Alias) else chosen
    if isinstance(item, exp.Column) and not item.table:
        named = [
            out.this for out in outputs if isinstance(out, exp.Alias) and out.alias.casefold() == item.name.casefold()
        ]
        return named[0] if named else item
    return item


def with_aliases(tree: Tree, outputs: list[Tree]) -> Tree:
    """Put what an output is in the place of its name, as HAVING and QUALIFY mean it."""
    named = {output.alias.casefold(): output.this for output in outputs if isinstance(output, exp.Alias)}

    def replaced(part: Tree) -> Tree:
        known = isinstance(part, exp.Column) and not part.table and part.name.casefold() in named
        return exp.Paren(this=named[part.name.casefold()].copy()) if known else part

    return tree.copy().transform(replaced)
