"""Planted bugs: each changes the package the way a mistake would, for one test, and switches off the package's own checks of plans.

A mutant is a function that patches; the audit must turn red on it. Nothing here is in the product.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import plume
from entropy import SeededEntropy
from plume.calibration import calibrated_query
from plume.engines import execute
from plume.mechanisms.count import CountRecords
from plume.mechanisms.sum import SumOfTotals
from plume.noise.entropy import SystemEntropy
from plume.noise.gaussian import RoundedGaussian
from plume.noise.laplace import DiscreteLaplace
from plume.pipelines import pipeline, steps
from plume.pipelines.noisers import NoiseMeasures
from plume.plan.expressions import Clamp, Column, Literal
from plume.plan.nodes import Clip, KeepFew
from plume.plan.printing import account_sql
from plume.privacy.pooled import ACCOUNT, Charge
from plume.selection import laplace_threshold as laplace_threshold_module
from plume.selection.laplace_threshold import LaplaceThreshold
from plume.selection.pooled_gaussian import PooledGaussian
from plume.selection.released_users import ReleasedUsers
from plume.selection.truncated_geometric import TruncatedGeometric
from plume.selection.two_round_pooled_gaussian import PooledRound
from plume.selection.weighted_gaussian import UNIT, WeightedGaussian

Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Mutant:
    """A bug, and the query that has it."""

    plant: Callable[[Patch], None]
    query: plume.Query


def query(**changes: Any) -> plume.Query:
    asked = {
        "user": "person",
        "keys": "page",
        "measures": [plume.count(3), plume.sum("seconds", -2, 10)],
        "max_keys_per_user": 4,
        "budget": plume.Budget(1, 1e-5),
    }
    return plume.Query(**asked | changes)


GAUSSIAN = query(selection="weighted_gaussian")
LAPLACE = query(selection="laplace_threshold", composition="basic")
POOLED = query(selection="pooled_gaussian")
POOLED_TWICE = query(selection="two_round_pooled_gaussian")
RELEASED = query(measures=[plume.users(), plume.count(3)], selection="released_users", max_keys_per_user=1)
GEOMETRIC = query(selection="truncated_geometric", max_keys_per_user=2)


def unchecked(patch: Patch) -> None:
    """The checks of plans would refuse most mutants before the audit sees them."""
    patch.setattr(pipeline, "refuse_overspending", lambda *_: None)
    patch.setattr(pipeline, "unpaid_noisers", lambda *_: ())
    patch.setattr(pipeline, "releases_only_noise", lambda *_: True)
    patch.setattr(pipeline, "uncharged_noisers", lambda *_: ())
    patch.setattr(pipeline, "noisers_of_unknown_keys", lambda *_: ())
    patch.setattr(pipeline, "unkeyed_steps", lambda *_: ())


def sample_scaled(kind: type, factor: Fraction) -> Callable[[Patch], None]:
    """Draw noise that is narrower than it is said to be."""
    original = kind.sample

    def plant(patch: Patch) -> None:
        patch.setattr(
            kind,
            "sample",
            lambda self, size, entropy: original(replace(self, scale=self.scale * factor), size, entropy),
        )

    return plant


def calibrate_with(name: str, **wrong: Any) -> Callable[[Patch], None]:
    """Calibrate a part with wrong arguments."""
    original = getattr(calibrated_query, name)
    return lambda patch: patch.setattr(calibrated_query, name, lambda *args, **given: original(*args, **given | wrong))


def doubled_delta(patch: Patch) -> None:
    original = laplace_threshold_module.laplace_threshold
    patch.setattr(
        laplace_threshold_module,
        "laplace_threshold",
        lambda *args, **given: original(*args, **given | {"delta": 2 * given["delta"]}),
    )


def selection_with(**changes: Callable[[Any], Any]) -> Callable[[Patch], None]:
    """Change what a calibrated selection holds."""

    def plant(patch: Patch) -> None:
        original = calibrated_query.calibrate

        def changed(selection: Any) -> Any:
            return replace(selection, **{name: change(selection) for name, change in changes.items()})

        def wrong(asked: plume.Query) -> Any:
            made = original(asked)
            return replace(made, rounds=tuple(changed(one) for one in made.rounds))

        patch.setattr(pipeline, "calibrate", wrong)

    return plant


def keep_as_if(kind: type, **changes: Callable[[Any], Any]) -> Callable[[Patch], None]:
    """Select keys otherwise than what is priced, so that only what is released can tell."""
    original = kind.keep

    def wrong(self: Any, weights: Any, entropy: Any) -> Any:
        return original(replace(self, **{name: change(self) for name, change in changes.items()}), weights, entropy)

    return lambda patch: patch.setattr(kind, "keep", wrong)


def released_as_if(**changes: Callable[[Any], Any]) -> Callable[[Patch], None]:
    """Compare and release otherwise than what is priced."""
    original = ReleasedUsers.release

    def wrong(self: Any, users: Any, entropy: Any) -> Any:
        return original(replace(self, **{name: change(self) for name, change in changes.items()}), users, entropy)

    return lambda patch: patch.setattr(ReleasedUsers, "release", wrong)


def released_by_a_second_draw(patch: Patch) -> None:
    """One noised number is compared, and another one released."""
    original = ReleasedUsers.release

    def wrong(self: ReleasedUsers, users: Any, entropy: Any) -> Any:
        _, shown = original(self, users, entropy)
        return users + self.noise.sample(len(users), entropy), shown

    patch.setattr(ReleasedUsers, "release", wrong)


def kept(name: str, limit: Callable[[int], int]) -> Callable[[Patch], None]:
    """Cut users to another limit in one of the two boundings."""

    def wrong(step: str, source: Any, user: str, order: tuple[str, ...], usual: int) -> KeepFew:
        return KeepFew(step, source, user, order, limit(usual) if step == name else usual)

    return lambda patch: patch.setattr(steps, "KeepFew", wrong)


def not_cut_with_one_more(patch: Patch) -> None:
    """Take users with exactly one key more than the limit for users within it."""

    def wrong(original: Any, asked: Any, source: Any, **name: str) -> Any:
        return original(replace(asked, max_keys_per_user=asked.max_keys_per_user + 1), source, **name)

    for function in ("uncut", "above_limit"):
        patch.setattr(steps, function, partial(wrong, getattr(steps, function)))


def clipped_to(limit: Callable[[int], int]) -> Callable[[Patch], None]:
    """Shrink what users above the limit say to another limit."""

    def wrong(step: str, source: Any, user: str, factors: Any, usual: int) -> Clip:
        return Clip(step, source, user, factors, limit(usual))

    return lambda patch: patch.setattr(steps, "Clip", wrong)


def all_of_them(limit: int) -> int:
    return 10**6 * limit


def one_more(limit: int) -> int:
    return limit + 1


def count_clipped_at(bound: Callable[[int], int]) -> Callable[[Patch], None]:
    def wrong(self: CountRecords) -> dict[str, Any]:
        return {"records": Clamp(Column("records"), 0, bound(self.max_per_key))}

    return lambda patch: patch.setattr(CountRecords, "preprocess", wrong)


def sum_clipped(low: Callable[[int], int], high: Callable[[int], int]) -> Callable[[Patch], None]:
    def wrong(self: SumOfTotals) -> dict[str, Any]:
        grid = self._grid()
        return {"total": Clamp(Column("total"), low(grid.low), high(grid.high))}

    return lambda patch: patch.setattr(SumOfTotals, "preprocess", wrong)


def missing_keys(patch: Patch) -> None:
    """Selected keys without data get no row."""
    original = steps._marked

    def wrong(asked: Any, columns: tuple[str, ...], mark: int) -> Any:
        # The rows of zeros no longer say that their key was selected; those with data all do.
        return original(asked, columns, 1 - mark)

    patch.setattr(steps, "_marked", wrong)


def exact_threshold(kind: type) -> Callable[[Patch], None]:
    return lambda patch: patch.setattr(kind, "keep", lambda self, weights, entropy: weights >= self.threshold)  # noqa: ARG005


def one_draw_for_all(kind: type) -> Callable[[Patch], None]:
    original = kind.sample

    def wrong(self: Any, size: int, entropy: Any) -> Any:
        return np.full(size, original(self, 1, entropy)[0]) if size else original(self, 0, entropy)

    return lambda patch: patch.setattr(kind, "sample", wrong)


def one_draw_for_all_columns(patch: Patch) -> None:
    """Noise is drawn once for each key, and scaled to each of its columns."""
    original = NoiseMeasures.noise

    def wrong(self: NoiseMeasures, batch: Any, entropy: Any) -> Any:
        first = self.parts[0].noise
        drawn = first.sample(batch.num_rows, entropy) / float(first.scale)
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(type(first), "sample", lambda noise, size, entropy: scaled(noise, drawn))  # noqa: ARG005
            return original(self, batch, entropy)

    patch.setattr(NoiseMeasures, "noise", wrong)


def draws_of_selection_reused(patch: Patch) -> None:
    """What was drawn to choose keys is scaled and added to what is released of them."""
    original, chosen_by = NoiseMeasures.noise, list[float]()

    def keep(self: WeightedGaussian, weights: Any, entropy: Any) -> Any:
        drawn = self.noise.sample(len(weights), entropy)
        kept = (weights + drawn >= self.threshold) & (weights > 0)
        chosen_by.extend(drawn[kept] / float(self.noise.scale))
        return kept

    def wrong(self: NoiseMeasures, batch: Any, entropy: Any) -> Any:
        drawn = np.array(chosen_by[: batch.num_rows])
        del chosen_by[: batch.num_rows]
        with pytest.MonkeyPatch.context() as inner:
            if len(drawn) == batch.num_rows:  # known keys are not chosen by any draw
                inner.setattr(RoundedGaussian, "sample", lambda noise, size, entropy: scaled(noise, drawn))  # noqa: ARG005
            return original(self, batch, entropy)

    patch.setattr(WeightedGaussian, "keep", keep)
    patch.setattr(NoiseMeasures, "noise", wrong)


def scaled(noise: Any, drawn: Any) -> Any:
    return np.rint(drawn * float(noise.scale)).astype(np.int64)


def seed_reused(patch: Patch) -> None:
    patch.setattr(SystemEntropy, "words", lambda self, size: SeededEntropy(7).words(size))  # noqa: ARG005


def salt_fixed(patch: Patch) -> None:
    patch.setattr(execute, "salt", lambda entropy: "0" * 32)  # noqa: ARG005


def float_noise(patch: Patch) -> None:
    """Values are as fine as floats are, by a trifle that is drawn with them."""
    original = SumOfTotals.noise

    def wrong(self: SumOfTotals, noised: Any) -> Any:
        trifle = SystemEntropy().words(len(noised["total"])).astype(np.float64) / 2.0**94
        return {name: pa.array(np.array(column) * (1 + trifle)) for name, column in original(self, noised).items()}

    patch.setattr(SumOfTotals, "noise", wrong)


def unsorted(patch: Patch) -> None:
    original = execute.Walk.through

    def wrong(self: Any, plan: Any, **settings: Any) -> pa.Table:
        rows = original(self, plan, **settings)
        return rows.take(pa.array(range(len(rows))[::-1]))

    patch.setattr(execute.Walk, "through", wrong)


def null_values_poison(patch: Patch) -> None:
    """A released sum of a key with nobody's values is not a number."""
    original = SumOfTotals.noise

    def wrong(self: SumOfTotals, noised: Any) -> Any:
        made = original(self, noised)
        return {
            name: pa.array(np.where(noised["total"] == 0, np.nan, np.array(column))) for name, column in made.items()
        }

    patch.setattr(SumOfTotals, "noise", wrong)


