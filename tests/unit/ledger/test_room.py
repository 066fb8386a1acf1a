"""What is said to fit is granted, and hardly more is refused, by the ledger itself."""

from pathlib import Path
from typing import Any

import pytest

import plume
from plume.errors import BudgetExceeded, UsageError
from plume.ledger.publishing import price_for

KINDS: dict[str, dict[str, Any]] = {
    "gaussian": {},
    "laplace": {"max_keys_per_user": 2, "noise": "laplace", "selection": "laplace_threshold"},
    "public keys": {"public_keys": ["x"]},
}


def query(epsilon: float, **changes: Any) -> plume.Query:
    asked = {"user": "u", "keys": "k", "measures": [plume.users()], "max_keys_per_user": 4}
    return plume.Query(**asked | changes, budget=plume.Budget(epsilon, 1e-6))


def dataset_in(folder: Path, charges: int, limit: float = 3) -> Any:
    dataset = plume.Ledger.create(folder / "l").add_dataset("d", plume.Budget(limit, 1e-5))
    for number in range(charges):
        charge(dataset, query(0.5, **list(KINDS.values())[number % 3]), f"r{number}")
    return dataset


def charge(dataset: Any, asked: plume.Query, release_id: str) -> None:
    with dataset.claimed(release_id, "q") as claim:
        claim.reserve(price_for(plume.explain(asked)))


@pytest.mark.parametrize("charges", [0, 1, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_the_largest_epsilon_is_granted_and_hardly_more_is_refused(tmp_path: Path, kind: str, charges: int) -> None:
    dataset = dataset_in(tmp_path, charges)
    largest = dataset.plan(query(1, **KINDS[kind])).largest_epsilon
    with pytest.raises(BudgetExceeded, match="`plume ledger plan` name the largest"):
        charge(dataset, query(largest * 1.0002, **KINDS[kind]), "more")
    charge(dataset, query(largest, **KINDS[kind]), "largest")
    dataset.ledger.verify()


def test_more_fits_than_is_left_when_added_up(tmp_path: Path) -> None:
    dataset = dataset_in(tmp_path, 4)
    assert dataset.plan(query(1)).largest_epsilon > dataset.left


def test_a_plan_says_what_would_be_spent_and_charges_nothing(tmp_path: Path) -> None:
    dataset = dataset_in(tmp_path, 1)
    head = dataset.ledger.head
    plan = dataset.plan(query(1))
    assert (plan.fits, plan.needed.epsilon, plan.spent_after.epsilon) == (True, 1, 1.5)
    assert dataset.ledger.head == head
    assert not dataset.ledger.shelf.folder.joinpath(".lock-x").exists()


def test_a_plan_that_does_not_fit_says_so(tmp_path: Path) -> None:
    plan = dataset_in(tmp_path, 0).plan(query(4))
    assert (plan.fits, plan.spent_after, plan.largest_epsilon) == (False, None, 3)
    assert str(plan).startswith("It does not fit: this query needs epsilon 4 ")


def test_where_delta_is_spent_no_epsilon_fits(tmp_path: Path) -> None:
    dataset = plume.Ledger.create(tmp_path / "l").add_dataset("d", plume.Budget(3, 1e-7))
    assert dataset.plan(query(1)).largest_epsilon is None


def test_what_is_no_query_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"the query is a int; it must be a plume\.Query"):
        dataset_in(tmp_path, 0).plan(7)
