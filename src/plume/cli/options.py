"""The options that commands share. Light to import: `plume --help` reads them all."""

import functools
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from plume.cli.help import HelpfulCommand, missing
from plume.cli.number_types import NUMBER, WHOLE
from plume.settings import AUTO, REQUIRED, SETTINGS, Setting, SettingKind

Command = Callable[..., None]
Option = Callable[[Command], Command]

_FILE = click.Path(path_type=Path)


class _LedgerType(click.Path):
    """A file, or the address of a database, of which a path would keep one slash."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from plume.ledger.places import is_address  # noqa: PLC0415 - imports SQLite and more

        return value if isinstance(value, str) and is_address(value) else super().convert(value, param, ctx)


LEDGER = _LedgerType(path_type=Path)


def combine_options(*options: Option) -> Option:
    """Make one decorator of several; help shows their options in this order."""
    return lambda command: functools.reduce(lambda made, option: option(made), reversed(options), command)


def _query_file(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path | None:
    """Take what the file says for options that are not given."""
    del param
    if value is not None:
        from plume.cli.query_file import read_query_file  # noqa: PLC0415 - only those who have a file need it

        known = {param.name for param in ctx.command.params}
        ctx.default_map = {name: value for name, value in read_query_file(value).items() if name in known}
    return value


_NO_KEYS, _COMPUTED = "no_keys", "key_expressions"
_OF_QUERIES = (*(setting.name for setting in SETTINGS), _NO_KEYS)
_OF_KEYS = ("keys", "max_keys_per_user")
_OF_STATEMENTS = ("tables", "public_tables", "units")
_DATA = (".parquet", ".pq", ".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".gz", ".zst")


class OneForm(HelpfulCommand):
    """A command that takes a statement, or else the options of a query."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse both, and neither."""
        rest = super().parse_args(ctx, args)
        if ctx.resilient_parsing:  # a shell completes what is half written
            return rest
        given = [param for param in self.params if _is_given(ctx, param)]
        stated = ctx.params.get("statement") is not None
        if stated and any(param.name in _OF_QUERIES for param in given):
            _refuse_data(ctx, ctx.params["statement"])
        for param in given:
            if param.name in (_OF_QUERIES if stated else _OF_STATEMENTS):
                beside = "cannot be combined with a statement" if stated else "needs a statement"
                raise click.UsageError(f"{param.opts[0]} {beside}.", ctx)
        for param in self.params:
            if not stated and param.name in REQUIRED and param not in given and not _is_spared(param, ctx):
                raise missing(param, ctx)
        return rest


def _refuse_data(ctx: click.Context, stated: str) -> None:
    """Say of a file of data in the place of a statement that none is read."""
    if Path(stated).suffix.lower() in _DATA:
        raise click.UsageError(f"'{ctx.command_path}' reads no data; leave {stated!r} out.", ctx)


def _is_given(ctx: click.Context, param: click.Parameter) -> bool:
    """Return whether the command line or the query file gives an option."""
    return ctx.get_parameter_source(str(param.name)) in (ParameterSource.COMMANDLINE, ParameterSource.DEFAULT_MAP)


