"""Where the exact answer is known to be zero, a release is nothing but noise: as wide as `explain` promised, to half a percent.

A million public keys without data, real randomness. The standard deviation of a million draws is off by 0.5 % with a chance of 2e-12
for Gaussian and 8e-6 for Laplace noise: six times per run of this file, one false alarm in 40,000 runs.
"""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import plume
from plume.noise.entropy import Entropy
from plume.noise.gaussian import RoundedGaussian
from plume.noise.rounded_laplace import RoundedLaplace

KEYS = 1_000_000
NOBODY = pa.table({"u": pa.array([], pa.int64()), "k": pa.array([], pa.int64()), "v": pa.array([], pa.float64())})
KINDS = {"gaussian": RoundedGaussian, "laplace": RoundedLaplace}


def widths(noise: str) -> dict[str, float]:
    """For each measure, how wide its noise is in a release, as a part of what was promised before."""
    query = plume.Query(
        user="u",
        keys="k",
        measures=[plume.users(), plume.count(3), plume.sum("v", -2, 5)],
        max_keys_per_user=64,
        budget=plume.Budget(epsilon=math.log(3), delta=1e-5),
        public_keys=pa.table({"k": np.arange(KEYS)}),
        noise=noise,
    )
    promised = {part.measure: part.standard_deviation for part in plume.explain(query).noise}
    released = plume.run(query, NOBODY).to_arrow()
    assert released.num_rows == KEYS
    return {name: np.std(released[name].to_numpy()) / width for name, width in promised.items()}


@pytest.mark.parametrize("noise", KINDS)
def test_a_release_without_data_is_as_wide_as_promised(noise: str) -> None:
    assert widths(noise) == pytest.approx({"users": 1, "count": 1, "v_sum": 1}, abs=0.005)


@pytest.mark.parametrize("noise", KINDS)
@pytest.mark.parametrize("error", [Fraction(98, 100), Fraction(102, 100)])
def test_noise_that_is_wrong_by_two_percent_is_seen(
    noise: str, error: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = KINDS[noise].sample

    def wrong(self: RoundedGaussian | RoundedLaplace, count: int, entropy: Entropy) -> np.ndarray:
        return right(replace(self, scale=self.scale * error), count, entropy)

    monkeypatch.setattr(KINDS[noise], "sample", wrong)
    assert all(abs(width - 1) > 0.005 for width in widths(noise).values())
