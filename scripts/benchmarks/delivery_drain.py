"""How fast workers empty a table of notifications when sending costs nothing."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks import backlog, delivery_rival, roles
from benchmarks.attempts import keeping
from benchmarks.bench import Bench, fetch, say
from benchmarks.report import Row, Section

EACH, GROUPED, EACH_FLOOR, GROUPED_FLOOR = "drain_each", "drain_grouped", "drain_each_floor", "drain_grouped_floor"
TOGETHER, RIVAL, TEMPLATE = "drain_together", "drain_rival", "drain_template"
CROWDED = "crowded"
EACH_THREADS, GROUPED_THREADS = 8, 2
GROUP_S = 0.010
EACH_GOAL, GROUPED_GOAL = 0.75, 0.50
"""Shares of the floor's rate."""
WORKERS_TOGETHER = (2, 4)

TITLE = (
    "delivery-drain: notifications a second through a channel that does nothing, each claimed, handed over and recorded"
    f" with its attempt; one by one on {EACH_THREADS} threads, or grouped for at most {GROUP_S * 1e3:.0f} ms on"
    f" {GROUPED_THREADS}; floor: bare psycopg; rival: a Celery worker of 2 processes that writes the same record"
)

Rates = dict[str, list[float]]


def measure(bench: Bench) -> Section:
    messages, rounds = bench.size(20_000, 500), bench.size(2, 1)
    bench.create(TEMPLATE)
    databases = [EACH, GROUPED, EACH_FLOOR, GROUPED_FLOOR, TOGETHER, RIVAL]
    for database in databases:
        bench.copy(TEMPLATE, database)
    rates: Rates = {}
    together: dict[int, tuple[float, list[str]]] = {}
    rival: list[float] = []

    def section() -> Section:
        return _section(bench, messages, rates, together, rival[0] if rival else None)

    with keeping(section), bench.redis():
        _alone(bench, messages, rounds, rates)
        for workers in WORKERS_TOGETHER[: bench.size(2, 1)]:
            together[workers] = _together(bench, workers, messages)
        rival.append(_rival(bench, messages))
    bench.drop(TEMPLATE, *databases)
    return section()


def _section(
    bench: Bench, messages: int, rates: Rates, together: dict[int, tuple[float, list[str]]], rival: float | None
) -> Section:
    """`rates` has at least one round. `together` and `rival` come later."""
    rows = [
        _row(bench, "one by one, 1 worker", rates[EACH], rates[EACH_FLOOR], rival, EACH_GOAL),
        _row(bench, "grouped, 1 worker", rates[GROUPED], rates[GROUPED_FLOOR], rival, GROUPED_GOAL),
        Row(
            "grouped, 1 worker, all to one recipient",
            max(rates[CROWDED]),
            facts={"ours_per_s": rates[CROWDED]},
            more_is_better=True,
        ),
        *(Row(f"grouped, {workers} workers", rate, more_is_better=True) for workers, (rate, _) in together.items()),
    ]
    if together:
        handed = [id_ for _, handed in together.values() for id_ in handed]
        rows.append(_duplicates(handed, messages * len(together)))
    one = max(rates[GROUPED])
    growth = ", ".join(f"{workers} workers {rate / one:.2f}" for workers, (rate, _) in together.items())
    notes = [
        f"{messages:,} notifications, the best of {len(rates[EACH])} rounds, from their commit to the last record."
        f" Workers and PostgreSQL share {len(os.sched_getaffinity(0))} cores.",
        f"Throughput relative to one worker with grouped records: {growth}.",
        "The grouped floor records all notifications of one claim together. A Celery worker that dies loses the tasks"
        " that it has taken.",
    ]
    return Section("delivery-drain", TITLE, rows, notes)


