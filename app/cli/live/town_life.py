"""Lets the people of the demo live through the public API: presses, answers, silences, duty, ways through the town."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from app.cli.live.agenda import Agenda
from app.cli.live.copy_client import CopyAnswer, DemoCaller
from app.cli.live.habits import Habits, StudentReply
from app.users.models import LatLon, Role

LOOK_EVERY_S = 1.0
MOST_OFF_DUTY = 0.3
"""Share of the students. Some were off duty when the demo was made."""
METRES_PER_DEGREE = 111_320.0
Item = dict[str, Any]


@dataclass(frozen=True)
class Dweller:
    id: int
    role: Role
    name: str
    home: LatLon
    is_yours: bool = False
    """Kept for whoever tries the demo: answers when asked, and does nothing else."""


class LifeRefused(Exception):
    """The copy does not take our tokens, so nothing can happen."""


class TownLife:
    """`watcher_id` is an administrator, who sees everything and does nothing."""

    def __init__(
        self,
        dwellers: Mapping[int, Dweller],
        watcher_id: int,
        caller: DemoCaller,
        habits: Habits,
        agenda: Agenda,
        say: Callable[[str], None],
    ) -> None:
        self._dwellers = dwellers
        self._watcher_id = watcher_id
        self._caller = caller
        self._habits = habits
        self._agenda = agenda
        self._say = say
        free = [one for one in dwellers.values() if not one.is_yours]
        self._elders = [one.id for one in free if one.role is Role.ELDER]
        self._students = [one.id for one in free if one.role is Role.STUDENT]
        self._searching: dict[str, int] = {}
        """Tasks for which somebody is sought, and their elders."""
        self._helping: dict[str, int] = {}
        """Tasks that a student has accepted, and the students."""
        self._asked: set[tuple[str, int]] = set()
        self._off_duty: set[int] = set()
        self._resting: set[int] = set()
        """Elders whom the service has asked to wait."""

    def begin(self) -> None:
        self._agenda.after(0.0, self._take_over)
        self._agenda.every(lambda: LOOK_EVERY_S, self._look)
        self._agenda.every(self._habits.press_pause_s, self._press)
        self._agenda.every(self._habits.duty_pause_s, self._change_duty)
        self._agenda.every(self._habits.move_pause_s, self._move)

    # Elders -----------------------------------------------------------------------------------------------------

    def _press(self) -> None:
        busy = {*self._searching.values(), *self._resting}
        free = [id_ for id_ in self._elders if id_ not in busy]
        if not free:
            return
        elder_id = self._habits.one_of(free)
        note = self._habits.note()
        answer = self._caller.call(elder_id, "POST", "/tasks", {"note": note} if note else {})
        if answer.status == 201:
            task_id = answer.body["id"]
            self._searching[task_id] = elder_id
            self._say(f"{self._name(elder_id)} presses the button{f': {note}' if note else '.'}")
            if self._habits.cancels():
                self._agenda.after(self._habits.second_thought_s(), lambda: self._cancel(task_id, elder_id))
        elif answer.status == 429:
            self._rest(elder_id, answer)

    def _rest(self, elder_id: int, answer: CopyAnswer) -> None:
        self._resting.add(elder_id)
        self._agenda.after(answer.retry_after_s, lambda: self._resting.discard(elder_id))
        self._say(f"{self._name(elder_id)} has pressed too often and waits {answer.retry_after_s:.0f} s.")

    def _cancel(self, task_id: str, elder_id: int) -> None:
        if task_id in self._searching and self._caller.call(elder_id, "PUT", f"/tasks/{task_id}/cancel").ok:
            self._end_search(task_id)
            self._say(f"{self._name(elder_id)} needs nobody any more.")

    # What goes on -----------------------------------------------------------------------------------------------

    def _take_over(self) -> None:
        """Goes on with what was left when this was stopped."""
        answer = self._caller.call(self._watcher_id, "GET", "/me")
        if not answer.ok:
            raise LifeRefused(f"The copy refuses our tokens ({answer.code}). Is it the one of these settings?")
        self._off_duty = self._read_off_duty()
        for status in ("ASSIGNED", "STARTED"):
            for task in self._tasks(status):
                self._go_on(task)

    def _read_off_duty(self) -> set[int]:
        found: set[int] = set()
        cursor: str | None = ""
        while cursor is not None:
            query = f"&cursor={cursor}" if cursor else ""
            answer = self._caller.call(self._watcher_id, "GET", f"/users?role=STUDENT&limit=100{query}")
            found |= {user["id"] for user in answer.body["items"] if not user["onDuty"]}
            cursor = answer.body["nextCursor"]
        return found & set(self._students)

    def _look(self) -> None:
        pending = {task["id"]: task for task in self._tasks("PENDING")}
        for task in pending.values():
            self._searching[task["id"]] = task["elder"]["id"]
            if offer := task["currentOffer"]:
                self._ask(task, offer["studentId"])
        for task_id in self._searching.keys() - pending.keys():
            self._follow(task_id)

    def _tasks(self, status: str) -> list[Item]:
        answer = self._caller.call(self._watcher_id, "GET", f"/tasks?status={status}&limit=100")
        items: list[Item] = answer.body["items"] if answer.ok else []
        return [task for task in items if task["elder"]["id"] in self._dwellers]

    def _ask(self, task: Item, student_id: int) -> None:
        key = task["id"], student_id
        if key in self._asked or student_id not in self._dwellers:
            return
        self._asked.add(key)
        self._say(f"{self._name(student_id)} is asked to help {self._name(task['elder']['id'])}.")
        reply = self._habits.reply()
        if reply is not StudentReply.SILENCE:
            self._agenda.after(self._habits.reply_s(), lambda: self._reply(*key, reply))

    def _follow(self, task_id: str) -> None:
        """A task for which nobody is sought any more."""
        answer = self._caller.call(self._watcher_id, "GET", f"/tasks/{task_id}")
        if answer.ok and answer.body["status"] == "PENDING":
            return
        elder_id = self._searching[task_id]
        self._end_search(task_id)
        if not answer.ok:
            return
        if answer.body["status"] == "TIMED_OUT":
            self._say(f"Nobody was found for {self._name(elder_id)}.")
        self._go_on(answer.body)

    # Students ---------------------------------------------------------------------------------------------------

    def _reply(self, task_id: str, student_id: int, reply: StudentReply) -> None:
        answer = self._put(student_id, task_id, reply.value)
        if answer.ok:
            self._say(f"{self._name(student_id)} {'accepts' if reply is StudentReply.ACCEPT else 'cannot come'}.")
        if answer.ok and reply is StudentReply.ACCEPT:
            self._end_search(task_id)
            self._go_on(answer.body)

    def _end_search(self, task_id: str) -> None:
        self._searching.pop(task_id, None)
        self._asked = {(asked_for, id_) for asked_for, id_ in self._asked if asked_for != task_id}

    def _go_on(self, task: Item) -> None:
        """Also for a student whom a coordinator has assigned."""
        student = task["student"]
        if student is None or student["id"] not in self._dwellers or task["id"] in self._helping:
            return
        task_id, student_id = task["id"], student["id"]
        if task["status"] == "ASSIGNED":
            self._helping[task_id] = student_id
            deed = self._withdraw if self._habits.withdraws() else self._start
            self._agenda.after(self._habits.way_s(), lambda: deed(task_id, student_id))
        elif task["status"] == "STARTED":
            self._helping[task_id] = student_id
            self._agenda.after(self._habits.help_s(), lambda: self._complete(task_id, student_id))

    def _start(self, task_id: str, student_id: int) -> None:
        if not self._put(student_id, task_id, "start").ok:
            self._helping.pop(task_id, None)
            return
        self._say(f"{self._name(student_id)} is at the door.")
        self._agenda.after(self._habits.help_s(), lambda: self._complete(task_id, student_id))

    def _withdraw(self, task_id: str, student_id: int) -> None:
        self._helping.pop(task_id, None)
        if self._put(student_id, task_id, "withdraw").ok:
            self._say(f"{self._name(student_id)} cannot come after all.")

    def _complete(self, task_id: str, student_id: int) -> None:
        self._helping.pop(task_id, None)
        if self._put(student_id, task_id, "complete").ok:
            self._say(f"{self._name(student_id)} has helped.")

    def _put(self, student_id: int, task_id: str, deed: str) -> CopyAnswer:
        """What comes too late is refused, as it is for people."""
        answer = self._caller.call(student_id, "PUT", f"/tasks/{task_id}/{deed}")
        if not answer.ok:
            self._say(f"{self._name(student_id)} is too late to {deed} ({answer.code}).")
        return answer

    # Duty and places --------------------------------------------------------------------------------------------

    def _change_duty(self) -> None:
        helping = set(self._helping.values())
        on_duty = [id_ for id_ in self._students if id_ not in self._off_duty and id_ not in helping]
        leaves = len(self._off_duty) < MOST_OFF_DUTY * len(self._students) and self._habits.leaves()
        if leaves and on_duty:
            self._set_duty(self._habits.one_of(on_duty), on_duty=False)
        elif self._off_duty:
            self._set_duty(self._habits.one_of(sorted(self._off_duty)), on_duty=True)

    def _set_duty(self, student_id: int, *, on_duty: bool) -> None:
        answer = self._caller.call(student_id, "PUT", "/me/availability", {"onDuty": on_duty})
        if answer.ok:
            (self._off_duty.discard if on_duty else self._off_duty.add)(student_id)
            self._say(f"{self._name(student_id)} goes {'on' if on_duty else 'off'} duty.")
        elif answer.status in (403, 409):
            # Not active any more, or off duty until a coordinator says otherwise.
            self._off_duty.discard(student_id)
            self._students.remove(student_id)

    def _move(self) -> None:
        student_id = self._habits.one_of(self._students)
        north, east = self._habits.step_m()
        home = self._dwellers[student_id].home
        lat = home.lat + north / METRES_PER_DEGREE
        lon = home.lon + east / (METRES_PER_DEGREE * math.cos(math.radians(home.lat)))
        place = {"lat": round(lat, 6), "lon": round(lon, 6)}
        self._caller.call(student_id, "PUT", "/me/location", place)

    def _name(self, user_id: int) -> str:
        return self._dwellers[user_id].name
