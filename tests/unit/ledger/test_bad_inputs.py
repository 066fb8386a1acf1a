"""Every bad input there is, charged to a ledger: the same error as without one, and nothing is spent."""

from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

import plume
from plume.cli.main import main
from questions import GENEROUS
from unit.cli.test_bad_commands import BAD, CANARY, arguments, data  # noqa: F401 - a fixture
from unit.test_bad_inputs import DATA, PARAMETERS, run

CODE_OF_WRONG_USE = 2


@pytest.fixture
def ledger(tmp_path: Path) -> plume.Ledger:
    made = plume.Ledger.create(tmp_path / "budget.ledger")
    made.add_dataset("d", plume.Budget(10 * GENEROUS.epsilon, 0.99))
    return made


@pytest.fixture
def charged(ledger: plume.Ledger, monkeypatch: pytest.MonkeyPatch) -> plume.Ledger:
    """Let every run of this test be charged."""
    monkeypatch.setattr(plume, "run", partial(plume.run, ledger=ledger, dataset="d", release_id="bad"))
    return ledger


@pytest.mark.parametrize("kind", PARAMETERS)
def test_a_bad_parameter_costs_nothing(kind: str, charged: plume.Ledger) -> None:
    call, error, match = PARAMETERS[kind]
    with pytest.raises(error, match=match):
        call()
    assert len(charged.history()) == 1


@pytest.mark.parametrize("kind", DATA)
def test_bad_data_costs_nothing(
    kind: str, charged: plume.Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make, error, match = DATA[kind]
    content = make(tmp_path)
    with pytest.raises(error, match=match):
        run(content)
    assert len(charged.history()) == 1


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.usefixtures("data")
def test_a_bad_command_costs_nothing(kind: str, ledger: plume.Ledger) -> None:
    result = CliRunner().invoke(main, [*arguments(kind), "--ledger", str(ledger.path), "--dataset", "d"])
    assert (result.exit_code, result.stdout) == (CODE_OF_WRONG_USE, "")
    assert BAD[kind][2] in result.stderr
    assert CANARY not in result.output
    assert len(ledger.history()) == 1


def test_there_are_at_least_a_hundred_and_fifty_bad_inputs() -> None:
    assert len(PARAMETERS) + len(DATA) + len(BAD) >= 150
