"""The paper's table 2, on words: how slow and how far off the three systems are on real data, in the paper's columns.

Needs a Parquet file with the columns author, word and uses; words_from_git.py makes one from any git repository.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path

from results import Estimate, Panel, Point, Result, bars, estimates, paper_numbers, rows_of, slowdowns
from trials import NO_PRIVACY, SYSTEMS, Trial, conduct, words

LIMITS = [64, 512]
RUNS = 15
FORMS = {"runtime factor": ".2f", "absolute": ",.0f", "relative": ".4f", "keys": ",.0f"}


def main() -> None:
    """Release 15 times with each system and limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    question = words(parser.parse_args().file)
    systems = [NO_PRIVACY, *SYSTEMS]
    outcomes = conduct(
        [Trial(question, system, run, limit) for limit in LIMITS for run in range(RUNS) for system in systems]
    )
    found = {
        "runtime factor": slowdowns(outcomes),
        "absolute": estimates({trial: outcome.absolute for trial, outcome in outcomes.items()}),
        "relative": estimates({trial: outcome.relative for trial, outcome in outcomes.items()}),
        "keys": estimates({trial: outcome.keys for trial, outcome in outcomes.items()}),
    }
    paper = paper_numbers("words")
    Result(
        name="words",
        heading="Words: runtime factor and errors",
        columns=["L", "system", *FORMS],
        rows=[
            *(
                [f"{limit}", system, *_cells(found, Trial(question, system, limit=limit))]
                for limit in LIMITS
                for system in SYSTEMS
            ),
            *(["512, paper, on Reddit", system, *paper[system], ""] for system in SYSTEMS),
        ],
        picture=bars(
            [
                Panel(
                    name,
                    [
                        Point(system, f"L = {limit}", found[name][Trial(question, system, limit=limit)])
                        for limit in LIMITS
                        for system in SYSTEMS
                    ],
                )
                for name in ("runtime factor", "relative")
            ]
        ),
        runs=rows_of(outcomes),
    ).write()


def _cells(found: Mapping[str, Mapping[Trial, Estimate]], trial: Trial) -> list[str]:
    return [found[name][trial].text(form) for name, form in FORMS.items()]


if __name__ == "__main__":
    main()
