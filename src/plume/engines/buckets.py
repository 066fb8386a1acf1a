"""Files in buckets of S3, copied into the run's private folder: what is read afterwards stays what it was, whoever writes to the bucket.

An address comes from the owner of the data alone; the text of a statement names none. Credentials come from where botocore finds them, and
from no address. What a store says of a failure may quote a key or a signature, and is withheld.
"""

import errno
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from plume.engines.files import choose_files, ending, is_known
from plume.errors import InputError, MissingPackage, PlumeError, ResourceError
from plume.redaction import Redaction, tell_operator

_ADDRESS = re.compile(r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])/(?P<key>[^?#*\[\]\0]+)")
_PLAIN_NAME = re.compile(r"[\w-][\w.-]{0,99}", re.ASCII)
_AT_ONCE = 2**20


@dataclass(frozen=True)
class Found:
    """An object in a bucket, as it was when it was found."""

    bucket: str
    key: str
    tag: str
    """What tells it from all else that was or will be written in its place. It may be a hash of the rows, so it is kept nowhere."""


def is_address(given: Any) -> bool:
    """Return whether data is an address in a bucket, or a list with one."""
    return any(isinstance(one, str) and one.startswith("s3://") for one in _listed(given))


def copied(given: Any, folder: Path) -> Any:
    """Give the paths of copies in the place of addresses, which go with the folder; all else as it is."""
    if not is_address(given):
        return given
    listed = _listed(given)
    if not all(map(is_address, listed)):
        raise InputError("some of the files lie in a bucket and some do not; give files of one place.")
    if find_spec("botocore") is None:
        raise MissingPackage("an address that begins with s3://", "botocore")
    return [path for address in listed for path in _copied(address, folder)]


def _listed(given: Any) -> list[Any]:
    return list(given) if isinstance(given, list | tuple) else [given]


def _copied(address: str, folder: Path) -> list[Path]:
    parts = _ADDRESS.fullmatch(address)
    if parts is None:
        raise InputError(
            "an address in a bucket is written s3://bucket/folder or s3://bucket/folder/file.parquet, without a pattern, a password or a "
            "parameter; credentials come from the environment or from the files of AWS."
        )
    return _withheld(
        address, lambda: [_copy(client, found, folder) for client, found in _found(parts["bucket"], parts["key"])]
    )


def _found(bucket: str, key: str) -> list[tuple[Any, Found]]:
    """List the object of a key, or those below it."""
    import botocore.session  # noqa: PLC0415 - an extra, and slow to import

    client = botocore.session.get_session().create_client("s3")
    below = f"{key.rstrip('/')}/"
    objects = [found for found in _below(client, bucket, key) if found.key == key or found.key.startswith(below)]
    if not objects:
        raise InputError(
            f"there is nothing at 's3://{bucket}/{key}'; give the address of a file, or of a folder of files."
        )
    if [found for found in objects if found.key == key and is_known(Path(key))]:
        return [(client, found) for found in objects if found.key == key]
    named = [(Path(found.key.removeprefix(below)), found) for found in objects]
    if any("=" in part for name, _ in named for part in name.parts[:-1]):
        raise InputError(
            "folders of partitions in a bucket are not supported, such as day=2026-01-31/; write the columns into the files."
        )
    chosen = set(choose_files(name for name, _ in named))
    return [(client, found) for name, found in named if name in chosen]


def _below(client: Any, bucket: str, prefix: str) -> Iterator[Found]:
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        for listed in page.get("Contents", ()):
            yield Found(bucket, listed["Key"], listed["ETag"])


def _copy(client: Any, found: Found, folder: Path) -> Path:
    """Copy an object that is still what it was when it was found."""
    name = Path(found.key).name
    # A key may hold what the name of a file cannot, or what leads elsewhere.
    path = Path(tempfile.mkdtemp(dir=folder)) / (name if _PLAIN_NAME.fullmatch(name) else f"rows{ending(Path(name))}")
    answer = client.get_object(Bucket=found.bucket, Key=found.key, IfMatch=found.tag)
    with path.open("wb") as file:
        for chunk in answer["Body"].iter_chunks(_AT_ONCE):
            file.write(chunk)
    return path


def _withheld(address: str, call: Callable[[], list[Path]]) -> list[Path]:
    with Redaction((Exception,), lambda error: _failure(address, error)):
        return call()


def _failure(address: str, error: Exception) -> PlumeError:
    if isinstance(error, PlumeError):
        return error
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return ResourceError(
            "the files of a bucket did not fit into the temporary folder; give DuckDB a temporary directory with more space."
        )
    tell_operator(address)
    code = getattr(error, "response", {}).get("Error", {}).get("Code")
    if code == "PreconditionFailed":
        return InputError(f"a file of {address!r} changed while it was copied; run again when nobody writes to it.")
    return InputError(
        f"{address!r} could not be read; check the address, the credentials (such as AWS_ACCESS_KEY_ID or AWS_PROFILE), the region "
        "(AWS_REGION) and the endpoint (AWS_ENDPOINT_URL)."
    )
