"""`plume explain`: a query by its options, by its file or as a statement; what would be done, and no data touched."""

import json
from collections.abc import Mapping
from typing import Any

from plume.cli.query_and_engine import declare, make_query
from plume.cli.statement_text import read_text
from plume.cli.terminal import put
from plume.explanation import Explanation
from plume.running import explain
from plume.statement.answering import explain_sql


def print_explanation(options: Mapping[str, Any]) -> None:
    """Print how the question would be answered."""
    explanation = explain_options(options)
    if options["dialect"] is not None:
        put(f"{explanation.sql(options['dialect'])}\n")
    elif options["layout"] == "json":
        put(f"{json.dumps(explanation.record(), indent=2)}\n")
    else:
        put(f"{explanation}\n")


def explain_options(options: Mapping[str, Any]) -> Explanation:
    """Explain what the options ask, as a query or as a statement."""
    if options["statement"] is None:
        return explain(make_query(options), pipeline=options["pipeline"])
    tables = declare(options["tables"], options["units"])
    return explain_sql(
        read_text(options["statement"]),
        tables=tables,
        public_tables=options["public_tables"],
        pipeline=options["pipeline"],
    )
