"""`plume run` and `plume sql`: options in, a release out."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from plume.cli.output import (
    RECORD_ENDINGS,
    ROWS_ENDINGS,
    print_rows,
    refuse_closed_output,
    write_record,
    write_rows,
)
from plume.cli.progress import showing
from plume.cli.query_and_engine import declare, find_dataset, make_engine, make_query
from plume.cli.standard_input import files_behind
from plume.cli.statement_text import read_text
from plume.cli.targets import ERRORS_ENDINGS, REPORT_ENDINGS, check_targets
from plume.cli.terminal import Say, remarks
from plume.errors import PlumeWarning, UsageError
from plume.mechanisms.margins import refuse_intervals
from plume.output.engine_errors import engine_errors_to
from plume.output.files import with_not_private_suffix
from plume.query import Query
from plume.release import Release, summarize
from plume.running import run
from plume.schema import refuse_missing

_TABLES = ("tables", "public_tables")


def run_query(options: Mapping[str, Any]) -> None:
    """Check everything that can be checked without data, run, and write what may leave."""
    query, engine, dataset = make_query(options), make_engine(options), find_dataset(options)
    _check_targets(options, options["files"])
    _check_shape(options, query.columns_with_reliability, query)
    with (
        _engine_errors(options, options["files"]),
        files_behind(options["files"], options["stdin_format"], options["temp_directory"]) as files,
    ):
        _answer(
            options,
            lambda **shown: run(
                query,
                list(files),
                engine=engine,
                pipeline=options["pipeline"],
                ledger=dataset,
                release_id=options["release_id"],
                **shown,
            ),
        )


def run_statement(options: Mapping[str, Any]) -> None:
    """The same for a statement."""
    from plume.statement.answering import answer, ask, shown_columns  # noqa: PLC0415 - a parser takes long to load

    text, engine, dataset = read_text(options["statement"]), make_engine(options), find_dataset(options)
    given = [(which, name, file) for which in _TABLES for name, file in options[which].items()]
    named = tuple(file for *_, file in given)
    with (
        _engine_errors(options, named),
        files_behind(named, options["stdin_format"], options["temp_directory"]) as files,
    ):
        tables: dict[str, dict[str, Any]] = {which: {} for which in _TABLES}
        for (which, name, _), file in zip(given, files, strict=True):
            tables[which][name] = file
        declared = declare(tables["tables"], options["units"])
        stated = ask(text, engine=engine, tables=declared, public_tables=tables["public_tables"])
        _check_targets(options, [*stated.files, *named])
        _check_shape(options, shown_columns(stated), stated.query)
        charged = {"ledger": dataset, "release_id": options["release_id"]}
        _answer(
            options,
            lambda **shown: answer(stated, engine=engine, pipeline=options["pipeline"], **charged, **shown),
        )


@contextmanager
def _engine_errors(options: Mapping[str, Any], files: Sequence[str]) -> Iterator[None]:
    """Write what is withheld in a block to the operator's file, if one is asked for. That it may come is said, not if it came."""
    if options["engine_errors_to"] is None:
        yield
        return
    target = with_not_private_suffix(options["engine_errors_to"])
    check_targets([(target, ERRORS_ENDINGS)], options, files)
    with engine_errors_to(target, overwrite=options["force"]):
        remarks(quiet=options["quiet"])(f"NOT PRIVATE: the engine's error messages are written to {target}")
        yield


def _answer(options: Mapping[str, Any], release_of: Callable[..., Release]) -> None:
    say, told = remarks(quiet=options["quiet"]), list[str]()
    with _saying_warnings(say, told):
        release = release_of(**showing(quiet=options["quiet"]))
    _deliver(_shaped(release, options), options, say)
    for line in summarize(release):
        if line not in told:
            say(line)
    receipt = release.receipt
    if receipt is not None and release.released_before is None:
        say(f"charged to {receipt.dataset} as release {receipt.release_id}; ledger head {receipt.head}")


@contextmanager
def _saying_warnings(say: Say, told: list[str]) -> Iterator[None]:
    """Say at once what a query is cautioned against, since it is not charged yet; and keep what was told."""

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if not issubclass(category, PlumeWarning):
            show_otherwise(message, category, *where, **more)
            return
        told.append(f"caution: {message}")
        say(told[-1])

    with warnings.catch_warnings():
        warnings.simplefilter("always", PlumeWarning)
        show_otherwise, warnings.showwarning = warnings.showwarning, show
        yield


def _check_targets(options: Mapping[str, Any], files: Sequence[str]) -> None:
    """Find out now what would be found out when the budget is already spent."""
    if options["out"] is not None and options["layout"] is not None:
        raise UsageError("--format is for standard output; with --out the file's ending says what to write.")
    if options["out"] is None:
        refuse_closed_output()
    endings = {"out": ROWS_ENDINGS, "record": RECORD_ENDINGS, "report": REPORT_ENDINGS}
    check_targets([(options[name], allowed) for name, allowed in endings.items()], options, files)


def _check_shape(options: Mapping[str, Any], columns: Sequence[str], query: Query) -> None:
    """The same for what is done with released rows."""
    level, top = options["intervals"], options["top"]
    if level is not None:
        refuse_intervals(level, columns, query.computed_columns)
    if top is not None:
        if top[0] < 1:
            raise UsageError(f"--top is {top[0]}; it must be a positive whole number: how many rows to keep.")
        refuse_missing(top[1], columns, source="the result")


def _shaped(release: Release, options: Mapping[str, Any]) -> Release:
    if options["top"] is not None:
        release = release.top(options["top"][0], by=options["top"][1])
    release = replace(release, rows=release.to_arrow(unreliable=options["unreliable"]))
    return release if options["intervals"] is None else release.intervals(options["intervals"])


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
        release.report(report, overwrite=True)
        say(f"report written to {report}")
