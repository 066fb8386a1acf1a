"""The question behind a release id, as a hash that outlives versions of Plume.

One id never stands for two questions, and the same question is answered with the same rows for ever. So a ledger keeps a hash of what was
asked, and of nothing that a version of Plume decides: no plan, no noise, no SQL. The form has a number of its own. A change that gives an
old question another hash is a new form, which must know the old one as well.
"""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
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
from plume.ledger.entry import EntryKind
from plume.limit_meaning import name_limit
from plume.mechanisms.mechanism import Mechanism
from plume.pipelines.steps import KEY_ORDER
from plume.plan.analysis import steps
from plume.plan.expressions import Expression, SecretOrder, When
from plume.plan.nodes import USER, Clip, KeepFew, Map, Node, Noise, reading
from plume.planning import make_plan
from plume.release import RECORD
from plume.settings import SETTINGS, values_of

FORM = "1"
_FIRST_VERSION = "0.1.0"
# The settings that the form has always had. A later one is part of a question only where it is not left as it is by default, so that the
# questions asked before it was there keep their hashes.
_ALWAYS = frozenset(
    (
        *("user", "keys", "measures", "max_keys_per_user", "epsilon", "delta", "where", "public_keys", "min_users"),
        *("selection", "noise", "composition", "shares"),
    )
)
# What changes no answer: it is for cautions alone.
_NEVER = frozenset(("population",))
# What the record of a query held.
_RECORDED_BY_0_1_0 = ("user", "keys", "measures", "max_keys_per_user", "where", "min_users", "public_keys")
# In how many times as many keys as the limit users above it counted.
_CAP_OF_0_1_0 = 4
_PRINTED_OTHERWISE = (
    (re.compile(r'(\nFROM "\w+") JOIN (?="\w+" USING)'), r"\1 LEFT JOIN "),
    (re.compile(r"CAST\(1 \* 1 AS BIGINT\)"), "CAST(1 AS HUGEINT) * 1"),
    (
        re.compile(r'(\n +)(1|\(1 \* \d+\))( \* "factor_\d+" // \d+) AS '),
        r"\1CAST(CAST(\2 AS HUGEINT)\3 AS BIGINT) AS ",
    ),
)
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
        given = values_of(self._known.query)
        return {
            "dataset": self.dataset,
            "pipeline": self.explanation.pipeline,
            "statement": None if self.relation is None else list(self.relation.statement),
        } | {
            setting.name: _setting(setting.name, given[setting.name])
            for setting in SETTINGS
            if setting.name in _ALWAYS or (setting.name not in _NEVER and given[setting.name] != setting.default)
        }

    @property
    def _known(self) -> Explanation:
        """The question as the form has always had it: a statement without GROUP BY asked for the one key of a constant."""
        query = self.explanation.query
        if self.relation is None or query.keys:
            return self.explanation
        return Explanation(make_plan(replace(query, keys=("key_1",), public_keys=[1]), self.explanation.pipeline))

    def is_one_of_0_1_0(self, written: str, claim: Claim) -> bool:
        """Return whether a request that 0.1.0 wrote, which hashed its version and the plan's SQL, is this one."""
        if ":" in written or self.explanation.query.key_expressions:
            return False
        if written == self._as_in_0_1_0:
            return True
        # Plans may be printed otherwise today. Then what stands in a released file decides, where that is all there is to ask.
        complete = self.relation is None and self.explanation.query.public_keys is None
        return complete and claim.state == EntryKind.RELEASED and self._is_answered_by(recorded(claim.read()))

    @property
    def _as_in_0_1_0(self) -> str:
        query, known = self._known.query, self._known
        return _hash(
            {
                "plume": _FIRST_VERSION,
                "dataset": self.dataset,
                "record": _as_recorded_by_0_1_0(known.facts()),
                "measures": [repr(measure) for measure in query.measures],
                "plan": _as_printed_by_0_1_0(known),
                "public_keys": _digest_of_0_1_0(query.public_keys),
            }
            | ({} if self.relation is None else {"relation": self.relation.select})
        )

    def _is_answered_by(self, record: Mapping[str, Any]) -> bool:
        decided = decide(self.explanation, record.get("chosen", {}))
        facts = json.loads(json.dumps(_as_recorded_by_0_1_0(decided.facts())))
        return all(record[name] == facts[name] for name in ("query", "pipeline")) and all(
            _is_close(record[name], facts[name]) for name in ("guarantee", "noise")
        )


def _as_printed_by_0_1_0(known: Explanation) -> str:
    """Print a plan as it was then: everybody was looked up by a LEFT JOIN, and single users counted in 128 bits, which finds the same."""
    sql = Explanation(replace(known.planned, plan=_as_cut_by_0_1_0(known))).sql()
    for now, then in _PRINTED_OTHERWISE:
        sql = now.sub(then, sql)
    return sql


def _as_cut_by_0_1_0(known: Explanation) -> tuple[Noise, ...]:
    """Plan as when users above the limit counted in up to four times as many keys: cut to these before they were clipped."""
    made: dict[str, Node] = {}
    for step in steps(known.plan):
        again = reading(step, made)
        if isinstance(again, Map):
            expressions = ((name, _always_in_order(expression)) for name, expression in again.expressions)
            again = replace(again, expressions=tuple(expressions))
        if isinstance(again, Clip):
            order = (KEY_ORDER, *known.calibrated.keys)
            again = replace(again, source=KeepFew("safe", again.source, USER, order, _CAP_OF_0_1_0 * again.limit))
        made[step.name] = again
    return tuple(reading(stage, made) for stage in known.plan)


def _always_in_order(expression: Expression) -> Expression:
    """Put the keys of all users above the limit in order, as they were then."""
    match expression:
        case When(_, SecretOrder() as order):
            return order
        case _:
            return expression


def _hash(question: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()


def _as_recorded_by_0_1_0(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out of a record what the first version did not put into it."""
    return {**facts, "query": {name: facts["query"][name] for name in _RECORDED_BY_0_1_0}}


def _setting(name: str, value: Any) -> Any:
    match name:
        case "keys":
            return list(value)
        case "measures":
            return [_measure(measure) for measure in value]
        case "public_keys":
            return _digest_of_keys(value)
        case "shares":
            return {part: str(share) for part, share in value}
        case "max_keys_per_user" | "min_users":
            return value  # the form writes these whole numbers as they are
        case _:
            return _plain(value)


def _measure(measure: Mechanism) -> dict[str, Any]:
    settings: Any = measure
    given = {field.name: _plain(getattr(measure, field.name)) for field in fields(settings)}
    return {"measure": measure.word} | given


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


def describe(query: Mapping[str, Any]) -> str:
    """Say in a line what the record of a query asks."""
    where = f" where {query['where']}" if query["where"] else ""
    measures = ", ".join(measure["name"] for measure in query["measures"])
    if not query["keys"]:
        return f"{measures} in total{where}, of every {query['user']}"
    limit = name_limit(query["max_keys_per_user"], query["user"])
    return f"{measures} by {', '.join(query['keys'])}{where}, {limit}"


def recorded(released: bytes) -> dict[str, Any]:
    """Read the record in the file of a release."""
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
