"""The commands and their options. What they do is imported when they do it, so that help need not wait for engines."""

from pathlib import Path
from typing import Any

import click

from plume.cli.options import (
    SELECTIONS,
    engine_options,
    force_option,
    grid_options,
    layout_option,
    ledger_options,
    output_options,
    pipeline_option,
    query_options,
    quiet_option,
    report_option,
    whole_number,
)


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@query_options
@output_options
@ledger_options
@pipeline_option
@engine_options
@quiet_option
def run(**options: Any) -> None:
    r"""Answer a query privately.

    FILE is a Parquet, CSV or JSON file, a pattern, or a folder of Parquet files; several are one table.

    \b
    plume run searches.parquet --user user_id --key recipe \
      --measure 'count(3)' --measure 'sum(seconds, 0, 60)' \
      --epsilon 1.1 --delta 1e-5 --max-keys-per-user 64 --out popular.parquet
    """
    from plume.cli.running import run_query  # noqa: PLC0415 - imports engines

    run_query(options)


@click.command()
@query_options
@pipeline_option
@click.option("--sql", type=click.Choice(["duckdb", "spark"]), help="Print the steps in this engine's SQL instead.")
def explain(*, pipeline: str, sql: str | None, **options: Any) -> None:
    """Say how a query would be answered; touches no data.

    The guarantee, what each part spends, the noise, how keys are chosen, and the steps.
    """
    from plume.cli.asking import make_query  # noqa: PLC0415 - imports Arrow
    from plume.running import explain as explain_query  # noqa: PLC0415 - imports engines

    explanation = explain_query(make_query(options), pipeline=pipeline)
    click.echo(explanation.sql(sql) if sql else str(explanation))


@click.command()
@query_options
@grid_options
@click.option(
    "--users-per-key",
    "users",
    type=int,
    multiple=True,
    metavar="N",
    help="Tell the chance of keys with so many users; repeatable.",
)
@click.option(
    "--keys-of-user", type=int, metavar="N", help="In how many keys each of them is, if not in all that count."
)
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


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@query_options
@grid_options
@click.option(
    "--at-selection",
    "selections",
    type=click.Choice(SELECTIONS),
    multiple=True,
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


@click.command()
@query_options
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE", help="Write the report to a .json or .txt file."
)
@force_option
@click.option(
    "--trials",
    callback=whole_number(4_000, 10**8),
    default=100_000,
    show_default=True,
    metavar="N",
    help="How many pairs of neighbours to make up.",
)
@pipeline_option
@engine_options
@quiet_option
def audit(**options: Any) -> None:
    """Put a query to the test on made-up neighbours.

    Reads no data and spends nothing. Ends with 1 if a test fails. A pass is no proof: only what was tried was tried.
    """
    from plume.cli.auditing import audit_query  # noqa: PLC0415 - imports engines

    audit_query(options)


@click.command()
@click.option(
    "--users", callback=whole_number(1, 10**12), required=True, metavar="N", help="How many to make up, such as 1e6."
)
@click.option("--out", type=click.Path(path_type=Path), required=True, metavar="FILE", help="A .parquet file.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="The same seed, the same data.")
@force_option
@quiet_option
def synth(*, users: int, out: Path, seed: int, force: bool, quiet: bool) -> None:
    """Make up the paper's synthetic data, of any size.

    Columns user and key, about ten rows a user, in bounded memory. Nobody real is in them, so they have a seed.
    """
    from plume.cli.synthesis import write_data  # noqa: PLC0415 - imports Arrow

    write_data(users, out, seed=seed, force=force, quiet=quiet)


@click.command()
@click.option(
    "--users",
    callback=whole_number(1, 10**6),
    default=20_000,
    show_default=True,
    metavar="N",
    help="How many to make up.",
)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="The same seed, the same data.")
@quiet_option
def demo(*, users: int, seed: int, quiet: bool) -> None:
    """Release made-up recipe searches, private beside exact.

    Only the data have a seed. The noise is as secret as that of any release, so it differs each time.
    """
    from plume.cli.demo import show_demo  # noqa: PLC0415 - imports engines

    show_demo(users, seed=seed, quiet=quiet)
