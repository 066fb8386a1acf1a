"""How a query is answered, as something to read and something to keep: made from the query, and from numbers chosen within its budget.

Nothing else in it comes from data.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import date
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

from plume.calibration.calibrated_query import CalibratedQuery
from plume.calibration.measure_noise import MeasureNoise, noise_of, shared_by_keys
from plume.cautions import Caution, budget_cautions, noise_cautions
from plume.choosing.keys_per_user import CANDIDATES
from plume.choosing.open_numbers import example_numbers
from plume.choosing.open_query import OpenQuery, decide_all
from plume.errors import printable
from plume.limit_meaning import describe_limit
from plume.mechanisms.open_bound import open_bounds
from plume.output.text_table import four_digits
from plume.pipelines.pipeline import PlannedQuery
from plume.plan.analysis import costs, shuffles, steps
from plume.plan.explain import explain_steps, print_steps
from plume.plan.nodes import USER, Clip, Noise
from plume.plan.picture import Picture, draw
from plume.plan.printing.registry import printer_of
from plume.privacy.cost import Cost, EpsilonCost, PooledCost, Spent, adds_up, recompose, shares_spent, spend
from plume.query import LIMIT, Query
from plume.settings import values_of

_DIGITS = 4
_PUBLIC = "public keys: each listed key is released, no other is"
_TOTAL = "no keys: one row is released, whoever is in it"


@dataclass(frozen=True, repr=False)
class Explanation:
    """The plan of a query, its shuffles, its noise and what it spends; `print` it."""

    planned: PlannedQuery

    @property
    def query(self) -> Query:
        """The query as it was asked."""
        return self.planned.query

    @property
    def calibrated(self) -> CalibratedQuery:
        """The query with its noise, and with numbers where it leaves them open: those that were chosen, and examples before."""
        return self.planned.calibrated

    @property
    def plan(self) -> tuple[Noise, ...]:
        """The stages that answer it, each a tree that ends in one noiser."""
        return self.planned.plan

    @property
    def pipeline(self) -> str:
        """Which pipeline planned it."""
        return self.planned.pipeline

    @property
    def shuffles(self) -> int:
        """How often rows are brought together anew."""
        return shuffles(self.plan)

    @property
    def spent(self) -> Spent:
        """What a release spends, all parts together."""
        return spend(costs(self.plan), self.query.budget)

    @property
    def recomputed(self) -> Spent:
        """The same as dp-accounting finds it, from the noise alone: the epsilon at the budget's delta. Its import takes a second."""
        return recompose(costs(self.plan), self.query.budget)

    @property
    def noise(self) -> tuple[MeasureNoise, ...]:
        """The noise on each measure, part by part."""
        return tuple(noise for measure in self.calibrated.measures for noise in noise_of(self.calibrated, measure))

    @property
    def chosen(self) -> dict[str, float]:
        """What was chosen within the budget, once it was; nothing, if nothing was left open."""
        return dict(self.planned.chosen)

    @property
    def is_open(self) -> bool:
        """Whether something is still to be chosen; until then noise and steps are those of examples."""
        return bool(_still_open(self))

    @property
    def selection(self) -> tuple[dict[str, str | float | int], ...]:
        """How keys are selected, round by round; no round if they are public."""
        return tuple(strategy.facts() for strategy in self.calibrated.rounds)

    @property
    def cautions(self) -> tuple[Caution, ...]:
        """What to be careful about, each with a next step; noise is judged once nothing is left to be chosen."""
        noise = () if self.is_open else noise_cautions(self.calibrated)
        return (*budget_cautions(self.query, self.spent), *noise)

    def sql(self, dialect: str = "duckdb") -> str:
        """Print the steps in an engine's SQL; the secret of the order of keys stands as {salt}."""
        return print_steps(self.plan, printer_of(dialect))

    def record(self) -> dict[str, Any]:
        """Give the same facts as plain values, to be kept as JSON."""
        return self.facts() | {"recomputed": _plain(self.recomputed)} | recorded_cautions(self)

    def facts(self) -> dict[str, Any]:
        """Give what is known without dp-accounting as plain values."""
        query = self.query
        return {
            "query": values_of(query)
            | {
                "keys": list(query.keys),
                "key_expressions": dict(query.key_expressions),
                "measures": list(_measures(self)),
                "public_keys": query.public_keys is not None,  # whole lists of keys do not belong in a record
                "shares": {name: float(weight) for name, weight in query.shares},
            },
            "guarantee": {
                "unit": query.user,
                "neighbours": "add or remove one",
                "epsilon": self.spent.epsilon,
                "delta": self.spent.delta,
            },
            "spent": [_recorded(cost) for cost in costs(self.plan)],
            "selection": list(self.selection),
            "noise": [_plain(noise) for noise in self.noise],
            "pipeline": self.pipeline,
            "shuffles": self.shuffles,
        } | ({"chosen": self.chosen} if self.chosen else {})

    def __str__(self) -> str:
        steps = [*_assumption(self), *explain_steps(self.plan).splitlines()]
        sections = self._sections() | {"steps": steps}
        return "\n".join([self._head, *(_section(title, lines) for title, lines in sections.items())])

    def _repr_html_(self) -> str:
        """Show itself in a notebook, with a picture of the plan."""
        from plume.report.rendering import render  # noqa: PLC0415 - for notebooks only

        sections = {title: lines for title, lines in self._sections().items() if title not in ("spends", "cautions")}
        return render(
            "explanation.html",
            explanation=self,
            head=self._head,
            sections=sections,
            spending=spending(self),
            assumed=list(_assumption(self)),
            picture=picture(self),
        )

    @property
    def _head(self) -> str:
        return f"{self.pipeline}: {self.shuffles} shuffles"

    def _sections(self) -> dict[str, list[str]]:
        return {
            "guarantee": [guarantee(self)],
            "composed": [_recomputed(self.recomputed)],
            "spends": [f"{part}: {price}" for part, price in prices(self)],
            **(
                {"keys": [f"{name}: {text}" for name, text in self.query.key_expressions]}
                if self.query.key_expressions
                else {}
            ),
            "bound": list(_bounds(self)),
            "selection": choices(self),
            "noise": list(_noises(self)),
        } | ({"cautions": [f"{one.found}. {one.next_step}." for one in self.cautions]} if self.cautions else {})

    def __repr__(self) -> str:
        return str(self)


