"""The paper's figure 3: error against L, the most keys one user may have, on synthetic data."""

from results import Panel, Point, Result, curves, estimate, rows_of
from trials import SYSTEMS, Trial, arguments, conduct, synthetic

LIMITS = [1, 4, 16, 32, 64, 128, 512]
RUNS = 3
# The paper's two panels: since L decides which keys are kept, the first is over all keys, those dropped as 0.
FIELDS = {"absolute over all keys": "absolute_all", "relative": "relative"}


def main() -> None:
    """Release with every limit."""
    given = arguments(__doc__, users=[10**6])
    [users] = given.users
    outcomes = conduct(
        [Trial(synthetic(users), system, run, limit) for limit in LIMITS for run in range(RUNS) for system in SYSTEMS],
        memory_limit=given.memory_limit,
    )
    errors = {
        (title, system, limit): estimate(outcomes, Trial(synthetic(users), system, limit=limit), field)
        for title, field in FIELDS.items()
        for system in SYSTEMS
        for limit in LIMITS
    }
    Result(
        name="error_by_bound",
        heading="Error against the bound L",
        columns=["L", *(f"{system}, {title}" for title in FIELDS for system in SYSTEMS)],
        rows=[
            [str(limit), *(errors[title, system, limit].text(".4f") for title in FIELDS for system in SYSTEMS)]
            for limit in LIMITS
        ],
        picture=curves(
            [
                Panel(
                    f"mean error, {title}",
                    [Point(system, limit, errors[title, system, limit]) for system in SYSTEMS for limit in LIMITS],
                )
                for title in FIELDS
            ],
            across="L",
        ),
        runs=rows_of(outcomes),
    ).write()


if __name__ == "__main__":
    main()
