"""Queries in the shape of an audit's: what is asked about keys that are known."""

from fractions import Fraction

import plume
from plume.auditing.made_up_tables import with_public


def test_known_keys_need_no_share_of_selection() -> None:
    query = plume.Query(
        user="person",
        keys="page",
        measures=[plume.users(), plume.count(2)],
        max_keys_per_user=1,
        budget=plume.Budget(1, 1e-5),
        shares={"selection": 2, "count": 3},
    )
    assert with_public(query, ["a"]).shares == (("count", Fraction(3)),)
