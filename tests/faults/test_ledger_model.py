"""Random sequences of reserving, drawing, staging, publishing, crashing, recovering and giving up, against a model of forty lines."""

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

import plume
from ledgers import empty_database, kept
from plume.errors import BudgetExceeded, LedgerError
from plume.ledger.price import EPSILONS, Price
from plume.ledger.store import entries_of
from postgresql_servers import Server

LIMIT = 6
NAMES = ("a", "b", "c", "d")
DEAD = ("lost", "abandoned")


@dataclass
class Model:
    """What a ledger is: a limit, a state per release, and what each drew and released."""

    spent: int = 0
    states: dict[str, str] = field(default_factory=dict)
    asked: dict[str, str] = field(default_factory=dict)
    released: dict[str, bytes] = field(default_factory=dict)
    staged: dict[str, bytes] = field(default_factory=dict)

    def claim(self, name: str, request: str) -> str:
        """What happens when a release is asked for."""
        if name in self.asked and self.asked[name] != request:
            return "refused"
        self.recover(name)
        return "refused" if self.states.get(name) in DEAD else self.states.get(name, "new")

    def reserve(self, name: str, request: str, cost: int) -> bool:
        if self.spent + cost > LIMIT:
            return False
        self.spent += cost
        self.states[name], self.asked[name] = "reserved", request
        return True

    def recover(self, name: str) -> None:
        if self.states.get(name) == "drawing":
            self.states[name] = "lost"
        if self.states.get(name) == "staged":
            self.states[name], self.released[name] = "released", self.staged[name]


class LedgerMachine(RuleBasedStateMachine):
    """A process that makes one release after another, and may die after any step."""

    def __init__(self, database: Callable[[], str] | None) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))  # noqa: S108
        place = database() if database else self.folder / "l"
        self.ledger = plume.Ledger.create(place, datasets={"d": plume.Budget(epsilon=LIMIT)})
        self.model, self.drawn = Model(), 0

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    @rule(name=st.sampled_from(NAMES), request=st.sampled_from("qqqr"), cost=st.integers(1, 3), steps=st.integers(0, 5))
    def make(self, name: str, request: str, cost: int, steps: int) -> None:
        """Go so many steps towards a release, then die."""
        expected = self.model.claim(name, request)
        try:
            with self.ledger.dataset("d").claimed(name, request) as claim:
                assert (str(claim.state) if claim.state else "new") == expected
                if expected == "released":
                    assert claim.read() == self.model.released[name]
                else:
                    self.go(claim, name, request, cost, steps)
        except LedgerError:
            assert expected == "refused"

    def go(self, claim: object, name: str, request: str, cost: int, steps: int) -> None:
        if self.model.states.get(name) is None and steps > 0 and not self.reserve(claim, name, request, cost):
            return
        content = f"{name} {self.drawn}".encode()
        if steps > 1:
            claim.begin_drawing()
            self.model.states[name] = "drawing"
            self.drawn += 1
        if steps == 2:
            claim.store.shelf.stage(name, content[:3])
        if steps > 2:
            claim.stage(content)
            self.model.states[name], self.model.staged[name] = "staged", content
        if steps == 4:
            claim.store.shelf.publish(name)
        if steps > 4:
            claim.publish()
            self.model.states[name], self.model.released[name] = "released", content

    def reserve(self, claim: object, name: str, request: str, cost: int) -> bool:
        granted = True
        try:
            claim.reserve(Price(cost * EPSILONS, 0, cost * EPSILONS, 0, 0))
        except BudgetExceeded:
            granted = False
        assert granted == self.model.reserve(name, request, cost)
        return granted

    @rule()
    def recover(self) -> None:
        self.ledger.recover()
        for name in NAMES:
            self.model.recover(name)

    @precondition(lambda self: self.model.states)
    @rule(name=st.sampled_from(NAMES))
    def abandon(self, name: str) -> None:
        allowed = self.model.states.get(name) == "reserved"
        try:
            self.ledger.abandon(name)
        except LedgerError:
            assert not allowed
            self.model.recover(name)
        else:
            assert allowed
            self.model.states[name] = "abandoned"

    @invariant()
    def says_the_same(self) -> None:
        self.ledger.verify()
        found = {name: entries_of(self.ledger.store, name) for name in NAMES}
        assert {name: str(entries[-1].kind) for name, entries in found.items() if entries} == self.model.states
        assert self.ledger.dataset("d").spent.epsilon == self.model.spent <= LIMIT
        files = kept(self.ledger)
        assert {name: files[name] for name in self.model.released} == self.model.released


def try_sequences(sequences: int, database: Callable[[], str] | None) -> None:
    run_state_machine_as_test(
        lambda: LedgerMachine(database),
        settings=settings(
            max_examples=sequences, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )


@pytest.mark.parametrize(
    "sequences", [60, pytest.param(200, marks=pytest.mark.engines), pytest.param(2000, marks=pytest.mark.slow)]
)
def test_random_sequences_end_where_the_model_does(sequences: int) -> None:
    try_sequences(sequences, None)


@pytest.mark.parametrize(
    "sequences", [3, pytest.param(60, marks=pytest.mark.engines), pytest.param(1000, marks=pytest.mark.slow)]
)
def test_random_sequences_end_where_the_model_does_in_a_database(sequences: int, ledger_server: Server) -> None:
    try_sequences(sequences, lambda: empty_database(ledger_server.url, "model"))
