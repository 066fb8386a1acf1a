"""What `--help` looks like: what a command is for, examples to copy, and its options in groups, those that most people need first.

click lists options one below the other, and has no place for examples whose lines must stay as they are.
"""

from collections.abc import Iterator
from typing import Any

import click

from plume.settings import SETTINGS

MOST_NEEDED = "Common options"
_ALL, _OTHERS = "Options", "Other options"
_FIRST = ("--user", "--key", "--measure", "--max-keys-per-user", "--epsilon", "--delta", "--where")
GROUPS: dict[str, tuple[str, ...]] = {
    MOST_NEEDED: (*_FIRST, "--intervals", "--out", "--report"),
    "Accuracy to reach": ("--error", "--absolute-error", "--total", "--chance"),
    "Values to try": (
        *("--limit", "--at-epsilon", "--at-selection", "--at-measure"),
        *("--users-per-key", "--keys-of-user", "--values-of-user"),
    ),
    "Tables of the statement": ("--table", "--public-table", "--unit"),
    "More about the query": (
        *("--query", "--key-as", "--no-keys"),
        *(setting.flag for setting in SETTINGS if setting.flag not in (*_FIRST, "--key-as")),
        "--pipeline",
    ),
    "Output": ("--format", "--sql", "--top", "--unreliable", "--record", "--force", "--quiet"),
    "Ledger": ("--ledger", "--dataset", "--release-id"),
    "Engine": (
        *("--engine", "--stdin-format", "--memory-limit", "--threads", "--temp-directory", "--engine-errors-to"),
        *("--spark-lookup", "--spark-store", "--spark-keep-in", "--spark-master", "--spark-remote", "--spark-conf"),
    ),
}
"""In which group an option is shown, and where in it. A command with few options shows them in one, as does what is not here."""
_FEW = 8
_ELSEWHERE = {
    **dict.fromkeys(("--limit", "--max-keys", "--max-keys-per-users"), "--max-keys-per-user"),
    **dict.fromkeys(("--by", "--group-by", "--groupby", "--keys"), "--key"),
    **dict.fromkeys(("--output", "-o"), "--out"),
    "--eps": "--epsilon",
}
"""What others call an option, or another command does, where the words are not alike."""
_PAIRS = {
    "--key-as": ", such as month 'DATE_TRUNC(day, MONTH)'",
    "--top": ", such as 10 users",
    "--share": ", such as users 2",
    "--absolute-error": ", such as seconds_sum 500",
    "--total": ", such as seconds_sum 9000",
}
"""What an option that takes two things is given."""

_Row = tuple[str, str]


class HelpfulCommand(click.Command):
    """A command with examples, and with options in groups."""

    def __init__(self, *args: Any, examples: tuple[str, ...] = (), **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.examples = examples

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Say what an option is that is missing, as its help does, and which one was meant by another name."""
        if not ctx.resilient_parsing:  # a shell completes what is half written
            self._refuse_half_options(ctx, args)
        try:
            return super().parse_args(ctx, args)
        except click.MissingParameter as refusal:
            raise missing(refusal.param, ctx) from None
        except click.NoSuchOption as refusal:
            meant = _ELSEWHERE.get(refusal.option_name)
            if not any(meant in param.opts for param in self.params):
                raise
            raise click.UsageError(f"No such option '{refusal.option_name}'. Did you mean '{meant}'?", ctx) from None

    def _refuse_half_options(self, ctx: click.Context, args: list[str]) -> None:
        """Say what an option takes of which a part is missing, before the next option is taken for that part."""
        takes = {name: param for param in self.params if param.nargs > 1 for name in param.opts}
        for place, arg in enumerate(args):
            param = takes.get(arg.partition("=")[0])
            given = args[place + 1 : place + 1 + param.nargs] if param else []
            if param and (len(given) < param.nargs or any(one.startswith("--") for one in given)):
                example = _PAIRS.get(param.opts[0], "")
                raise click.UsageError(f"Option '{param.opts[0]}' takes {param.metavar}{example}.", ctx)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what the command is for, and its examples to the letter."""
        super().format_help_text(ctx, formatter)
        if not self.examples:
            return
        with formatter.section("Examples" if len(self.examples) > 1 else "Example"):
            for number, example in enumerate(self.examples):
                if number and "\n" in self.examples[number - 1] + example:
                    formatter.write_paragraph()
                for line in example.splitlines():
                    formatter.write(f"{'':>{formatter.current_indent}}{line}\n")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, group by group."""
        for title, rows in _grouped(self.get_params(ctx), ctx):
            with formatter.section(title):
                formatter.write_dl(rows)


def missing(param: click.Parameter | None, ctx: click.Context) -> click.MissingParameter:
    """Say that an option is missing, and what it is, as its help does."""
    meaning = param.help if isinstance(param, click.Option) else None
    return click.MissingParameter(message=meaning, ctx=ctx, param=param)


class HelpfulGroup(HelpfulCommand, click.Group):
    """A group of commands with examples; its commands have some too."""

    command_class = HelpfulCommand

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, then the commands."""
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)


def _grouped(params: list[click.Parameter], ctx: click.Context) -> Iterator[tuple[str, list[_Row]]]:
    """Give the options of each group; those of no group come last."""
    options = [param for param in params if isinstance(param, click.Option)]
    shown = [(option, row) for option in options if (row := option.get_help_record(ctx)) is not None]
    if len(shown) <= _FEW:
        yield _ALL, [row for _, row in shown]
        return
    rows = {max(option.opts, key=len): row for option, row in shown}
    for title, names in GROUPS.items():
        if listed := [rows.pop(name) for name in names if name in rows]:
            yield title, listed
    if rows:
        yield _OTHERS, list(rows.values())