def no_noise(kind: type) -> Callable[[Patch], None]:
    return lambda patch: patch.setattr(kind, "sample", lambda self, size, entropy: np.zeros(size, np.int64))  # noqa: ARG005


def lower(by: float) -> Callable[[Any], int]:
    return lambda selection: math.ceil(selection.threshold - by)


def lower_in_the_second_round(patch: Patch) -> None:
    original = PooledRound.keep

    def wrong(self: PooledRound, weights: Any, entropy: Any) -> Any:
        return original(replace(self, threshold=self.threshold - UNIT * (self.number - 1)), weights, entropy)

    patch.setattr(PooledRound, "keep", wrong)


def one_unit_for_each_key(kind: type) -> Callable[[Patch], None]:
    return lambda patch: patch.setattr(kind, "weight", lambda self, keys: Literal(UNIT))  # noqa: ARG005


def narrower(factor: int) -> Callable[[Any], DiscreteLaplace]:
    return lambda selection: replace(selection.noise, scale=selection.noise.scale / factor)


def threshold_of_one_key(patch: Patch) -> None:
    """The whole delta for each of the keys, of which there are several."""
    original = laplace_threshold_module.lowest_laplace_threshold
    patch.setattr(
        laplace_threshold_module,
        "lowest_laplace_threshold",
        lambda noise, max_keys_per_user, delta: original(noise, 1, delta),  # noqa: ARG005
    )


