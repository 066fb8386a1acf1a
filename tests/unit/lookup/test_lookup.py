import pytest

from plume.lookup.lookup import MOST_BROADCAST_KEYS, choose_lookup
from plume.plan.nodes import Lookup


@pytest.mark.parametrize(
    ("keys", "with_store", "chosen"),
    [
        (0, False, Lookup.BROADCAST),
        (MOST_BROADCAST_KEYS, True, Lookup.BROADCAST),
        (MOST_BROADCAST_KEYS + 1, True, Lookup.STORE),
        (MOST_BROADCAST_KEYS + 1, False, Lookup.JOIN),
    ],
)
def test_the_lookup_follows_from_the_number_of_keys(keys: int, with_store: bool, chosen: Lookup) -> None:  # noqa: FBT001
    assert choose_lookup(keys, with_store=with_store) is chosen
