"""What every strategy of selection retains and how far it is off, at the same guarantee: on synthetic data and, given a file, on words."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from results import ERRORS, Result, error_cells, keys_and_errors, rows_of
from trials import CONFIGURATIONS, Question, Trial, conduct, repeated, synthetic, words

import plume

RUNS = 3


def compare(name: str, heading: str, question: Question, limits: Sequence[int]) -> None:
    """Release with each of them."""
    kinds = [
        Trial(question, "plume", limit=limit, configuration=configuration)
        for limit in limits
        for configuration in CONFIGURATIONS
    ]
    outcomes = conduct(repeated(kinds, RUNS))
    Result(
        name=name,
        heading=heading,
        columns=["L", "strategy", "noise", "standard deviation of the noise", *ERRORS],
        rows=[[str(kind.limit), kind.configuration, *_noise(kind), *error_cells(outcomes, kind)] for kind in kinds],
        picture=keys_and_errors(outcomes, {kind: f"L = {kind.limit}" for kind in kinds}),
        runs=rows_of(outcomes),
    ).write()


def _noise(kind: Trial) -> list[str]:
    [noise] = plume.explain(kind.query).noise
    return [noise.kind, f"{noise.standard_deviation:,.1f}"]


def main() -> None:
    """Compare on synthetic data, and on words."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", type=Path, nargs="?")
    given = parser.parse_args()
    compare("strategies", "Strategies on a million made-up users", synthetic(10**6), [64])
    if given.words:
        compare("strategies_words", "Strategies on words", words(given.words), [64, 512])


if __name__ == "__main__":
    main()