def charged_for_some_keys(patch: Patch) -> None:
    """Measures take their charge as if a user had a quarter of the keys, or only those that the first bounding left."""
    rate = Charge.rate.fget  # type: ignore[attr-defined]
    patch.setattr(Charge, "rate", property(lambda self: rate(self) / 4))


def charged_for_nothing(patch: Patch) -> None:
    patch.setattr(account_sql, "_print_taken", lambda *_: "CAST(0 AS BIGINT)")


def charged_less(patch: Patch) -> None:
    patch.setattr(Charge, "most", property(lambda self: math.ceil(ACCOUNT * self.share * 9 / 10)))


MUTANTS: dict[str, Mutant] = {
    "a released number that may be one below the threshold": Mutant(released_as_if(threshold=lower(1)), RELEASED),
    "a released number of a second draw": Mutant(released_by_a_second_draw, RELEASED),
    "a released number with half of its noise": Mutant(released_as_if(noise=narrower(2)), RELEASED),
    "released numbers of users with several keys": Mutant(kept("bounded", all_of_them), RELEASED),
    "accounts that are charged for nothing": Mutant(charged_for_nothing, POOLED),
    "accounts that are charged for some keys only": Mutant(charged_for_some_keys, POOLED),
    "accounts that are charged nine tenths": Mutant(charged_less, POOLED),
    "accounts of two rounds that are charged for nothing": Mutant(charged_for_nothing, POOLED_TWICE),
    "a threshold of the second round of a unit less": Mutant(lower_in_the_second_round, POOLED_TWICE),
    "Laplace noise lacks the number of keys": Mutant(calibrate_with("laplace_for", max_keys_per_user=1), LAPLACE),
    "Laplace noise times 0.5": Mutant(sample_scaled(DiscreteLaplace, Fraction(1, 2)), LAPLACE),
    "Laplace noise times 0.8": Mutant(sample_scaled(DiscreteLaplace, Fraction(8, 10)), LAPLACE),
    "Laplace noise times 0.9": Mutant(sample_scaled(DiscreteLaplace, Fraction(9, 10)), LAPLACE),
    "Gaussian noise lacks the root of the number of keys": Mutant(
        calibrate_with("gaussian_for", max_keys_per_user=1), GAUSSIAN
    ),
    "Gaussian noise times 0.8": Mutant(sample_scaled(RoundedGaussian, Fraction(8, 10)), GAUSSIAN),
    "Gaussian noise times 0.9": Mutant(sample_scaled(RoundedGaussian, Fraction(9, 10)), GAUSSIAN),
    "no noise at all": Mutant(no_noise(RoundedGaussian), GAUSSIAN),
    "no first bounding": Mutant(kept("bounded", all_of_them), LAPLACE),
    "no second bounding": Mutant(kept("safe", all_of_them), LAPLACE),
    "one key more than the limit": Mutant(kept("safe", one_more), LAPLACE),
    "users with one key more than the limit are not cut": Mutant(not_cut_with_one_more, LAPLACE),
    "users with one key more than the limit are not clipped": Mutant(not_cut_with_one_more, GAUSSIAN),
    "one key more than the limit in the first bounding": Mutant(kept("bounded", one_more), LAPLACE),
    "no clipping": Mutant(clipped_to(all_of_them), GAUSSIAN),
    "clipped to one key more than the limit": Mutant(clipped_to(one_more), GAUSSIAN),
    "counts without a bound": Mutant(count_clipped_at(lambda bound: 10**6 * bound), LAPLACE),
    "counts with a bound of one more": Mutant(count_clipped_at(lambda bound: bound + 1), LAPLACE),
    "sums without a lower bound": Mutant(sum_clipped(lambda _low: -(2**50), lambda high: high), GAUSSIAN),
    "sums without an upper bound": Mutant(sum_clipped(lambda low: low, lambda _high: 2**50), GAUSSIAN),
    "no rows for keys without data": Mutant(missing_keys, query(public_keys=["a"])),
    "a threshold on the exact weight": Mutant(exact_threshold(WeightedGaussian), GAUSSIAN),
    "a threshold on the exact count": Mutant(exact_threshold(LaplaceThreshold), LAPLACE),
    "a threshold of one less": Mutant(keep_as_if(LaplaceThreshold, threshold=lower(1)), LAPLACE),
    "a threshold of three less": Mutant(selection_with(threshold=lower(3)), LAPLACE),
    "a weighted threshold of a half less": Mutant(keep_as_if(WeightedGaussian, threshold=lower(UNIT / 2)), GAUSSIAN),
    "delta not split over the keys": Mutant(threshold_of_one_key, LAPLACE),
    "delta doubled": Mutant(doubled_delta, LAPLACE),
    "selection noise lacks the number of keys": Mutant(keep_as_if(LaplaceThreshold, noise=narrower(4)), LAPLACE),
    "every key weighs one unit": Mutant(one_unit_for_each_key(WeightedGaussian), GAUSSIAN),
    "every key weighs the whole account": Mutant(one_unit_for_each_key(PooledGaussian), POOLED),
    "an exact coin for one key instead of several": Mutant(
        keep_as_if(TruncatedGeometric, max_keys_per_user=lambda _: 1), GEOMETRIC
    ),
    "one draw for all keys": Mutant(one_draw_for_all(RoundedGaussian), GAUSSIAN),
    "one draw for all columns": Mutant(one_draw_for_all_columns, GAUSSIAN),
    "the draws of selection used again": Mutant(
        draws_of_selection_reused, replace(GAUSSIAN, measures=(plume.count(3),))
    ),
    "a seed used twice": Mutant(seed_reused, GAUSSIAN),
    "the same secret order in every run": Mutant(salt_fixed, LAPLACE),
    "floating-point noise": Mutant(float_noise, LAPLACE),
    "rows in another order": Mutant(unsorted, GAUSSIAN),
    "sums that are not numbers": Mutant(null_values_poison, LAPLACE),
}
