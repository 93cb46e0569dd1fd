"""What the service has said to people: whoever got a yes may rely on it, whatever is killed afterwards."""

import threading
from collections import Counter, defaultdict
from dataclasses import dataclass, field


@dataclass
class Ledger:
    created: set[str] = field(default_factory=set)
    by_key: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Tasks that were answered to presses with the same Idempotency-Key, from the 201 on. A press that found the open
    task of an earlier one leaves its key unused."""
    said_yes: dict[str, set[tuple[str, int]]] = field(default_factory=lambda: defaultdict(set))
    """(task, student) by the word that was answered with 200."""
    faults: list[str] = field(default_factory=list)
    """Answers that must not be given at all."""
    statuses: Counter[int] = field(default_factory=Counter)
    slow: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def pressed(self, status: int, task_id: str, key: str | None) -> None:
        with self._lock:
            if status == 201:
                self.created.add(task_id)
            if key is not None and (status == 201 or key in self.by_key):
                self.by_key[key].add(task_id)

    def yes(self, word: str, task_id: str, student_id: int) -> None:
        with self._lock:
            self.said_yes[word].add((task_id, student_id))

    def answered(self, request: str, status: int, code: str | None, retry_after: str | None) -> None:
        with self._lock:
            self.statuses[status] += 1
            # Whom it concerns may have been deactivated a moment ago.
            if status in (400, 401, 500) and code != "invalid_value":
                self.faults.append(f"{request} was answered with {status} {code}")
            if status == 503 and not (code and retry_after):
                self.faults.append(f"{request} was answered with 503 {code} and no Retry-After")

    def unanswered(self) -> None:
        with self._lock:
            self.statuses[0] += 1
