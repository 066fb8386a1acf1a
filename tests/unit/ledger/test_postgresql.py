"""What a ledger in PostgreSQL does beyond what every ledger does: addresses, TLS, roles, and settings that databases and roles may have."""

import hashlib
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest
from click.testing import CliRunner

import plume
import postgresql_servers
from docs.pages import ROOT, blocks
from ledgers import change, empty_database, kept
from plume.cli.main import main
from plume.errors import LedgerError, MissingPackage
from plume.ledger import postgresql, postgresql_schema
from plume.ledger.charge import charge
from plume.ledger.postgresql import database_at
from plume.ledger.price import EPSILONS, Price
from postgresql_servers import Server

SECRET = "geheim"  # noqa: S105 - what must be seen nowhere
PRICE = Price(EPSILONS, 0, EPSILONS, 0, 0)
ROWS = pa.table({"u": [str(n) for n in range(300)], "k": ["x"] * 200 + ["y"] * 100})
QUERY = plume.Query(
    user="u", keys="k", measures=[plume.users()], max_keys_per_user=1, budget=plume.Budget(1), public_keys=["x"]
)
BUDGETS = {"d": plume.Budget(epsilon=3, delta=1e-5)}


@pytest.fixture
def address(new_database: Callable[[], str]) -> str:
    return new_database()


@pytest.fixture
def ledger(address: str) -> plume.Ledger:
    return plume.Ledger.create(address, datasets=BUDGETS)


def as_role(address: str, role: str, *more: str) -> str:
    """Make a role anew, and give the address by which it connects."""
    with psycopg.connect(address, autocommit=True) as connection:
        if connection.execute("SELECT FROM pg_roles WHERE rolname = %s", [role]).fetchall():
            connection.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")
        connection.execute(f"CREATE ROLE {role} LOGIN")
        for statement in more:
            connection.execute(statement)
    return address.replace("//plume@", f"//{role}@")


RIGHTS = [block.code.strip() for block in blocks(ROOT / "docs" / "how-to" / "team-ledger.md") if block.info == "sql"]


@pytest.mark.parametrize(
    ("address", "name"),
    [
        (f"postgresql://ana:{SECRET}@db/budgets", "postgresql://db/budgets"),
        (f"postgres://db:6543/budgets?user=ana&password={SECRET}", "postgresql://db:6543/budgets"),
        (f"postgresql://ana:{SECRET}@[2001:db8::1]/budgets", "postgresql://[2001:db8::1]/budgets"),
        (f"postgresql://ana:{SECRET}@one:1,two:2/budgets", "postgresql://one,two:1,2/budgets"),
        (f"postgresql://ana:{SECRET}@%2Ftmp/budgets", "postgresql:///budgets"),
        (f"postgresql://ana:{SECRET}@db", "postgresql://db/ana"),
    ],
)
def test_a_ledger_is_named_without_its_user_and_password(address: str, name: str) -> None:
    store = database_at(address)
    assert str(store) == name
    assert SECRET not in repr(store)


