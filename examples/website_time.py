"""Seconds on a website, from section 8 of the paper: several measures at once, on pages that are public.

Run it with `python examples/website_time.py`.
"""

import pyarrow as pa

import plume

PAGES = ["home", "search", "help", "imprint"]
VISITORS = 5_000


def visits() -> pa.Table:
    """Make up visits: everybody comes three times, mostly to the first pages, and nobody reads the imprint."""
    made_up = [(visitor, number) for visitor in range(VISITORS) for number in range(3)]
    return pa.table(
        {
            "visitor": [f"v{visitor}" for visitor, _ in made_up],
            "page": [PAGES[visitor * number % 3] for visitor, number in made_up],
            "seconds": [float((visitor * 37 + number * 101) % 240) for visitor, number in made_up],
        }
    )


def main() -> None:
    """Release visitors, visits and seconds per page."""
    query = plume.Query(
        user="visitor",
        keys="page",
        measures=[
            plume.users(name="visitors"),
            plume.count(max_per_key=3, name="visits"),
            plume.sum("seconds", low_total=0, high_total=300),
        ],
        max_keys_per_user=3,
        public_keys=PAGES,
        budget=plume.Budget(epsilon=1),
    )
    print(plume.run(query, visits()))


if __name__ == "__main__":
    main()
