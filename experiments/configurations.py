"""The paper's configuration against our default at the same guarantee, by number of users."""

from results import ERRORS, Result, error_cells, keys_and_errors, power, rows_of
from trials import Trial, arguments, by_users, conduct, synthetic

COMPARED = ("paper", "default")


def main() -> None:
    """Release with both; since they retain different keys, errors are also compared on keys that both retain."""
    given = arguments(__doc__, users=[10**5, 10**6])
    kinds = [
        Trial(synthetic(users), "plume", configuration=configuration)
        for users in given.users
        for configuration in COMPARED
    ]
    outcomes = conduct(by_users(given.users, ["plume"], COMPARED), memory_limit=given.memory_limit)
    Result(
        name="configurations",
        heading="The paper's configuration and our default",
        columns=["users", "configuration", *ERRORS],
        rows=[[power(kind.question.users), kind.configuration, *error_cells(outcomes, kind)] for kind in kinds],
        picture=keys_and_errors(outcomes, {kind: f"{power(kind.question.users)} users" for kind in kinds}),
        runs=rows_of(outcomes),
    ).write()


if __name__ == "__main__":
    main()
