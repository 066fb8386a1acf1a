"""What notebooks show of numbers to choose by: the curves of the pages, small, and the tables that `print` shows."""

from plume.report.sheet import Listing, Sheet, show_sheet
from plume.tuning.curves import figures_of_expectation, figures_of_tuning
from plume.tuning.expectation import HEAD, Expectation, tables
from plume.tuning.recommendation import TuningRow
from plume.tuning.tuning import REMARK, WARNING, NotPrivateTuning, line, telling

_WORDS = frozenset(("number", "noise", "selection"))
_WORDS_OF_TUNING = frozenset(("", "selection", "measure", "bounds"))


def show_expectation(expectation: Expectation) -> str:
    """Show what to expect."""
    listings = [Listing(title, lines, _WORDS) for title, lines in tables(expectation)]
    return show_sheet(Sheet(HEAD, figures=figures_of_expectation(expectation), listings=listings))


def show_tuning(tuning: NotPrivateTuning) -> str:
    """Show what was tried; NOT PRIVATE, and it says so."""
    shown: list[TuningRow] = list(telling(tuning.tried))
    listing = Listing(
        "what was tried",
        [line(tried) for tried in shown],
        _WORDS_OF_TUNING,
        {place: "best" for place, tried in enumerate(shown) if tried.recommended},
    )
    head = "NOT PRIVATE: tuning, estimated from exact data, for people who may look at it"
    notes = [*REMARK.splitlines(), WARNING]
    return show_sheet(Sheet(head, WARNING, figures=figures_of_tuning(tuning), listings=[listing], notes=notes))
