"""The things a plan can do with rows: frozen, engine-free.

Every node is a step. Its name is that of its view or table in the engine, and the paper's word for its rows where the paper has one:
docs/paper-map.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import Enum
from fractions import Fraction
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from plume.noise.entropy import Entropy
from plume.plan.aggregates import Aggregate
from plume.plan.expressions import Expression
from plume.privacy.cost import Cost
from plume.privacy.pooled import Charge

# Whose a row is, in every plan. Never "user": where such a column is missing, engines silently read the name of whoever is logged in.
USER = "user_id"


class Noiser(Protocol):
    """What turns exact rows into rows that may leave: Arrow batch in, Arrow batch out, at a cost."""

    @property
    def max_keys_per_user(self) -> int:
        """How many keys of one user the noise pays for."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that say which row is which, and leave with it."""

    @property
    def reads(self) -> tuple[str, ...]:
        """The exact columns it hides; all other columns it passes on must already be public."""

    @property
    def passes(self) -> tuple[str, ...]:
        """The columns of numbers that were noised when keys were selected, which it passes on as they are."""

    @property
    def writes(self) -> tuple[str, ...]:
        """The columns of the rows that leave."""

    @property
    def chooses_rows(self) -> bool:
        """Whether it decides which rows leave; if not, its rows must be public before it sees them."""

    @property
    def costs(self) -> tuple[Cost, ...]:
        """What it spends."""

    @property
    def account(self) -> "Account | None":
        """The account that its weights must be drawn from, if it spends what measures leave."""

    @property
    def moved(self) -> "tuple[Moved, ...] | None":
        """The most that one user moves, part by part; None if it is not in proportion to sizes of rows."""

    @property
    def known_keys(self) -> "KnownKeys | None":
        """What it asks of its rows, if they share a draw; None if they do not."""

    def begun(self, entropy: Entropy) -> "Noiser":
        """Draw what all batches of one run share, once; most noisers share nothing, and give themselves."""

    def noise(self, batch: pa.RecordBatch, entropy: Entropy) -> pa.RecordBatch:
        """Draw noise for a batch, once."""


class Lookup(Enum):
    """How rows find out whether their key was selected."""

    BROADCAST = "broadcast"
    """Every worker holds all selected keys."""
    STORE = "store"
    """Workers ask a read-only key-value store: the paper's distributed hash table."""
    JOIN = "join"
    """Rows and selected keys are brought together by key, for sets that are too large to broadcast where there is no store."""


@dataclass(frozen=True)
class Scan:
    """Rows that are there before the plan starts: the table, or keys that are public."""

    name: str
    columns: tuple[str, ...]
    public: bool
    rows: int | None = None
    """How many there are, of public keys, if that is known."""


@dataclass(frozen=True)
class Map:
    """Each row on its own: some are dropped, the others get new columns."""

    name: str
    source: "Node"
    expressions: tuple[tuple[str, Expression], ...]
    where: Expression | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of its rows."""
        return tuple(name for name, _ in self.expressions)


@dataclass(frozen=True)
class Combine:
    """All rows with equal `by` become one; `gather` says by which of them rows are brought together."""

    name: str
    source: "Node"
    by: tuple[str, ...]
    aggregates: tuple[tuple[str, Aggregate], ...]
    gather: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of its rows."""
        return self.by + tuple(name for name, _ in self.aggregates)


@dataclass(frozen=True)
class Size:
    """How large a row is: the squares of its integers added up, and the most that can be in one row."""

    of: tuple[Expression, ...]
    squared: int


@dataclass(frozen=True)
class Moved:
    """By how much one user moves some exact columns together, at the most, in squares of mu: in proportion to the size of the rows."""

    columns: tuple[str, ...]
    size: Size
    squared: Fraction


@dataclass(frozen=True)
class KnownKeys:
    """What noise that keys share is made for: a number of public keys, and columns to which all users add with one sign."""

    columns: tuple[str, ...]
    keys: int


@dataclass(frozen=True)
class Account:
    """What each user may spend on selection and measures together: measures of each size take their charge, by all rows of the user."""

    column: str
    """The units that they leave."""
    charges: tuple[tuple[Size, Charge], ...]


@dataclass(frozen=True)
class CountKeys:
    """Each row learns how many keys its user has, if more than `above`; the others, most users by far, have NULL there.

    With an account, rows of all users learn what is left of it too.
    """

    name: str
    source: "Node"
    user: str
    column: str
    above: int
    account: Account | None = None

    @property
    def counted(self) -> tuple[str, ...]:
        """The columns that it adds."""
        return (self.column, self.account.column) if self.account else (self.column,)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of its rows."""
        return (*self.source.columns, *self.counted)


class RowsOfSource:
    """What steps share that keep some of the rows they read, as they are."""

    source: "Node"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of its rows."""
        return self.source.columns


