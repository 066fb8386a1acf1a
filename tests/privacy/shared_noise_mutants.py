"""Planted bugs of noise that keys share; `mutants.py` says what a mutant is."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import plume
from plume import correlated_noise
from plume.calibration import calibrated_part
from plume.noise.correlated import SharedDraw
from plume.privacy.cost import GaussianCost
from privacy.mutants import Mutant, calibrate_with, clipped_to, one_more, query, sum_clipped

Patch = pytest.MonkeyPatch
KEYS = 12
SHARED = query(
    measures=[plume.count(3), plume.sum("seconds", 0, 10)],
    public_keys=[f"p{number}" for number in range(KEYS)],
    max_keys_per_user=8,
    noise="correlated",
)
# Users may be in more keys than this, and are clipped.
FEW = replace(SHARED, max_keys_per_user=3)


def drawn_as_if(wrong: Callable[[Any, Any, Any], Any]) -> Callable[[Patch], None]:
    """Draw otherwise than what is priced."""
    original = SharedDraw.sample

    def sample(self: SharedDraw, size: int, entropy: Any) -> Any:
        return wrong(self, original(self, size, entropy), entropy)

    return lambda patch: patch.setattr(SharedDraw, "sample", sample)


def without_the_common_draw(self: SharedDraw, drawn: Any, entropy: Any) -> Any:
    del entropy
    drawn[:1] -= self.drawn
    return drawn


def a_common_draw_for_each_batch(self: SharedDraw, drawn: Any, entropy: Any) -> Any:
    return drawn - self.drawn + self.begun(entropy).drawn


def half_of_the_common_draw(self: SharedDraw, drawn: Any, entropy: Any) -> Any:
    del entropy
    return drawn - self.drawn // 2


def narrower_own_draws(self: SharedDraw, drawn: Any, entropy: Any) -> Any:
    del entropy
    return self.drawn + (drawn - self.drawn) * 9 // 10


def half_of_the_price(patch: Patch) -> None:
    original = calibrated_part.correlated_cost

    def wrong(*args: Any, **given: Any) -> GaussianCost:
        cost = original(*args, **given)
        return replace(cost, mu=cost.mu / 2)

    patch.setattr(calibrated_part, "correlated_cost", wrong)


def signed(patch: Patch) -> None:
    """A total may be as far below zero as above, and nobody refuses it."""
    largest = 10 * 2**17  # in steps of its grid
    patch.setattr(correlated_noise, "_refuse_signed", lambda measure: None)  # noqa: ARG005
    sum_clipped(lambda _low: -largest, lambda _high: largest)(patch)


SHARED_MUTANTS: dict[str, Mutant] = {
    "the common draw is missing from one key": Mutant(drawn_as_if(without_the_common_draw), SHARED),
    "a common draw for each batch": Mutant(drawn_as_if(a_common_draw_for_each_batch), SHARED),
    "half of the common draw": Mutant(drawn_as_if(half_of_the_common_draw), SHARED),
    "own draws times 0.9": Mutant(drawn_as_if(narrower_own_draws), SHARED),
    "shared noise of contributions of both signs": Mutant(signed, SHARED),
    "shared noise for one key fewer": Mutant(calibrate_with("correlated_for", keys=KEYS - 1), SHARED),
    "shared noise lacks the number of keys of a user": Mutant(
        calibrate_with("correlated_for", max_keys_per_user=2), SHARED
    ),
    "a price of half": Mutant(half_of_the_price, SHARED),
    "shared noise, clipped to one key more": Mutant(clipped_to(one_more), FEW),
    "shared noise, not cut at all": Mutant(clipped_to(lambda limit: 10**6 * limit), FEW),
}
