"""A run's own session on Spark Connect, with PySpark as it is and as it was before 4.3: nothing of the caller's is in it but settings."""

import hashlib
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pyspark.sql.connect.session import SparkSession

import plume
from exact import exact_release
from plume.engines import spark_server
from plume.engines.spark import Spark, _leave, _refuse_unknown
from plume.engines.spark_server import fails_on_overflow
from plume.engines.spark_silence import silence
from plume.errors import SettingError
from questions import asking, people
from sparks import run_script

pytestmark = pytest.mark.quick_on("spark-connect")


class Earlier(SparkSession):
    """A session as PySpark before 4.3 has it."""

    @property
    def newSession(self) -> Any:  # noqa: N802 - PySpark's name
        raise AttributeError("newSession")


@pytest.fixture(params=["as it is", "before 4.3"])
def caller(request: pytest.FixtureRequest, connect: Any) -> Iterator[Any]:
    """A caller's session, whose connection names it."""
    connection = deepcopy(connect.client._builder)
    connection.set("session_id", str(uuid4()))
    session = (SparkSession if request.param == "as it is" else Earlier)(connection)
    yield session
    _leave(session)


def test_a_run_is_answered(caller: Any) -> None:
    frame = caller.createDataFrame(people(k=["x", "x", "y"]))
    query = asking(measures=[plume.users()], public_keys=["x", "y"])
    assert exact_release(query, frame, engine=Spark()).to_pydict() == {"k": ["x", "y"], "users": [2, 1]}


def test_a_run_is_not_in_the_callers_session(caller: Any) -> None:
    with Spark(caller).open({}) as run:
        assert run._session.client._session_id != caller.client._session_id


def test_a_run_is_the_same_users_as_the_caller(caller: Any) -> None:
    with Spark(caller).open({}) as run:
        assert run._session.client._user_id == caller.client._user_id


def test_a_run_does_not_see_the_callers_views(caller: Any) -> None:
    caller.range(3).createOrReplaceTempView("rows")
    with Spark(caller).open({}) as run:
        assert not run._session.catalog.tableExists("rows")


def test_a_run_does_not_overwrite_the_callers_views(caller: Any) -> None:
    caller.range(3).createOrReplaceTempView("rows")
    with Spark(caller).open({}) as run:
        run.define("rows", "SELECT 1 AS one")
    assert caller.table("rows").count() == 3


def test_a_run_does_not_know_the_callers_functions(caller: Any) -> None:
    caller.udf.register("made_by_the_caller", lambda: "made", "string")
    with Spark(caller).open({}) as run:
        assert not run._session.catalog.functionExists("made_by_the_caller")


def test_a_function_of_the_callers_does_not_take_the_place_of_sparks_own(caller: Any) -> None:
    """On Spark 4.1 it does in the caller's session, and sha2 decides which keys a user keeps."""
    caller.udf.register("sha2", lambda _, __: "always the same", "string")
    with Spark(caller).open({}) as run:
        hashed = run._session.sql("SELECT sha2('a', 256) AS hashed").toArrow()
    assert hashed["hashed"].to_pylist() == [hashlib.sha256(b"a").hexdigest()]


def test_a_run_is_not_where_the_caller_is_in_the_catalogue(caller: Any, tmp_path: Path) -> None:
    caller.sql(f"CREATE DATABASE IF NOT EXISTS elsewhere LOCATION '{tmp_path}'")
    caller.catalog.setCurrentDatabase("elsewhere")
    with Spark(caller).open({}) as run:
        assert run._session.catalog.currentDatabase() == "default"
    caller.sql("DROP DATABASE elsewhere")


def test_the_callers_settings_hold_in_a_run(caller: Any) -> None:
    caller.conf.set("spark.sql.shuffle.partitions", "3")
    with Spark(caller).open({}) as run:
        assert run._session.conf.get("spark.sql.shuffle.partitions") == "3"


def test_a_runs_settings_do_not_hold_in_the_callers_session(caller: Any) -> None:
    caller.conf.set("spark.sql.ansi.enabled", "false")
    before = dict(caller.conf.getAll)
    with Spark(caller).open({}) as run:
        assert run._session.conf.get("spark.sql.ansi.enabled") == "true"
        assert dict(caller.conf.getAll) == before


def test_a_session_that_was_given_up_is_not_closed_again(caller: Any) -> None:
    """In PySpark 4.1, closing waits for threads that all sessions share, and Python may collect a session in one of them."""
    with Spark(caller).open({}) as run:
        pass
    run._session.client._closed = False
    run._session.__del__()
    assert not run._session.client.is_closed


def test_a_spark_that_lacks_a_setting_that_runs_rely_on_is_refused(session: Any) -> None:
    with pytest.raises(
        SettingError, match=r"Spark does not know the setting spark.sql.no.such.check, .*; use Spark 4.1 or newer"
    ):
        _refuse_unknown(session, ["spark.sql.no.such.check"])


def test_a_server_that_takes_settings_and_does_not_act_on_them_is_refused(
    connect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sail takes all of them, says that it knows them, and wraps integers round."""
    monkeypatch.setattr(spark_server, "_OVERFLOW", "SELECT CAST(9223372036854775807 AS BIGINT) AS wrapped")
    monkeypatch.setattr(spark_server, "_ACTS", {})
    with (
        pytest.raises(SettingError, match=r"does not act on it: .*, such as Sail, are not supported"),
        Spark(connect).open({}),
    ):
        pass


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_whether_a_sum_overflows_in_silence_is_found_out(connect: Any, ansi: str) -> None:
    connect.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        with silence(connect):
            assert fails_on_overflow(connect) == (ansi == "true")
    finally:
        connect.conf.unset("spark.sql.ansi.enabled")


@pytest.fixture(scope="module")
def said() -> list[str]:
    """What a server says that was started while its usual port was taken."""
    done = run_script("taken_port_run.py")
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


@pytest.mark.starts("spark-connect")
def test_a_server_starts_where_its_usual_port_is_taken(said: list[str]) -> None:
    assert "3 rows" in said


@pytest.mark.starts("spark-connect")
def test_a_server_that_plume_started_listens_to_this_machine_alone(said: list[str]) -> None:
    assert "nobody else is let in" in said
