"""Planted bugs where numbers are chosen within the budget: `max_keys_per_user="auto"` and bounds that are left open."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import plume
from plume import running
from plume.choosing import calibrated_choice, open_query
from plume.choosing.keys_per_user import NoiseKeysPerUser
from plume.choosing.sizes import NoiseSizes
from plume.plan.nodes import KeepFew
from plume.privacy.cost import GaussianCost
from privacy.mutants import Mutant, Patch, all_of_them, one_more, query

CHOOSING = query(max_keys_per_user="auto")
CHOOSING_BOUNDS = query(measures=[plume.sum("seconds", 0, "auto")])


def raw_histogram(patch: Patch) -> None:
    """The limit is chosen by exact numbers of users."""
    patch.setattr(NoiseKeysPerUser, "noise", lambda self, batch, entropy: batch)  # noqa: ARG005


def raw_sizes(patch: Patch) -> None:
    """A bound is chosen by exact numbers of rows."""
    patch.setattr(NoiseSizes, "noise", lambda self, batch, entropy: batch)  # noqa: ARG005


def sizes_of_one_key(patch: Patch) -> None:
    """Noise on sizes pays for one row of a user, not for as many as count."""
    original = calibrated_choice.gaussian_for

    def wrong(sensitivity: float, *, max_keys_per_user: int, **given: Any) -> Any:
        del sensitivity, max_keys_per_user
        return original(1, max_keys_per_user=1, **given)

    patch.setattr(calibrated_choice, "gaussian_for", wrong)


def sizes_priced_as_one_key(patch: Patch) -> None:
    """The same, and the price agrees with it, so that only what one user changes can tell."""
    sizes_of_one_key(patch)
    patch.setattr(
        NoiseSizes, "costs", property(lambda self: (GaussianCost(self.what, mu=1 / float(self.pairs.scale)),))
    )


def histogram_noise_scaled(kind: type, name: str, factor: Fraction) -> Callable[[Patch], None]:
    """Draw the noise on a histogram narrower than it is said to be, and no other."""
    original = kind.noise

    def wrong(self: Any, batch: Any, entropy: Any) -> Any:
        said = getattr(self, name)
        return original(replace(self, **{name: replace(said, scale=said.scale * factor)}), batch, entropy)

    return lambda patch: patch.setattr(kind, "noise", wrong)


def sizes_of_more(limit: Callable[[int], int]) -> Callable[[Patch], None]:
    """Of users above the limit, look at the sizes of more keys than the noise pays for."""

    def wrong(step: str, source: Any, user: str, order: tuple[str, ...], usual: int) -> KeepFew:
        return KeepFew(step, source, user, order, limit(usual))

    return lambda patch: patch.setattr(open_query, "KeepFew", wrong)


def sizes_of_everybody_uncut(patch: Patch) -> None:
    """The largest sizes of users above the limit are looked at a second time, beside all their others."""
    original = open_query.steps.uncut

    def wrong(calibrated: Any, source: Any, **name: str) -> Any:
        return replace(original(calibrated, source, **name), where=None)

    patch.setattr(open_query.steps, "uncut", wrong)


def choice_before_noise(patch: Patch) -> None:
    """Histograms are noised, and then the exact ones are looked at all the same."""
    original = running._choose_next

    def wrong(planned: Any, walk: Any, session: Any) -> Any:
        _, above = original(planned, walk, session)
        exact = session.fetch(f"{planned.choice.step}_exact", ("bucket",))
        selected = session.fetch("selected_keys", planned.calibrated.keys).num_rows
        return running.decide(planned, running.choose(planned, exact, selected=selected)), above

    patch.setattr(running, "_choose_next", wrong)


CHOOSING_MUTANTS: dict[str, Mutant] = {
    "a limit chosen by raw counts": Mutant(raw_histogram, CHOOSING),
    "a limit chosen before the noise": Mutant(choice_before_noise, CHOOSING),
    "a bound chosen by raw sizes": Mutant(raw_sizes, CHOOSING_BOUNDS),
    "a bound chosen before the noise": Mutant(choice_before_noise, CHOOSING_BOUNDS),
    "noise on sizes lacks the number of keys": Mutant(sizes_of_one_key, CHOOSING_BOUNDS),
    "noise on sizes and its price lack the number of keys": Mutant(sizes_priced_as_one_key, CHOOSING_BOUNDS),
    "sizes of all keys": Mutant(sizes_of_more(all_of_them), CHOOSING_BOUNDS),
    "sizes of one key more": Mutant(sizes_of_more(one_more), CHOOSING_BOUNDS),
    "sizes of users above the limit twice": Mutant(sizes_of_everybody_uncut, CHOOSING_BOUNDS),
    "noise on sizes times 0.9": Mutant(histogram_noise_scaled(NoiseSizes, "pairs", Fraction(9, 10)), CHOOSING_BOUNDS),
    "noise on keys per user times 0.8": Mutant(
        histogram_noise_scaled(NoiseKeysPerUser, "users", Fraction(8, 10)), CHOOSING
    ),
}