COMMANDS = {
    "create": "--dataset e --epsilon 1",
    "show": "",
    "history": "",
    "verify": "",
    "recover": "",
    "abandon": "first",
    "plan": "--dataset d --user u --key k --measure users() --epsilon 1 --delta 1e-6 --max-keys-per-user 1",
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("there", [True, False])
def test_a_password_in_an_address_is_not_shown(command: str, there: bool, address: str) -> None:  # noqa: FBT001
    if there:
        plume.Ledger.create(address, datasets=BUDGETS)
    asked = address.replace("plume@", f"plume:{SECRET}@") if there else f"postgresql://ana:{SECRET}@127.0.0.1:1/budgets"
    result = CliRunner().invoke(main, ["ledger", command, asked, *COMMANDS[command].split()])
    assert (result.exit_code == 0) == (there and command != "abandon")
    assert SECRET not in result.output + result.stderr


def test_a_password_in_an_address_is_not_kept(address: str) -> None:
    plume.Ledger.create(address, datasets=BUDGETS)
    ledger = plume.Ledger(address.replace("plume@", f"plume:{SECRET}@"))
    release = plume.run(QUERY, ROWS, ledger=ledger, dataset="d", release_id="first")
    told = [repr(ledger), repr(ledger.dataset("d")), ledger._repr_html_(), str(ledger.history()), repr(ledger.shelf)]
    assert SECRET not in "".join([*told, str(release), str(release.record()), release._repr_html_()])
    assert SECRET.encode() not in kept(ledger)["first"]


@pytest.mark.parametrize("address", [f"postgresql://ana:{SECRET}@[db", f"postgresql://db/x?nonsense={SECRET}"])
def test_an_address_that_cannot_be_read_is_not_repeated(address: str) -> None:
    with pytest.raises(LedgerError, match="address of the ledger cannot be read") as caught:
        plume.Ledger(address)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_a_server_that_is_not_there_is_told_without_its_words() -> None:
    with pytest.raises(LedgerError, match=r"'postgresql://127\.0\.0\.1:1/budgets' cannot be reached") as caught:
        plume.Ledger(f"postgresql://ana:{SECRET}@127.0.0.1:1/budgets")
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_a_service_is_refused_since_it_would_hide_the_host() -> None:
    with pytest.raises(LedgerError, match="names a service"):
        plume.Ledger("postgresql:///budgets?service=team")


def mode(address: str) -> str | None:
    return psycopg.conninfo.conninfo_to_dict(database_at(address).parameters).get("sslmode")


@pytest.mark.parametrize("weak", ["disable", "allow", "prefer"])
def test_a_connection_that_others_can_step_into_is_refused(weak: str) -> None:
    with pytest.raises(LedgerError, match=f"sslmode is '{weak}', which lets others pretend to be"):
        plume.Ledger(f"postgresql://db/budgets?sslmode={weak}")


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("postgresql://db/budgets", "verify-full"),
        ("postgresql://192.0.2.1/budgets", "verify-full"),
        ("postgresql://localhost/budgets?hostaddr=192.0.2.1", "verify-full"),
        ("postgresql://localhost,db/budgets", "verify-full"),
        ("postgresql://db/budgets?sslmode=require", "require"),
        ("postgresql://localhost/budgets", None),
        ("postgresql://127.0.0.1/budgets?sslmode=disable", "disable"),
        ("postgresql://[::1]/budgets", None),
        ("postgresql:///budgets", None),
    ],
)
def test_a_server_elsewhere_must_prove_who_it_is_unless_said_otherwise(address: str, expected: str | None) -> None:
    assert mode(address) == expected


def test_the_environment_weakens_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGSSLMODE", "disable")
    assert mode("postgresql://db/budgets") == "verify-full"
    monkeypatch.setenv("PGHOST", "db")
    assert mode("postgresql:///budgets") == "verify-full"
    monkeypatch.setenv("PGHOSTADDR", "192.0.2.1")
    assert mode("postgresql://localhost/budgets") == "verify-full"


def test_a_ledger_in_a_database_needs_its_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "plume.ledger.postgresql")
    monkeypatch.delitem(sys.modules, "plume.ledger.postgresql_address", raising=False)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(
        MissingPackage, match=r"a ledger in PostgreSQL needs psycopg; run pip install 'psycopg\[binary\]'"
    ):
        plume.Ledger("postgresql://db/budgets")


def test_a_new_schema_is_the_one_that_is_compared_with(ledger: plume.Ledger) -> None:
    lines = ledger.store.read(lambda book: sorted(line for (line,) in book.execute(postgresql_schema._OBJECTS)))
    assert hashlib.sha256("\n".join(lines).encode()).hexdigest() == postgresql_schema._MADE_WITH, "\n".join(lines)


@pytest.mark.parametrize(
    ("setting", "given", "expected"),
    [
        ("synchronous_commit", "off", "on"),
        ("synchronous_commit", "local", "on"),
        ("synchronous_commit", "remote_apply", "remote_apply"),
        ("search_path", "public", "pg_catalog, plume_ledger, pg_temp"),
        ("timezone", "'Asia/Kathmandu'", "UTC"),
        ("lock_timeout", "0", "30s"),
        ("row_security", "on", "off"),
        ("client_encoding", "latin1", "UTF8"),
    ],
)
def test_what_a_database_is_set_to_is_set_back(address: str, setting: str, given: str, expected: str) -> None:
    ledger = plume.Ledger.create(address, datasets=BUDGETS)
    change(ledger, f"ALTER DATABASE {address.rpartition('/')[2]} SET {setting} = {given}")
    try:
        assert ledger.store.read(lambda book: book.execute(f"SELECT current_setting('{setting}')")) == [(expected,)]
    finally:
        change(ledger, f"ALTER DATABASE {address.rpartition('/')[2]} RESET {setting}")


def test_a_server_that_does_not_wait_for_its_disk_is_not_charged() -> None:
    with postgresql_servers.server(fsync="off") as server:
        address = empty_database(server.url, "ledger")
        with pytest.raises(LedgerError, match="runs with fsync off, so that a crash forgets charges"):
            plume.Ledger.create(address, datasets=BUDGETS).add_dataset("e", plume.Budget(1))


