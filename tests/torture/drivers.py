"""Threads that act as people: each presses, answers or coordinates at random, from the seed of the run."""

import random
import threading
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from tests.torture.answers import AnswerLog
from tests.torture.people import People, Person, north
from tests.torture.phone import Phone


class Drivers:
    def __init__(self, people: People, ports: Sequence[int], answer_log: AnswerLog, seed: int) -> None:
        self.over = threading.Event()
        self._people = people
        self._ports = ports
        self._answer_log = answer_log
        self._seed = seed
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        for place in self._people.busy:
            for elder in place.elders:
                self._start_thread(elder, busy_elder)
            for student in place.students:
                self._start_thread(student, busy_student)
        for place in self._people.calm:
            for elder in place.elders:
                self._start_thread(elder, calm_elder)
            for student in place.students:
                self._start_thread(student, calm_student)
        for coordinator in self._people.coordinators:
            self._start_thread(coordinator, self._coordinate)
        self._start_thread(self._people.admin, self._administer)

    def stop(self) -> None:
        self.over.set()
        for thread in self._threads:
            thread.join(timeout=60)

    def finish(self, open_tasks: Callable[[], Sequence[tuple[str, str, int]]]) -> None:
        """Completes every task that a student still has. `open_tasks` returns (task, status, student)."""
        students = {one.id: one for place in self._people.places for one in place.students}
        for task_id, status, student_id in open_tasks():
            phone = self.phone(students[student_id])
            if status == "ASSIGNED":
                phone.do("start", task_id)
            phone.do("complete", task_id)

    def phone(self, person: Person) -> Phone:
        """A phone that goes on retrying when the drivers stop."""
        return self._phone(person, threading.Event())

    def _phone(self, person: Person, over: threading.Event) -> Phone:
        return Phone(person, self._ports, self._answer_log, random.Random(f"{self._seed} {person.id}"), over)

    def _start_thread(self, person: Person, behaviour: Callable[[Phone], None]) -> None:
        phone = self._phone(person, self.over)

        def repeat() -> None:
            while not phone.over.is_set():
                behaviour(phone)

        thread = threading.Thread(target=repeat, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _coordinate(self, phone: Phone) -> None:
        phone.over.wait(phone.rng.uniform(0.5, 3))
        status, page = phone.call("GET", "/tasks?limit=20")
        tasks = page.get("items", []) if status == 200 else []
        if not tasks:
            return
        task = phone.rng.choice(tasks)
        busy = [one for place in self._people.busy for one in place.students]
        if task["elder"]["id"] not in {one.id for place in self._people.busy for one in place.elders}:
            return
        match phone.rng.choice(("assign", "next", "next", "release", "complete", "cancel", "offers")):
            case "assign" if task["status"] == "PENDING":
                student = phone.rng.choice(busy).id
                phone.do("assign", task["id"], {"studentId": student}, student)
            case "next" if task["status"] == "PENDING":
                phone.do("next", task["id"])
            case "release" | "complete" as deed if task["status"] in ("ASSIGNED", "STARTED"):
                phone.do(deed, task["id"])
            case "cancel" if phone.rng.random() < 0.3:
                phone.do("cancel", task["id"])
            case _:
                phone.call("GET", f"/tasks/{task['id']}/offers")

    def _administer(self, phone: Phone) -> None:
        """Deactivates a user now and then, and activates the same user again."""
        phone.over.wait(phone.rng.uniform(2, 6))
        place = phone.rng.choice(self._people.busy)
        person = phone.rng.choice([*place.students, *place.elders[:1]])
        phone.call("PATCH", f"/users/{person.id}", {"active": False})
        phone.over.wait(phone.rng.uniform(0.2, 2))
        persistent = Phone(phone.person, self._ports, self._answer_log, phone.rng, threading.Event())
        persistent.call("PATCH", f"/users/{person.id}", {"active": True})


def busy_elder(phone: Phone) -> None:
    phone.over.wait(phone.rng.uniform(0.2, 3))
    key = str(uuid.UUID(int=phone.rng.getrandbits(128))) if phone.rng.random() < 0.6 else None
    task_id = phone.press(key)
    if task_id is None:
        return
    match phone.rng.randrange(10):
        case 0 | 1:
            phone.at_once(lambda: phone.press(key), lambda: phone.press(key))
        case 2:
            phone.over.wait(phone.rng.uniform(0, 4))
            phone.at_once(*[lambda: phone.do("cancel", task_id)] * 2)
        case _:
            phone.call("GET", f"/tasks/{task_id}")


def busy_student(phone: Phone) -> None:
    phone.over.wait(phone.rng.uniform(0.1, 0.8))
    status, me = phone.call("GET", "/me")
    if status != 200:
        return
    if me.get("offer"):
        _answer(phone, me["offer"]["taskId"])
    elif me.get("openTask"):
        _help(phone, me["openTask"])
    elif phone.rng.random() < 0.15:
        _change_availability(phone)


def _answer(phone: Phone, task_id: str) -> None:
    phone.over.wait(phone.rng.uniform(0, 0.6))
    match phone.rng.randrange(12):
        case 0 | 1 | 2 | 3:
            phone.do("accept", task_id)
        case 4:
            phone.at_once(*[lambda: phone.do("accept", task_id)] * 2)
        case 5:
            phone.at_once(lambda: phone.do("accept", task_id), lambda: phone.do("reject", task_id))
        case 6 | 7:
            phone.do("reject", task_id)
        case 8:
            # Just before the deadline of the offer (2 s), or just after it.
            phone.over.wait(phone.rng.uniform(1.2, 2.2))
            phone.do("accept", task_id)
        case 9:
            _change_availability(phone)
        case 10:
            # Accepts long after the deadline; the matcher that should have closed the offer may be paused.
            phone.over.wait(phone.rng.uniform(2, 5))
            phone.do("accept", task_id)
        case _:
            phone.over.wait(2)


def _help(phone: Phone, task: dict[str, Any]) -> None:
    phone.over.wait(phone.rng.uniform(0, 1))
    match phone.rng.randrange(8):
        case 0 | 1:
            phone.do("withdraw", task["id"])
        case 2:
            # Does nothing for so long that the coordinators are notified.
            phone.over.wait(phone.rng.uniform(4, 9))
        case _:
            if task["status"] == "ASSIGNED":
                phone.do("start", task["id"])
            phone.at_once(*[lambda: phone.do("complete", task["id"])] * 2)


def _change_availability(phone: Phone) -> None:
    home = phone.person.home
    match phone.rng.randrange(3):
        case 0:
            phone.call("PUT", "/me/availability", {"onDuty": False})
            phone.over.wait(phone.rng.uniform(0, 1.5))
            phone.call("PUT", "/me/availability", {"onDuty": True})
        case 1:
            near = north(home, phone.rng.uniform(-40, 40))
            phone.call("PUT", "/me/location", {"lat": near.lat, "lon": near.lon})
        case _:
            away = north(home, 5_000)
            phone.call("PUT", "/me/location", {"lat": away.lat, "lon": away.lon})
            phone.over.wait(phone.rng.uniform(0, 1.5))
            phone.call("PUT", "/me/location", {"lat": home.lat, "lon": home.lon})


def calm_elder(phone: Phone) -> None:
    phone.press()
    phone.over.wait(phone.rng.uniform(0.5, 1.5))


def calm_student(phone: Phone) -> None:
    """Reads the offer and sometimes rejects it; never moves or accepts, so the order must be that of the distance."""
    phone.over.wait(phone.rng.uniform(0.3, 1.2))
    status, offer = phone.call("GET", "/me/offer")
    if status == 200 and phone.rng.random() < 0.4:
        phone.do("reject", offer["taskId"])
