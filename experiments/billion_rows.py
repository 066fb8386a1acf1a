"""10^9 rows of 10^8 users on one machine: that it completes, how long it takes, and whether keys and errors are as expected."""

from results import ERRORS, Panel, Point, Result, bars, error_cells, estimate, power, rows_of, slowdown
from trials import NO_PRIVACY, Trial, arguments, by_users, conduct, synthetic

TENTH, ALL = 10**7, 10**8


def main() -> None:
    """Count once with all users, beside a tenth of them; the bar for plume is 12 times the seconds of the tenth."""
    given = arguments(__doc__, users=[TENTH, ALL])
    outcomes = conduct(by_users(given.users, [NO_PRIVACY, *given.systems]), memory_limit=given.memory_limit)
    kinds = [Trial(synthetic(users), system) for users in given.users for system in given.systems]
    seconds = {kind: estimate(outcomes, kind, "seconds") for kind in kinds}
    Result(
        name="billion_rows",
        heading="A billion rows",
        columns=["users", "system", "seconds", f"times {power(TENTH)} users", "times no privacy", *ERRORS],
        rows=[
            [
                power(kind.question.users),
                kind.system,
                seconds[kind].text(",.0f"),
                f"{seconds[kind].mean / seconds[Trial(synthetic(TENTH), kind.system)].mean:.1f}",
                slowdown(outcomes, kind).text(".1f"),
                *error_cells(outcomes, kind),
            ]
            for kind in kinds
        ],
        picture=bars(
            [
                Panel(
                    "seconds",
                    [Point(kind.system, f"{power(kind.question.users)} users", seconds[kind]) for kind in kinds],
                )
            ]
        ),
        runs=rows_of(outcomes),
        command="make paper-full",
    ).write()


if __name__ == "__main__":
    main()
