"""The answers that people received. The service must keep a confirmed deed, whatever is killed afterwards."""

import threading
from collections import Counter, defaultdict
from dataclasses import dataclass, field


@dataclass
class AnswerLog:
    created: set[str] = field(default_factory=set)
    by_key: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Ids of the tasks in the answers to one Idempotency-Key, from its 201 on. A press that finds the open task of an
    earlier press leaves its own key unused."""
    confirmed: dict[str, set[tuple[str, int]]] = field(default_factory=lambda: defaultdict(set))
    """(task, student) by deed, for each deed answered with 200."""
    wrong: list[str] = field(default_factory=list)
    """Answers that the API must never give."""
    statuses: Counter[int] = field(default_factory=Counter)
    slow: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def pressed(self, status: int, task_id: str, key: str | None) -> None:
        with self._lock:
            if status == 201:
                self.created.add(task_id)
            if key is not None and (status == 201 or key in self.by_key):
                self.by_key[key].add(task_id)

    def confirm(self, deed: str, task_id: str, student_id: int) -> None:
        with self._lock:
            self.confirmed[deed].add((task_id, student_id))

    def answered(self, request: str, status: int, code: str | None, retry_after: str | None) -> None:
        with self._lock:
            self.statuses[status] += 1
            # 400 invalid_value is allowed: a deed may name a user who was deactivated a moment ago.
            if status in (400, 401, 500) and code != "invalid_value":
                self.wrong.append(f"{request} was answered with {status} {code}")
            if status == 503 and not (code and retry_after):
                self.wrong.append(f"{request} was answered with 503 {code} and no Retry-After")

    def unanswered(self) -> None:
        with self._lock:
            self.statuses[0] += 1