def test_a_database_that_cannot_hold_all_names_gets_no_ledger(ledger_server: Server) -> None:
    with psycopg.connect(ledger_server.url, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS latin")
        connection.execute("CREATE DATABASE latin TEMPLATE template0 ENCODING latin1 LOCALE 'C' LOCALE_PROVIDER libc")
    with pytest.raises(LedgerError, match="cannot hold all names"):
        plume.Ledger.create(ledger_server.address("latin"))


def test_a_schema_of_that_name_that_is_no_ledger_is_let_be(address: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA plume_ledger")
    with pytest.raises(LedgerError, match="is not a Plume ledger"):
        plume.Ledger(address)
    with pytest.raises(LedgerError, match="has a ledger already"):
        plume.Ledger.create(address)


def test_a_kill_before_the_dataset_is_written_leaves_no_ledger(address: str) -> None:
    child = os.fork()
    if not child:
        execute = postgresql._Session.execute

        def deadly(self: object, statement: str, *values: object) -> object:
            if statement.startswith("INSERT"):
                os.kill(os.getpid(), signal.SIGKILL)
            return execute(self, statement, *values)

        postgresql._Session.execute = deadly
        plume.Ledger.create(address, datasets=BUDGETS)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert not database_at(address).is_there()
    assert plume.Ledger.create(address, datasets=BUDGETS).datasets() == ("d",)


def test_a_role_that_may_insert_can_make_releases(address: str, ledger: plume.Ledger) -> None:
    theirs = plume.Ledger(as_role(address, "analysts", *RIGHTS))
    made = plume.run(QUERY, ROWS, ledger=theirs, dataset="d", release_id="first")
    assert plume.run(QUERY, ROWS, ledger=ledger, dataset="d", release_id="first").rows.equals(made.rows)
    assert ledger.verify() == theirs.verify()


def test_a_role_that_may_insert_removes_lost_rows_and_no_others(address: str, ledger: plume.Ledger) -> None:
    theirs = plume.Ledger(as_role(address, "analysts", *RIGHTS))
    plume.run(QUERY, ROWS, ledger=theirs, dataset="d", release_id="kept")
    with theirs.dataset("d").claimed("lost", "q") as claim:
        claim.reserve(PRICE)
        claim.begin_drawing()
        theirs.shelf.stage("lost", b"rows")
    assert theirs.recover() == {"lost": "lost"}
    assert [name for (name,) in ledger.store.read(lambda book: book.execute("SELECT release_id FROM releases"))] == [
        "kept"
    ]


def test_a_role_that_may_insert_gives_no_budget(address: str, ledger: plume.Ledger) -> None:
    theirs = plume.Ledger(as_role(address, "analysts", *RIGHTS))
    with pytest.raises(LedgerError, match="does not let this role do that"):
        theirs.add_dataset("more", plume.Budget(1))
    assert ledger.datasets() == ("d",)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET content = '{}'",
        "DELETE FROM entries",
        "TRUNCATE entries",
        "DELETE FROM releases",
        "UPDATE releases SET content = ''",
        "ALTER TABLE entries DISABLE TRIGGER ALL",
        "SET session_replication_role = replica",
        "DROP SCHEMA plume_ledger CASCADE",
        "CREATE FUNCTION plume_ledger.count(text) RETURNS int LANGUAGE sql AS 'SELECT 0'",
    ],
)
def test_a_role_that_may_insert_changes_nothing_else(address: str, ledger: plume.Ledger, statement: str) -> None:
    theirs = plume.Ledger(as_role(address, "analysts", *RIGHTS))
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        change(theirs, statement)
    ledger.verify()


def test_a_role_that_may_read_sees_and_does_not_charge(address: str, ledger: plume.Ledger) -> None:
    rights = ("GRANT USAGE ON SCHEMA plume_ledger TO ana", "GRANT SELECT ON ALL TABLES IN SCHEMA plume_ledger TO ana")
    theirs = plume.Ledger(as_role(address, "ana", *rights))
    assert theirs.verify() == ledger.head
    with pytest.raises(LedgerError, match="does not let this role do that"):
        charge(theirs.store, "d", "first", request="q", price=PRICE)


def test_a_role_without_rights_sees_nothing(address: str, ledger: plume.Ledger) -> None:
    with pytest.raises(LedgerError, match="does not let this role do that"):
        plume.Ledger(as_role(address, "ana"))
    half = plume.Ledger(as_role(address, "ana", RIGHTS[0].partition(";")[0].replace("analysts", "ana")))
    for call in (half.history, half.verify, half.datasets):
        with pytest.raises(LedgerError, match="does not let this role do that"):
            call()
    assert ledger.datasets() == ("d",)


