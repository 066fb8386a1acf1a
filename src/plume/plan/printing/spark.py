"""Where Spark differs from DuckDB: in the SQL of plans, which is here, and in what this list names.

SQL of plans: `SPARK` and `SparkPrinter` below; `DUCKDB` and `DuckDBPrinter` in `duckdb.py` beside it. `printer.py` lists what each engine
must say in its own way; all other SQL of plans is the same.

Statements of callers, and keys that are computed: `StatementForms` of `plan/dialect.py` lists what may be said to each engine and how;
`relation/` reads and prints by it. Where a statement names tables, only Spark has a catalogue (`statement/tables.py`), and
`statement/identity.py` finds out which names mean the same rows. What else depends on the engine, such as where ORDER BY puts NULL, is
known to sqlglot.

Running: `engines/spark.py` sets what a run needs, and lets rows find selected keys by a broadcast, a Redis store (`engines/spark_store.py`,
`lookup/`) or a join. `engines/spark_keeping.py` keeps steps that are read twice, on the disks of executors or in a folder, and
`engines/spark_server.py` refuses servers that are not Spark. `engines/duckdb_session.py` keeps such steps in memory or in a packed file,
and every thread has all selected keys; it reads large files again instead of keeping steps (`plan/rereading.py`).
Noise is drawn in this process, batch by batch; Spark's rows reach this process all at once before the first draw.
`engines/spark_timestamps.py`, `spark_rows.py` and `spark_types.py` hold the differences of values and types, `spark_silence.py` those of
errors; DuckDB's are in `duckdb_*.py` beside them.

Reading: Spark reads DataFrames, tables of its catalogue and Parquet by itself (`engines/spark_reading.py`), and refuses all other files.
DuckDB reads Parquet, CSV, JSON and its own databases (`engines/reading.py`, `engines/databases.py`). What lies in memory comes to both by
way of Arrow.

Starting: `engines/spark_session.py` and `engines/java.py` start a Spark where none is given. Which engine is used by default:
`engines/default_engine.py`. Options of the command line: `cli/options.py`, and `cli/query_and_engine.py`, which makes engines of them.

Only DuckDB: `plume tune`, a pass over the rows of each user in compiled loops (`engines/duckdb_pass.py`), and a progress bar of bytes
read. Only with PySpark, whichever engine made a release: writing it to an address or into a DataFrame (`engines/spark_rows.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from plume.plan.analysis import shuffled_by
from plume.plan.dialect import Dialect, StatementForms
from plume.plan.nodes import Combine, CountKeys, KeepSelected, Lookup, Node
from plume.plan.printing.printer import LookingUp, NamedSelect, Printer
from plume.plan.printing.tally_sql import print_number, print_numbers, tallies_of
from plume.plan.printing.window_sql import print_counting

SPARK = Dialect(
    "spark",
    quote="`",
    text_type="STRING",
    summable_type="DECIMAL(28, 0)",
    wide_type="DECIMAL(38, 0)",
    divide="{} div {}",
    escapes=(("\\", "\\\\"), ("'", "\\'")),
    pattern_escapes=(("\\", "\\\\"),),
    statements=StatementForms(
        tries=False,
        timestamp_type="TIMESTAMP_NTZ",
        starts_with="STARTSWITH",
        trims_in_words=True,
        rounds_to_places=True,
        truncates_dates_to_dates=False,
        extracted_units=("DAYOFWEEK", "DAYOFWEEK_ISO", "DOW_ISO", "YEAROFWEEK"),
        truncated_units=(),
        escapes_in_patterns=True,
        has_catalogue=True,
    ),
)
# The function that asks the store whether it holds a key; a session with a store defines it.
ASK_STORE = "is_selected"


@dataclass(frozen=True)
class SparkPrinter(Printer):
    """Spark's own part of printing."""

    dialect: ClassVar[Dialect] = SPARK

    tasks: int | None = None
    """How many pieces of rows a session works on at a time, if it knows."""

    def microseconds(self, when: str) -> str:
        """Count the microseconds since 1970."""
        return f"unix_micros(TRY_CAST({when} AS TIMESTAMP))"

    def order(self, digits: str) -> str:
        """Sort by hexadecimal digits as they are."""
        return digits

    def pair(self, leaf: str, weight: str) -> str:
        """Make a pair of a tally."""
        return f"named_struct('leaf', {leaf}, 'weight', {weight})"

    def each(self, listed: str, entry: str, made: str) -> str:
        """Make something of each entry of a list."""
        return f"transform({listed}, {entry} -> {made})"

    def each_once(self, leaves: str, weight: Callable[[str], str]) -> str:
        """Make a tally of a list in which leaves may be equal, by counting each of them."""
        number = f"size(filter({leaves}, other -> other = leaf))"
        return self.each(f"array_distinct({leaves})", "leaf", self.pair("leaf", weight(number)))

    def no_tally(self) -> str:
        """Make a tally of nothing."""
        return "CAST(array() AS ARRAY<STRUCT<leaf: INT, weight: BIGINT>>)"

    def collect(self, value: str) -> str:
        """List the values of a group, without NULL."""
        return f"collect_list({value})"

    def count_keys(self, step: CountKeys, *, kept: bool) -> tuple[NamedSelect, ...]:
        """Count in a window, which needs no further exchange where rows lie by user."""
        return print_counting(step, self, kept=kept)

    def look_up(self, step: LookingUp, among: Node, columns: tuple[str, ...], join: str) -> str:
        """Look some columns of each row up among other rows, which every executor gets."""
        source, others = self.name(step.source.name), self.name(among.name)
        hinted = f"SELECT /*+ BROADCAST({others}) */ {self.names(step.columns)}"
        return f"{hinted}\nFROM {source} LEFT {join} JOIN {others} USING ({self.names(columns)})"

    def keep_selected(self, step: KeepSelected) -> str:
        """Print the step that keeps rows of selected keys, in the way its lookup says."""
        match step.lookup:
            case Lookup.BROADCAST:
                return super().keep_selected(step)
            case Lookup.STORE:
                found = f"{ASK_STORE}(struct({self.names(step.keys)}))"
                return f"SELECT {self.names(step.columns)}\nFROM {self.name(step.source.name)}\nWHERE {found}"
            case Lookup.JOIN:
                return self._join_when_reducing(step)

    def _join_when_reducing(self, step: KeepSelected) -> str:
        """Let rows and marks meet at their key, as the paper draws it."""
        columns, keys = self.names(step.columns), self.names(step.keys)
        nothing = ", ".join(
            self.name(column) if column in step.keys else f"NULL AS {self.name(column)}" for column in step.columns
        )
        return (
            f"SELECT {columns}\n"
            f"FROM (SELECT *, max(mark) OVER (PARTITION BY {keys}) AS selected\n"
            f"      FROM (SELECT {columns}, 0 AS mark FROM {self.name(step.source.name)}\n"
            f"            UNION ALL SELECT {nothing}, 1 AS mark FROM {self.name(step.selected.name)}))\n"
            f"WHERE selected = 1 AND mark = 0"
        )

    def gathered(self, step: Combine) -> str:
        """Gather rows, or take pieces together, as many as are worked on at a time: the larger a piece, the fewer keys are shuffled."""
        if step.gather != step.by:
            return self.gathered_by(step, self.names(step.gather))
        if self.tasks and shuffled_by(step):
            return self._hinted(step, f"COALESCE({self.tasks})")
        return self.name(step.source.name)

    def gathered_by(self, step: Combine, columns: str) -> str:
        """Bring rows together by some columns."""
        return self._hinted(step, f"REPARTITION({columns})")

    def _hinted(self, step: Combine, hint: str) -> str:
        # Beside the GROUP BY the hint would add an exchange instead of replacing one.
        return f"(SELECT /*+ {hint} */ * FROM {self.name(step.source.name)})"

    def add_tallies(self, step: Combine) -> str:
        """Group rows of keys and rows of leaves together, so that they are brought together once, which is what costs."""
        keys, tallies, numbers = self.names(step.by), tallies_of(step), print_numbers(step, self)
        inner = ", ".join([keys, "tally", "leaf", "sum(leaf_weight) AS leaf_weight", *numbers.values()])
        pair = self.pair("leaf", "CAST(leaf_weight AS BIGINT)")
        lists = {
            name: f"collect_list(CASE WHEN tally = {number} THEN {pair} END) AS {self.name(name)}"
            for number, name in enumerate(tallies, start=1)
        }
        grouped = f"SELECT {inner}\n      FROM {self._rows(step, tallies)}\n      GROUP BY {keys}, tally, leaf"
        ordered = ",\n       ".join([keys, *((numbers | lists)[name] for name, _ in step.aggregates)])
        return f"SELECT {ordered}\nFROM ({grouped})\nGROUP BY {keys}"

    def _rows(self, step: Combine, tallies: list[str]) -> str:
        """Rows of keys, as tally 0, and under them one row for each leaf of each tally."""
        keys, source = self.names(step.by), self.name(step.source.name)
        others = [name for name in step.source.columns if name not in (*step.by, *tallies)]
        named = "".join(f", {print_number(step, name, self)}" for name in others)
        nothing = "".join(f", 0 AS {self.name(name)}" for name in others)
        selects = [f"SELECT {keys}, 0 AS tally, 0 AS leaf, CAST(0 AS BIGINT) AS leaf_weight{named} FROM {source}"]
        for number, name in enumerate(tallies, start=1):
            found = f"SELECT {keys}, explode({self.name(name)}) AS found FROM {source}"
            selects.append(f"SELECT {keys}, {number} AS tally, found.leaf, found.weight{nothing} FROM ({found})")
        rows = "\n            UNION ALL ".join(selects)
        return f"(SELECT /*+ REPARTITION({keys}) */ *\n      FROM ({rows}))"
