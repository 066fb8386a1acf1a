"""The address of a ledger in PostgreSQL: what messages call it, and how to connect so that nobody stands in between."""

from ipaddress import ip_address

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Conninfo

from plume.errors import LedgerError
from plume.redaction import redacting

# Whoever stands in between could say that a charge was written, or read what is not released yet.
_WEAK = ("disable", "allow", "prefer")
_OURS = {
    "client_encoding": "utf8",
    "connect_timeout": "30",
    "fallback_application_name": "plume",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "target_session_attrs": "read-write",
}
"""What holds where an address does not say otherwise."""


def read_address(address: str) -> tuple[str, str]:
    """Give the name of a ledger, which holds neither user nor password, and the parameters of its connections."""
    unread = LedgerError("the address of the ledger cannot be read; it must be like postgresql://host/database.")
    with redacting(psycopg.Error, ValueError, to=unread):
        given = {name: str(value) for name, value in conninfo_to_dict(address).items()}
        usual = {one.keyword.decode(): (one.val or b"").decode() for one in Conninfo.get_defaults()}
    if "service" in given:
        raise LedgerError("the address of the ledger names a service; give its host and database in the address.")
    known = usual | given
    if not all(map(_is_here, (known["hostaddr"] or known["host"]).split(","))):
        given["sslmode"] = _strong(given.get("sslmode"), usual["sslmode"])
    database = known["dbname"] or known["user"]
    return f"postgresql://{_named(known['host'], known['port'])}/{database}", make_conninfo(**_OURS | given)


def _is_here(host: str) -> bool:
    """Return whether a host is this machine: a socket in its file system, or an address that no wire leads to."""
    if host in ("", "localhost") or host.startswith(("/", "@")):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _strong(given: str | None, usual: str) -> str:
    if given in _WEAK:
        raise LedgerError(
            f"sslmode is {given!r}, which lets others pretend to be the ledger's server; use verify-full, or leave it out."
        )
    return given or ("verify-full" if usual in _WEAK else usual)


def _named(hosts: str, ports: str) -> str:
    """Name the servers as addresses do; sockets have no name."""
    hosts = ",".join(
        f"[{host}]" if ":" in host else host for host in hosts.split(",") if not host.startswith(("/", "@"))
    )
    return f"{hosts}:{ports}" if hosts and ports not in ("", "5432") else hosts
