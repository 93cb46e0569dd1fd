"""`serve`: one child process per role. Roles are processes, not threads: a busy thread in the same interpreter made the
matcher seconds late."""

import argparse
import gc
import threading
from collections.abc import Mapping, Sequence
from functools import partial

from app.cli.supervisor import EXTRA_DRAIN_S, ROLES, RunRole, run_supervisor
from app.foundation.loading import lean_imports
from app.ops.shared_metrics import forget_gauges, shared_metrics
from app.settings.settings import Settings


def main(settings: Settings, argv: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(prog="serve")
    parser.add_argument("--prepare", choices=("database", "demo"), help="for scripts/run: first migrate; load the demo")
    first = parser.parse_args(argv).prepare
    with shared_metrics(settings) as directory:
        settings = settings.model_copy(update={"prometheus_multiproc_dir": directory})
        runs = _import_roles(settings)
        assert threading.active_count() == 1, "a module has started a thread, which a forked process does not have"
        if first and (code := _prepare(settings, with_demo=first == "demo")):
            return code
        return run_supervisor(runs, drain_s=settings.drain_s + EXTRA_DRAIN_S, on_end=partial(forget_gauges, directory))


def _prepare(settings: Settings, *, with_demo: bool) -> int:
    from app.cli.prepare import prepare

    return prepare(settings, with_demo=with_demo)


def _import_roles(settings: Settings) -> Mapping[str, RunRole]:
    """In here, because the metrics library reads the folder of shared metrics when it is imported."""
    with lean_imports():
        from app.cli import run_api, run_delivery, run_jobs, run_matcher

        run_api.import_app()
    # What is imported lives as long as its processes, and a collection that marks it would copy the shared memory.
    gc.freeze()
    mains = (run_api.main, run_matcher.main, run_delivery.main, run_jobs.main)
    return {role: partial(main, settings, []) for role, main in zip(ROLES, mains, strict=True)}
