import pytest

import plume
from plume.auditing.claims import ColumnClaim, claims, paid
from plume.pipelines.noisers import _rounded


def claimed(**changes: object) -> dict[str, ColumnClaim]:
    asked = {
        "user": "u",
        "keys": "k",
        "measures": [plume.users(), plume.sum("v", -2, 10), plume.mean("v", 0, 1), plume.histogram("v", [0, 1, 2])],
        "max_keys_per_user": 4,
        "budget": plume.Budget(1, 1e-5),
    }
    return {claim.column: claim for claim in claims(plume.explain(plume.Query(**asked | changes)))}


def test_columns_that_are_one_part_have_a_claim_in_their_place() -> None:
    found = {claim.column: claim.position for claim in claimed().values()}
    assert found == {"users": 0, "v_sum": 1, "v_histogram_0_1": 3, "v_histogram_1_2": 4}


def test_whole_numbers_are_released_in_ones_and_sums_in_steps_of_their_grid() -> None:
    found = claimed()
    assert (found["users"].step, found["v_histogram_0_1"].step) == (1, 1)
    assert 0 < found["v_sum"].step < 1e-4


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_the_tail_is_that_of_noise_which_is_rounded_after_it_is_drawn(noise: str, steps: int) -> None:
    claim = claimed(measures=[plume.users()], noise=noise, public_keys=["a"])["users"]
    fine = int(claim.step / claim.part.unit)
    bits = fine.bit_length() - 1
    for sign in (1, -1):
        # The least fine noise of this sign that is rounded to so many steps.
        least = next(
            size for size in range((steps - 1) * fine, steps * fine + 1) if sign * _rounded(sign * size, bits) >= steps
        )
        assert claim.tail(sign, steps) == claim.part.noise.tail(least)


def test_noise_pays_for_what_one_user_can_change() -> None:
    gaussian = claimed(measures=[plume.count(3)], public_keys=["a"], noise="gaussian")["count"].part
    assert paid(gaussian) == pytest.approx(3 * 4**0.5 * 2**gaussian.bits)
    laplace = claimed(measures=[plume.count(3)], public_keys=["a"], noise="laplace")["count"].part
    assert paid(laplace) == pytest.approx(3 * 4)
