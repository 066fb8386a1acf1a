"""The paper's configuration against our default at the same guarantee, by number of users."""

from results import Panel, Point, Result, bars, estimates, power, rows_of
from trials import CONFIGURATIONS, Trial, arguments, conduct, runs, synthetic


def main() -> None:
    """Release with both; errors over all keys, where those that were dropped count as 0, can be compared although keys differ."""
    given = arguments(__doc__, users=[10**5, 10**6, 10**7])
    trials = [
        Trial(synthetic(users), "plume", run, configuration=configuration)
        for users in given.users
        for run in range(runs(users))
        for configuration in CONFIGURATIONS
    ]
    outcomes = conduct(trials, memory_limit=given.memory_limit)
    found = {
        "keys": estimates({trial: outcome.keys for trial, outcome in outcomes.items()}),
        "absolute": estimates({trial: outcome.absolute for trial, outcome in outcomes.items()}),
        "relative": estimates({trial: outcome.relative for trial, outcome in outcomes.items()}),
        "absolute over all keys": estimates({trial: outcome.absolute_all for trial, outcome in outcomes.items()}),
    }
    forms = {"keys": ",.0f", "absolute": ",.1f", "relative": ".4f", "absolute over all keys": ",.2f"}
    kinds = [Trial(synthetic(users), "plume", configuration=name) for users in given.users for name in CONFIGURATIONS]
    Result(
        name="configurations",
        heading="The paper's configuration and our default",
        columns=["users", "configuration", *forms],
        rows=[
            [
                power(kind.question.users),
                kind.configuration,
                *(found[name][kind].text(form) for name, form in forms.items()),
            ]
            for kind in kinds
        ],
        picture=bars(
            [
                Panel(
                    name,
                    [
                        Point(kind.configuration, f"{power(kind.question.users)} users", found[name][kind])
                        for kind in kinds
                    ],
                )
                for name in ("keys", "absolute")
            ]
        ),
        runs=rows_of(outcomes),
    ).write()


if __name__ == "__main__":
    main()
