"""The paper's figure 2: how many times longer each system takes than the same aggregation without privacy, by number of users."""

from results import Panel, Point, Result, curves, estimate, power, rows_of, slowdown
from trials import NO_PRIVACY, SYSTEMS, USERS, Trial, arguments, by_users, conduct, synthetic


def main() -> None:
    """Time every release, in turn with the exact answer."""
    given = arguments(__doc__, users=USERS)
    outcomes = conduct(by_users(given.users, [NO_PRIVACY, *SYSTEMS]), memory_limit=given.memory_limit)
    factors = {
        (users, system): slowdown(outcomes, Trial(synthetic(users), system))
        for users in given.users
        for system in SYSTEMS
    }
    timed = (NO_PRIVACY, "plume")
    Result(
        name="runtime_by_users",
        heading="Slowdown against no privacy by number of users",
        columns=["users", *SYSTEMS, *(f"seconds, {system}" for system in timed)],
        rows=[
            [
                power(users),
                *(factors[users, system].text(".1f") for system in SYSTEMS),
                *(estimate(outcomes, Trial(synthetic(users), system), "seconds").text(".2f") for system in timed),
            ]
            for users in given.users
        ],
        picture=curves(
            [
                Panel(
                    "times the seconds without privacy",
                    [Point(system, users, factor) for (users, system), factor in factors.items()],
                )
            ],
            across="users",
        ),
        runs=rows_of(outcomes),
    ).write()


if __name__ == "__main__":
    main()
