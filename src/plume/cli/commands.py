"""The commands and their options. What they do is imported when they do it, so that help need not wait for engines."""

from pathlib import Path
from typing import Any

import click

from plume.cli.help import HelpfulCommand
from plume.cli.options import (
    ENGINES,
    OneForm,
    engine_errors_option,
    engine_options,
    force_option,
    ledger_options,
    optional_query_options,
    output_options,
    pipeline_option,
    query_options,
    quiet_option,
    seed_option,
    stdin_option,
    table_options,
    text_layout_option,
    whole_number,
)


@click.command(
    cls=HelpfulCommand,
    examples=(
        (
            "plume run searches.parquet --user user_id --key recipe \\\n"
            "  --measure 'count(3)' --measure 'sum(seconds, 0, 60)' \\\n"
            "  --epsilon 1.1 --delta 1e-5 --max-keys-per-user 64 --out popular.parquet"
        ),
        (
            "plume run searches.parquet --user user_id --key recipe --measure users \\\n"
            "  --epsilon 1.1 --delta 1e-5 --max-keys-per-user auto --where 'seconds > 3' \\\n"
            "  --intervals 0.95 --report popular.html"
        ),
    ),
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@query_options
@output_options
@ledger_options
@pipeline_option
@engine_options
@engine_errors_option
@stdin_option
@quiet_option
def run(**options: Any) -> None:
    """Answer a query privately.

    FILE is a Parquet, CSV or JSON file, a pattern, or a folder of such files; several are one table. - is standard input.
    """
    from plume.cli.running import run_query  # noqa: PLC0415 - imports engines

    run_query(options)


@click.command(
    cls=HelpfulCommand,
    examples=(
        (
            'plume sql "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (\n'
            "  epsilon = 1.1, delta = 1e-5,\n"
            "  max_groups_contributed = 64, privacy_unit_column = user_id)\n"
            "  recipe, COUNT(*, contribution_bounds_per_group => (0, 3)) AS searches\n"
            "  FROM 'searches.parquet' GROUP BY recipe\""
        ),
    ),
)
@click.argument("statement", metavar="STATEMENT")
@table_options
@output_options
@ledger_options
@pipeline_option
@engine_options
@engine_errors_option
@stdin_option
@quiet_option
def sql(**options: Any) -> None:
    """Answer a statement in BigQuery's differential-privacy syntax.

    STATEMENT is the text itself, a file ending in .sql, or - for standard input. FROM 'file.parquet' reads a file.
    """
    from plume.cli.running import run_statement  # noqa: PLC0415 - imports engines

    run_statement(options)


@click.command(
    cls=OneForm,
    examples=(
        (
            "plume explain --user user_id --key recipe --measure 'count(3)' \\\n"
            "  --epsilon 1.1 --delta 1e-5 --max-keys-per-user 64"
        ),
        (
            "plume explain --user user_id --key recipe --measure users \\\n"
            "  --epsilon 1.1 --delta 1e-5 --max-keys-per-user 64 --sql duckdb"
        ),
    ),
)
@click.argument("statement", metavar="[STATEMENT]", required=False)
@optional_query_options
@table_options
@pipeline_option
@click.option("--sql", "dialect", type=click.Choice(ENGINES), help="Print the steps in this engine's SQL instead.")
@text_layout_option
def explain(**options: Any) -> None:
    """Say how a query would be answered; touches no data.

    The guarantee, what each part spends, the noise, how keys are selected, and the steps. The query is given by its options, by --query, or
    as a STATEMENT like that of `plume sql`.
    """
    from plume.cli.explaining import print_explanation  # noqa: PLC0415 - imports engines

    print_explanation(options)


@click.command(
    cls=HelpfulCommand,
    examples=(
        (
            "plume audit --user user_id --key recipe --measure 'count(3)' \\\n"
            "  --epsilon 1.1 --delta 1e-5 --max-keys-per-user 4 \\\n"
            "  --trials 4000 --out audit.txt"
        ),
    ),
)
@query_options
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE", help="Write the report to a .json or .txt file."
)
@force_option
@click.option(
    "--trials",
    type=click.UNPROCESSED,
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

    Reads no data and spends nothing. Ends with 1 if a test fails. A pass is not a proof: only what was tried was tried.
    """
    from plume.cli.auditing import audit_query  # noqa: PLC0415 - imports engines

    audit_query(options)


@click.command(
    cls=HelpfulCommand,
    examples=("plume synth --users 1e4 --out made_up.parquet",),
)
@click.option(
    "--users", callback=whole_number(1, 10**12), required=True, metavar="N", help="How many to make up, such as 1e6."
)
@click.option("--out", type=click.Path(path_type=Path), required=True, metavar="FILE", help="A .parquet file.")
@seed_option(default=0)
@force_option
@quiet_option
def synth(*, users: int, out: Path, seed: int, force: bool, quiet: bool) -> None:
    """Make up the paper's synthetic data, of any size.

    Columns user and key, about ten rows a user, in bounded memory. Nobody real is in the data, so it has a seed.
    """
    from plume.cli.synthesis import write_data  # noqa: PLC0415 - imports Arrow

    write_data(users, out, seed=seed, force=force, quiet=quiet)


@click.command(
    cls=HelpfulCommand,
    examples=(
        "plume demo",
        "plume demo --users 5000 --seed 2",
    ),
)
@click.option(
    "--users",
    type=click.UNPROCESSED,
    callback=whole_number(1, 10**6),
    default=20_000,
    show_default=True,
    metavar="N",
    help="How many to make up.",
)
@seed_option(default=1)
@quiet_option
def demo(*, users: int, seed: int, quiet: bool) -> None:
    """Release made-up recipe searches, private beside exact.

    Only the data has a seed. The noise is as secret as that of any release, so it differs each time.
    """
    from plume.cli.demo import show_demo  # noqa: PLC0415 - imports engines

    show_demo(users, seed=seed, quiet=quiet)


@click.command(
    cls=HelpfulCommand,
    examples=(
        "plume completion bash >> ~/.bashrc",
        "plume completion zsh >> ~/.zshrc",
        "plume completion fish > ~/.config/fish/completions/plume.fish",
    ),
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(*, shell: str) -> None:
    """Print what makes a shell complete commands and options."""
    from click.shell_completion import get_completion_class  # noqa: PLC0415 - only this command needs it

    complete = get_completion_class(shell)
    if complete is None:
        raise click.UsageError(f"there is no completion for {shell}.")
    root = click.get_current_context().find_root().command
    click.echo(complete(root, {}, "plume", "_PLUME_COMPLETE").source())
