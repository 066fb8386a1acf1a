"""The paper's figure 1: absolute and relative error of the three systems on synthetic data, by number of users."""

from results import Panel, Point, Result, curves, estimates, power, rows_of
from trials import SYSTEMS, Trial, arguments, by_users, conduct, synthetic


def main() -> None:
    """Compare every release with the exact counts, over the keys it retains."""
    given = arguments(__doc__, users=[10**5, 10**6, 3 * 10**6, 10**7])
    outcomes = conduct(by_users(given.users, SYSTEMS), memory_limit=given.memory_limit)
    absolute = estimates({trial: outcome.absolute for trial, outcome in outcomes.items()})
    relative = estimates({trial: outcome.relative for trial, outcome in outcomes.items()})
    Result(
        name="error_by_users",
        heading="Error by number of users",
        columns=["users", *(f"{system}, {kind}" for kind in ("absolute", "relative") for system in SYSTEMS)],
        rows=[
            [
                power(users),
                *(absolute[Trial(synthetic(users), system)].text(",.1f") for system in SYSTEMS),
                *(relative[Trial(synthetic(users), system)].text(".4f") for system in SYSTEMS),
            ]
            for users in given.users
        ],
        picture=curves(
            [
                Panel(title, [Point(trial.system, trial.question.users, error) for trial, error in errors.items()])
                for title, errors in {"mean absolute error": absolute, "mean relative error": relative}.items()
            ],
            across="users",
        ),
        runs=rows_of(outcomes),
    ).write()


if __name__ == "__main__":
    main()
