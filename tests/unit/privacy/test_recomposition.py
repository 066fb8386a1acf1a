"""Every plan, composed once more by dp-accounting from the scales it really draws, without looking at how it was calibrated.

The delta of thresholds enters as what it is: the chance that a key of one user alone is shown, a loss of infinity, composed with the
noise. Two kinds of plans are calibrated more cleverly, since noise and threshold are never both paid in full. With Gaussian selection in
one round and Gaussian measures, a user whose keys are all shared pays for the noise and for no threshold. That user is composed here; those
with keys of their own are in test_gaussian.py. In two rounds, a user whose keys are all shared in the first may have any number of novel
ones in the second, as the first turned out; that user is composed here, and others in test_two_rounds.py.
"""

import math
from dataclasses import replace
from functools import reduce

import numpy as np
import pytest
from dp_accounting.pld import common, pld_pmf
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy import stats

import plume
from exact import plan_with
from pairs import pairs
from plume.calibration.calibrated_part import CalibratedPart
from plume.calibration.calibrated_query import CalibratedQuery, calibrate
from plume.choosing.calibrated_choice import Choice
from plume.choosing.keys_per_user import NoiseKeysPerUser
from plume.noise.gaussian import RoundedGaussian
from plume.noise.laplace import DiscreteLaplace
from plume.noise.rounded_laplace import RoundedLaplace
from plume.pipelines.pipeline import PlannedQuery
from plume.plan.analysis import costs
from plume.planning import make_plan
from plume.running import explain
from plume.selection.truncated_geometric import TruncatedGeometric
from plume.selection.weighted_gaussian import UNIT, WeightedGaussian

BUDGET = plume.Budget(epsilon=math.log(3), delta=1e-5)
STRATEGIES = [
    "laplace_threshold",
    "truncated_geometric",
    "gaussian_threshold",
    "weighted_gaussian",
    "two_round_weighted_gaussian",
    "public keys",
]
LIMITS = [1, 2, 3, 8, 64, 512]
# Between points of curves dp-accounting draws lines, which lose little.
INTERVAL = 5e-4
ALL_GAUSSIAN = [
    ("gaussian_threshold", "gaussian"),
    ("weighted_gaussian", "gaussian"),
    ("two_round_weighted_gaussian", "gaussian"),
    ("public keys", "gaussian"),
]


def query(strategy: str, noise: str, limit: int, measures: int) -> plume.Query:
    chosen = {"public_keys": ["a"]} if strategy == "public keys" else {"selection": strategy}
    return plume.Query(
        user="u",
        keys="k",
        measures=[plume.count(number + 2, name=f"m{number}") for number in range(measures)],
        max_keys_per_user=limit,
        budget=BUDGET,
        noise=noise,
        **chosen,
    )


def finest(asked: CalibratedQuery) -> float:
    """At most 1e-4, and where dp-accounting rounds every single choice of a key, a power of two of its loss, which needs no rounding."""
    coins = [strategy for strategy in asked.rounds if isinstance(strategy, TruncatedGeometric)]
    if not coins:
        return 1e-4
    each = float(coins[0].epsilon / coins[0].max_keys_per_user)
    return each / 2 ** math.ceil(math.log2(each / 1e-4))


def noised(noise: object, sensitivity: float, limit: int, interval: float) -> pld.PrivacyLossDistribution:
    """Noise on as many keys as one user has, each changed by the sensitivity."""
    scale = float(noise.scale)
    if isinstance(noise, RoundedGaussian):
        return pld.from_gaussian_mechanism(
            scale, sensitivity=math.sqrt(limit) * sensitivity, value_discretization_interval=interval
        )
    if isinstance(noise, RoundedLaplace):
        one = pld.from_laplace_mechanism(scale, sensitivity=sensitivity, value_discretization_interval=interval)
    else:
        one = pld.from_discrete_laplace_mechanism(
            1 / scale, sensitivity=sensitivity, value_discretization_interval=interval
        )
    return one.self_compose(limit)


def shown(delta: float, interval: float) -> pld.PrivacyLossDistribution:
    return pld.from_privacy_parameters(common.DifferentialPrivacyParameters(0.0, delta), interval)


def selected(strategy: object, interval: float) -> list[pld.PrivacyLossDistribution]:
    """What a round of selection reveals by its noise or coins, and by keys of one user alone that pass."""
    limit = strategy.max_keys_per_user
    if isinstance(strategy, TruncatedGeometric):
        one = common.DifferentialPrivacyParameters(float(strategy.epsilon / limit), 0.0)
        return [pld.from_privacy_parameters(one, interval).self_compose(limit), shown(strategy.delta, interval)]
    if isinstance(strategy, WeightedGaussian):
        keys = np.arange(1, limit + 1)
        sigma = float(strategy.noise.scale) / UNIT
        alone = stats.norm.sf(((strategy.threshold - 0.5) / UNIT - 1 / np.sqrt(keys)) / sigma)
        passing = float(np.max(-np.expm1(keys * np.log1p(-alone))))
        noise = pld.from_gaussian_mechanism(sigma, value_discretization_interval=interval)
        return [noise, shown(passing, interval)]
    passing = -math.expm1(limit * math.log1p(-strategy.noise.tail(strategy.threshold - 1)))
    return [noised(strategy.noise, 1, limit, interval), shown(passing, interval)]


