"""The question behind a release id, as a hash that outlives versions of Plume.

One id never stands for two questions, and the same question is answered with the same rows for ever. So a ledger keeps a hash of what was
asked, and of nothing that a version of Plume decides: no plan, no noise, no SQL. The form has a number of its own. A change that gives an
old question another hash is a new form, which must know the old one as well.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from plume.engines.engine import Relation
from plume.engines.files import find_files
from plume.errors import PlumeBug
from plume.explanation import Explanation, decide
from plume.far_dates import python_rows
from plume.ledger.claim import Claim
from plume.ledger.entry import Kind
from plume.mechanisms.count import CountRecords
from plume.mechanisms.histogram import Histogram
from plume.mechanisms.mean import Mean
from plume.mechanisms.mechanism import Mechanism
from plume.mechanisms.quantiles import Extreme, Quantiles
from plume.mechanisms.sum import SumOfTotals
from plume.mechanisms.users import CountUsers
from plume.mechanisms.variance import StandardDeviation, Variance
from plume.mechanisms.vector_sum import VectorSum
from plume.release import RECORD

FORM = "1"
_MEASURES: dict[type, str] = {
    CountRecords: "count",
    CountUsers: "users",
    SumOfTotals: "sum",
    Mean: "mean",
    Variance: "variance",
    StandardDeviation: "stddev",
    Quantiles: "quantiles",
    Extreme: "extreme",
    Histogram: "histogram",
    VectorSum: "vector_sum",
}
_FIRST_VERSION = "0.1.0"
_CLOSE = 1e-6


@dataclass(frozen=True)
class Request:
    """What is asked of a dataset."""

    explanation: Explanation
    dataset: str
    relation: Relation | None = None

    @property
    def digest(self) -> str:
        """The hash that a ledger keeps, with the number of its form."""
        return f"{FORM}:{_hash(self.canonical)}"

    @property
    def canonical(self) -> dict[str, Any]:
        """All that was asked, as plain values."""
        query = self.explanation.query
        return {
            "dataset": self.dataset,
            "pipeline": self.explanation.pipeline,
            "user": query.user,
            "keys": list(query.keys),
            "measures": [_measure(measure) for measure in query.measures],
            "max_keys_per_user": query.max_keys_per_user,
            "epsilon": _plain(query.budget.epsilon),
            "delta": _plain(query.budget.delta),
            "where": query.where,
            "public_keys": _digest_of_keys(query.public_keys),
            "min_users": query.min_users,
            "selection": query.selection,
            "noise": query.noise,
            "composition": query.composition,
            "shares": {name: str(share) for name, share in query.shares},
            "statement": None if self.relation is None else list(self.relation.statement),
        }

    def is_one_of_0_1_0(self, written: str, claim: Claim) -> bool:
        """Return whether a request that 0.1.0 wrote, which hashed its version and the plan's SQL, is this one."""
        if ":" in written:
            return False
        if written == self._as_in_0_1_0:
            return True
        # Plans may be printed otherwise today. Then what stands in a released file decides, where that is all there is to ask.
        complete = self.relation is None and self.explanation.query.public_keys is None
        return complete and claim.state == Kind.RELEASED and self._is_answered_by(_record(claim.read()))

    @property
    def _as_in_0_1_0(self) -> str:
        query = self.explanation.query
        return _hash(
            {
                "plume": _FIRST_VERSION,
                "dataset": self.dataset,
                "record": self.explanation.facts(),
                "measures": [repr(measure) for measure in query.measures],
                "plan": self.explanation.sql(),
                "public_keys": _digest_of_0_1_0(query.public_keys),
            }
            | ({} if self.relation is None else {"relation": self.relation.select})
        )

    def _is_answered_by(self, record: Mapping[str, Any]) -> bool:
        decided = decide(self.explanation, record.get("chosen", {}))
        facts = json.loads(json.dumps(decided.facts()))
        return all(record[name] == facts[name] for name in ("query", "pipeline")) and all(
            _is_close(record[name], facts[name]) for name in ("guarantee", "noise")
        )


def _hash(asked: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def _measure(measure: Mechanism) -> dict[str, Any]:
    if type(measure) not in _MEASURES:
        raise PlumeBug("a measure has no word in the ledger")
    settings: Any = measure
    given = {field.name: _plain(getattr(measure, field.name)) for field in fields(settings)}
    return {"measure": _MEASURES[type(measure)]} | given


def _plain(value: Any) -> Any:
    """Give a setting as JSON can hold it; 60 and 60.0 are the same."""
    match value:
        case None | bool() | str():
            return value
        case int() | Fraction():
            return str(value)
        case float():
            return str(int(value)) if value.is_integer() else repr(value)
        case date():
            return value.isoformat()
        case tuple():
            return [_plain(one) for one in value]
        case _:
            raise PlumeBug("a setting of a measure cannot be written down")


def _is_close(one: Any, other: Any) -> bool:
    """Compare plain values; numbers may differ by what rounding and better bounds make of them."""
    match one, other:
        case (dict(), dict()):
            return one.keys() == other.keys() and all(_is_close(one[name], other[name]) for name in one)
        case (list(), list()):
            return len(one) == len(other) and all(map(_is_close, one, other))
        case (float(), float()):
            return math.isclose(one, other, rel_tol=_CLOSE)
        case _:
            return bool(one == other)


def _record(released: bytes) -> dict[str, Any]:
    metadata = pyarrow.parquet.read_schema(pa.BufferReader(released)).metadata
    record: dict[str, Any] = json.loads(metadata[RECORD])
    return record


def _digest_of_keys(public_keys: pa.Table | Path | None) -> str | None:
    """Hash a list of keys: files by their formats and bytes, tables by their rows."""
    if public_keys is None:
        return None
    if isinstance(public_keys, Path):
        files = find_files(public_keys)
        return _hash({"format": files.format, "files": [_hash_of_file(path) for path in files.paths]})
    # A date that Python has none for is given as text.
    dates = [pa.types.is_temporal(kind) for kind in public_keys.schema.types]
    return _hash({"rows": repr(python_rows(public_keys)), "dates": dates})


def _hash_of_file(path: Path) -> str | None:
    with suppress(OSError), path.open("rb") as file:  # what cannot be read is refused when it is
        return hashlib.file_digest(file, "sha256").hexdigest()
    return None


def _digest_of_0_1_0(public_keys: pa.Table | Path | None) -> str | None:
    if public_keys is None:
        return None
    digest = hashlib.sha256()
    if isinstance(public_keys, Path):
        with suppress(OSError):
            digest.update(public_keys.read_bytes() if public_keys.is_file() else b"")
    else:
        digest.update(repr(python_rows(public_keys)).encode())
    return digest.hexdigest()
