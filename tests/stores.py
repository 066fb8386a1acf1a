"""A store of S3 on this machine, by moto, with credentials in the environment and an empty bucket called shop."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import botocore.session
import pyarrow as pa
import pyarrow.parquet as pq
from moto.server import ThreadedMotoServer

KEY, SECRET = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG"


@contextmanager
def served() -> Iterator[str]:
    """Serve until the block ends, and give the address."""
    started = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    started.start()
    host, port = started.get_host_and_port()
    try:
        yield f"http://{host}:{port}"
    finally:
        started.stop()


@contextmanager
def emptied(address: str) -> Iterator[Any]:
    """Point the environment to a store, and give a client of its bucket, which is empty."""
    settings = {
        "AWS_ENDPOINT_URL": address,
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    with patch.dict(os.environ, settings):
        client = botocore.session.get_session().create_client("s3")
        client.create_bucket(Bucket="shop")
        for listed in client.list_objects_v2(Bucket="shop").get("Contents", ()):
            client.delete_object(Bucket="shop", Key=listed["Key"])
        yield client


def put(client: Any, key: str, content: str | bytes | pa.Table) -> str:
    """Write an object, and give its address."""
    if isinstance(content, pa.Table):
        sink = pa.BufferOutputStream()
        pq.write_table(content, sink)
        content = sink.getvalue().to_pybytes()
    client.put_object(Bucket="shop", Key=key, Body=content)
    return f"s3://shop/{key}"