def _row(
    bench: Bench, name: str, ours: Sequence[float], floor: Sequence[float], rival: float | None, share: float
) -> Row:
    facts = {"ours_per_s": list(ours), "floor_per_s": list(floor)}
    met = None if bench.quick else max(ours) >= share * max(floor)
    goal = f"≥{share:.0%} of the floor"
    return Row(name, max(ours), max(floor), rival, goal, met, facts, more_is_better=True)


def _duplicates(handed: Sequence[str], messages: int) -> Row:
    """Counts, over the runs with several workers, notifications that were handed over twice or never."""
    twice = len(handed) - len(set(handed))
    missing = messages - len(set(handed))
    name = f"handed over twice or never, of {messages:,}"
    return Row(name, twice + missing, goal="0", met=twice + missing == 0, facts={"twice": twice, "never": missing})


# ---- ours, floor and rival ----


def _alone(bench: Bench, messages: int, rounds: int, rates: Rates) -> None:
    """All workers run at the same time, each on its own database, and get notifications in turns."""
    with ExitStack() as stack:
        for database, threads, group_s in ((EACH, EACH_THREADS, 0.0), (GROUPED, GROUPED_THREADS, GROUP_S)):
            stack.enter_context(_ours(bench, database, threads, group_s))
        stack.enter_context(roles.module(bench, "bare_worker", EACH_FLOOR, "drain", str(EACH_THREADS)))
        stack.enter_context(roles.module(bench, "bare_worker", GROUPED_FLOOR, "drain-batches", str(GROUPED_THREADS)))
        implementations = (EACH, EACH_FLOOR, GROUPED, GROUPED_FLOOR)
        for database in implementations:
            backlog.fill_and_drain(bench, database, max(messages // 20, 50))
        for turn in range(rounds):
            say(f"delivery-drain, round {turn + 1} of {rounds}")
            for database in implementations:
                rates.setdefault(database, []).append(_rate(bench, database, messages))
            rates.setdefault(CROWDED, []).append(_rate(bench, GROUPED, messages, differ=False))


def _rate(bench: Bench, database: str, messages: int, *, differ: bool = True) -> float:
    done = backlog.fill_and_drain(bench, database, messages, differ=differ)
    return messages / (done.last - done.began)


def _together(bench: Bench, workers: int, messages: int) -> tuple[float, list[str]]:
    """The rate of several workers on one database, and the ids that they handed over."""
    say(f"delivery-drain: {workers} workers")
    files: list[Path] = []
    warming = max(messages // 20, 50)
    with ExitStack() as stack:
        files += [stack.enter_context(_ours(bench, TOGETHER, GROUPED_THREADS, GROUP_S)) for _ in range(workers)]
        backlog.fill_and_drain(bench, TOGETHER, warming)
        rate = _rate(bench, TOGETHER, messages)
    with bench.connect(TOGETHER) as conn:
        counted = {str(row[0]) for row in fetch(conn, "SELECT id FROM notifications")}
    handed = [id_ for file in files for id_ in file.read_text().split()]
    return rate, [id_ for id_ in handed if id_ in counted]


def _rival(bench: Bench, messages: int) -> float:
    """Its tasks are in Redis before the worker starts, so that the time to enqueue them is not measured."""
    say("delivery-drain: Celery")
    with bench.connect(RIVAL) as conn:
        backlog.refill(conn, messages)
        ids = [str(row[0]) for row in fetch(conn, "SELECT id FROM notifications")]
        with delivery_rival.producer(bench) as producer:
            for id_ in ids:
                delivery_rival.record.apply_async((id_,), producer=producer)
        with delivery_rival.worker(bench, RIVAL, "--concurrency=2") as wait:
            wait()
            done = backlog.wait_until_empty(conn, messages)
    return messages / (done.last - done.first)


@contextmanager
def _ours(bench: Bench, database: str, threads: int, group_s: float) -> Iterator[Path]:
    """Runs a worker. Yields the file to which it writes, at its end, the ids that it handed over."""
    file = bench.folder / f"handed-{time.time_ns()}"
    with roles.module(bench, "drain_worker", database, str(file), str(threads), str(group_s)):
        yield file
