"""The fairness report of a month with five million finished tasks: time, and memory of the worker."""

import multiprocessing
import resource
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

from app.db.database import Database
from app.jobs.engine.execution_context import ExecutionContext, JobResources
from app.jobs.reports.report_month import Month
from app.jobs.scripts import demo_city, fairness_report
from app.jobs.scripts.demo_city import DemoCityParams
from app.jobs.scripts.fairness_report import FairnessReportParams
from app.settings.settings import Settings
from benchmarks.attempts import keeping
from benchmarks.bench import SECRET, TIME_ZONE, Bench, fetch, run, say
from benchmarks.loading import without_indexes
from benchmarks.report import Row, Section

DATABASE = "fairness"
MONTH = Month(2026, 10, TIME_ZONE)
GOAL_S, GOAL_MB = 10.0, 300.0
TURNS = 3
TITLE = (
    "report: the fairness report of {tasks:,} finished tasks and {offers:,} offers by {students:,} students, s; floor:"
    " count(*) of the same tasks and offers; rival: one plain query for each figure"
)

COUNTS = (
    "SELECT count(*) FROM tasks WHERE id >= %(first)s AND id < %(after)s",
    "SELECT count(*) FROM offers WHERE task_id >= %(first)s AND task_id < %(after)s",
)
IN_MONTH = "FROM tasks t WHERE t.created_at >= %(begins)s AND t.created_at < %(ends)s"
OFFERS_IN_MONTH = (
    "FROM offers o JOIN tasks t ON t.id = o.task_id WHERE t.created_at >= %(begins)s AND t.created_at < %(ends)s"
)
PERCENTILES = "percentile_cont(ARRAY[0.5, 0.9, 0.95, 0.99]) WITHIN GROUP (ORDER BY"
PLAIN = (
    f"SELECT status, count(*) {IN_MONTH} GROUP BY 1",
    f"SELECT state, count(*) {OFFERS_IN_MONTH} GROUP BY 1",
    f"SELECT reason, count(*) {OFFERS_IN_MONTH} AND state = 'SKIPPED' GROUP BY 1",
    f"SELECT o.student_id, count(*) FILTER (WHERE state = 'EXPIRED'), count(*) {OFFERS_IN_MONTH} GROUP BY 1",
    f"SELECT t.student_id, count(*) {IN_MONTH} AND status = 'COMPLETED' GROUP BY 1",
    f"SELECT {PERCENTILES} extract(epoch FROM assigned_at - created_at)) {IN_MONTH}",
    f"SELECT {PERCENTILES} extract(epoch FROM started_at - created_at)) {IN_MONTH}",
    "SELECT ST_GeoHash(location::geometry, 6), count(DISTINCT elder_id), count(*) FILTER (WHERE status = 'TIMED_OUT'),"
    f" count(*) {IN_MONTH} GROUP BY 1",
)


def measure(bench: Bench) -> Section:
    students, elders = bench.size(10_000, 100), bench.size(300_000, 500)
    tasks = bench.size(5_000_000, 5_000)
    _build(bench, {"students": students, "elders": elders, "tasks": tasks, "days": 31, "until": date(2026, 11, 1)})
    first, after = MONTH.ids
    values = {"first": first, "after": after, "begins": MONTH.begins, "ends": MONTH.ends}
    ours: list[tuple[float, float]] = []
    floor: list[float] = []
    counted = 0
    with keeping(lambda: _section(bench, TITLE.format(tasks=tasks, offers=counted, students=students), ours, floor)):
        for turn in range(bench.size(TURNS, 1)):
            say(f"report: turn {turn + 1}")
            one = _in_a_worker(bench)
            took_s, [*_, counted] = _timed(lambda: _all(bench, COUNTS, values))
            ours.append(one)
            floor.append(took_s)
        say("report: one query for each figure")
        rival_s, _ = _timed(lambda: _all(bench, PLAIN, values))
    bench.drop(DATABASE)
    return _section(bench, TITLE.format(tasks=tasks, offers=counted, students=students), ours, floor, rival_s)


def _timed(act: Callable[[], list[int]]) -> tuple[float, list[int]]:
    began = time.perf_counter()
    found = act()
    return time.perf_counter() - began, found


def _section(
    bench: Bench, title: str, ours: list[tuple[float, float]], floor: list[float], rival_s: float | None = None
) -> Section:
    """The rival comes last."""
    ours_s, ours_mb = (sorted(values)[len(values) // 2] for values in zip(*ours, strict=True))
    quick = bench.quick
    rows = [
        Row(
            "time, s",
            ours_s,
            sorted(floor)[len(floor) // 2],
            rival_s,
            f"≤{GOAL_S:.0f} s",
            _met(ours_s <= GOAL_S, quick),
        ),
        Row("memory of the worker, MB", ours_mb, goal=f"≤{GOAL_MB:.0f} MB", met=_met(ours_mb <= GOAL_MB, quick)),
    ]
    return Section("report", title, rows, ["The median of the turns. The floor uses parallel workers, too."])


def _met(is_met: bool, quick: bool) -> bool | None:
    return None if quick else is_met


def _build(bench: Bench, city: dict[str, Any]) -> None:
    say(f"generating a city with {city['tasks']:,} finished tasks")
    bench.create(DATABASE)
    with bench.connect(DATABASE) as conn:
        with without_indexes(conn, "tasks", "offers"), bench.database(DATABASE) as db:
            # The rows satisfy the foreign keys; each connection of `db` skips their checks.
            run(conn, f"ALTER DATABASE {DATABASE} SET session_replication_role = replica")
            demo_city.run(DemoCityParams(**city), _context(bench.url(DATABASE), bench.redis_url, db))
        run(conn, f"ALTER DATABASE {DATABASE} RESET session_replication_role")
        run(conn, "VACUUM ANALYZE")
        run(conn, "CHECKPOINT")


def _context(url: str, redis_url: str, db: Database) -> ExecutionContext:
    values: dict[str, Any] = {"database_url": url, "redis_url": redis_url, "auth_secret": SECRET}
    return ExecutionContext("bench", "io-0", resources=lambda: JobResources(Settings(**values), db))


def _all(bench: Bench, statements: tuple[str, ...], values: dict[str, Any]) -> list[int]:
    """Runs the statements with the server's own settings. Returns the first column of the last row of each."""
    with bench.connect(DATABASE, options="-c timezone=UTC") as conn:
        return [fetch(conn, statement, values)[-1][0] for statement in statements]


def _in_a_worker(bench: Bench) -> tuple[float, float]:
    """Seconds, and the most memory in MB, of the job in a new process."""
    spawn = multiprocessing.get_context("spawn")
    answers = spawn.SimpleQueue()
    process = spawn.Process(target=_work, args=(bench.url(DATABASE), bench.redis_url, str(bench.folder), answers))
    process.start()
    process.join()
    if process.exitcode:
        raise AssertionError(f"the report failed with exit code {process.exitcode}")
    return answers.get()


def _work(url: str, redis_url: str, folder: str, answers: Any) -> None:
    db = Database(url, pool_size=2, statement_timeout_ms=0, call_limit_s=600)
    context = _context(url, redis_url, db)
    context.folder = Path(folder)
    began = time.perf_counter()
    fairness_report.run(FairnessReportParams.model_validate({"month": str(MONTH)}), context)
    answers.put((time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))
    db.close()
