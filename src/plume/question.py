"""What rules about a query look at. Its own module, so that queries can ask these rules, which stand below them."""

from typing import Protocol

from plume.mechanisms.mechanism import Mechanism
from plume.privacy.budget import Budget


class Question(Protocol):
    """What is looked at of a query."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that are grouped by."""

    @property
    def measures(self) -> tuple[Mechanism, ...]:
        """What to compute."""

    @property
    def max_keys_per_user(self) -> int | str:
        """The limit on keys per user."""

    @property
    def budget(self) -> Budget:
        """What may be spent."""

    @property
    def selection(self) -> str:
        """The strategy that is asked for."""

    @property
    def noise(self) -> str:
        """The noise that is asked for."""

    @property
    def composition(self) -> str:
        """How costs come together."""

    @property
    def has_public_keys(self) -> bool:
        """Whether there are no keys to select."""

    @property
    def known_keys(self) -> int | None:
        """How many public keys there are, if that is known."""

    @property
    def choices(self) -> tuple[str, ...]:
        """What is left open."""
