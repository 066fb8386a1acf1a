"""PUBLIC_GROUPS: the outer join with a public list, by which BigQuery says that all of its groups are released and no others."""

from dataclasses import dataclass

from sqlglot import exp

from plume.errors import PlumeBug, StatementError
from plume.relation.final import is_equality
from plume.relation.relations import Select, Source, is_public
from plume.relation.text import Text, Tree

_FORM = (
    "PUBLIC_GROUPS needs FROM private_table RIGHT OUTER JOIN (SELECT DISTINCT key FROM public_table) USING (key), the other way "
    "round with LEFT, and GROUP BY key; the public table is named in public_tables"
)


@dataclass(frozen=True)
class Keyed:
    """The sources of a private SELECT and its keys over them."""

    sources: tuple[Source, ...]
    keys: tuple[Tree, ...]
    listed: tuple[Tree, ...]
    """The keys over the public list, if there is one."""
    public: Source | None = None

    def public_keys(self, names: tuple[str, ...]) -> Select:
        """Select the public list under the names of the keys."""
        if self.public is None:
            raise PlumeBug("public groups were not asked for")
        source = Source(self.public.label, self.public.relation, tree=self.public.tree)
        return Select((source,), outputs=tuple(zip(names, self.listed, strict=True)), distinct=True)


def split_public_groups(text: Text, keyed: Keyed, where: tuple[Tree, ...], tree: Tree) -> Keyed:
    """Take the join apart: the private rows with keys of their own, and the public list.

    All groups of the list are released whoever has them, so rows of users need not meet it.
    """
    if len(keyed.sources) != 2:  # noqa: PLR2004 - a private and a public one
        raise _refusal(text, tree)
    left, right = keyed.sources
    if right.side not in ("LEFT", "RIGHT"):
        raise _refusal(text, right.tree)
    kept, listed = (left, right) if right.side == "RIGHT" else (right, left)
    distinct = isinstance(listed.relation, Select) and listed.relation.distinct
    if is_public(kept.relation) or not is_public(listed.relation) or not distinct:
        raise _refusal(text, listed.tree)
    pairs = {}
    for condition in right.on:
        if not is_equality(condition) or {condition.left.table, condition.right.table} != {kept.label, listed.label}:
            raise _refusal(text, right.tree)
        sides = {side.table: side for side in (condition.left, condition.right)}
        pairs[sides[listed.label].name] = sides[kept.label]
    names = [key.name if isinstance(key, exp.Column) and key.table == listed.label else "" for key in keyed.keys]
    if sorted(names) != sorted(pairs):
        raise _refusal(text, tree.args["group"])
    if any(column.table == listed.label for condition in where for column in condition.find_all(exp.Column)):
        raise text.refusal(tree.args["where"], "WHERE must not look at the public list; shorten the list itself.")
    only = Source(kept.label, kept.relation, tree=kept.tree)
    return Keyed((only,), tuple(pairs[name] for name in names), keyed.keys, listed)


def _refusal(text: Text, tree: Tree) -> StatementError:
    return text.refusal(tree, f"{_FORM}.")
