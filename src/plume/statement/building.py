"""A parsed FROM clause becomes a relation. What is not read here is refused, so that nothing is left out by accident."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from plume.relation.names import Scope, Uses, table_name
from plume.relation.relations import BaseTable, Relation, Select, Source, Union, names_of
from plume.relation.text import Text, Tree
from plume.statement.clauses import conjuncts, refuse_others
from plume.statement.select_list import SelectList

Find = Callable[[Tree, str], BaseTable]
"""Finds the table behind a name."""

_SELECT_PARTS = frozenset({"expressions", "from_", "joins", "where", "group", "having", "qualify", "distinct", "with_"})
_DEEPEST = 40
_MOST_SOURCES = 200


@dataclass
class Builder:
    """Builds the relations of one statement."""

    text: Text
    find: Find
    uses: Uses = field(default_factory=Uses)
    labels: int = 0
    depth: int = 0

    def relation(self, tree: Tree, ctes: Mapping[str, Tree]) -> Relation:
        """Read a query: a SELECT or a UNION ALL, in brackets or not."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.text.refusal(tree, "this is nested too deeply.")
        ctes = {**ctes, **self.ctes(tree)}
        match tree:
            case exp.Subquery():
                refuse_others(self.text, tree, frozenset({"this", "alias", "with_"}))
                built = self.relation(tree.this, ctes)
            case exp.Select():
                built = self.select(tree, ctes)
            case exp.Union():
                built = self._union(tree, ctes)
            case _:
                raise self.text.refusal(
                    tree, f"{type(tree).__name__.upper()} is not supported here; SELECT and UNION ALL are."
                )
        self.depth -= 1
        return built

    def ctes(self, tree: Tree) -> dict[str, Tree]:
        """List the queries that WITH names."""
        clause = tree.args.get("with_")
        if clause is not None and clause.args.get("recursive"):
            raise self.text.refusal(clause, "WITH RECURSIVE is not supported here.")
        return {cte.alias.casefold(): cte for cte in (clause.expressions if clause is not None else ())}

    def _union(self, tree: Tree, ctes: Mapping[str, Tree]) -> Union:
        if (
            tree.args.get("distinct") is not False
            or tree.args.get("by_name")
            or tree.args.get("side")
            or tree.args.get("on")
        ):
            raise self.text.refusal(tree.expression, "only UNION ALL is supported; columns are matched by position.")
        refuse_others(self.text, tree, frozenset({"this", "expression", "distinct", "with_", "by_name"}))
        members: list[Select] = []
        for part in (tree.this, tree.expression):
            built = self.relation(part, ctes)
            members += built.members if isinstance(built, Union) else [built] if isinstance(built, Select) else []
        for member in members:
            names = names_of(member)
            if member.outputs is None or names is None:
                raise self.text.refusal(
                    member.tree, "the columns of a UNION ALL are matched by position; name them instead of *."
                )
            if len(names) != len(names_of(members[0]) or ()):
                raise self.text.refusal(member.tree, "both sides of a UNION ALL must have as many columns.")
        return Union(tuple(members), tree=tree)

    def select(self, tree: Tree, ctes: Mapping[str, Tree]) -> Select:
        """Read a SELECT."""
        refuse_others(self.text, tree, _SELECT_PARTS)
        scope = Scope(self.text, self.uses)
        sources = self.sources(tree, scope, ctes)
        where = self.conditions(tree.args.get("where"), scope)
        distinct = self._distinct(tree)
        if any(isinstance(item, exp.Star) or _is_star(item) for item in tree.expressions):
            return self._star(tree, sources, where)
        return SelectList(self.text, scope, tree).select(sources, where, distinct=distinct)

    def sources(self, tree: Tree, scope: Scope, ctes: Mapping[str, Tree]) -> tuple[Source, ...]:
        """Read FROM and its joins."""
        if tree.args.get("from_") is None:
            raise self.text.refusal(tree, "there is no FROM.")
        first = tree.args["from_"].this
        joins = tree.args.get("joins") or ()
        return tuple(
            self._source(read, scope, ctes, join)
            for read, join in [(first, None), *((join.this, join) for join in joins)]
        )

    def _source(self, tree: Tree, scope: Scope, ctes: Mapping[str, Tree], join: Tree | None) -> Source:
        self.labels += 1
        if self.labels > _MOST_SOURCES:
            raise self.text.refusal(tree, f"more than {_MOST_SOURCES} tables and subqueries are read here.")
        label = f"s{self.labels}"
        name, relation = self._read(tree, ctes)
        side = self._side(join) if join is not None else ""
        source = Source(label, relation, side, tree=tree)
        earlier = dict(scope.named)
        scope.add(name or label, source, tree)
        if join is None:
            return source
        on = (*self._using(join, scope, source, earlier, side), *self.conditions_of(join.args.get("on"), scope))
        if side != "CROSS" and not on:
            raise self.text.refusal(tree, "the join has no condition; write ON, or CROSS JOIN with a public table.")
        return Source(label, relation, side, on, tree)

    def _read(self, tree: Tree, ctes: Mapping[str, Tree]) -> tuple[str, Relation]:
        """Read one table or subquery, and the name it goes by."""
        if isinstance(tree, exp.Subquery):
            if tree.args.get("alias") is not None and tree.args["alias"].columns:
                raise self.text.refusal(tree, "name the columns inside the subquery, with AS.")
            return tree.alias, self.relation(tree, ctes)
        if not isinstance(tree, exp.Table) or not isinstance(tree.this, exp.Identifier):
            raise self.text.refusal(
                tree,
                "only named tables, files and subqueries can be read; functions that make tables are not supported here.",
            )
        refuse_others(self.text, tree, frozenset({"this", "db", "catalog", "alias"}))
        if tree.args.get("alias") is not None and tree.args["alias"].columns:
            raise self.text.refusal(tree, "columns cannot be renamed here; do it in a subquery, with AS.")
        written = table_name(tree)
        if written.casefold() in ctes:
            cte = ctes[written.casefold()]
            if cte.args["alias"].columns:
                raise self.text.refusal(cte, "name the columns inside the query, with AS.")
            # A query sees those that were named before it, and not itself.
            before = dict(list(ctes.items())[: list(ctes).index(written.casefold())])
            return tree.alias or written, self.relation(cte.this, before)
        return tree.alias or tree.name, self.find(tree, written)

    def _side(self, join: Tree) -> str:
        kind, side = str(join.args.get("kind") or "").upper(), str(join.args.get("side") or "").upper()
        method = str(join.args.get("method") or "").upper()
        if method or kind not in ("", "INNER", "OUTER", "CROSS"):
            raise self.text.refusal(
                join.this, f"{method or kind} JOIN is not supported; INNER, LEFT, RIGHT, FULL and CROSS JOIN are."
            )
        refuse_others(self.text, join, frozenset({"this", "kind", "side", "method", "on", "using"}))
        comma = not (side or kind or join.args.get("on") or join.args.get("using"))
        return "CROSS" if comma or kind == "CROSS" else side

    def _using(self, join: Tree, scope: Scope, source: Source, earlier: dict[str, Source], side: str) -> list[Tree]:
        """Read USING as equalities, and remember that these columns are one."""
        conditions = []
        for name in join.args.get("using") or ():
            if side == "FULL":
                raise self.text.refusal(
                    name, "write the condition of a FULL JOIN with ON: after it the two columns are not one."
                )
            column = exp.Column(this=name.copy())
            before = Scope(self.text, self.uses, earlier, scope.merged).resolve(column)
            own = Scope(self.text, self.uses, {"": source}).resolve(column)
            kept = own if side == "RIGHT" else before
            scope.merged[name.name.casefold()] = (kept.table, kept.name)
            conditions.append(exp.EQ(this=before, expression=own))
        return conditions

    def conditions(self, clause: Tree | None, scope: Scope) -> tuple[Tree, ...]:
        """Read WHERE as conditions, all of which must hold."""
        return self.conditions_of(clause.this if clause is not None else None, scope)

    def conditions_of(self, tree: Tree | None, scope: Scope) -> tuple[Tree, ...]:
        """Read a condition on rows as its parts, all of which must hold."""
        return tuple(scope.scalar(part) for part in conjuncts(tree))

    def _distinct(self, tree: Tree) -> bool:
        distinct = tree.args.get("distinct")
        if distinct is not None and distinct.args.get("on"):
            raise self.text.refusal(tree, "DISTINCT ON keeps some rows and drops others; which ones is left to chance.")
        return distinct is not None

    def _star(self, tree: Tree, sources: tuple[Source, ...], where: tuple[Tree, ...]) -> Select:
        others = [name for name in ("group", "having", "qualify", "distinct") if tree.args.get(name)]
        star = tree.expressions[0]
        changed = any(
            part.args.get(name) for part in tree.expressions for name in ("except_", "replace", "rename", "except")
        )
        if len(tree.expressions) > 1 or len(sources) > 1 or others or changed or not isinstance(star, exp.Star):
            raise self.text.refusal(tree, "* must stand alone, in a SELECT from one table; name the columns.")
        return Select(sources, where, tree=tree)


def _is_star(item: Tree) -> bool:
    return isinstance(item, exp.Column) and isinstance(item.this, exp.Star)