def coarse(part: CalibratedPart) -> object:
    """The noise in steps of the part, of which the plan draws finer ones."""
    return replace(part.noise, scale=part.noise.scale / (1 << part.bits))


def histograms(planned: PlannedQuery) -> list[tuple[RoundedGaussian, int]]:
    """The noise on histograms: of users, one in one bucket, by one, and by 1,024 in its second column; of sizes, as many as keys count."""
    columns = []
    for choice in (stage.noiser for stage in planned.plan if isinstance(stage.noiser, Choice)):
        if isinstance(choice, NoiseKeysPerUser):
            columns += [(choice.users, 1), (choice.fullness, 1024)]
        else:
            columns += [(choice.pairs, planned.calibrated.max_keys_per_user)]
    return columns


def chosen(planned: PlannedQuery, interval: float) -> list[pld.PrivacyLossDistribution]:
    return [
        pld.from_gaussian_mechanism(float(noise.scale), sensitivity=most, value_discretization_interval=interval)
        for noise, most in histograms(planned)
    ]


def in_two_rounds(asked: CalibratedQuery, choosing: PlannedQuery | None) -> list[pld.PrivacyLossDistribution]:
    """The noise of the first round; and the second with all that follows, of users in as many keys as count, by the worst of all numbers
    of novel keys among them at each epsilon, since that number may depend on the first."""
    first, second = asked.rounds
    keys, sigma = second.max_keys_per_user, float(second.noise.scale) / UNIT
    measures = [
        math.sqrt(asked.max_keys_per_user * part.part.squared) / float(coarse(part).scale) for part in asked.parts
    ]
    measures += [most / float(noise.scale) for noise, most in (histograms(choosing) if choosing else [])]
    novel = np.arange(keys + 1)[:, None]
    hidden = novel * np.log1p(-stats.norm.sf(((second.threshold - 0.5) / UNIT - 1 / math.sqrt(keys)) / sigma))
    mu = np.sqrt((1 - novel / keys) / sigma**2 + math.hypot(*measures) ** 2)
    places = np.arange(-1500, 1500) + round(BUDGET.epsilon / INTERVAL)
    at = places * INTERVAL
    # Of hockey sticks between two normal laws, in the form that scipy.stats has.
    stick = lambda x: stats.norm.sf(x / mu - mu / 2) - np.exp(x) * stats.norm.sf(x / mu + mu / 2)  # noqa: E731
    adding = (-np.expm1(hidden) + np.exp(hidden) * stick(at - hidden)).max(axis=0)
    removing = stick(at + hidden).max(axis=0)
    curves = (pld_pmf.create_pmf_pessimistic_connect_dots(INTERVAL, places, curve) for curve in (removing, adding))
    noise = float(first.noise.scale) / UNIT
    return [
        pld.from_gaussian_mechanism(noise, value_discretization_interval=INTERVAL),
        pld.PrivacyLossDistribution(*curves),
    ]


def recomposed(asked: CalibratedQuery, *, thresholds: bool, choosing: PlannedQuery | None = None) -> float:
    interval, limit = finest(asked), asked.max_keys_per_user
    if len(asked.rounds) == 2 and not thresholds:
        together = reduce(lambda composed, part: composed.compose(part), in_two_rounds(asked, choosing))
        return together.get_epsilon_for_delta(BUDGET.delta * (1 + 1e-6))
    parts = [part for strategy in asked.rounds for part in selected(strategy, interval)[: 2 if thresholds else 1]]
    parts += [noised(coarse(part), part.part.absolute, limit, interval) for part in asked.parts]
    parts += chosen(choosing, interval) if choosing else []
    together = reduce(lambda composed, part: composed.compose(part), parts)
    # Thresholds may take all of delta; what dp-accounting cuts off at the ends of its distributions is then a trifle too much.
    return together.get_epsilon_for_delta(BUDGET.delta * (1 + 1e-6))


def allowance(asked: CalibratedQuery) -> float:
    """What dp-accounting adds by rounding the losses of discrete Laplace noise and of coins up to its grid."""
    rounded = [part.noise for part in asked.parts] + [getattr(strategy, "noise", None) for strategy in asked.rounds]
    discrete = sum(isinstance(noise, DiscreteLaplace) for noise in rounded)
    return 1e-6 + discrete * asked.max_keys_per_user * 1e-4


def check(strategy: str, noise: str, limit: int, measures: int) -> None:
    asked = calibrate(query(strategy, noise, limit, measures))
    found = recomposed(asked, thresholds=(strategy, noise) not in ALL_GAUSSIAN)
    assert 0.97 * BUDGET.epsilon <= found <= BUDGET.epsilon + allowance(asked)


@pytest.mark.parametrize(("strategy", "limit"), pairs(STRATEGIES, LIMITS))
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_plans_with_three_measures_spend_at_most_the_budget_and_nearly_all_of_it(
    strategy: str, noise: str, limit: int
) -> None:
    check(strategy, noise, limit, 3)


