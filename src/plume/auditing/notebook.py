"""What notebooks show of an audit."""

from plume.auditing.audit import Audit
from plume.auditing.finding import Finding
from plume.report.sheet import Listing, Mark, Sheet, show_sheet

_LAYERS = (
    "Layer A checks, without noise, what must hold exactly; B checks the noise itself; C checks that one user more makes no event likelier "
    "than epsilon and delta allow; D checks what only whole releases show. Claimed is the largest epsilon that is allowed; found is one "
    "that the real one is not below."
)
_NO_PROOF = "The data was made up, and no budget was spent. A failure is a bug; a pass is not a proof."


def show_audit(audit: Audit) -> str:
    """Show the verdicts as a table."""
    findings = sorted(audit.findings, key=lambda finding: finding.passed)
    failed: dict[int, Mark] = {place: "failed" for place, finding in enumerate(findings) if not finding.passed}
    listing = Listing(
        "tests", [_line(finding) for finding in findings], frozenset(("verdict", "layer", "test")), failed
    )
    warning = f"{audit.verdict}: this query does not keep its promise on made-up data." if failed else ""
    facts = {"query": audit.query, "pipeline": audit.pipeline}
    return show_sheet(Sheet(f"audit: {audit.verdict}", warning, facts, listings=[listing], notes=[_LAYERS, _NO_PROOF]))


def _line(finding: Finding) -> dict[str, object]:
    claimed, found = ("" if number is None else f"{number:.4g}" for number in (finding.claimed, finding.found))
    return {
        "verdict": "pass" if finding.passed else "FAIL",
        "layer": finding.layer,
        "claimed": claimed,
        "found": found,
        "trials": finding.trials,
        "test": finding.test,
    }
