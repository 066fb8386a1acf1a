"""PostgreSQL's own part of the SQL of plans. What no row must be able to do there, and where it could, is in docs/guarantees/postgresql.md.

Two of its habits shape what is here. Arithmetic on floating-point numbers raises where a result is too small to be anything but zero, and
where it is too large. And texts are compared by the collation of a column, so every text has the collation "C", which is that of bytes.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import ClassVar

from plume.plan.dialect import Dialect, identifier
from plume.plan.nodes import Combine, CountKeys, DropSelected, DropUsers, Node
from plume.plan.printing.printer import LookingUp, NamedSelect, Printer
from plume.plan.printing.spark import SPARK
from plume.plan.printing.tally_sql import print_number, print_numbers, tallies_of
from plume.plan.printing.window_sql import print_counting

POSTGRESQL = Dialect(
    "postgres",
    quote='"',
    text_type="TEXT",
    summable_type="BIGINT",
    wide_type="NUMERIC",
    divide="div({}, {})",
    escapes=(("'", "''"),),
    pattern_escapes=(("\\", "\\\\"),),
    # Nobody says anything to it yet.
    statements=replace(SPARK.statements, has_catalogue=False, computes=False),
    double_type="DOUBLE PRECISION",
)
SALT_SETTING = "plume.salt"
"""The setting of a session that holds the secret of a run, so that the text of no statement does."""
PAIR = "plume_pair"
"""A type of the session, of the pairs in tallies."""
_LONGEST_NAME = 63
# Columns that every table has already.
_TAKEN = frozenset({"tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"})
# Further below a half of any step, and below the width of any leaf: docs/guarantees/postgresql.md.
_AS_GOOD_AS_ZERO = "1e-160"


def name_inside(name: str) -> str:
    """Give the name that a column has inside: PostgreSQL cuts long names short, and takes some for itself."""
    if len(name.encode()) <= _LONGEST_NAME and name not in _TAKEN:
        return name
    return f"long {sha256(name.encode()).hexdigest()[:48]}"


@dataclass(frozen=True)
class PostgreSQLPrinter(Printer):
    """PostgreSQL's own part of printing."""

    dialect: ClassVar[Dialect] = POSTGRESQL

    def name(self, name: str) -> str:
        """Quote a name."""
        return identifier(name_inside(name), self.dialect)

    def secret(self) -> str:
        """Read the secret of a run from a setting of the session, once for each statement."""
        return f"(SELECT current_setting('{SALT_SETTING}'))"

    def nested(self, select: str) -> str:
        """Read the rows of a SELECT, under a name, which PostgreSQL before 16 wants."""
        return f"({select}) AS nested"

    def scaled(self, number: str, factor: str) -> str:
        """Multiply; what is as good as zero becomes zero first, since PostgreSQL raises where a product is too small."""
        near = f"{number} > -{_AS_GOOD_AS_ZERO} AND {number} < {_AS_GOOD_AS_ZERO}"
        return f"CASE WHEN {near} THEN 0e0 ELSE {number} * {factor} END"

    def microseconds(self, when: str) -> str:
        """Count the microseconds since 1970, exactly: the seconds are a number of decimal digits."""
        return f"CAST(extract(epoch FROM CAST({when} AS TIMESTAMP)) * 1000000 AS BIGINT)"

    def order(self, digits: str) -> str:
        """Sort by hexadecimal digits as they are."""
        return f'{digits} COLLATE "C"'

    def pair(self, leaf: str, weight: str) -> str:
        """Make a pair of a tally."""
        return f"CAST(ROW({leaf}, {weight}) AS {PAIR})"

    def each(self, listed: str, entry: str, made: str) -> str:
        """Make something of each entry of a list."""
        return f"ARRAY(SELECT {made} FROM unnest({listed}) AS {entry})"

    def each_once(self, leaves: str, weight: Callable[[str], str]) -> str:
        """Make a tally of a list in which leaves may be equal, by grouping them."""
        return f"ARRAY(SELECT {self.pair('leaf', weight('count(*)'))} FROM unnest({leaves}) AS leaf GROUP BY leaf)"

    def no_tally(self) -> str:
        """Make a tally of nothing."""
        return f"CAST(ARRAY[] AS {PAIR}[])"

    def collect(self, value: str) -> str:
        """List the values of a group, without NULL."""
        return f"array_agg({value}) FILTER (WHERE {value} IS NOT NULL)"

    def count_keys(self, step: CountKeys, *, kept: bool) -> tuple[NamedSelect, ...]:
        """Count in a window."""
        return print_counting(step, self, kept=kept)

    def look_up(self, step: LookingUp, among: Node, columns: tuple[str, ...], join: str) -> str:
        """Look some columns of each row up among other rows. Neither side has NULL there."""
        del join
        source, others = self.name(step.source.name), self.name(among.name)
        rows = f"SELECT {self.names(step.columns)}\nFROM {source}\nWHERE "
        if not isinstance(step, DropSelected | DropUsers):
            return f"{rows}({self.names(columns)}) IN (SELECT {self.names(columns)} FROM {others})"
        equal = " AND ".join(f"{others}.{self.name(column)} = {source}.{self.name(column)}" for column in columns)
        return f"{rows}NOT EXISTS (SELECT FROM {others} WHERE {equal})"

    def add_tallies(self, step: Combine) -> str:
        """Add each tally by itself and join what was found."""
        keys, source, numbers = self.names(step.by), self.name(step.source.name), print_numbers(step, self)
        rows = f"SELECT {', '.join([keys, *(print_number(step, name, self) for name in numbers)])} FROM {source}"
        grouped = (
            f"SELECT {', '.join([keys, *numbers.values()])}\n      FROM {self.nested(rows)}\n      GROUP BY {keys}"
        )
        joined = "".join(
            f"\nLEFT JOIN ({self._tally(name, keys, source)}) AS tally_{number} USING ({keys})"
            for number, name in enumerate(tallies_of(step), start=1)
        )
        return f"SELECT {self.names(step.columns)}\nFROM {self.nested(grouped)}{joined}"

    def _tally(self, name: str, keys: str, source: str) -> str:
        """Print the tallies of each key as one; a key without any is not there."""
        weights = f"SELECT {keys}, found.leaf AS leaf, sum(found.weight) AS leaf_weight"
        by_leaf = f"{weights}\n            FROM {source}, unnest({self.name(name)}) AS found\n            GROUP BY {keys}, found.leaf"
        pair = self.pair("leaf", "CAST(leaf_weight AS BIGINT)")
        return f"SELECT {keys}, array_agg({pair}) AS {self.name(name)}\n      FROM {self.nested(by_leaf)}\n      GROUP BY {keys}"
