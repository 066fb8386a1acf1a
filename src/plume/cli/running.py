"""`plume run`: options in, a release out."""

from collections.abc import Mapping
from typing import Any

from plume.cli.asking import find_dataset, make_engine, make_query
from plume.cli.output import (
    RECORD_ENDINGS,
    REPORT_ENDINGS,
    ROWS_ENDINGS,
    check_target,
    print_rows,
    refuse_input_as_target,
    write_record,
    write_rows,
)
from plume.cli.progress import show_stages
from plume.cli.terminal import Say, remarks
from plume.errors import UsageError
from plume.release import Release, refuse_intervals
from plume.report.chart import refuse_without_charts
from plume.running import run


def run_query(options: Mapping[str, Any]) -> None:
    """Check everything that can be checked without data, run, and write what may leave."""
    query, engine, dataset = make_query(options), make_engine(options), find_dataset(options)
    _check_targets(options)
    level = options["intervals"]
    if level is not None:
        refuse_intervals(level, query.released_columns)
    with show_stages(quiet=options["quiet"]) as on_step:
        release = run(
            query,
            list(options["files"]),
            engine=engine,
            pipeline=options["pipeline"],
            ledger=dataset,
            release_id=options["release_id"],
            on_step=on_step,
        )
    say = remarks(quiet=options["quiet"])
    _deliver(release if level is None else release.intervals(level), options, say)
    noise = ", ".join(f"{noise.measure} ± {noise.standard_deviation:.4g}" for noise in release.noise)
    say(release.guarantee)
    say(f"noise (standard deviation): {noise}")
    if release.receipt is not None:
        receipt = release.receipt
        say(f"charged to {receipt.dataset} as release {receipt.release_id}; ledger head {receipt.head}")


def _check_targets(options: Mapping[str, Any]) -> None:
    """Find out now what would be found out when the budget is already spent."""
    if options["out"] is not None and options["layout"] is not None:
        raise UsageError("--format is for standard output; with --out the file's ending says what to write.")
    if options["report"] is not None:
        refuse_without_charts()
    for name, endings in (("out", ROWS_ENDINGS), ("record", RECORD_ENDINGS), ("report", REPORT_ENDINGS)):
        if options[name] is not None:
            check_target(options[name], endings, force=options["force"])
            refuse_input_as_target(options["files"], options[name])


def _deliver(release: Release, options: Mapping[str, Any], say: Say) -> None:
    out, record, report = options["out"], options["record"], options["report"]
    if record is not None:
        write_record(release, record)
    if out is None:
        print_rows(release, options["layout"], say)
    else:
        write_rows(release, out)
        say(f"{len(release)} rows written to {out}")
    if report is not None:
        release.report(report)
        say(f"report written to {report}")