def picture(explanation: Explanation) -> Picture:
    """Draw the plan with the caller's names of the user and the keys."""
    calibrated, query = explanation.calibrated, explanation.query
    named = zip(calibrated.keys, query.keys, strict=False)  # the one key of a total has no name
    return draw(explanation.plan, {USER: query.user, **dict(named)})


def decide(explanation: Explanation, chosen: Mapping[str, float]) -> Explanation:
    """Explain the same query with what was chosen within the budget."""
    return Explanation(decide_all(explanation.planned, chosen)) if chosen else explanation


def recorded_cautions(explanation: Explanation) -> dict[str, Any]:
    """Give cautions as plain values, where there are any; they are apart from `facts`, which old ledgers hash."""
    cautions = [asdict(one) for one in explanation.cautions]
    return {"cautions": cautions} if cautions else {}


def _still_open(explanation: Explanation) -> tuple[str, ...]:
    planned = explanation.planned
    return planned.open if isinstance(planned, OpenQuery) else ()


def _assumption(explanation: Explanation) -> Iterator[str]:
    """Say for which numbers the steps are told, where some are still to be chosen."""
    examples, still_open = example_numbers(explanation.query), _still_open(explanation)
    if still_open:
        listed = ", ".join(f"{what} = {examples[what]:g}" for what in still_open)
        yield f"if {listed} {'is' if len(still_open) == 1 else 'are'} chosen:"