@dataclass(frozen=True)
class KeepFew(RowsOfSource):
    """Contribution bounding: of each user's rows the first `limit` in the order of some columns, which must tell all of them apart."""

    name: str
    source: "Node"
    user: str
    order: tuple[str, ...]
    limit: int


@dataclass(frozen=True)
class Clip:
    """Each row learns the factors by which its user's rows shrink: together they must be no larger than `limit` rows can be.

    Sizes add up in squares, so this is for noise that is paid in squares. Users within the limit never shrink.
    """

    name: str
    source: "Node"
    user: str
    factors: tuple[tuple[str, Size], ...]
    limit: int

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of its rows."""
        return (*self.source.columns, *(name for name, _ in self.factors))


@dataclass(frozen=True)
class KeepSelected(RowsOfSource):
    """The rows whose key is among the selected ones."""

    name: str
    source: "Node"
    selected: "Node"
    keys: tuple[str, ...]
    lookup: Lookup


@dataclass(frozen=True)
class DropSelected(RowsOfSource):
    """The rows whose key is not among the selected ones yet; those are few enough to be looked up everywhere."""

    name: str
    source: "Node"
    selected: "Node"
    keys: tuple[str, ...]


@dataclass(frozen=True)
class KeepUsers(RowsOfSource):
    """The rows of users who are among others. Its source is not kept for this, but read again, and must give the same rows again."""

    name: str
    source: "Node"
    users: "Node"
    user: str


@dataclass(frozen=True)
class DropUsers(RowsOfSource):
    """The rows of users who are not among others; its source is read again for this as well."""

    name: str
    source: "Node"
    users: "Node"
    user: str


@dataclass(frozen=True)
class Append:
    """The rows of all sources, which have the same columns."""

    name: str
    sources: tuple["Node", ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of its rows."""
        return self.sources[0].columns


@dataclass(frozen=True)
class OnePass:
    """Several steps in one pass over the rows of each user: those in `makes`, and none of the steps between them and the source.

    The steps are there whole, as they would run one by one: they say what the pass must make, and are what is checked.
    """

    name: str
    source: "Node"
    user: str
    makes: tuple["Node", ...]
    stands_for: tuple[str, ...] = ()
    """The names of the steps of the query's plan that are not run, in their order."""

    @property
    def columns(self) -> tuple[str, ...]:
        """None: the rows of its steps are read, and there are none of its own."""
        return ()


@dataclass(frozen=True)
class Made:
    """The rows of a step that a pass makes, under the name of the step."""

    source: OnePass
    step: "Node"

    @property
    def name(self) -> str:
        """The name of the step."""
        return self.step.name

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of its rows."""
        return self.step.columns


@dataclass(frozen=True)
class Noise:
    """Exact rows leave the engine, noised rows come back: the only way out of a plan."""

    name: str
    source: "Node"
    noiser: Noiser

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of its rows."""
        return self.noiser.writes


Node = (
    Scan
    | Map
    | Combine
    | CountKeys
    | KeepFew
    | Clip
    | KeepSelected
    | DropSelected
    | KeepUsers
    | DropUsers
    | Append
    | OnePass
    | Made
    | Noise
)
_Node = TypeVar("_Node", bound=Node)

Plan = Node | tuple[Noise, ...]
"""One tree, or the stages of a run: trees that end in one noiser each. Steps that several stages read are in all their trees."""


def roots(plan: Plan) -> tuple[Node, ...]:
    """Name the nodes that a plan ends in, in the order in which they run."""
    return plan if isinstance(plan, tuple) else (plan,)


def sources(node: Node) -> tuple[Node, ...]:
    """Name the nodes a node reads."""
    match node:
        case Scan():
            return ()
        case Append():
            return node.sources
        case KeepSelected() | DropSelected():
            return (node.source, node.selected)
        case KeepUsers() | DropUsers():
            return (node.source, node.users)
        case _:
            return (node.source,)


def reading(node: _Node, others: Mapping[str, Node]) -> _Node:
    """Let a node read other nodes, which are found by the names of those it reads."""
    return replace(node, **{field.name: _replaced(getattr(node, field.name), others) for field in fields(node)})


def _replaced(value: Any, others: Mapping[str, Node]) -> Any:
    if isinstance(value, tuple):
        return tuple(_replaced(one, others) for one in value)
    return others[value.name] if isinstance(value, Node) else value
