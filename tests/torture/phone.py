"""The app on a phone: an HTTP client that retries until it gets an answer."""

import http.client
import json
import random
import threading
from collections.abc import Sequence
from typing import Any

from tests.torture.answers import AnswerLog
from tests.torture.people import Person

TIMEOUT_S = 15
TRIES = 40


class Phone:
    def __init__(
        self, person: Person, ports: Sequence[int], answer_log: AnswerLog, rng: random.Random, over: threading.Event
    ) -> None:
        self.id = person.id
        self.person = person
        self.rng = rng
        self.over = over
        self.answer_log = answer_log
        self._ports = ports

    def call(
        self, method: str, path: str, body: dict[str, Any] | None = None, **headers: str
    ) -> tuple[int, dict[str, Any]]:
        """The first answer that does not ask for a retry; (0, {}) if none came before the tries or the run ended."""
        for attempt in range(TRIES):
            status, answer = self._once(method, path, body, headers)
            if status not in (0, 502, 503, 504):
                return status, answer
            if self.over.wait(min(0.1 * 2**attempt, 1.0) * self.rng.uniform(0.5, 1.5)):
                break
        return 0, {}

    def _once(
        self, method: str, path: str, body: dict[str, Any] | None, headers: dict[str, str]
    ) -> tuple[int, dict[str, Any]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.rng.choice(self._ports), timeout=TIMEOUT_S)
        headers = {"Authorization": f"Bearer {self.person.token}"} | headers
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            raw = answer.read()
        except (OSError, http.client.HTTPException):
            self.answer_log.unanswered()
            return 0, {}
        finally:
            connection.close()
        content = json.loads(raw) if raw else {}
        code, retry_after = content.get("code"), answer.getheader("Retry-After")
        self.answer_log.answered(f"{method} {path}", answer.status, code, retry_after)
        return answer.status, content

    # ---- deeds ----

    def press(self, key: str | None = None) -> str | None:
        headers = {"Idempotency-Key": key} if key else {}
        status, task = self.call("POST", "/tasks", {"note": "Ekmek"}, **headers)
        if status in (200, 201):
            self.answer_log.pressed(status, task["id"], key)
            return task["id"]
        return None

    def do(self, deed: str, task_id: str, body: dict[str, Any] | None = None, student: int | None = None) -> bool:
        status, _ = self.call("PUT", f"/tasks/{task_id}/{deed}", body)
        if status == 200:
            self.answer_log.confirm(deed, task_id, self.id if student is None else student)
        return status == 200

    def at_once(self, *calls: Any) -> None:
        """The same person sends several requests at the same time."""
        threads = [threading.Thread(target=call, daemon=True) for call in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
