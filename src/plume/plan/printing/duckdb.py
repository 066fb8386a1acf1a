"""All that DuckDB's SQL has in its own way; `spark.py` beside it is Spark's, and lists every other place where the two differ."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from plume.plan.analysis import limit_of_uncounted, steps
from plume.plan.dialect import Dialect, StatementForms
from plume.plan.expressions import Column, Expression, NoValue
from plume.plan.nodes import Combine, CountKeys, Map, Node, Plan
from plume.plan.printing.account_sql import print_left
from plume.plan.printing.expression_sql import print_expression
from plume.plan.printing.printer import LookingUp, NamedSelect, Printer
from plume.plan.printing.tally_sql import print_number, print_numbers, tallies_of

_LONG = ("DECADE", "CENTURY", "MILLENNIUM")
DUCKDB = Dialect(
    "duckdb",
    quote='"',
    text_type="VARCHAR",
    summable_type="BIGINT",
    wide_type="HUGEINT",
    divide="{} // {}",
    escapes=(("'", "''"),),
    pattern_escapes=(),
    statements=StatementForms(
        tries=True,
        timestamp_type="TIMESTAMP",
        starts_with="STARTS_WITH",
        trims_in_words=False,
        rounds_to_places=False,
        truncates_dates_to_dates=True,
        extracted_units=(*_LONG, "MICROSECOND", "MILLISECOND", "EPOCH", "DAYOFWEEK", "DAYOFYEAR", "ISODOW", "ISOYEAR"),
        truncated_units=_LONG,
        escapes_in_patterns=False,
        has_catalogue=False,
    ),
)


@dataclass(frozen=True)
class DuckDBPrinter(Printer):
    """DuckDB's own part of printing."""

    dialect: ClassVar[Dialect] = DUCKDB

    def microseconds(self, when: str) -> str:
        """Count the microseconds since 1970."""
        return f"epoch_us(TRY_CAST({when} AS TIMESTAMP))"

    def order(self, digits: str) -> str:
        """Make a number of hexadecimal digits: DuckDB sorts and packs numbers faster than text."""
        return f"CAST('0x' || {digits} AS BIGINT)"

    def pair(self, leaf: str, weight: str) -> str:
        """Make a pair of a tally."""
        return f"{{'leaf': {leaf}, 'weight': {weight}}}"

    def each(self, listed: str, entry: str, made: str) -> str:
        """Make something of each entry of a list."""
        return f"list_transform({listed}, lambda {entry}: {made})"

    def each_once(self, leaves: str, weight: Callable[[str], str]) -> str:
        """Make a tally of a list in which leaves may be equal, which DuckDB counts."""
        counted = f"map_entries(list_histogram({leaves}))"
        return self.each(counted, "found", self.pair("found.key", weight("found.value")))

    def no_tally(self) -> str:
        """Make a tally of nothing."""
        return "CAST([] AS STRUCT(leaf INTEGER, weight BIGINT)[])"

    def collect(self, value: str) -> str:
        """List the values of a group, without NULL."""
        return f"list({value}) FILTER (WHERE {value} IS NOT NULL)"

    def look_up(self, step: LookingUp, among: Node, columns: tuple[str, ...], join: str) -> str:
        """Look some columns of each row up among other rows."""
        source, others = self.name(step.source.name), self.name(among.name)
        return f"SELECT {self.names(step.columns)}\nFROM {source} {join} JOIN {others} USING ({self.names(columns)})"

    def kept(self, plan: Plan) -> frozenset[str]:
        """Name the steps that are read twice: users are counted from the rows below a step that counts keys, and not from its own."""
        counting = [step for step in steps(plan) if isinstance(step, CountKeys)]
        return (super().kept(plan) - {step.name for step in counting}) | {step.source.name for step in counting}

    def count_keys(self, step: CountKeys, *, kept: bool) -> tuple[NamedSelect, ...]:
        """Group by user, and join: half the time that DuckDB's window takes. Users are looked up whenever the step is read.

        Where everybody is counted nobody is missing, and a join that may drop rows is quicker: filters on what was counted go below it.
        """
        user, source = self.name(step.user), self.name(step.source.name)
        left = f", {print_left(step.account, self)} AS {self.name(step.account.column)}" if step.account else ""
        counted = f"SELECT {user}, count(*) AS {self.name(step.column)}{left}\nFROM {source}\nGROUP BY {user}"
        join = "LEFT JOIN" if step.above else "JOIN"
        looked_up = f"SELECT {self.names(step.columns)}\nFROM {source} {join} {self.name(_users(step))} USING ({user})"
        return (
            NamedSelect(_users(step), f"{counted}\nHAVING count(*) > {step.above}", kept=True),
            NamedSelect(step.name, looked_up, kept),
        )

    def users_within(self, step: Map, counted: CountKeys) -> str | None:
        """Leave the few users out that are above a limit, which DuckDB does faster than looking everybody up."""
        limit = limit_of_uncounted(step, counted)
        if limit is None:
            return None
        user, users, keys = (self.name(name) for name in (counted.user, _users(counted), counted.column))
        above = users if limit <= counted.above else f"(SELECT {user} FROM {users} WHERE {keys} > {limit})"
        columns = ", ".join(
            self._column(name, NoValue() if made == Column(counted.column) else made) for name, made in step.expressions
        )
        return f"SELECT {columns}\nFROM {self.name(counted.source.name)} ANTI JOIN {above} USING ({user})"

    def _column(self, name: str, expression: Expression) -> str:
        printed, named = print_expression(expression, self), self.name(name)
        return printed if printed == named else f"{printed} AS {named}"

    def add_tallies(self, step: Combine) -> str:
        """Add each tally by itself and join what was found, which is less work where nothing has to be brought together."""
        keys, source = self.names(step.by), self.name(step.source.name)
        numbers = print_numbers(step, self)
        of_rows = ", ".join(print_number(step, name, self) for name in numbers)
        rows = f"SELECT {keys}, {of_rows} FROM {source}"
        grouped = f"SELECT {keys}, {', '.join(numbers.values())}\n      FROM ({rows})\n      GROUP BY {keys}"
        joined = "".join(f"\nLEFT JOIN ({self._tally(name, keys, source)}) USING ({keys})" for name in tallies_of(step))
        return f"SELECT {self.names(step.columns)}\nFROM ({grouped}){joined}"

    def _tally(self, name: str, keys: str, source: str) -> str:
        """Print the tallies of each key as one; a key without any is not there."""
        named = self.name(name)
        unfolded = f"SELECT {keys}, unnest({named}) AS found FROM {source}"
        weights = f"SELECT {keys}, found.leaf AS leaf, sum(found.weight) AS leaf_weight"
        by_leaf = f"{weights}\n            FROM ({unfolded})\n            GROUP BY {keys}, found.leaf"
        pair = self.pair("leaf", "CAST(leaf_weight AS BIGINT)")
        return f"SELECT {keys}, list({pair}) AS {named}\n      FROM ({by_leaf})\n      GROUP BY {keys}"


def _users(step: CountKeys) -> str:
    return f"{step.name}_users"
