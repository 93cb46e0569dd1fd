"""The floor of delivery: bare psycopg that listens, claims and records, and bare http.client.

    python -m benchmarks.bare_worker drain THREADS          records each notification in a statement of its own
    python -m benchmarks.bare_worker drain-batches THREADS  records all notifications of a claim in one statement
    python -m benchmarks.bare_worker post THREADS URL       posts each notification to URL/TYPE and then records it

It has no priorities, retries, leases, breakers, recipients or metrics, and loses claimed notifications when it dies.
"""

import json
import os
import queue
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from http.client import HTTPConnection, HTTPException
from typing import Any
from uuid import UUID

import psycopg

from benchmarks.bench import OPTIONS

LISTEN = "LISTEN delivery"
CLAIM = """
UPDATE notifications SET status = 'SENDING', due_at = clock_timestamp() + interval '30 s', attempts = attempts + 1
 WHERE id IN (SELECT id FROM notifications
               WHERE notification_type = %s AND status IN ('ACCEPTED', 'SENDING', 'RETRYING')
                 AND due_at <= statement_timestamp() ORDER BY due_at LIMIT 200 FOR UPDATE SKIP LOCKED)
RETURNING id, body
"""
ACK = """
WITH tried AS (INSERT INTO notification_attempts (notification_id, attempt, outcome)
               SELECT unnest(%(ids)s::uuid[]), 1, 'SENT')
UPDATE notifications SET status = 'SENT', due_at = NULL, finished_at = clock_timestamp() WHERE id = ANY(%(ids)s)
"""
PATIENCE_S = 8.0

Message = tuple[UUID, str]
HandleClaimed = Callable[[Sequence[Message]], None]


def connect() -> "psycopg.Connection[tuple[Any, ...]]":
    return psycopg.connect(os.environ["DATABASE_URL"], autocommit=True, options=OPTIONS, prepare_threshold=1)


def claim_on(type_: str, handle: HandleClaimed) -> None:
    with connect() as conn:
        conn.execute(LISTEN)
        while True:
            found: Any = conn.execute(CLAIM, [type_]).fetchall()
            if found:
                handle(found)
                continue
            for wake_up in conn.notifies(timeout=1.0):
                if wake_up.payload == type_:
                    break


def drain(*, batched: bool) -> None:
    """Each thread claims and records on its own connection."""
    with connect() as conn:

        def ack(found: Sequence[Message]) -> None:
            ids = [one[0] for one in found]
            for some in [ids] if batched else [[one] for one in ids]:
                conn.execute(ACK, {"ids": some})

        claim_on("SMS", ack)


def post(type_: str, host: str, waiting: "queue.SimpleQueue[Message]") -> None:
    http = HTTPConnection(host, timeout=PATIENCE_S)
    with connect() as conn:
        while True:
            id_, body = waiting.get()
            try:
                send(http, type_, str(id_), body)
            except (OSError, HTTPException):
                http.close()
                continue
            conn.execute(ACK, {"ids": [id_]})


def send(http: HTTPConnection, type_: str, id_: str, body: str) -> None:
    content = json.dumps({"text": body}).encode()
    http.request("POST", f"/bare/{type_}", content, {"Content-Type": "application/json", "webhook-id": id_})
    http.getresponse().read()


def posting(threads: int, url: str) -> list[threading.Thread]:
    """For each type, one thread that claims and `threads` threads that post."""
    found: list[threading.Thread] = []
    host = url.removeprefix("http://")
    for type_ in os.environ["BARE_TYPES"].split(","):
        waiting: queue.SimpleQueue[Message] = queue.SimpleQueue()
        found += [threading.Thread(target=post, args=(type_, host, waiting)) for _ in range(threads)]
        found.append(threading.Thread(target=claim_on, args=(type_, partial(enqueue, waiting))))
    return found


def enqueue(waiting: "queue.SimpleQueue[Message]", found: Sequence[Message]) -> None:
    for one in found:
        waiting.put(one)


def main(mode: str, threads: int, url: str = "") -> None:
    if mode == "post":
        workers = posting(threads, url)
    else:
        batched = mode == "drain-batches"
        workers = [threading.Thread(target=drain, kwargs={"batched": batched}) for _ in range(threads)]
    for worker in workers:
        worker.daemon = True
        worker.start()
    print("ready", flush=True)
    workers[-1].join()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
