"""What one test of an audit found."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One test: what was claimed, what was found, in how many trials."""

    layer: str
    test: str
    passed: bool
    trials: int
    claimed: float | None = None
    """The epsilon that may be seen at most, where the test is about one."""
    found: float | None = None
    """The epsilon that is there at least."""


@dataclass(frozen=True)
class Answered:
    """Released values by key: for each released column, in its order."""

    values: dict[str, tuple[float, ...]]
    keys: tuple[str, ...]
    """As they came, so that their order can be judged."""