def _measures(explanation: Explanation) -> Iterator[dict[str, Any]]:
    """Give the measures as they were asked for, each with what was chosen for it."""
    chosen = {
        number: {"chosen": explanation.chosen[what]}
        for what, (number, _) in open_bounds(explanation.query.measures).items()
        if what in explanation.chosen
    }
    for number, measure in enumerate(explanation.query.measures):
        yield _plain(measure) | chosen.get(number, {})


def guarantee(explanation: Explanation) -> str:
    """State what a release guarantees, in one sentence."""
    spent, user = explanation.spent, printable(explanation.query.user)
    return (
        f"({at_most(spent.epsilon)}, {at_most(spent.delta)})-differential privacy for every {user}: "
        f"adding or removing all rows of one {user}"
    )


def limit(explanation: Explanation) -> str:
    """State the limit on keys per user, and what becomes of users above it."""
    if not explanation.query.keys:
        return f"all records of a {printable(explanation.query.user)} count together, within the bounds of each measure"
    calibrated, open_limit = explanation.calibrated, LIMIT in _still_open(explanation)
    # Gaussian noise alone does not tell: runtime_optimized cuts users before it knows the selected keys.
    clips = any(isinstance(step, Clip) for step in steps(explanation.plan))
    return describe_limit(
        LIMIT if open_limit else calibrated.max_keys_per_user,
        calibrated.query.user,
        clips=clips,
    )


def _bounds(explanation: Explanation) -> Iterator[str]:
    """Say what each user is held to, and how that was chosen."""
    query, chosen, still_open = explanation.query, explanation.chosen, _still_open(explanation)
    user, rounds = query.user, explanation.calibrated.rounds
    yield limit(explanation)
    if LIMIT in still_open:
        selecting = f"; it is {explanation.calibrated.max_keys_per_user} when keys are selected" if rounds else ""
        yield (
            f"{LIMIT} is chosen once keys are selected, from {CANDIDATES[0]} to {CANDIDATES[-1]}, "
            f"by a noised histogram of keys per {user}{selecting}"
        )
    elif LIMIT in chosen:
        yield f"{LIMIT} is {explanation.calibrated.max_keys_per_user}, chosen from a noised histogram"
    for what, (_, bound) in open_bounds(query.measures).items():
        if what in still_open:
            yield (
                f"{what} is chosen once keys are selected, from {bound.candidates[0]:.3g} to {bound.candidates[-1]:.3g}, "
                f"by a noised histogram of what each {user} has per key"
            )
        else:
            yield f"{what} is {chosen[what]:.10g}, chosen from a noised histogram"


def _noises(explanation: Explanation) -> Iterator[str]:
    for noise in explanation.noise:
        number = number_of(noise.measure, noise.part, explanation.query)
        yield f"{number}: {noise.kind}, standard deviation {deviation(explanation, noise)}"
        if noise.standard_deviation_of_total is not None:
            yield f"{number}: {shared_by_keys(noise, explanation.query.known_keys or 0, explanation.calibrated.max_keys_per_user)}"


def number_of(measure: str, part: str | None, query: Query) -> str:
    """Say what noise is on. Quantiles are found by noised numbers of values; its width is not how far off they are themselves."""
    by_ranks = part is None and any(one.name == measure and None in one.columns.values() for one in query.measures)
    named = "numbers of values" if by_ranks else part
    return printable(measure if named is None else f"{measure} ({named})")


def deviation(explanation: Explanation, noise: MeasureNoise) -> str:
    """Say how wide noise is, in proportion to what is still open; as a duration, if the values are dates."""
    query, still_open, examples = explanation.query, _still_open(explanation), example_numbers(explanation.query)
    wide, factors = noise.standard_deviation, []
    if LIMIT in still_open:
        wide, factors = wide / math.sqrt(examples[LIMIT]), [f" times √{LIMIT}"]
    for what, (number, bound) in open_bounds(query.measures).items():
        measured = query.measures[number].name == noise.measure and noise.part in (None, bound.part)
        if measured and what in still_open:
            wide, factors = wide / examples[what], [*factors, f" times {bound.name}"]
    in_time = any(one.name == noise.measure and noise.part in one.parts_in_time for one in query.measures)
    return f"{_duration(wide) if in_time else four_digits(wide)}{''.join(factors)}"


