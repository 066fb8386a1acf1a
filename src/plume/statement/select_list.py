"""The list of a SELECT below the private one: plain expressions, or parts that are computed over many rows first."""

from sqlglot import exp

from plume.relation.names import Scope, qualified
from plume.relation.relations import PARTS, Call, Select, Source
from plume.relation.scalars import is_call, rewrite
from plume.relation.text import Text, Tree
from plume.statement.calls import read_call
from plume.statement.clauses import conjuncts, meant, refuse_others, with_aliases


class SelectList:
    """The list of one SELECT: plain expressions, or parts that are computed over many rows first."""

    def __init__(self, text: Text, scope: Scope, tree: Tree) -> None:
        self._text, self._scope, self._tree = text, scope, tree
        self._parts: dict[str, Tree | Call] = {}
        self._grouped = tree.args.get("group") is not None or any(
            isinstance(call, exp.Anonymous) and is_call(call) and not isinstance(call.parent, exp.Window)
            for item in tree.expressions
            for call in item.find_all(exp.Anonymous)
        )
        self._stepped = self._grouped or any(item.find(exp.Window) for item in (*tree.expressions, *self._qualify()))

    def _qualify(self) -> tuple[Tree, ...]:
        return tuple(clause for name in ("qualify", "having") if (clause := self._tree.args.get(name)) is not None)

    def select(self, sources: tuple[Source, ...], where: tuple[Tree, ...], *, distinct: bool) -> Select:
        """Put the SELECT together."""
        groups = self._groups() if self._grouped else None
        outputs = tuple(self._output(place, item) for place, item in enumerate(self._tree.expressions, start=1))
        self._refuse_equal_names(outputs)
        clauses = [self._tree.args.get(name) for name in ("having", "qualify")]
        if clauses[0] is not None and not self._grouped:
            raise self._text.refusal(clauses[0], "HAVING needs GROUP BY; use WHERE.")
        having = tuple(
            self._expression(part)
            for clause in clauses
            if clause is not None
            for part in conjuncts(with_aliases(clause.this, self._tree.expressions))
        )
        return Select(
            sources, where, groups, tuple(self._parts.items()), outputs, having, distinct=distinct, tree=self._tree
        )

    def _groups(self) -> tuple[str, ...]:
        group = self._tree.args.get("group")
        if group is None:
            return ()
        refuse_others(self._text, group, frozenset({"expressions"}))
        return tuple(
            self._part(self._scope.scalar(meant(self._text, item, self._tree.expressions)))
            for item in group.expressions
        )

    def _output(self, place: int, item: Tree) -> tuple[str, Tree]:
        name = item.alias_or_name or f"_{place}"
        return name, self._expression(item.this if isinstance(item, exp.Alias) else item)

    def _expression(self, tree: Tree) -> Tree:
        if not self._stepped:
            return self._scope.scalar(tree)
        if self._grouped and (group := self._group_of(tree)) is not None:
            return group
        return rewrite(self._text, tree, column=self._column, call=self._call)

    def _group_of(self, tree: Tree) -> Tree | None:
        """Find the group that an expression is, as a whole."""
        if any(is_call(part) for part in tree.walk()):
            return None
        own = self._scope.scalar(tree)
        return next((qualified(PARTS, name) for name, part in self._parts.items() if part == own), None)

    def _column(self, tree: Tree) -> Tree:
        resolved = self._scope.resolve(tree)
        if self._grouped and resolved not in self._parts.values():
            raise self._text.refusal(tree, f"{tree.name!r} is neither in GROUP BY nor inside an aggregate.")
        return qualified(PARTS, self._part(resolved))

    def _call(self, tree: Tree) -> Tree:
        call = read_call(self._text, tree, self._scope.scalar)
        if self._grouped and call.partition is not None:
            raise self._text.refusal(tree, "a window beside GROUP BY is not supported here; group in a subquery.")
        return qualified(PARTS, self._part(call))

    def _part(self, part: Tree | Call) -> str:
        """Compute a part before the outputs, once."""
        for name, known in self._parts.items():
            if known == part:
                return name
        name = f"c{len(self._parts) + 1}"
        self._parts[name] = part
        return name

    def _refuse_equal_names(self, outputs: tuple[tuple[str, Tree], ...]) -> None:
        seen: set[str] = set()
        for (name, _), item in zip(outputs, self._tree.expressions, strict=True):
            if name.casefold() in seen:
                raise self._text.refusal(item, f"two columns are called {name!r}; give one another name with AS.")
            seen.add(name.casefold())
