"""How a query is answered, as something to read and something to keep: made from the query alone, never from data."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import date
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

from plume.errors import UsageError, printable
from plume.mechanisms.open_bound import open_bounds, until_chosen
from plume.pipelines.calibrated import CalibratedQuery
from plume.pipelines.columns import MeasureColumns
from plume.pipelines.keys_per_user import OFFERS
from plume.pipelines.pipeline import make_plan
from plume.plan.analysis import costs, shuffles
from plume.plan.dialect import DUCKDB, SPARK
from plume.plan.explain import explain_steps, print_steps
from plume.plan.nodes import Noise
from plume.plan.picture import draw
from plume.privacy.calibration import LIMIT
from plume.privacy.cost import Cost, Spent, adds_up, recompose, spend

_DIGITS = 4
_PUBLIC = "public keys: each listed key is released, no other is"
_DIALECTS = {dialect.name: dialect for dialect in (DUCKDB, SPARK)}


@dataclass(frozen=True)
class MeasureNoise:
    """The noise on one part of a measure; most measures have one part only."""

    measure: str
    part: str | None
    """None where there is one only, which then is the released column itself."""
    kind: str
    standard_deviation: float

    def __str__(self) -> str:
        return printable(self.measure if self.part is None else f"{self.measure} ({self.part})")


@dataclass(frozen=True, repr=False)
class Explanation:
    """The plan of a query, its shuffles, its noise and what it spends; `print` it."""

    asked: CalibratedQuery
    plan: Noise
    pipeline: str

    @property
    def shuffles(self) -> int:
        """How often rows are brought together anew."""
        return shuffles(self.plan)

    @property
    def spent(self) -> Spent:
        """What a release spends, all parts together."""
        return spend(costs(self.plan), self.asked.query.budget)

    @property
    def recomputed(self) -> Spent:
        """The same as dp-accounting finds it, from the noise alone: the epsilon at the budget's delta. Its import takes a second."""
        return recompose(costs(self.plan), self.asked.query.budget)

    @property
    def noise(self) -> tuple[MeasureNoise, ...]:
        """The noise on each measure, part by part."""
        return tuple(noise for measure in self.asked.measures for noise in _noise_of(self.asked, measure))

    @property
    def chosen(self) -> dict[str, float]:
        """What was chosen within the budget, once it was; nothing, if nothing was left open."""
        return dict(self.asked.chosen)

    @property
    def is_open(self) -> bool:
        """Whether something is still to be chosen; until then noise and steps are told for stand-ins."""
        return bool(self.asked.undecided)

    @property
    def selection(self) -> tuple[dict[str, str | float | int], ...]:
        """How keys are chosen, round by round; no round if they are public."""
        return tuple(strategy.facts() for strategy in self.asked.rounds)

    def sql(self, dialect: str = "duckdb") -> str:
        """Print the steps in an engine's SQL; the secret of the order of keys stands as {salt}."""
        if dialect not in _DIALECTS:
            raise UsageError(f"dialect is {dialect!r}; it must be one of {', '.join(_DIALECTS)}.")
        return print_steps(self.plan, _DIALECTS[dialect])

    def record(self) -> dict[str, Any]:
        """Give the same facts as plain values, to be kept as JSON."""
        return self.facts() | {"recomputed": _plain(self.recomputed)}

    def facts(self) -> dict[str, Any]:
        """Give what is known without dp-accounting as plain values."""
        query = self.asked.query
        return {
            "query": {
                "user": query.user,
                "keys": list(query.keys),
                "measures": [_plain(measure.mechanism) for measure in self.asked.measures],
                "max_keys_per_user": query.max_keys_per_user,
                "where": query.where,
                "min_users": query.min_users,
                "public_keys": query.public_keys is not None,
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
        open_limit = any(choice.what == LIMIT for choice in self.asked.undecided)
        said = [f"if {LIMIT} = {self.asked.max_keys_per_user} is chosen:"] if open_limit else []
        sections = self._sections() | {"steps": [*said, *explain_steps(self.plan).splitlines()]}
        return "\n".join([self._head, *(_section(title, lines) for title, lines in sections.items())])

    def _repr_html_(self) -> str:
        """Show itself in a notebook, with a picture of the plan."""
        from plume.report.rendering import render  # noqa: PLC0415 - for notebooks only

        return render("explanation.html", head=self._head, sections=self._sections(), picture=draw(self.plan))

    @property
    def _head(self) -> str:
        return f"{self.pipeline}: {self.shuffles} shuffles"

    def _sections(self) -> dict[str, list[str]]:
        return {
            "guarantee": [guarantee(self)],
            "composed": [_recomputed(self.recomputed)],
            "spends": [f"{part}: {price}" for part, price in prices(self)],
            "bound": list(_bounds(self)),
            "selection": choices(self),
            "noise": [f"{n}: {n.kind}, standard deviation {_deviation(self, n)}" for n in self.noise],
        }

    def __repr__(self) -> str:
        return str(self)


def explain_plan(asked: CalibratedQuery, plan: Noise, pipeline: str) -> Explanation:
    """Explain a plan that was made of a query."""
    return Explanation(asked, plan, pipeline)


def decide(explanation: Explanation, chosen: Mapping[str, float]) -> Explanation:
    """Explain the same query with what was chosen within the budget."""
    pipeline = explanation.pipeline
    return (
        Explanation(*make_plan(explanation.asked.query, pipeline, chosen=chosen), pipeline) if chosen else explanation
    )


def _noise_of(asked: CalibratedQuery, measure: MeasureColumns) -> Iterator[MeasureNoise]:
    parts = asked.parts_of(measure)
    for part in parts:
        name = part.part.name if len(parts) > 1 else None
        yield MeasureNoise(measure.mechanism.name, name, part.noise.kind, part.standard_deviation)


def guarantee(explanation: Explanation) -> str:
    """State what a release guarantees, in one sentence."""
    spent, user = explanation.spent, printable(explanation.asked.query.user)
    return (
        f"({at_most(spent.epsilon)}, {at_most(spent.delta)})-differential privacy for every {user}: "
        f"adding or removing all rows of one {user}"
    )


def _bounds(explanation: Explanation) -> Iterator[str]:
    """Say what each user is held to, and who says so."""
    asked, undecided = explanation.asked, {choice.what for choice in explanation.asked.undecided}
    user, limit = asked.query.user, asked.max_keys_per_user
    if LIMIT in undecided:
        yield (
            f"each {user} counts in at most {LIMIT} keys, which is chosen once keys are selected, "
            f"from {OFFERS[0]} to {OFFERS[-1]}, by a noised histogram of keys per {user}; {limit} when keys are selected"
        )
    else:
        said = f"each {user} counts in at most {limit} keys"
        yield f"{said}, as was chosen by a noised histogram" if LIMIT in asked.chosen else said
    for what, (_, bound) in open_bounds(asked.query.measures).items():
        if what in undecided:
            yield (
                f"{what} is chosen once keys are selected, from {bound.offers[0]:.3g} to {bound.offers[-1]:.3g}, "
                f"by a noised histogram of what each {user} has per key"
            )
        else:
            yield f"{what} is {asked.chosen[what]:.10g}, as was chosen by a noised histogram"


def _deviation(explanation: Explanation, noise: MeasureNoise) -> str:
    """Say how wide noise is, in proportion to what is still open."""
    asked, undecided = explanation.asked, {choice.what for choice in explanation.asked.undecided}
    deviation, factors = noise.standard_deviation, []
    if LIMIT in undecided:
        deviation, factors = deviation / math.sqrt(asked.max_keys_per_user), [f" times √{LIMIT}"]
    for what, (number, bound) in open_bounds(asked.query.measures).items():
        measured = asked.query.measures[number].name == noise.measure and noise.part in (None, bound.part)
        if measured and what in undecided:
            deviation, factors = deviation / until_chosen(None), [*factors, f" times {bound.name}"]
    return f"{deviation:.4g}{''.join(factors)}"


def choices(explanation: Explanation) -> list[str]:
    """Say how keys are chosen, in a sentence for each round."""
    return [_choosing(facts) for facts in explanation.selection] or [_PUBLIC]


def at_most(spent: float) -> str:
    """Round up, from the digits the caller would write: a guarantee must not sound better than it is."""
    written = Decimal(repr(spent))
    return f"{float(Context(prec=_DIGITS, rounding=ROUND_CEILING).plus(written)):.{_DIGITS}g}"


def _recomputed(spent: Spent) -> str:
    return f"({spent.epsilon:.{_DIGITS}g}, {spent.delta:.{_DIGITS}g}) as recomputed by dp-accounting"


def _section(title: str, lines: list[str]) -> str:
    return "\n".join(f"{title if number == 0 else '':9}  {printable(line)}" for number, line in enumerate(lines))


def _recorded(cost: Cost) -> dict[str, str | float]:
    counted = {"epsilon": float(cost.epsilon), "coordinates": cost.coordinates, "shape": cost.shape.value}
    return {"part": cost.what} | ({"mu": cost.mu} if cost.mu else counted) | {"delta": cost.shown_alone}


def prices(explanation: Explanation) -> list[tuple[str, str]]:
    """Say what each part spends: epsilons as a whole where they add up, else by key, since their sum is not what is spent."""
    spending = costs(explanation.plan)
    return [(cost.what, _priced(cost, by_key=not adds_up(spending))) for cost in spending]


def _priced(cost: Cost, *, by_key: bool) -> str:
    if cost.mu:
        priced = f"mu {cost.mu:.4g}"
    elif by_key:
        priced = f"epsilon {float(cost.epsilon / cost.coordinates):.4g} for each of {cost.coordinates} keys"
    else:
        priced = f"epsilon {float(cost.epsilon):.4g}"
    return priced + (f", delta {cost.shown_alone:.3g}" if cost.shown_alone else "")


def _choosing(facts: dict[str, str | float | int]) -> str:
    if "users_for_even_chance" in facts:
        even, certain = facts["users_for_even_chance"], facts["users_for_certainty"]
        return f"{facts['strategy']}: a key is shown by an exact coin, even at {even} users, certain beyond {certain}"
    return (
        f"{facts['strategy']}: a key is shown if {facts['counted']} plus {facts['noise']} noise "
        f"(standard deviation {facts['standard_deviation']:.4g}) reach {facts['threshold']:.6g}"
    )


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