def _duration(microseconds: float) -> str:
    """Write a duration in the largest unit of which it has at least one."""
    units = {"days": 86_400e6, "hours": 3_600e6, "minutes": 60e6, "seconds": 1e6}
    name = next((name for name, size in units.items() if microseconds >= size), "seconds")
    return f"{microseconds / units[name]:.4g} {name}"


def choices(explanation: Explanation) -> list[str]:
    """Say how keys are selected, in a sentence for each round."""
    lines = [line for facts in explanation.selection for line in _choosing(facts)]
    return lines or [_PUBLIC if explanation.query.keys else _TOTAL]


def at_most(spent: float) -> str:
    """Round up, from the digits the caller would write: a guarantee must not sound better than it is."""
    written = Decimal(repr(spent))
    return f"{float(Context(prec=_DIGITS, rounding=ROUND_CEILING).plus(written)):.{_DIGITS}g}"


def _recomputed(spent: Spent) -> str:
    return f"({spent.epsilon:.{_DIGITS}g}, {spent.delta:.{_DIGITS}g}) as recomputed by dp-accounting"


def _section(title: str, lines: list[str]) -> str:
    return "\n".join(f"{title if number == 0 else '':9}  {printable(line)}" for number, line in enumerate(lines))


def _recorded(cost: Cost) -> dict[str, str | float]:
    priced: dict[str, str | float]
    if isinstance(cost, EpsilonCost):
        priced = {"epsilon": float(cost.epsilon), "coordinates": cost.coordinates, "shape": cost.shape.value}
    else:
        priced = {"mu": cost.mu}
    return {"part": cost.what} | priced | {"delta": cost.shown_alone}


def prices(explanation: Explanation) -> list[tuple[str, str]]:
    """Say what each part spends: epsilons as a whole where they add up, else by key, since their sum is not what is spent."""
    spending = costs(explanation.plan)
    return [(cost.what, _priced(cost, by_key=not adds_up(spending))) for cost in spending]


def spending(explanation: Explanation) -> list[tuple[str, float, str]]:
    """Say for each part what it is, its share of the whole, and its price."""
    shares = shares_spent(costs(explanation.plan))
    return [(part, shares[part], price) for part, price in prices(explanation)]


def _priced(cost: Cost, *, by_key: bool) -> str:
    if isinstance(cost, PooledCost):
        priced = f"mu {cost.mu:.4g} together with what is below"
    elif not isinstance(cost, EpsilonCost):
        priced = f"mu {cost.mu:.4g}"
    elif by_key:
        priced = f"epsilon {cost.each.epsilon:.4g} for each of {cost.coordinates} keys"
    else:
        priced = f"epsilon {float(cost.epsilon):.4g}"
    return priced + (f", delta {cost.shown_alone:.3g}" if cost.shown_alone else "")


def _choosing(facts: dict[str, str | float | int]) -> Iterator[str]:
    if "users_for_even_chance" in facts:
        even, certain = facts["users_for_even_chance"], facts["users_for_certainty"]
        yield f"{facts['strategy']}: a key is shown with a 50 % chance at {even} users, certainly above {certain}"
    else:
        yield (
            f"{facts['strategy']}: a key is shown if {facts['counted']} plus {facts['noise']} noise "
            f"(standard deviation {facts['standard_deviation']:.4g}) reach {facts['threshold']:.6g}"
        )
    yield from (str(facts[more]) for more in ("account", "released") if more in facts)


def _plain(described: Any) -> dict[str, Any]:
    plain = {field.name: _value(getattr(described, field.name)) for field in fields(described)}
    return {"type": type(described).__name__} | {name: value for name, value in plain.items() if value is not None}


def _value(value: Any) -> Any:
    match value:
        case tuple():
            return [_value(item) for item in value]
        case date():
            return value.isoformat()
        case _:
            return value
