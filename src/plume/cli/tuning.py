"""`plume tune`: NOT PRIVATE; options in, what would suit the data out."""

from collections.abc import Mapping
from typing import Any

from plume.cli.measure_text import parse_measure
from plume.cli.output import print_result
from plume.cli.query_and_engine import make_query
from plume.cli.targets import REPORT_ENDINGS, check_targets
from plume.cli.terminal import remarks
from plume.output.files import with_not_private_suffix
from plume.tuning.tuning import USUAL_LIMITS, NotPrivateTuning, tune

_WRITERS = {".csv": NotPrivateTuning.write_csv, ".json": NotPrivateTuning.write_json}


def tune_query(options: Mapping[str, Any]) -> None:
    """Estimate, and print or write; whatever leaves says that it is not private."""
    out = None if options["out"] is None else with_not_private_suffix(options["out"])
    report = None if options["report"] is None else with_not_private_suffix(options["report"])
    check_targets([(out, tuple(_WRITERS)), (report, REPORT_ENDINGS)], options, options["files"])
    tuning = tune(
        make_query(options),
        list(options["files"]),
        limits=options["limits"] or USUAL_LIMITS,
        epsilons=options["epsilons"],
        selections=options["selections"],
        measures=[parse_measure(text) for text in options["at_measures"]],
    )
    say = remarks(quiet=options["quiet"])
    if out is None:
        print_result(tuning, options["layout"])
    else:
        _WRITERS[out.suffix.lower()](tuning, out, overwrite=True)
        say(f"NOT PRIVATE: written to {out}")
    if report is not None:
        say(f"NOT PRIVATE: written to {tuning.report(report, overwrite=True)}")
