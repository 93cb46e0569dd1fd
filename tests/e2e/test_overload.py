"""With more requests than threads, those that have waited too long get 503 and the others are served."""

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

from machine import processes
from sqlalchemy import text

from app.api.services import Services
from app.api.tokens import LocalTokens
from tests.support.serving import eventually, free_port
from tests.support.world import settle_world

ROOT = Path(__file__).resolve().parents[2]


def test_requests_that_waited_too_long_get_503_and_the_others_are_served(services: Services) -> None:
    settings = services.settings
    world = settle_world(services)
    token = LocalTokens(settings.auth_secret or "").issue(world.ids["coordinator"])
    port = free_port()
    environ = {
        **{name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")},
        "DATABASE_URL": settings.database_url,
        "REDIS_URL": settings.redis_url,
        "AUTH_SECRET": settings.auth_secret or "",
        "PORT": str(port),
        "API_WORKERS": "1",
        "API_THREADS": "2",
        "QUEUE_LIMIT_S": "0.3",
        "LOG_LEVEL": "ERROR",
    }
    server = subprocess.Popen([sys.executable, "-m", "app", "api"], cwd=ROOT, env=environ, start_new_session=True)
    answers: Counter[int] = Counter()
    bodies: list[dict[str, object]] = []
    retry_after: set[str | None] = set()
    lock = threading.Lock()

    def cancel_the_task() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("PUT", f"/tasks/{world.task_id}/cancel", headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        body = json.loads(answer.read())
        connection.close()
        with lock:
            answers[answer.status] += 1
            if answer.status == 503:
                bodies.append(body)
                retry_after.add(answer.getheader("Retry-After"))

    try:
        eventually(lambda: processes.is_ready(port), patience_s=60)
        threads = [threading.Thread(target=cancel_the_task) for _ in range(12)]
        # Both threads of the server wait for this row, so all other requests wait in the queue.
        with services.db.transaction() as conn:
            conn.execute(text("SELECT id FROM tasks WHERE id = :id FOR UPDATE"), {"id": world.task_id})
            for thread in threads:
                thread.start()
            eventually(lambda: _waiting(services) == 2)
            threading.Event().wait(0.6)
        for thread in threads:
            thread.join()
    finally:
        server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=60) == 0
    assert answers[200] >= 2 and answers[503] >= 1 and sum(answers.values()) == 12
    assert {body["code"] for body in bodies} == {"overloaded"}
    assert retry_after == {"1"}


def _waiting(services: Services) -> int:
    with services.db.reading() as conn:
        statement = (
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        )
        return conn.execute(text(statement)).scalar_one()
