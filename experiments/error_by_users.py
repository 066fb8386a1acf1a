"""The paper's figure 1: absolute and relative error of the three systems on synthetic data, by number of users."""

from results import Panel, Point, Result, curves, estimate, power, rows_of
from trials import SYSTEMS, Trial, arguments, by_users, conduct, synthetic


def main() -> None:
    """Compare every release with the exact counts, over the keys it retains."""
    given = arguments(__doc__, users=[10**6, 10**7])
    outcomes = conduct(by_users(given.users, SYSTEMS), memory_limit=given.memory_limit)
    errors = {
        (users, system, field): estimate(outcomes, Trial(synthetic(users), system), field)
        for users in given.users
        for system in SYSTEMS
        for field in ("absolute", "relative")
    }
    Result(
        name="error_by_users",
        heading="Error by number of users",
        columns=["users", *(f"{system}, {field}" for field in ("absolute", "relative") for system in SYSTEMS)],
        rows=[
            [
                power(users),
                *(errors[users, system, "absolute"].text(",.1f") for system in SYSTEMS),
                *(errors[users, system, "relative"].text(".4f") for system in SYSTEMS),
            ]
            for users in given.users
        ],
        picture=curves(
            [
                Panel(
                    f"mean {field} error",
                    [Point(system, users, errors[users, system, field]) for system in SYSTEMS for users in given.users],
                )
                for field in ("absolute", "relative")
            ],
            across="users",
        ),
        runs=rows_of(outcomes),
    ).write()


if __name__ == "__main__":
    main()
