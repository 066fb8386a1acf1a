"""Which lookup suits how many selected keys."""

from plume.plan.nodes import Lookup

# A table of this many keys takes about a tenth of a gigabyte on each executor; the driver sends it within seconds.
MOST_BROADCAST_KEYS = 1_000_000


def choose_lookup(number_of_keys: int, *, with_store: bool) -> Lookup:
    """Choose by the number of selected keys.

    Guarantee: the selected keys are released anyway, so their number tells nothing more. docs/decisions/0016-lookup-at-run-time.md.
    """
    if number_of_keys <= MOST_BROADCAST_KEYS:
        return Lookup.BROADCAST
    return Lookup.STORE if with_store else Lookup.JOIN
