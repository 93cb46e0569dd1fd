"""Runs the measurements one after the other. `scripts/bench` starts the stores, and then this."""

import argparse
import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import FrameType

from app.foundation.logs import configure_logs
from benchmarks import (
    candidates,
    ceiling,
    deadlines,
    delivery_api,
    delivery_batches,
    delivery_drain,
    delivery_failures,
    delivery_latency,
    events,
    fairness,
    flat,
    hostile,
    http,
    job_cluster,
    job_engine,
    job_rows,
    memory,
    overload,
    page_loads,
    recovery,
    report,
    retention,
    roster_lists,
    roster_nights,
    roster_pages,
    roster_parsing,
    roster_presses,
    start,
)
from benchmarks.attempts import Measure, attempt
from benchmarks.bench import Bench, load_average, say

MEASURE: dict[str, Measure] = {
    "candidates": candidates.measure,
    "deadlines": deadlines.measure,
    "recovery": recovery.measure,
    "http": http.measure,
    "overload": overload.measure,
    "ceiling": ceiling.measure,
    "hostile": hostile.measure,
    "events": events.measure,
    "pages": page_loads.measure,
    "memory": memory.measure,
    "start": start.measure,
    "flat": flat.measure,
    "retention": retention.measure,
    "delivery-drain": delivery_drain.measure,
    "delivery-latency": delivery_latency.measure,
    "delivery-failures": delivery_failures.measure,
    "delivery-api": delivery_api.measure,
    "delivery-batches": delivery_batches.measure,
    "job-engine": job_engine.measure,
    "job-cluster": job_cluster.measure,
    "job-rows": job_rows.measure,
    "report": fairness.measure,
    "roster-runs": roster_lists.measure,
    "roster-nights": roster_nights.measure,
    "roster-pages": roster_pages.measure,
    "roster-parsing": roster_parsing.measure,
    "roster-presses": roster_presses.measure,
}


def main() -> int:
    signal.signal(signal.SIGINT, _stop)
    parser = argparse.ArgumentParser(prog="benchmarks")
    parser.add_argument("names", nargs="+")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--flame", type=Path)
    arguments = parser.parse_args()
    configure_logs("ERROR", False)
    bench = Bench(
        os.environ["BENCH_DATABASE_URL"],
        os.environ["BENCH_REDIS_URL"],
        os.environ["BENCH_PGBENCH"],
        arguments.quick,
        arguments.flame,
    )
    about = report.about(*bench.versions(), arguments.quick)
    sections: list[report.Section] = []
    for name in arguments.names:
        say(f"{name} …")
        before, began = load_average(), time.monotonic()
        section = attempt(name, MEASURE[name], bench)
        sections.append(replace(section, load=(before, load_average()), took_s=time.monotonic() - began))
        if arguments.json:
            # After each measurement, so that a run that is stopped keeps the earlier figures.
            report.write_json(arguments.json, sections, about)
    print(report.table(sections, about))
    failed = [section for section in sections if section.failed]
    for section in failed:
        print(f"{section.name} failed: {section.failed}", file=sys.stderr)
    return 1 if failed else 0


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
