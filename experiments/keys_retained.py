"""The paper's table 1: how many keys each system retains on synthetic data, by number of users."""

from results import Panel, Point, Result, curves, estimate, paper_numbers, power, rows_of
from trials import SYSTEMS, USERS, Trial, arguments, by_users, conduct, synthetic


def main() -> None:
    """Count the keys of every release."""
    given = arguments(__doc__, users=USERS)
    outcomes = conduct(by_users(given.users, SYSTEMS), memory_limit=given.memory_limit)
    keys = {
        (users, system): estimate(outcomes, Trial(synthetic(users), system), "keys")
        for users in given.users
        for system in SYSTEMS
    }
    paper = paper_numbers("keys_retained")
    Result(
        name="keys_retained",
        heading="Keys retained by number of users",
        columns=["users", *SYSTEMS, *(f"paper's {system}" for system in SYSTEMS)],
        rows=[
            [
                power(users),
                *(keys[users, system].text(",.0f") for system in SYSTEMS),
                *(paper[system].get(power(users), "") for system in SYSTEMS),
            ]
            for users in given.users
        ],
        picture=curves(
            [
                Panel(
                    "keys retained",
                    [Point(system, users, found) for (users, system), found in keys.items() if found.mean >= 1],
                    "log",
                )
            ],
            across="users",
        ),
        runs=rows_of(outcomes),
    ).write()


if __name__ == "__main__":
    main()
