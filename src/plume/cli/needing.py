"""`plume need`: options in, the smallest budget out."""

from collections.abc import Mapping
from typing import Any

from plume.cli.output import print_result
from plume.cli.people import read_keys_of_user
from plume.cli.query_and_engine import make_query
from plume.tuning.need import need

# Every query has an epsilon; which one does not matter here.
_ANY_EPSILON = 1.0


def print_need(options: Mapping[str, Any]) -> None:
    """Print what accuracy costs: what people read, or what programs do."""
    needed = need(
        make_query({**options, "epsilon": _ANY_EPSILON}),
        users=options["users"],
        error=options["error"],
        absolute=dict(options["absolute"]),
        totals=dict(options["totals"]),
        chance=options["chance"],
        keys_of_user=read_keys_of_user(options["keys_of_user"]),
        values_of_user=options["values_of_user"],
        limits=options["limits"],
    )
    print_result(needed, options["layout"])
