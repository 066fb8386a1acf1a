"""`plume expect`: options in, what to expect out."""

from collections.abc import Mapping
from typing import Any

from plume.cli.output import print_result
from plume.cli.people import read_keys_of_user
from plume.cli.query_and_engine import make_query
from plume.cli.targets import REPORT_ENDINGS, check_targets
from plume.cli.terminal import remarks
from plume.tuning.expectation import USUAL_USERS, expect


def print_expectation(options: Mapping[str, Any]) -> None:
    """Print what to expect of a query: what people read, or what programs do; and draw it, if asked to."""
    report = options["report"]
    check_targets([(report, REPORT_ENDINGS)], options)
    expectation = expect(
        make_query(options),
        limits=options["limits"],
        epsilons=options["epsilons"],
        users=options["users"] or USUAL_USERS,
        keys_of_user=read_keys_of_user(options["keys_of_user"]),
    )
    print_result(expectation, options["layout"])
    if report is not None:
        expectation.report(report, overwrite=True)
        remarks(quiet=options["quiet"])(f"report written to {report}")
