"""The commands to choose numbers by, before a budget is spent; beside the others, since nothing they say is a release."""

from pathlib import Path
from typing import Any

import click

from plume.cli.help import HelpfulCommand
from plume.cli.number_types import NUMBER, WHOLE
from plume.cli.options import combine_options, force_option, query_options, query_options_without_epsilon, quiet_option
from plume.settings import AUTO, STRATEGIES

grid_options = combine_options(
    click.option(
        "--limit",
        "limits",
        type=WHOLE,
        multiple=True,
        metavar="N",
        help="Try this --max-keys-per-user as well; repeatable.",
    ),
    click.option(
        "--at-epsilon",
        "epsilons",
        type=NUMBER,
        multiple=True,
        metavar="NUMBER",
        help="Try this --epsilon as well; repeatable.",
    ),
)
report_option = click.option(
    "--report",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write a page of curves to a .html file as well.",
)
keys_of_user_option = click.option(
    "--keys-of-user",
    metavar="N",
    help="Keys per user to assume (default: --max-keys-per-user), or shares of users, such as 5:0.9,100:0.1.",
)
layout_option = click.option(
    "--format",
    "layout",
    type=click.Choice(["table", "csv", "json"]),
    default="table",
    show_default=True,
    help="Format on standard output.",
)


@click.command(
    cls=HelpfulCommand,
    examples=(
        (
            "plume expect --user user_id --key recipe --measure 'count(3)' \\\n"
            "  --epsilon 1.1 --delta 1e-5 --max-keys-per-user 64 --limit 16 --at-epsilon 2"
        ),
    ),
)
@query_options
@grid_options
@click.option(
    "--users-per-key",
    "users",
    type=WHOLE,
    multiple=True,
    metavar="N",
    help="Show the chance that a key with this many users is released; repeatable.",
)
@keys_of_user_option
@layout_option
@report_option
@force_option
@quiet_option
def expect(**options: Any) -> None:
    """Say what error to expect, and how many users a key needs.

    Touches no data and spends nothing.
    """
    from plume.cli.expecting import print_expectation  # noqa: PLC0415 - imports engines

    print_expectation(options)


@click.command(
    cls=HelpfulCommand,
    examples=(
        (
            "plume need --user user_id --key recipe --measure 'users()' --delta 1e-5 \\\n"
            "  --max-keys-per-user 16 --users-per-key 500 --error 0.05"
        ),
    ),
)
@query_options_without_epsilon
@click.option("--users-per-key", "users", type=WHOLE, required=True, metavar="N", help="How many users the key has.")
@click.option(
    "--error",
    type=NUMBER,
    metavar="SHARE",
    help="How far off numbers may be, relative to users or --total, such as 0.05.",
)
@click.option(
    "--absolute-error",
    "absolute",
    type=(str, NUMBER),
    multiple=True,
    metavar="MEASURE NUMBER",
    help="How far off a measure may be in its own unit instead; inf if any error will do; repeatable.",
)
@click.option(
    "--total",
    "totals",
    type=(str, NUMBER),
    multiple=True,
    metavar="MEASURE NUMBER",
    help="Value of a measure in such a key, which --error is relative to; repeatable.",
)
@click.option(
    "--chance",
    type=NUMBER,
    default=0.95,
    show_default=True,
    metavar="NUMBER",
    help="How likely it must be that all of it holds.",
)
@keys_of_user_option
@click.option(
    "--values-of-user",
    type=WHOLE,
    default=1,
    show_default=True,
    metavar="N",
    help="Values per user in the key to assume, for means, variances and quantiles.",
)
@click.option(
    "--limit",
    "limits",
    type=WHOLE,
    multiple=True,
    metavar="N",
    help="Try this --max-keys-per-user as well, and take the one that costs least; repeatable.",
)
@layout_option
def need(**options: Any) -> None:
    """Find the smallest epsilon for the accuracy you need.

    With it a key of this many users is shown, and off by at most the error. A limit on keys per user that is auto is searched too.
    Touches no data and spends nothing.
    """
    from plume.cli.needing import print_need  # noqa: PLC0415 - imports engines

    print_need(options)


@click.command(
    cls=HelpfulCommand,
    examples=(
        (
            "plume tune searches.parquet --user user_id --key recipe --measure 'count(3)' \\\n"
            "  --epsilon 1.1 --delta 1e-5 --max-keys-per-user 8 --limit 4 --out tuned.csv"
        ),
    ),
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@query_options
@grid_options
@click.option(
    "--at-selection",
    "selections",
    type=click.Choice((AUTO, *STRATEGIES)),
    multiple=True,
    metavar="NAME",
    help="Try this --selection as well; repeatable.",
)
@click.option(
    "--at-measure",
    "at_measures",
    multiple=True,
    metavar="MEASURE",
    help="Try a measure with other bounds as well, such as 'count(5)'; repeatable.",
)
@layout_option
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write to a .csv or .json file, whose name gets the words NOT-PRIVATE.",
)
@report_option
@force_option
@quiet_option
def tune(**options: Any) -> None:
    """NOT PRIVATE: try limits and bounds on exact data.

    For people who may look at the data. Estimates errors and losses over a grid; draws no noise and releases nothing.
    """
    from plume.cli.tuning import tune_query  # noqa: PLC0415 - imports engines

    tune_query(options)
