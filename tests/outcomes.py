"""How a run ends, as somebody sees it who may see nothing else: released, or refused with some words."""

from collections.abc import Callable
from typing import Any

import plume

RELEASED = "released"


def outcome(run: Callable[[], Any]) -> str:
    """Run, and say how it ended; whatever is not one of Plume's own refusals is a flaw in itself."""
    try:
        run()
    except plume.PlumeError as error:
        return f"{type(error).__name__}: {error}"
    return RELEASED
