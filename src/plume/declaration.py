"""What the owner of data says about it: whose its rows are, or that they are nobody's. The text of a statement cannot say otherwise."""

from dataclasses import dataclass
from typing import Any

from plume.arguments import call_checked
from plume.errors import InputError


@dataclass(frozen=True)
class PrivateTable:
    """Data whose rows belong to users, and the column that identifies them."""

    data: Any
    unit: str


@dataclass(frozen=True)
class PublicTable:
    """Data that contains no personal data."""

    data: Any


def rows_of(data: Any, user: str) -> Any:
    """Give the data of a query about `user`; where a unit is declared, it must be that one."""
    if isinstance(data, PublicTable):
        raise InputError("this table is declared public, so it has no users to protect; give it without plume.public.")
    if isinstance(data, PrivateTable) and data.unit != user:
        raise InputError(f"user is {user!r}; the table is declared to belong to the users in {data.unit!r}.")
    return data.data if isinstance(data, PrivateTable) else data


@call_checked()
def private(data: Any, *, unit: str) -> PrivateTable:
    """Declare that the rows of a table belong to the users in the column `unit`.

    >>> private("visits.parquet", unit="user_id").unit
    'user_id'
    """
    if isinstance(data, PrivateTable | PublicTable):
        raise InputError("this table is declared already; declare it once, with plume.private or plume.public.")
    if not isinstance(unit, str) or not unit:
        raise InputError(f"unit is {unit!r}; it must be the name of the column that identifies the user.")
    return PrivateTable(data, unit)


@call_checked()
def public(data: Any) -> PublicTable:
    """Declare that a table contains no personal data: it may be joined in any way, and nothing protects what is in it."""
    if isinstance(data, PrivateTable | PublicTable):
        raise InputError("this table is declared already; declare it once, with plume.private or plume.public.")
    return PublicTable(data)
