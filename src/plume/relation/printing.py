"""Relations as SQL of an engine: the final tree, printed by closed lists, and read again before anybody runs it."""

from plume.plan.dialect import Dialect
from plume.relation.final import final_query
from plume.relation.proofreading import proofread
from plume.relation.query_sql import query_sql
from plume.relation.relations import Relation


def print_relation(relation: Relation, dialect: Dialect) -> str:
    """Print a relation as a query that is parsed again and found to be the same."""
    tree = final_query(relation, dialect)
    printed = query_sql(tree, dialect)
    proofread(printed, tree, dialect)
    return printed
