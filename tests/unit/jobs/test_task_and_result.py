"""The forms in which tasks and results travel."""

import json
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from app.jobs.engine.result import Result, ResultStatus
from app.jobs.engine.task import Task, TaskType

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
MOMENTS = st.none() | st.datetimes(timezones=st.just(UTC))
TASKS = st.builds(
    Task,
    id=st.text(),
    script_path=st.text(),
    params=st.dictionaries(st.text(), JSON, max_size=4),
    task_type=st.sampled_from(TaskType),
    max_retries=st.integers(0, 100),
    timeout_s=st.none() | st.floats(0, 1e9),
)
RESULTS = st.builds(
    Result,
    task_id=st.text(),
    status=st.sampled_from(ResultStatus),
    data=JSON,
    error=st.none() | st.text(),
    started_at=MOMENTS,
    completed_at=MOMENTS,
)


@given(TASKS)
def test_a_task_survives_its_journey(task: Task) -> None:
    assert Task.from_dict(json.loads(json.dumps(task.to_dict()))) == task


@given(RESULTS)
def test_a_result_survives_its_journey(result: Result) -> None:
    assert Result.from_dict(json.loads(json.dumps(result.to_dict()))) == result


def test_a_task_has_exactly_these_keys() -> None:
    task = Task.create("/path/to/script.py", {"value": 42}, TaskType.IO_BOUND)
    assert task.to_dict() == {
        "task_id": task.id,
        "script_path": "/path/to/script.py",
        "params": {"value": 42},
        "task_type": "io_bound",
        "max_retries": 3,
        "timeout_s": None,
    }


def test_a_task_may_come_without_what_has_a_default() -> None:
    """The third step of the seed shows a task without `max_retries`."""
    values = {"task_id": "abc-123", "script_path": "script.py", "params": {"value": 42}, "task_type": "io_bound"}
    assert Task.from_dict(values) == Task("abc-123", "script.py", {"value": 42}, TaskType.IO_BOUND, 3, None)


def test_a_result_has_exactly_these_keys() -> None:
    moment = datetime(2024, 1, 1, 12, tzinfo=UTC)
    assert Result.success("uuid", {"sum": 1}, moment, moment).to_dict() == {
        "task_id": "uuid",
        "status": "SUCCESS",
        "data": {"sum": 1},
        "error": None,
        "started_at": "2024-01-01T12:00:00+00:00",
        "completed_at": "2024-01-01T12:00:00+00:00",
    }


def test_a_failed_result_has_a_reason_and_no_data() -> None:
    result = Result.failed("uuid", "no room")
    assert (result.status, result.error, result.data, result.is_success) == ("FAILED", "no room", None, False)


def test_every_task_has_an_id_of_its_own() -> None:
    assert len({Task.create("script.py").id for _ in range(100)}) == 100
