"""What a run asks of a server, what it leaves there, and what the server's log may hold of it."""

import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

import plume
import postgresql_servers
from exact import ENTROPY, exact_release
from plume.engines.postgresql import _is_local
from plume.errors import EngineError, InputError, SettingError
from plume.noise.entropy import salt
from plume.running import run_with
from postgresql_servers import Server
from questions import asking

pytestmark = pytest.mark.starts("postgresql")

QUERY = asking(measures=[plume.users(), plume.count(2)])
ROWS = "SELECT i AS u, 'k' || i % 3 AS k FROM generate_series(1, 300) AS i"


@pytest.fixture
def table(server: Server) -> Any:
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"DROP TABLE IF EXISTS people; CREATE TABLE people AS {ROWS}")
        yield plume.PostgreSQL(server.url, "public.people")
        connection.execute("DROP TABLE people")


def test_nothing_is_left_behind(server: Server, table: plume.PostgreSQL) -> None:
    with psycopg.connect(server.url) as connection:
        before = connection.execute("SELECT count(*) FROM pg_class").fetchall()
    exact_release(QUERY, table, engine=table)
    with psycopg.connect(server.url) as connection:
        assert connection.execute("SELECT count(*) FROM pg_class").fetchall() == before


def test_all_steps_see_the_rows_that_were_there_when_the_run_began(server: Server, table: plume.PostgreSQL) -> None:
    """Each step of the run is followed by other rows, committed by somebody else."""
    expected = exact_release(QUERY, table, engine=table)
    with psycopg.connect(server.url, autocommit=True) as other:

        def change(step: str) -> None:
            other.execute("INSERT INTO people SELECT i, 'k9' FROM generate_series(1, 50) AS i", prepare=False)
            other.execute("DELETE FROM people WHERE u < 150 AND length(%s) > 0", (step,))

        found = run_with(ENTROPY, QUERY, table, engine=table, pipeline="plume", on_step=change)
    assert found.to_arrow().equals(expected)


def test_the_secret_of_a_run_is_in_no_text_of_a_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []

    def remembered(entropy: Any) -> str:
        drawn.append(salt(entropy))
        return drawn[-1]

    monkeypatch.setattr("plume.engines.execute.salt", remembered)
    with postgresql_servers.server(log_statement="all", log_parameter_max_length="0") as server:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(f"CREATE TABLE people AS {ROWS}")
        plume.run(QUERY, plume.PostgreSQL(server.url, "public.people"))
        log = server.log()
    assert "set_config" in log
    assert drawn
    assert not any(secret in log for secret in drawn)


def test_a_hot_standby_is_refused(server: Server, table: plume.PostgreSQL) -> None:
    with postgresql_servers.standby(server) as standby:
        there = plume.PostgreSQL(standby.url, table.table)
        with pytest.raises(SettingError, match="this server is a hot standby, which allows no temporary tables"):
            exact_release(QUERY, there, engine=there)


def test_a_role_without_temporary_tables_is_told_so(server: Server, table: plume.PostgreSQL) -> None:
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE strict")
        connection.execute("REVOKE TEMPORARY ON DATABASE strict FROM PUBLIC; CREATE ROLE plain LOGIN")
    there = plume.PostgreSQL(server.address("strict", "plain"), table.table)
    with pytest.raises(SettingError, match="the role may make no temporary tables"):
        exact_release(QUERY, there, engine=there)


def test_a_database_in_another_encoding_is_refused(server: Server, table: plume.PostgreSQL) -> None:
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE old ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0")
    there = plume.PostgreSQL(server.address("old"), table.table)
    with pytest.raises(SettingError, match="the database's encoding is LATIN1; it must be UTF8"):
        exact_release(QUERY, there, engine=there)


@pytest.mark.parametrize(
    ("host", "address", "local"),
    [
        ("/run/postgresql", "", True),
        ("@plume", "", True),
        ("localhost", "127.0.0.1", True),
        ("localhost", "::1", True),
        ("db.example", "10.0.0.7", False),
        ("db.example", "::ffff:10.0.0.7", False),
        ("localhost", "192.168.0.1", False),
        ("db.example", "", False),
    ],
)
def test_only_this_machine_needs_no_encryption(host: str, address: str, *, local: bool) -> None:
    assert _is_local(host, address) == local


@pytest.fixture
def address() -> str:
    """An address of this machine that is not its loopback, in the place of another machine's."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no other address than its loopback")
        return str(probe.getsockname()[0])


@contextmanager
def listening_to_all(**settings: str) -> Iterator[Server]:
    with postgresql_servers.server(listen_addresses="*", **settings) as server:
        (server.folder / "pg_hba.conf").write_text("host all all all trust\n")
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("SELECT pg_reload_conf()")
            connection.execute(f"CREATE TABLE people AS {ROWS}")
        yield server


def test_an_open_wire_to_another_machine_is_refused(address: str) -> None:
    with listening_to_all() as server:
        there = plume.PostgreSQL(f"postgresql://plume@{address}:{server.port}/postgres", "public.people")
        with pytest.raises(SettingError, match="the connection to PostgreSQL is not encrypted"):
            exact_release(QUERY, there, engine=there)


def test_an_encrypted_wire_to_another_machine_is_taken(address: str) -> None:
    with postgresql_servers.folder() as place:
        named = ["-subj", "/CN=plume", "-keyout", "key.pem", "-out", "certificate.pem"]
        command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *named]
        subprocess.run(command, cwd=place, check=True, capture_output=True)  # noqa: S603
        for made in place.iterdir():
            os.chown(made, place.stat().st_uid, place.stat().st_gid)
        files = {"ssl_cert_file": str(place / "certificate.pem"), "ssl_key_file": str(place / "key.pem")}
        with listening_to_all(ssl="on", **files) as server:
            there = plume.PostgreSQL(f"postgresql://plume@{address}:{server.port}/postgres", "public.people")
            assert exact_release(QUERY, there, engine=there).num_rows == 3


def test_an_address_with_a_password_is_shown_nowhere() -> None:
    given = plume.PostgreSQL("postgresql://plume:s3cret@127.0.0.1:1/none", "public.t")
    with pytest.raises(InputError, match="the PostgreSQL server could not be reached") as failure:
        exact_release(QUERY, given, engine=given)
    assert "s3cret" not in f"{given!r}{failure.value}{failure.value.__context__}{failure.value.__cause__}"


def test_a_server_that_is_lost_ends_the_run_with_a_sentence() -> None:
    with postgresql_servers.server() as server:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(f"CREATE TABLE people AS {ROWS}")
        there = plume.PostgreSQL(server.url, "public.people")

        def lose(step: str) -> None:
            if step == "by_user":
                server.kill()

        with pytest.raises(EngineError, match="PostgreSQL failed at step by_user"):
            plume.run(QUERY, there, on_step=lose)


def test_a_lock_that_others_hold_is_waited_for(server: Server, table: plume.PostgreSQL) -> None:
    with psycopg.connect(server.url) as other:
        other.execute("LOCK TABLE people IN ACCESS EXCLUSIVE MODE")
        found: list[Any] = []
        asking_now = threading.Thread(target=lambda: found.append(exact_release(QUERY, table, engine=table)))
        asking_now.start()
        other.rollback()
        asking_now.join()
    assert found
