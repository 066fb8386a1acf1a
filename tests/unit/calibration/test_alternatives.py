import pytest

from plume.calibration.alternatives import Alternative, best
from plume.errors import RangeError


def known(error: float) -> Alternative[float]:
    return Alternative(lambda: error)


def unknown(estimate: float, error: float, asked: list[float]) -> Alternative[float]:
    def exact() -> float:
        asked.append(error)
        return error

    return Alternative(lambda: estimate, exact)


def nowhere() -> float:
    raise RangeError("too wide")


def test_the_smallest_error_is_found() -> None:
    assert best([known(3.0), unknown(1.0, 2.0, []), known(4.0)], error=float) == 2.0


def test_a_hope_that_is_not_fulfilled_is_given_up() -> None:
    assert best([known(3.0), unknown(1.0, 5.0, [])], error=float) == 3.0


def test_what_hardly_promises_more_is_not_found_out() -> None:
    asked: list[float] = []
    assert best([unknown(2.95, 2.95, asked), known(3.0)], error=float) == 3.0
    assert asked == []


def test_what_another_way_has_beaten_is_not_found_out() -> None:
    asked: list[float] = []
    assert best([unknown(2.5, 2.5, asked), unknown(1.0, 1.1, asked), known(3.0)], error=float) == 1.1
    assert asked == [1.1]


def test_a_single_way_is_gone_without_hoping() -> None:
    assert best([Alternative(nowhere, lambda: 7.0)], error=float) == 7.0


def test_a_way_that_leads_nowhere_is_passed_by() -> None:
    assert best([Alternative(nowhere), known(3.0)], error=float) == 3.0


def test_if_all_lead_nowhere_the_reason_is_given() -> None:
    with pytest.raises(RangeError, match="too wide"):
        best([Alternative(nowhere), Alternative(nowhere)], error=float)
