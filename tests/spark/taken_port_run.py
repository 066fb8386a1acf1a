"""Starts Spark Connect on this machine while something else listens on its usual port; run by test_sessions.py."""

import socket
from contextlib import suppress

from sparks import start

with socket.socket() as taken, socket.socket() as stranger:
    with suppress(OSError):  # taken by somebody else is taken too
        taken.bind(("", 15002))
        taken.listen()
    session = start("spark-connect")
    rows = session.range(3).count()
    port = int(session.client._builder.endpoint.rpartition(":")[2])
    # A server that listens to all the world answers on every address of the machine; this one is the machine's too, and not localhost.
    if stranger.connect_ex(("127.0.0.2", port)) != 0:
        print("nobody else is let in")  # noqa: T201 - read by the test
    session.stop()
    print(f"{rows} rows")  # noqa: T201
