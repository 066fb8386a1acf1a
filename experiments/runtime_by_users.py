"""The paper's figure 2: how many times longer each system takes than the same aggregation without privacy, by number of users."""

from results import Panel, Point, Result, curves, estimates, power, rows_of, slowdowns
from trials import NO_PRIVACY, SYSTEMS, Trial, arguments, by_users, conduct, synthetic


def main() -> None:
    """Time every release, in turn with the exact answer."""
    given = arguments(__doc__, users=[10**5, 10**6, 10**7])
    outcomes = conduct(by_users(given.users, [NO_PRIVACY, *SYSTEMS]), memory_limit=given.memory_limit)
    seconds = estimates({trial: outcome.seconds for trial, outcome in outcomes.items()})
    factors = slowdowns(outcomes)
    Result(
        name="runtime_by_users",
        heading="Slowdown against no privacy by number of users",
        columns=["users", *SYSTEMS, f"seconds, {NO_PRIVACY}", "seconds, plume"],
        rows=[
            [
                power(users),
                *(factors[Trial(synthetic(users), system)].text(".1f") for system in SYSTEMS),
                *(seconds[Trial(synthetic(users), system)].text(".2f") for system in (NO_PRIVACY, "plume")),
            ]
            for users in given.users
        ],
        picture=curves(
            [
                Panel(
                    "times the seconds without privacy",
                    [
                        Point(trial.system, trial.question.users, factor)
                        for trial, factor in factors.items()
                        if trial.system != NO_PRIVACY
                    ],
                )
            ],
            across="users",
        ),
        runs=rows_of(outcomes),
    ).write()


if __name__ == "__main__":
    main()
