"""The api role with a sampler: SAMPLES names the file for the stacks of one process.

SAMPLES=FILE API_WORKERS=1 python -m benchmarks.sampled_api

Whenever the process has used another 4 ms of a processor, the kernel interrupts the thread that uses it, and
faulthandler writes the stack of that thread, in C and without the interpreter's lock. So threads that wait, for this
lock too, are not in the samples. Linux before 6.4 interrupts the main thread instead.
"""

import faulthandler
import os
import signal

from app.cli.run_api import import_app, run_workers
from app.foundation.logs import configure_logs
from app.ops.shared_metrics import shared_metrics
from app.settings.settings import load_settings

EVERY_S = 0.004
OLDEST = (6, 4)


def sample() -> None:
    # It stays open, because the signals come until the process ends.
    file = os.open(os.environ["SAMPLES"], os.O_WRONLY | os.O_CREAT)
    faulthandler.register(signal.SIGPROF, file=file, all_threads=False)
    signal.setitimer(signal.ITIMER_PROF, EVERY_S, EVERY_S)


def main() -> None:
    settings = load_settings()
    configure_logs("INFO", False)
    if tuple(map(int, os.uname().release.split(".")[:2])) < OLDEST:
        raise SystemExit(f"the flame graph needs Linux {'.'.join(map(str, OLDEST))}")
    # Timers are not inherited.
    os.register_at_fork(after_in_child=sample)
    with shared_metrics(settings) as directory:
        run_workers(settings, directory, import_app())


if __name__ == "__main__":
    main()
