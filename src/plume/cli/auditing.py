"""`plume audit`: a query put to the test on made-up data."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plume.auditing.audit import audit
from plume.cli.query_and_engine import make_engine, make_query
from plume.cli.targets import check_targets
from plume.cli.terminal import put, remarks
from plume.errors import AuditFailed
from plume.output.files import write_text

_ENDINGS = (".json", ".txt")


def audit_query(options: Mapping[str, Any]) -> None:
    """Print the report, or write it; fail if any test did."""
    query, out = make_query(options), options["out"]
    check_targets([(out, _ENDINGS)], options)
    report = audit(query, engine=make_engine(options), pipeline=options["pipeline"], trials=options["trials"])
    text = report.to_json() if out is not None and out.suffix.lower() == ".json" else str(report)
    _deliver(text, out, options)
    if not report.passed:
        raise AuditFailed("the audit found a privacy bug; please report it as SECURITY.md says, with this report.")


def _deliver(text: str, out: Path | None, options: Mapping[str, Any]) -> None:
    if out is None:
        put(f"{text}\n")
        return
    write_text(out, f"{text}\n", overwrite=True)
    remarks(quiet=options["quiet"])(f"report written to {out}")
