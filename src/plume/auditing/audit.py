"""`plume.audit`: a query put to the test, and the report of it.

Tests are in four layers. A, what must hold exactly without noise: `invariants.py`. B, the noise itself, around a known centre: `noise.py`.
C, what is released with one user more is no likelier than epsilon and delta allow: `cells.py`. D, what only whole releases show, such as
two that share their draws: `noise.py` and `cells.py`. `choice.py` tries numbers that are chosen within the budget, in the layers A to C.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

from plume.arguments import call_checked
from plume.auditing.cells import measures, novel_keys, secret_order, shared_keys
from plume.auditing.choice import choice, with_fixed_numbers
from plume.auditing.finding import Finding
from plume.auditing.invariants import invariants
from plume.auditing.made_up_tables import without_conditions
from plume.auditing.noise import noise, noise_of_selected_keys
from plume.auditing.shared_noise import shared_noise
from plume.auditing.statistics import ALPHA
from plume.auditing.trial import Trial
from plume.engines.duckdb import DuckDB
from plume.engines.engine import Engine
from plume.errors import UsageError, printable, shown
from plume.limit_meaning import name_limit
from plume.planning import refuse_other_than_query
from plume.privacy.budget import Budget
from plume.privacy.cost import Cost, EpsilonCost
from plume.query import Query
from plume.settings import CORRELATED
from plume.version import __version__

_TRIALS = 100_000
_LEAST_TRIALS = 4_000
_MOST_KEYS = 64
# Each draw for all keys is kept.
_MOST_THAT_SHARE = 2_000
# Where mistakes in the same code are loud: a small bug in a small delta is beyond any number of trials.
_LOUD_EPSILON, _LOUD_DELTA, _LOUD_KEYS = 4.0, 0.05, 4


@dataclass(frozen=True, repr=False)
class Audit:
    """What an audit found. A failure is a bug; a pass is not a proof, since only what was tried was tried."""

    query: str
    pipeline: str
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Whether every test passed."""
        return all(finding.passed for finding in self.findings)

    def record(self) -> dict[str, object]:
        """Give the report as plain values."""
        return {
            "plume": __version__,
            "query": self.query,
            "pipeline": self.pipeline,
            "passed": self.passed,
            "false_alarm_per_test": 2 * ALPHA,
            "findings": [asdict(finding) for finding in self.findings],
        }

    def to_json(self) -> str:
        """Give the report as JSON, to be kept."""
        return json.dumps(self.record(), indent=2)

    def __str__(self) -> str:
        head = f"{'verdict':7}  {'layer':5}  {'claimed':>8}  {'found':>8}  {'trials':>8}  test"
        lines = [_line(finding) for finding in self.findings]
        return "\n".join(map(printable, [self.query, f"pipeline {self.pipeline}", head, *lines, self.verdict]))

    def __repr__(self) -> str:
        return str(self)

    @property
    def verdict(self) -> str:
        """How many tests failed, in words."""
        failed, tests = sum(not finding.passed for finding in self.findings), len(self.findings)
        return f"{failed} of {tests} tests failed" if failed else f"all {tests} tests passed"

    def _repr_html_(self) -> str:
        """Show itself in a notebook: the verdict of each test."""
        from plume.auditing.notebook import show_audit  # noqa: PLC0415 - for notebooks only

        return show_audit(self)


def _line(finding: Finding) -> str:
    claimed, found = ("" if number is None else f"{number:.4g}" for number in (finding.claimed, finding.found))
    verdict = "pass" if finding.passed else "FAIL"
    return f"{verdict:7}  {finding.layer:5}  {claimed:>8}  {found:>8}  {finding.trials:>8}  {finding.test}"


@call_checked()
def audit(query: Query, *, engine: Engine | None = None, pipeline: str = "plume", trials: int = _TRIALS) -> Audit:
    """Put a query to the test on made-up neighbouring data: nobody's data is read and no budget spent.

    Layer A checks, without noise, what must hold exactly; B checks the noise itself; C checks that one user more makes no event likelier
    than epsilon and delta allow; D checks what only whole releases show. `trials` is how many pairs of neighbours the statistics get.
    """
    refuse_other_than_query(query)
    if isinstance(trials, bool) or not isinstance(trials, int) or trials < _LEAST_TRIALS:
        raise UsageError(f"trials is {shown(trials)}; it must be a whole number of at least {_LEAST_TRIALS}.")
    if not query.keys:
        raise UsageError(
            "an audit makes up many keys, and keys is empty; audit the same query with the keys of a column and public_keys, "
            "which draws the same noise."
        )
    if query.noise == CORRELATED and (query.known_keys or 0) > _MOST_THAT_SHARE:
        raise UsageError(
            f"public_keys holds {query.known_keys} keys that share noise, and an audit draws for all of them many times; "
            f"audit the same query with at most {_MOST_THAT_SHARE} of them."
        )
    trial = Trial(without_conditions(query), engine or DuckDB(), pipeline)
    return Audit(_described(query), pipeline, tuple(findings(trial, trials)))


def findings(trial: Trial, trials: int) -> Iterator[Finding]:
    """Make one test after another, the cheapest first, for whoever wants to stop at the first that fails."""
    if trial.query.noise == CORRELATED:
        yield from shared_noise(trial, trials)
        return
    if trial.query.choices:
        yield from choice(trial, trials)
        trial = with_fixed_numbers(trial)
    pinned = replace(trial, query=_pinned(trial))
    yield from invariants(pinned)
    yield from noise(pinned, trials)
    yield from secret_order(pinned)
    for name, regime in {"as asked": pinned, "loud": replace(pinned, query=_loud(pinned.query))}.items():
        tests = [*measures(regime, trials)]
        if trial.query.public_keys is None:
            tests += [*novel_keys(regime, trials), *shared_keys(regime, 4 * trials)]
            if name == "loud":  # few users decide there, so that many keys are few rows
                tests += noise_of_selected_keys(regime, 4 * trials)
        yield from (replace(finding, test=f"{finding.test}, {name}") for finding in tests)


def _pinned(trial: Trial) -> Query:
    """Ask for the noise that the query gets, since the same query about known keys might get another; and for not too many keys."""
    kinds = {_noise_behind(part.cost) for part in trial.explain().calibrated.parts}
    chosen = kinds.pop() if len(kinds) == 1 else trial.query.noise
    keys = min(trial.query.selection_limit, _MOST_KEYS)
    return replace(trial.query, noise=chosen, max_keys_per_user=keys)


def _noise_behind(cost: Cost) -> str:
    return "laplace" if isinstance(cost, EpsilonCost) else "gaussian"


def _loud(query: Query) -> Query:
    delta = _LOUD_DELTA if query.budget.delta else 0.0
    keys = min(query.selection_limit, _LOUD_KEYS)
    return replace(query, budget=Budget(_LOUD_EPSILON, delta), max_keys_per_user=keys)


def _described(query: Query) -> str:
    measures = ", ".join(measure.name for measure in query.measures)
    limit = name_limit(query.max_keys_per_user, query.user)
    grouped = f"per {', '.join(query.keys)}, {limit}" if query.keys else "in total"
    return f"{measures} {grouped}, epsilon {query.budget.epsilon:g}, delta {query.budget.delta:g}"
