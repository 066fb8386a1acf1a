"""What is said to fit is granted, and hardly more is refused, by the ledger itself."""

import functools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import plume
from plume.errors import BudgetExceeded, UsageError
from plume.ledger.composition import total
from plume.ledger.price import dataset_budget
from plume.ledger.publishing import price_for
from plume.ledger.room import DatasetAccount, largest_epsilon_of
from plume.privacy import losses
from plume.root import smallest, within

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
    with pytest.raises(BudgetExceeded, match="left of epsilon 3"):
        charge(dataset, query(largest * 1.0002, **KINDS[kind]), "more")
    charge(dataset, query(largest, **KINDS[kind]), "largest")
    dataset.ledger.verify()


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_is_refused_names_the_largest_epsilon_of_its_query(tmp_path: Path, kind: str) -> None:
    dataset = dataset_in(tmp_path, 4)
    rows = pa.table({"u": [1], "k": ["x"]})
    largest = dataset.plan(query(1, **KINDS[kind])).largest_epsilon
    with pytest.raises(BudgetExceeded, match=rf"The largest epsilon with which this query fits is {largest:.5g}\.$"):
        plume.run(query(3, **KINDS[kind]), rows, ledger=dataset)
    charge(dataset, query(largest, **KINDS[kind]), "largest")


def test_a_run_says_when_no_epsilon_fits(tmp_path: Path) -> None:
    dataset = plume.Ledger.create(tmp_path / "l").add_dataset("d", plume.Budget(3, 1e-7))
    with pytest.raises(BudgetExceeded, match=r"This query fits with no epsilon that is large enough to be useful\.$"):
        plume.run(query(1), pa.table({"u": [1], "k": ["x"]}), ledger=dataset)


@pytest.mark.parametrize("charges", [1, 2, 7])
@pytest.mark.parametrize("kind", KINDS)
def test_the_search_agrees_with_halving(kind: str, charges: int) -> None:
    """Two answers may differ by a unit of the fifth digit, since either may end on its side of what just fits."""
    spent = [price_for(plume.explain(query(0.3 + n / 50, **list(KINDS.values())[n % 3]))) for n in range(charges)]
    account = DatasetAccount(dataset_budget(plume.Budget(3, 1e-5)), spent)

    def fits(inverse: float) -> bool:
        price = price_for(plume.explain(query(1 / inverse, **KINDS[kind])))
        return total([*spent, price], account.budget).within(account.budget)

    slow = 1 / smallest(fits, start=1 / 3, close=within(1e-6))
    assert largest_epsilon_of(query(1, **KINDS[kind]), account, "plume") == pytest.approx(slow, rel=1e-4)


def test_composing_all_but_the_last_once_changes_no_digit() -> None:
    """With fresh coordinates that no search has composed before, beside the same ones composed one by one."""
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    coordinates = tuple(losses.Coordinates(0.1 + n / 90, 2, losses.Shape.ANY) for n in range(12))
    for changed in (coordinates, (*coordinates[:-1], losses.Coordinates(0.7, 1, losses.Shape.ANY))):
        parts = [losses._coordinates(pld, one, 1e-3) for one in changed]
        parts.append(pld.from_gaussian_mechanism(1 / 0.3, value_discretization_interval=1e-3))
        whole = functools.reduce(lambda one, other: one.compose(other), parts).get_epsilon_for_delta(1e-6)
        assert losses._distribution(losses.Losses(0.3, changed), 1e-3).get_epsilon_for_delta(1e-6) == whole


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
    with pytest.raises(UsageError, match=r"the query is an int; it must be a plume\.Query"):
        dataset_in(tmp_path, 0).plan(7)
