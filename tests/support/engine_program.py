"""A program with an engine of its own, which tests stop and kill: `python -m tests.support.engine_program LEASE_S`.

Reads one task per line (JSON) and prints one result per line. With LEASE_S above 0 it extends its lease all the time.
"""

import json
import sys
import threading
import time
from pathlib import Path

from app.foundation.logs import configure_logs
from app.jobs.engine.embedded import EmbeddedEngine
from app.jobs.engine.engine import Finished
from app.jobs.engine.options import EngineOptions
from app.jobs.engine.task import Task


class Printer:
    def progressed(self, task_id: str, done: int, total: int | None, note: str) -> None:
        return

    def finished(self, finished: Finished) -> None:
        print(json.dumps(finished.result.to_dict()), flush=True)


def main(lease_s: float) -> None:
    configure_logs("INFO", as_json=False)
    engine = EmbeddedEngine(EngineOptions(results_kept=0), Printer())
    # The first worker of a program takes as long as the lease of a test.
    engine.submit_task(Task.create(str(Path(__file__).with_name("script_deeds.py")), {"deed": "answer"}))
    while engine.pending_tasks():
        time.sleep(0.01)
    if lease_s:
        threading.Thread(target=extend, args=(engine, lease_s), daemon=True).start()
    for line in sys.stdin:
        engine.submit_task(Task.from_dict(json.loads(line)))
    engine.shutdown(0)


def extend(engine: EmbeddedEngine, lease_s: float) -> None:
    while True:
        engine.extend_lease(time.monotonic() + lease_s)
        time.sleep(lease_s / 5)


if __name__ == "__main__":
    main(float(sys.argv[1]))
