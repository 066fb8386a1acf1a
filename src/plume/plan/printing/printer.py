"""What engines say each in their own way when a plan is printed: a list of it, which a file for each engine fills in.

All the rest is common SQL, in the modules `*_sql` beside this one, and none of them asks which engine it prints for.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from plume.plan.analysis import adds_tallies, read_twice, steps
from plume.plan.dialect import Dialect, constant, identifier
from plume.plan.nodes import Combine, CountKeys, DropSelected, DropUsers, KeepSelected, KeepUsers, Map, Node, Plan

SALT_UNKNOWN = "{salt}"


@dataclass(frozen=True)
class NamedSelect:
    """A SELECT and the name its rows go by; kept if it is read more than once."""

    name: str
    select: str
    kept: bool


Printed = Mapping[str, tuple[NamedSelect, ...]]
"""The statements of each step, by its name."""
LookingUp = KeepSelected | DropSelected | KeepUsers | DropUsers


@dataclass(frozen=True)
class Printer(ABC):
    """One engine's own part of printing, for one run with its secret."""

    dialect: ClassVar[Dialect]

    salt: str = SALT_UNKNOWN

    def name(self, name: str) -> str:
        """Quote a name."""
        return identifier(name, self.dialect)

    def names(self, names: tuple[str, ...]) -> str:
        """Quote names, and list them."""
        return ", ".join(map(self.name, names))

    def secret(self) -> str:
        """Say what the secret of a run is."""
        return constant(self.salt, self.dialect)

    def nested(self, select: str) -> str:
        """Read the rows of a SELECT inside of another."""
        return f"({select})"

    def scaled(self, number: str, factor: str) -> str:
        """Multiply a floating-point number, which may become too small to be anything but zero."""
        return f"{number} * {factor}"

    @abstractmethod
    def microseconds(self, when: str) -> str:
        """Count the microseconds of a date or timestamp since 1970; NULL where it has none."""

    @abstractmethod
    def order(self, digits: str) -> str:
        """Make something of hexadecimal digits that sorts as they do."""

    @abstractmethod
    def pair(self, leaf: str, weight: str) -> str:
        """Make a pair of a tally."""

    @abstractmethod
    def each(self, listed: str, entry: str, made: str) -> str:
        """Make something of each entry of a list, under the name the entry has in it."""

    @abstractmethod
    def each_once(self, leaves: str, weight: Callable[[str], str]) -> str:
        """Make a tally of a list in which leaves may be equal: each once, with the weight for as many as there are."""

    @abstractmethod
    def no_tally(self) -> str:
        """Make a tally of nothing."""

    @abstractmethod
    def collect(self, value: str) -> str:
        """List the values of a group, without NULL."""

    @abstractmethod
    def add_tallies(self, step: Combine) -> str:
        """Print a step of which some aggregates add tallies, and the others are sums and the largest mark."""

    @abstractmethod
    def count_keys(self, step: CountKeys, *, kept: bool) -> tuple[NamedSelect, ...]:
        """Print the step that tells rows how many keys their users have."""

    def users_within(self, step: Map, counted: CountKeys) -> str | None:
        """Print a filter above such a step in a quicker way, if there is one."""
        del step, counted
        return None

    @abstractmethod
    def look_up(self, step: LookingUp, among: Node, columns: tuple[str, ...], join: str) -> str:
        """Look some columns of each row up among other rows, few of them, wherever the row is; `join` is SEMI or ANTI."""

    def keep_selected(self, step: KeepSelected) -> str:
        """Print the step that keeps rows of selected keys, in the way its lookup says, if the engine has several."""
        return self.look_up(step, step.selected, step.keys, "SEMI")

    def gathered(self, step: Combine) -> str:
        """Say what a step groups, and how its rows are brought together for it."""
        return self.name(step.source.name)

    def gathered_by(self, step: Combine, columns: str) -> str:
        """Say the same of a step that groups by these columns and more."""
        del columns
        return self.name(step.source.name)

    def kept(self, plan: Plan) -> frozenset[str]:
        """Name the steps that are read twice as they are printed."""
        return read_twice(plan) | {step.source.name for step in steps(plan) if adds_tallies(step)}
