"""The paper's table 2, on words: how slow and how far off the three systems are on real data, in the paper's columns.

Needs a Parquet file with the columns author, word and uses; words_from_git.py makes one from any git repository.
"""

import argparse
from pathlib import Path

from results import Panel, Point, Result, bars, estimate, paper_numbers, rows_of, slowdown
from trials import NO_PRIVACY, SYSTEMS, Trial, conduct, repeated, words

# How often each limit is tried; 512 is the paper's, and keeps few words here.
RUNS = {64: 15, 512: 5}


def main() -> None:
    """Release with each system and limit, in turn with the exact answer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", type=Path)
    question = words(parser.parse_args().words)
    outcomes = conduct(
        [
            trial
            for limit, times in RUNS.items()
            for trial in repeated([Trial(question, system, limit=limit) for system in (NO_PRIVACY, *SYSTEMS)], times)
        ]
    )
    private = [Trial(question, system, limit=limit) for limit in RUNS for system in SYSTEMS]
    found = {
        kind: (
            slowdown(outcomes, kind),
            *(estimate(outcomes, kind, field) for field in ("absolute", "relative", "keys")),
        )
        for kind in private
    }
    forms = (".2f", ",.0f", ".4f", ",.0f")
    paper = paper_numbers("words")
    Result(
        name="words",
        heading="Words: runtime factor and errors",
        columns=["L", "system", "runtime factor", "absolute", "relative", "words retained", "relative, median run"],
        rows=[
            *(
                [
                    str(kind.limit),
                    kind.system,
                    *(each.text(form) for each, form in zip(cells, forms, strict=True)),
                    f"{estimate(outcomes, kind, 'relative').median:.4f}",
                ]
                for kind, cells in found.items()
            ),
            *(["512, paper on Reddit", system, *paper[system], "", ""] for system in SYSTEMS),
        ],
        picture=bars(
            [
                Panel(
                    title,
                    [Point(kind.system, f"L = {kind.limit}", cells[place]) for kind, cells in found.items()],
                    form=form,
                )
                for title, place, form in (("runtime factor", 0, ".1f"), ("mean relative error", 2, ".3f"))
            ]
        ),
        runs=rows_of(outcomes),
    ).write()


if __name__ == "__main__":
    main()
