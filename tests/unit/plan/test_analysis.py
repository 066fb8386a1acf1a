import pytest

from plume.errors import PlumeBug
from plume.plan.aggregates import Count
from plume.plan.analysis import gathered_by, read_twice, shuffled_by, shuffles, steps
from plume.plan.expressions import Column
from plume.plan.nodes import Append, Combine, CountKeys, KeepFew, Map, Scan

TABLE = Scan("table", ("user_id", "key_1"), public=False)
BY_USER = Combine("by_user", TABLE, ("user_id", "key_1"), (), gather=("user_id",))


def test_steps_come_after_what_they_read_and_once() -> None:
    both = Append("both", (BY_USER, CountKeys("counted", BY_USER, "user_id", "keys", above=3)))
    assert [step.name for step in steps(both)] == ["table", "by_user", "counted", "both"]


def test_two_steps_of_one_name_are_refused() -> None:
    other = Combine("by_user", TABLE, ("key_1",), (), gather=("key_1",))
    with pytest.raises(PlumeBug, match="two steps of a plan are called by_user"):
        steps(Append("both", (BY_USER, other)))


def test_a_step_read_by_two_is_read_twice() -> None:
    assert read_twice(Append("both", (BY_USER, CountKeys("counted", BY_USER, "user_id", "keys", above=3)))) == {
        "by_user"
    }


def test_what_is_gathered_by_user_is_not_shuffled_again_to_bound_users() -> None:
    assert shuffled_by(BY_USER) == ("user_id",)
    assert shuffled_by(KeepFew("few", BY_USER, "user_id", ("key_1",), 3)) is None
    assert shuffles(KeepFew("few", BY_USER, "user_id", ("key_1",), 3)) == 1


def test_grouping_by_key_shuffles_what_is_gathered_by_user() -> None:
    assert shuffled_by(Combine("keyed", BY_USER, ("key_1",), (("n", Count()),), gather=("key_1",))) == ("key_1",)


def test_a_map_that_drops_the_gathering_column_loses_the_gathering() -> None:
    assert gathered_by(Map("keys", BY_USER, (("key_1", Column("key_1")),))) is None


def test_appending_keeps_only_what_all_are_gathered_by() -> None:
    keyed = Combine("keyed", BY_USER, ("key_1",), (), gather=("key_1",))
    assert gathered_by(Append("both", (BY_USER, keyed))) is None
    assert gathered_by(Append("both", (BY_USER, KeepFew("few", BY_USER, "user_id", ("key_1",), 3)))) == ("user_id",)