@pytest.mark.parametrize(("limit", "measures"), pairs(LIMITS, [1, 2, 4]))
@pytest.mark.parametrize(("strategy", "noise"), ALL_GAUSSIAN)
def test_gaussian_plans_spend_at_most_the_budget_and_nearly_all_of_it(
    strategy: str, noise: str, limit: int, measures: int
) -> None:
    check(strategy, noise, limit, measures)


@pytest.mark.slow
@pytest.mark.parametrize("measures", [1, 2, 4])
@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_plans_with_other_numbers_of_measures_spend_at_most_the_budget_and_nearly_all_of_it(
    strategy: str, noise: str, limit: int, measures: int
) -> None:
    check(strategy, noise, limit, measures)


@pytest.mark.parametrize("limit", [1, 64])
def test_the_papers_plans_are_recomposed_to_at_most_their_budget(limit: int) -> None:
    asked = calibrate(
        plume.Query.paper(user="u", keys="k", measures=[plume.count(2)], max_keys_per_user=limit, budget=BUDGET)
    )
    assert recomposed(asked, thresholds=True) <= BUDGET.epsilon + allowance(asked)


def test_noise_that_is_two_percent_too_small_is_noticed() -> None:
    asked = calibrate(query("weighted_gaussian", "laplace", 64, 1))
    [part] = asked.parts
    broken = replace(asked, parts=(replace(part, noise=RoundedLaplace(part.noise.scale * 98 / 100)),))
    assert recomposed(broken, thresholds=True) > BUDGET.epsilon * 1.005


@pytest.mark.parametrize(
    ("strategy", "noise", "limit"),
    [
        ("weighted_gaussian", "gaussian", 64),
        ("weighted_gaussian", "laplace", 64),
        ("two_round_weighted_gaussian", "gaussian", 8),
        ("truncated_geometric", "gaussian", 8),
        ("truncated_geometric", "laplace", 1),
        ("laplace_threshold", "laplace", 64),
        ("public keys", "laplace", 8),
    ],
)
def test_explanations_recompute_what_is_found_here(strategy: str, noise: str, limit: int) -> None:
    explained = explain(query(strategy, noise, limit, 1))
    found = recomposed(explained.calibrated, thresholds=(strategy, noise) not in ALL_GAUSSIAN)
    assert explained.recomputed.epsilon == pytest.approx(found, rel=2e-3)
    assert explained.recomputed.epsilon <= BUDGET.epsilon + allowance(explained.calibrated)
    assert explained.recomputed.delta == pytest.approx(BUDGET.delta, rel=1e-6)
    assert len(costs(explained.plan)) == len(explained.calibrated.rounds) + 1


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize(
    "strategy", ["weighted_gaussian", "gaussian_threshold", "two_round_weighted_gaussian", "public keys"]
)
def test_plans_that_choose_their_limit_spend_at_most_the_budget_whatever_they_choose(strategy: str, limit: int) -> None:
    open_limit = replace(query(strategy, "gaussian", 1, 2), max_keys_per_user="auto")
    planned = plan_with(open_limit, {"max_keys_per_user": limit})
    found = recomposed(planned.calibrated, thresholds=(strategy, "gaussian") not in ALL_GAUSSIAN, choosing=planned)
    assert 0.97 * BUDGET.epsilon <= found <= BUDGET.epsilon + allowance(planned.calibrated)


@pytest.mark.parametrize(("limit", "bound", "records"), [(1, 2.0**-10, 1), (7, 24.0, 12), (512, 2.0**40, 2**20)])
@pytest.mark.parametrize("strategy", ["weighted_gaussian", "two_round_weighted_gaussian", "public keys"])
def test_plans_that_choose_bounds_spend_at_most_the_budget_whatever_they_choose(
    strategy: str, limit: int, bound: float, records: int
) -> None:
    measures = [plume.sum("v", 0, "auto"), plume.count("auto"), plume.users()]
    planned = plan_with(
        replace(query(strategy, "gaussian", 1, 2), measures=measures, max_keys_per_user="auto"),
        {"max_keys_per_user": limit, "v_sum: high_total": bound, "count: max_per_key": records},
    )
    found = recomposed(planned.calibrated, thresholds=(strategy, "gaussian") not in ALL_GAUSSIAN, choosing=planned)
    assert 0.97 * BUDGET.epsilon <= found <= BUDGET.epsilon + allowance(planned.calibrated)


def test_a_choice_that_is_not_charged_for_would_be_noticed() -> None:
    """With a tenth of the budget for the histogram, and measures that spend as if there were none."""
    open_limit = replace(query("weighted_gaussian", "gaussian", 1, 1), max_keys_per_user="auto")
    planned = make_plan(replace(open_limit, shares={"selection": 9, "m0": 9, "max_keys_per_user": 2}))
    free = make_plan(open_limit).calibrated
    assert recomposed(free, thresholds=False, choosing=planned) > BUDGET.epsilon * 1.02
