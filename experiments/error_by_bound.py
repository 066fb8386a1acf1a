"""The paper's figure 3: error against L, the most keys one user may have, on synthetic data."""

from results import Panel, Point, Result, curves, estimates, rows_of
from trials import SYSTEMS, Trial, arguments, conduct, synthetic

LIMITS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
RUNS = 3


def main() -> None:
    """Release with every limit; the left panel counts keys that were dropped as 0, the right one leaves them out."""
    given = arguments(__doc__, users=[10**6])
    [users] = given.users
    trials = [
        Trial(synthetic(users), system, run, limit) for limit in LIMITS for run in range(RUNS) for system in SYSTEMS
    ]
    outcomes = conduct(trials, memory_limit=given.memory_limit)
    absolute = estimates({trial: outcome.absolute_all for trial, outcome in outcomes.items()})
    relative = estimates({trial: outcome.relative for trial, outcome in outcomes.items()})
    Result(
        name="error_by_bound",
        heading="Error against the bound L",
        columns=["L", *(f"{system}, {kind}" for kind in ("absolute over all keys", "relative") for system in SYSTEMS)],
        rows=[
            [
                str(limit),
                *(absolute[Trial(synthetic(users), system, limit=limit)].text(",.3f") for system in SYSTEMS),
                *(relative[Trial(synthetic(users), system, limit=limit)].text(".4f") for system in SYSTEMS),
            ]
            for limit in LIMITS
        ],
        picture=curves(
            [
                Panel(title, [Point(trial.system, trial.limit, error) for trial, error in errors.items()], scale="log")
                for title, errors in {
                    "mean absolute error over all keys": absolute,
                    "mean relative error over retained keys": relative,
                }.items()
            ],
            across="L",
        ),
        runs=rows_of(outcomes),
    ).write()


if __name__ == "__main__":
    main()
