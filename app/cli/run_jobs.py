"""`python -m app jobs`: the process that runs jobs. With a word after it, a command about jobs."""

import sys
from pathlib import Path

import structlog

from app.bootstrap.jobs import build_jobs, open_jobs_database, schedule_problems
from app.cli.signals import stop_on_signals
from app.ops.metrics import serve_metrics
from app.settings.settings import Settings

log = structlog.get_logger(__name__)

WRONG_SETTINGS = 78


def main(settings: Settings, argv: list[str]) -> int:
    if argv:
        from app.cli import manage_jobs

        return manage_jobs.main(settings, argv)
    problems = schedule_problems(settings)
    if problems:
        lines = "\n".join(f"JOBS_SCHEDULE: {problem}" for problem in problems)
        print(f"These settings need attention:\n{lines}", file=sys.stderr)
        return WRONG_SETTINGS
    if settings.jobs_dir is not None and not Path(settings.jobs_dir).is_dir():
        log.error("script_folder_gone", folder=settings.jobs_dir, hint="see JOBS_DIR; shipped scripts still run")
    stop = stop_on_signals()
    db = open_jobs_database(settings)
    role = build_jobs(settings, db)
    if settings.jobs_metrics_port:
        serve_metrics(settings, settings.jobs_metrics_port, role.runner.metrics.registry)
    log.info("jobs_started", runner=role.runner.id, engine=settings.jobs_engine)
    is_whole = role.run(stop)
    db.close()
    if not is_whole:
        # A role that lost a thread looks alive but does not work, so it ends and the supervisor starts another.
        log.critical("jobs_lost_a_thread")
        return 1
    log.info("jobs_stopped")
    return 0
