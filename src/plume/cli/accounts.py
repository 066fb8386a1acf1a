"""What `plume ledger` does, as lines to read."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from plume.cli.explaining import explain_options
from plume.cli.terminal import put
from plume.errors import BudgetExceeded, printable
from plume.ledger.ledger import Dataset, Ledger
from plume.ledger.places import store_at
from plume.privacy.budget import Budget


def create_dataset(file: Path | str, name: str, *, epsilon: float, delta: float) -> None:
    """Add a dataset to a ledger, which is made if there is none."""
    budget = Budget(epsilon, delta)
    if store_at(file).is_there():
        ledger = Ledger(file)
        ledger.add_dataset(name, budget)
    else:
        ledger = Ledger.create(file, datasets={name: budget})
    _say(f"dataset {name} may spend epsilon {epsilon:g} and delta {delta:g}; ledger head {ledger.head}")


def show_datasets(file: Path | str, layout: str) -> None:
    """Print what each dataset has spent and what still fits, and what is unfinished."""
    ledger = Ledger(file)
    datasets = [ledger.dataset(name) for name in ledger.datasets()]
    if layout == "json":
        _put_json(
            {"datasets": [_facts(one) for one in datasets], "unfinished": ledger.unfinished(), "head": ledger.head}
        )
    else:
        for dataset in datasets:
            _show(dataset)
        for release_id, state in ledger.unfinished().items():
            _say(
                f"release {release_id} is {state}; `plume ledger recover` tidies up, and the same release id finishes it at no further cost"
            )
    if ledger.store.caution is not None:
        click.echo(printable(ledger.store.caution), err=True)


def _facts(dataset: Dataset) -> dict[str, Any]:
    return {
        "dataset": dataset.name,
        "budget": asdict(dataset.budget),
        "spent": asdict(dataset.spent),
        "left": dataset.left,
    }


def _show(dataset: Dataset) -> None:
    budget, spent = dataset.budget, dataset.spent
    _say(
        f"{dataset.name}: spent epsilon {spent.epsilon:.9g} at delta {spent.delta:.3g}, "
        f"of epsilon {budget.epsilon:.9g} and delta {budget.delta:.3g}; added up, epsilon {dataset.left:.9g} is left"
    )
    _say("  releases cost less together than added up; `plume ledger plan` says whether a query still fits")


def plan_query(options: Mapping[str, Any]) -> None:
    """Print what a query would do to a budget; end as a refused run does if it does not fit."""
    dataset = Ledger(options["file"]).dataset(options["dataset"])
    explanation = explain_options(options)
    plan = dataset.plan(explanation.query, pipeline=options["pipeline"])
    if options["layout"] == "json":
        _put_json(plan.record())
    else:
        for line in str(plan).splitlines():
            _say(line)
    if not plan.fits:
        raise BudgetExceeded("the budget of the dataset does not allow this query.")


def show_history(file: Path | str, layout: str) -> None:
    """Print what happened, in words; as JSON also as it is kept."""
    ledger = Ledger(file)
    if layout == "json":
        _put_json(ledger.history().record())
        return
    for line in ledger.history().lines():
        _say(line)


def verify_ledger(file: Path | str, head: str | None, layout: str) -> None:
    """Print the head of a ledger that is as it should be."""
    verified = Ledger(file).verify(head)
    if layout == "json":
        _put_json({"verified": True, "head": verified})
    else:
        _say(f"all is well; ledger head {verified}")


def recover_releases(file: Path | str) -> None:
    """Print what became of each unfinished release."""
    for release_id, state in Ledger(file).recover().items():
        _say(f"release {release_id} is {state}")


def abandon_release(file: Path | str, release_id: str) -> None:
    """Say that a release was given up."""
    Ledger(file).abandon(release_id)
    _say(f"release {release_id} is abandoned; what it cost stays spent")


def _put_json(facts: Any) -> None:
    put(f"{json.dumps(facts, indent=2)}\n")


def _say(line: str) -> None:
    click.echo(printable(line))