SHADOWS = (
    "CREATE SCHEMA IF NOT EXISTS shadows",
    "CREATE TABLE shadows.entries AS SELECT * FROM plume_ledger.entries WITH NO DATA",
    "CREATE FUNCTION shadows.coalesced(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
    "CREATE OPERATOR shadows.= (LEFTARG = text, RIGHTARG = text, FUNCTION = shadows.coalesced)",
    "CREATE OPERATOR shadows.<> (LEFTARG = text, RIGHTARG = text, FUNCTION = shadows.coalesced)",
    "CREATE FUNCTION shadows.lower_numeric(numeric, numeric) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
    "CREATE OPERATOR shadows.<= (LEFTARG = numeric, RIGHTARG = numeric, FUNCTION = shadows.lower_numeric)",
    "CREATE FUNCTION shadows.pg_advisory_xact_lock(bigint) RETURNS void LANGUAGE sql AS 'SELECT'",
)


def test_functions_operators_and_tables_of_other_roles_are_not_used(address: str, ledger: plume.Ledger) -> None:
    name = address.rpartition("/")[2]
    change(ledger, "DROP SCHEMA IF EXISTS shadows CASCADE", *SHADOWS)
    change(ledger, f"ALTER DATABASE {name} SET search_path = shadows, pg_catalog")
    try:
        for number in range(3):
            charge(ledger.store, "d", f"r{number}", request="q", price=PRICE)
        with pytest.raises(plume.PlumeError, match="this release needs"):
            charge(ledger.store, "d", "r3", request="q", price=PRICE)
        content = ledger.history()[-1].content | {"charges_before": 3, "total_epsilon": 4 * EPSILONS}
        with pytest.raises(plume.PlumeError, match="limit of the dataset does not allow"):
            postgresql_append(ledger, content)
        with psycopg.connect(address, autocommit=True) as connection:  # outside of our sessions too
            connection.execute("SELECT count(*) FROM plume_ledger.entries")
    finally:
        change(ledger, f"ALTER DATABASE {name} RESET search_path", "DROP SCHEMA shadows CASCADE")
    assert len(ledger.history()) == 4
    ledger.verify()


def postgresql_append(ledger: plume.Ledger, content: object) -> None:
    from plume.ledger.entry import EntryKind  # noqa: PLC0415
    from plume.ledger.store import append  # noqa: PLC0415

    append(ledger.store, EntryKind.RESERVED, "d", "r3", content)


def test_the_triggers_hold_whatever_the_search_path_of_who_inserts(address: str, ledger: plume.Ledger) -> None:
    """What somebody writes who goes around Plume: a temporary table and an operator stand in the way of nothing."""
    charge(ledger.store, "d", "first", request="q", price=PRICE)
    change(ledger, "DROP SCHEMA IF EXISTS shadows CASCADE", *SHADOWS)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("SET search_path = shadows, pg_temp, pg_catalog, plume_ledger")
        connection.execute("CREATE TEMPORARY TABLE entries AS SELECT * FROM plume_ledger.entries")
        with pytest.raises(psycopg.IntegrityError, match="limit of the dataset does not allow"):
            connection.execute(
                "INSERT INTO plume_ledger.entries SELECT number + 1, kind, dataset, 'more', at, "
                "replace(content, '\"charges_before\":0', '\"charges_before\":7'), hash, 'x' "
                "FROM plume_ledger.entries WHERE number = 2"
            )
    change(ledger, "DROP SCHEMA shadows CASCADE")


def test_entries_are_dated_by_the_clock_of_the_server(ledger: plume.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    before, after = (ledger.store.read(lambda book: book.now()).isoformat() for _ in range(2))
    assert before < after
    at = charge(ledger.store, "d", "first", request="q", price=PRICE).at
    assert at.endswith("+00:00")
    assert after[:23] <= at <= ledger.store.read(lambda book: book.now()).isoformat()


@pytest.mark.parametrize("name", ["'; DROP TABLE plume_ledger.entries; --", "? %s %(x)s {0} $1", 'a"b\\c', "été 中 😀"])
def test_names_are_names_whatever_they_say(new_place: Callable[[], Path | str], name: str) -> None:
    ledger = plume.Ledger.create(new_place(), datasets={name: plume.Budget(2)})
    charge(ledger.store, name, "first", request=name, price=PRICE)
    assert (ledger.datasets(), ledger.dataset(name).spent.epsilon) == ((name,), 1)
    assert ledger.history()[1].content["request"] == name
    ledger.verify()


def test_a_ledger_in_a_database_has_no_path(ledger: plume.Ledger) -> None:
    with pytest.raises(LedgerError, match=r"is in a database; it has no path"):
        ledger.path  # noqa: B018
