"""Selected keys in a store that workers ask: the paper's read-only distributed hash table, on a server or cluster of Redis's protocol.

Keys lie in buckets, each a set written by one command with a mark in it. Whoever asks a bucket asks for its mark too, so that a bucket
which was lost, evicted or never there is an error and never an answer.
"""

import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pyarrow as pa

from plume.errors import StoreError
from plume.noise.entropy import SystemEntropy, salt
from plume.redaction import Redaction

_KEYS_PER_BUCKET = 512
_COMMANDS_AT_ONCE = 256
_SECONDS_TO_ANSWER = 20
# Should a driver die before it cleans up, its keys go by themselves.
_SECONDS_TO_LIVE = 7 * 24 * 3600
# No encoded key is empty.
_MARK = b""

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class StoredKeys:
    """Where the selected keys of one run are."""

    url: str = field(repr=False)
    namespace: str
    buckets: int

    def bucket(self, key: bytes) -> int:
        """Find the bucket of a key."""
        return zlib.crc32(key) % self.buckets

    def name(self, bucket: int) -> str:
        """Name a bucket in the store."""
        return f"{self.namespace}:{bucket}"


def encode(keys: pa.StructArray) -> list[bytes]:
    """Write each key as bytes, its parts with their lengths, so that different keys never give equal bytes."""
    parts = [_bytes_of(part) for part in keys.flatten()]
    return [b"".join(b"%d:%b" % (len(part), part) for part in key) for key in zip(*parts, strict=True)]


def _bytes_of(part: pa.Array) -> list[bytes]:
    if pa.types.is_temporal(part.type):
        part = part.cast(pa.int32() if pa.types.is_date32(part.type) or pa.types.is_time32(part.type) else pa.int64())
    if not (pa.types.is_binary(part.type) or pa.types.is_large_binary(part.type)):
        text = part if pa.types.is_string(part.type) or pa.types.is_large_string(part.type) else part.cast(pa.string())
        # As bytes, since text of others need not be valid.
        part = text.cast(pa.large_binary())
    return [b"" if value is None else value for value in part.to_pylist()]


def load(url: str, keys: Sequence[bytes]) -> StoredKeys:
    """Write keys to a place of their own, for one run."""
    stored = StoredKeys(url, f"plume:{salt(SystemEntropy())}", max(1, len(keys) // _KEYS_PER_BUCKET))
    members: dict[int, list[bytes]] = {bucket: [_MARK] for bucket in range(stored.buckets)}
    for key in keys:
        members[stored.bucket(key)].append(key)
    with_client(url, lambda client: _write(client, stored, members))
    return stored


def _write(client: Any, stored: StoredKeys, members: dict[int, list[bytes]]) -> None:
    for some in _pieces(members):
        pipeline = client.pipeline(transaction=False)
        for bucket in some:
            pipeline.sadd(stored.name(bucket), *members[bucket])
            pipeline.expire(stored.name(bucket), _SECONDS_TO_LIVE)
        pipeline.execute()


def _pieces(buckets: Iterable[int]) -> Iterator[list[int]]:
    listed = list(buckets)
    return (listed[start : start + _COMMANDS_AT_ONCE] for start in range(0, len(listed), _COMMANDS_AT_ONCE))


def remove(stored: StoredKeys) -> None:
    """Take the keys of a run away."""
    with_client(stored.url, lambda client: _remove(client, stored))


def _remove(client: Any, stored: StoredKeys) -> None:
    for some in _pieces(range(stored.buckets)):
        pipeline = client.pipeline(transaction=False)
        for bucket in some:
            pipeline.unlink(stored.name(bucket))
        pipeline.execute()


def ask(client: Any, stored: StoredKeys, keys: Iterable[bytes]) -> dict[bytes, bool]:
    """Ask for many keys at once; each bucket says which of them it holds."""
    wanted: dict[int, list[bytes]] = defaultdict(list)
    for key in dict.fromkeys(keys):
        wanted[stored.bucket(key)].append(key)
    held: dict[bytes, bool] = {}
    for some in _pieces(wanted):
        pipeline = client.pipeline(transaction=False)
        for bucket in some:
            pipeline.smismember(stored.name(bucket), [_MARK, *wanted[bucket]])
        for bucket, (marked, *answers) in zip(some, pipeline.execute(), strict=True):
            if not marked:
                raise StoreError("the store lost selected keys during the run; nothing was released.")
            held.update(zip(wanted[bucket], map(bool, answers), strict=True))
    return held


def with_client(url: str, use: Callable[[Any], _Result]) -> _Result:
    """Connect, use the connection and close it; what goes wrong is said without the address, which may hold a password."""
    with Redaction((Exception,), _failure), connect(url) as client:
        return use(client)


def _failure(error: Exception) -> StoreError:
    match error:
        case StoreError():
            return error
        case ImportError():
            reason = "the package redis is not installed there; run pip install redis."
        case _:
            reason = "check that it is running version 6.2 or newer, has free memory, and that all nodes of a cluster are up."
    return StoreError(f"the store could not be asked or written to: {reason}")


def connect(url: str) -> Any:
    """Connect to a server, or to the cluster that it is a node of."""
    import redis  # noqa: PLC0415 - an extra that only this needs

    settings = {"socket_timeout": _SECONDS_TO_ANSWER, "socket_connect_timeout": _SECONDS_TO_ANSWER}
    client = redis.Redis.from_url(url, **settings)
    if not client.info("cluster").get("cluster_enabled"):
        return client
    client.close()
    return redis.RedisCluster.from_url(url, **settings)