def _number_or_auto(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    if value in (None, AUTO):
        return value
    try:
        return WHOLE.convert(value, param, ctx)
    except click.BadParameter:
        raise click.BadParameter(
            f"{value!r} is not a whole number; write one such as 16, or {AUTO!r}.", ctx, param
        ) from None


_from_file = click.option(
    "--query",
    "query_file",
    type=click.Path(exists=True, dir_okay=False, allow_dash=False, path_type=Path),
    is_eager=True,
    callback=_query_file,
    metavar="FILE",
    help="A .toml file with these options; options on the command line override it.",
)
_READ_AS: dict[SettingKind, dict[str, Any]] = {
    SettingKind.NAME: {},
    SettingKind.NAMES: {"multiple": True},
    SettingKind.CONDITION: {},
    SettingKind.KEYS: {"type": click.Path(exists=True, dir_okay=False, path_type=Path)},
    SettingKind.WHOLE: {"type": WHOLE, "show_default": True},
    SettingKind.SIZE: {"type": WHOLE},
    SettingKind.LIMIT: {"type": click.UNPROCESSED, "callback": _number_or_auto},
    SettingKind.NUMBER: {"type": NUMBER},
    SettingKind.WORD: {"show_default": True},
    SettingKind.WEIGHTS: {"type": (str, NUMBER), "multiple": True},
    SettingKind.EXPRESSIONS: {"type": (str, str), "multiple": True},
}
"""How click reads a setting of each kind."""


class _UnlessTotal(click.Option):
    """An option that may be left out where there are no keys, or where another option says what they are."""

    def value_is_missing(self, value: Any) -> bool:
        """Leave out what a total does not have."""
        return super().value_is_missing(value) and not _is_spared(self, click.get_current_context())


def _is_spared(param: click.Parameter, ctx: click.Context) -> bool:
    computed = param.name == "keys" and bool(ctx.params.get(_COMPUTED))
    return param.name in _OF_KEYS and (bool(ctx.params.get(_NO_KEYS)) or computed)


def _together_with_others(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """Let the keys of the command line replace those of a file, in whatever form either gives them."""
    sources = {name: ctx.get_parameter_source(name) for name in (_NO_KEYS, _COMPUTED, str(param.name))}
    if ParameterSource.COMMANDLINE not in sources.values():
        return value
    for name, nothing in ((_NO_KEYS, False), (_COMPUTED, ())):
        if sources[name] is ParameterSource.DEFAULT_MAP:
            ctx.params[name] = nothing
    return value if sources[str(param.name)] is ParameterSource.COMMANDLINE else ()


_no_keys = click.option(
    "--no-keys", _NO_KEYS, is_flag=True, is_eager=True, help="One row for everything: a total. In place of --key."
)


def _query_options(*, required: bool) -> Option:
    return combine_options(_from_file, *(_option_of(setting, required=required) for setting in SETTINGS), _no_keys)


def _option_of(setting: Setting, *, required: bool) -> Option:
    """Make the option of a setting; where a statement may stand for a query, no setting is required."""
    choice = {"type": click.Choice(setting.choices)} if setting.choices else {}
    default = {} if setting.required else {"default": setting.default}
    # Of keys that are computed others ask, so they are read first.
    special = (
        {"is_eager": True}
        if setting.name == _COMPUTED
        else {"callback": _together_with_others}
        if setting.name == "keys"
        else {}
    )
    return click.option(
        setting.flag,
        setting.name,
        cls=_UnlessTotal,
        required=required and setting.required,
        metavar=setting.metavar,
        help=setting.help,
        **_READ_AS[setting.kind] | choice | default | special,
    )


query_options = _query_options(required=True)
query_options_without_epsilon = combine_options(
    _from_file, *(_option_of(setting, required=True) for setting in SETTINGS if setting.name != "epsilon"), _no_keys
)
optional_query_options = _query_options(required=False)


def _settings(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Read NAME=VALUE several times."""
    for value in values:
        if not value.partition("=")[0] or "=" not in value:
            raise click.BadParameter(f"{value!r} is not of the form NAME=VALUE.", ctx, param)
    return dict(value.split("=", 1) for value in values)


ENGINES = ("duckdb", "spark")
"""The engines by their names; `cli/query_and_engine.py` makes them."""
engine_options = combine_options(
    click.option(
        "--engine",
        type=click.Choice(ENGINES),
        default="duckdb",
        show_default=True,
        help="Where the query runs: in this process, or on a cluster.",
    ),
    click.option(
        "--memory-limit", metavar="SIZE", help="Memory for DuckDB, such as 4GB; most of the machine by default."
    ),
    click.option(
        "--threads", type=click.IntRange(min=1), metavar="N", help="Threads for DuckDB; one per core by default."
    ),
    click.option(
        "--temp-directory",
        type=click.Path(exists=True, file_okay=False, writable=True, path_type=Path),
        metavar="FOLDER",
        help="Where data that does not fit into memory goes; it is removed afterwards.",
    ),
    click.option(
        "--spark-lookup",
        type=click.Choice(["auto", "broadcast", "store", "join"]),
        help="How Spark looks up whether a key was selected.",
    ),
    click.option("--spark-store", metavar="URL", help="The Redis server of --spark-lookup store, redis://host:6379."),
    click.option(
        "--spark-keep-in",
        metavar="FOLDER",
        help="Where Spark keeps steps that are read twice, such as s3a://bucket/folder; on executors' disks by default.",
    ),
    click.option("--spark-master", metavar="MASTER", help="Where Spark runs, such as 'local[4]' or spark://host:7077."),
    click.option("--spark-remote", metavar="URL", help="A Spark Connect server, such as sc://host:15002."),
    click.option(
        "--spark-conf",
        "spark_settings",
        multiple=True,
        callback=_settings,
        metavar="NAME=VALUE",
        help="A setting of Spark; repeatable.",
    ),
)

engine_errors_option = click.option(
    "--engine-errors-to",
    type=_FILE,
    metavar="FILE",
    help="NOT PRIVATE: write the engine's error messages, which may quote data, to a .txt or .log file that only you can read. "
    "NOT-PRIVATE is added to its name.",
)

force_option = click.option("--force", is_flag=True, help="Replace files that exist.")
output_options = combine_options(
    click.option(
        "--intervals",
        type=NUMBER,
        metavar="LEVEL",
        help="Add columns _low and _high: where values before noise lie, such as 0.95.",
    ),
    click.option("--out", type=_FILE, metavar="FILE", help="Write the rows to a .parquet, .csv or .json file."),
    click.option("--record", type=_FILE, metavar="FILE", help="Write the query and what it spent to a .json file."),
    click.option("--report", type=_FILE, metavar="FILE", help="Write a page to look at to a .html file."),
    click.option(
        "--format",
        "layout",
        type=click.Choice(["table", "csv", "json"]),
        help="Format of rows on standard output: table on a terminal, else csv.",
    ),
    click.option(
        "--unreliable",
        type=click.Choice(["keep", "null"]),
        default="keep",
        show_default=True,
        help="Keep means, deviations and quantiles that are mostly noise, or put NULL in their place.",
    ),
    click.option(
        "--top", type=(WHOLE, str), metavar="N COLUMN", help="Only the N rows with the largest values in a column."
    ),
    force_option,
)

stdin_option = click.option(
    "--stdin-format",
    type=click.Choice(["csv", "json", "jsonl", "parquet"]),
    default="csv",
    show_default=True,
    help="Format of standard input, if it is read as -.",
)


def _pairs(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Read NAME=FILE several times, each name once."""
    names = [value.partition("=")[0] for value in values]
    if twice := [name for name in names if names.count(name) > 1]:
        raise click.BadParameter(f"{twice[0]!r} is given twice.", ctx, param)
    return _settings(ctx, param, values)


table_options = combine_options(
    click.option(
        "--table",
        "tables",
        multiple=True,
        callback=_pairs,
        metavar="NAME=FILE",
        help="The file behind a table name in the statement; repeatable.",
    ),
    click.option(
        "--public-table",
        "public_tables",
        multiple=True,
        callback=_pairs,
        metavar="NAME=FILE",
        help="A table that contains no personal data; repeatable.",
    ),
    click.option(
        "--unit",
        "units",
        multiple=True,
        callback=_pairs,
        metavar="NAME=COLUMN",
        help="The column that identifies the users of a --table; repeatable. Once one is given, every table needs one or is public, "
        "and the statement can name no other tables.",
    ),
)

ledger_options = combine_options(
    click.option(
        "--ledger",
        type=LEDGER,
        metavar="FILE",
        help="Charge the release to a dataset of this ledger, a file or postgresql://host/database.",
    ),
    click.option("--dataset", metavar="NAME", help="Dataset in the ledger to charge."),
    click.option(
        "--release-id",
        metavar="ID",
        help="Name of the release; the same name is charged once and always gives the same rows.",
    ),
)

pipeline_option = click.option(
    "--pipeline",
    type=click.Choice(["plume", "naive", "runtime_optimized"]),
    default="plume",
    show_default=True,
    help="Which of the paper's pipelines to run.",
)
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Show only errors on standard error.")
text_layout_option = click.option(
    "--format",
    "layout",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="For people, or for programs.",
)


def seed_option(*, default: int) -> Option:
    """Make the option of what made-up data is drawn from."""
    return click.option(
        "--seed",
        type=click.IntRange(min=0),
        default=default,
        show_default=True,
        metavar="N",
        help="The same seed makes the same data.",
    )


def whole_number(least: int, greatest: int) -> Callable[[click.Context, click.Parameter, Any], int]:
    """Make an option read a whole number, also written 1e6 or 1_000_000."""

    def read(ctx: click.Context, param: click.Parameter, value: Any) -> int:
        try:
            number = Decimal(value)
        except InvalidOperation:
            number = Decimal("nan")
        # The size comes first: of 1e999999 no remainder can be taken.
        if not number.is_finite() or not least <= number <= greatest or number % 1:
            raise click.BadParameter(f"{value!r} is not a whole number from {least:,} to {greatest:,}.", ctx, param)
        return int(number)

    return read
