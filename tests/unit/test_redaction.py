"""What becomes of errors that quote data: nothing of them is left, in the chain or in the frames."""

import gc
import traceback
from typing import Any

import pytest

from plume.errors import EngineError, InputError
from plume.redaction import Redaction, redacting

CANARY = "alice-7f3a"


def quote() -> None:
    secret = CANARY
    raise ValueError(secret)


def redacted() -> EngineError:
    with pytest.raises(EngineError) as caught, redacting(ValueError, to=EngineError("it failed")):
        quote()
    return caught.value


def test_an_error_is_replaced() -> None:
    assert str(redacted()) == "it failed"


def test_no_chain_leads_to_the_first_error() -> None:
    assert (redacted().__cause__, redacted().__context__) == (None, None)


def test_no_frame_names_the_first_error() -> None:
    frames = traceback.walk_tb(redacted().__traceback__)
    held = [value for frame, _ in frames for value in frame.f_locals.values()]
    assert [value for value in held if isinstance(value, ValueError)] == []


def test_the_first_error_is_gone() -> None:
    kept = redacted()
    gc.collect()
    assert [one for one in gc.get_objects() if issubclass(type(one), ValueError) and CANARY in str(one)] == []
    assert str(kept) == "it failed"


def test_an_error_of_another_kind_passes() -> None:
    with pytest.raises(ValueError, match=CANARY), redacting(OSError, to=EngineError("it failed")):
        quote()


def test_a_block_without_an_error_is_left_alone() -> None:
    with redacting(ValueError, to=EngineError("it failed")):
        done = True
    assert done


def test_the_innermost_block_decides() -> None:
    with (
        pytest.raises(InputError, match="inner") as caught,
        redacting(ValueError, to=EngineError("outer")),
        redacting(ValueError, to=InputError("inner")),
    ):
        quote()
    assert caught.value.__context__ is None


@pytest.mark.parametrize(("raised", "left"), [(ValueError("a"), InputError), (KeyError("b"), KeyError)])
def test_an_error_that_becomes_itself_passes(raised: Exception, left: type[Exception]) -> None:
    def becomes(error: Exception) -> Exception:
        return InputError("not read") if isinstance(error, ValueError) else error

    with pytest.raises(left), Redaction((Exception,), becomes):
        raise raised


def test_what_is_handled_around_the_block_is_not_kept_either() -> None:
    caught: Any = None
    try:
        quote()
    except ValueError:
        with pytest.raises(EngineError) as caught, redacting(ValueError, to=EngineError("it failed")):
            quote()
    assert caught.value.__context__ is None
