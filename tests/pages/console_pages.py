"""The console as most tests of it begin: an elder whose request nobody took, one who is being helped, one who waits,
and three students."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.browser import served_in_threads
from tests.support.console_stub import TOKEN, ConsoleStub, instant, student_json, task_json

HOSTILE = "<img src=x onerror=\"document.title='hit'\">"


def busy_afternoon() -> ConsoleStub:
    stub = ConsoleStub()
    stub.students = [
        student_json(5, name="Ahmet Çelik"),
        student_json(6, name=HOSTILE),
        student_json(7, name="Ceren Güneş", onDuty=False, suspended=True),
    ]
    offer = {"deadline": instant(400), "studentId": 6, "studentName": HOSTILE}
    ahmet = {"id": 5, "name": "Ahmet Çelik", "phone": "+905550100011"}
    stub.add(
        task_json(1, currentOffer=offer, asked=3, remaining=6, note="Ekmek ve ilaç"),
        task_json(2, status="TIMED_OUT", asked=9, remaining=0, endedAt=instant(-300), searchEndsAt=None),
        task_json(3, status="STARTED", student=ahmet, assignedAt=instant(-900), startedAt=instant(-300)),
    )
    for task, name in zip(stub.tasks.values(), ("Ayşe Yılmaz", "Hüseyin Öztürk", "Fatma Demir"), strict=True):
        task["elder"]["name"] = name
    plain = {"rank": 1, "completedThisMonth": 2, "distanceM": 1240.0, "reason": None, "closedAt": None}
    stub.offers = [
        {"studentId": 6, "studentName": HOSTILE, "state": "PENDING", **plain}
        | {"offeredAt": instant(-200), "deadline": instant(400)},
        {"studentId": 5, "studentName": "Ahmet Çelik", "state": "SKIPPED", **plain}
        | {"offeredAt": None, "deadline": None, "reason": "TOO_FAR", "closedAt": instant(-200)},
    ]
    candidate = {"phone": "+905550100011", "distanceM": 120.0, "completedThisMonth": 1, "onDuty": True}
    stub.candidates = [
        {"studentId": 5, "name": "Ahmet Çelik", **candidate, "obstacle": None, "askedBefore": None},
        {"studentId": 6, "name": HOSTILE, **candidate, "obstacle": "HAS_A_TASK", "askedBefore": None},
    ]
    stub.elders = [{"id": 9, "name": "Emine Şahin", "phone": "+905550100009", "location": None, "openTaskId": None}]
    return stub


@contextmanager
def served(stub: ConsoleStub) -> Iterator[str]:
    """Yields the address without a path; `at` makes one that is signed in."""
    with served_in_threads(stub) as address:
        yield address


def at(address: str, path: str = "/console") -> str:
    return f"{address}{path}#token={TOKEN}"


def task_id(number: int) -> str:
    return task_json(number)["id"]
