"""Jobs from the request over HTTP to the result in the database."""

import json
import time
from pathlib import Path

from benchmarks import job_scripts, roles
from benchmarks.attempts import keeping
from benchmarks.bench import Bench, fetch, run, say
from benchmarks.client import Tokens, all_at_once
from benchmarks.figures import number, percentile, spread
from benchmarks.report import Row, Section

DATABASE = "job_rows"
CONNECTIONS = 8
SCRIPTS = Path(job_scripts.__file__).parent
ADD_ADMIN = "INSERT INTO users (role, name) VALUES ('ADMIN', 'Bench') RETURNING id"
ENDED = "SELECT count(*) FROM jobs WHERE finished_at IS NOT NULL"
TOOK = """
    SELECT extract(epoch FROM finished_at - created_at) * 1000 FROM jobs WHERE status = 'SUCCEEDED' ORDER BY 1
"""
ELAPSED = "SELECT extract(epoch FROM max(finished_at) - min(created_at)) FROM jobs"
# The least that keeps a job as a row: asked for, claimed, ended, each committed.
BARE_JOB = """
    CREATE TABLE bare_jobs (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, status text NOT NULL, result jsonb);
"""
TITLE = (
    f"job-rows: POST /api/v1/jobs over {CONNECTIONS} connections while one role `jobs` runs a script that does nothing."
    " Floor: one connection that inserts, claims and ends a row with three commits, and runs nothing"
)


def measure(bench: Bench) -> Section:
    jobs = bench.size(2_000, 40)
    bench.create(DATABASE)
    with bench.connect(DATABASE) as conn:
        admin = fetch(conn, ADD_ADMIN)[0][0]
        run(conn, BARE_JOB)
    body = json.dumps({"name": "do_nothing", "params": {"value": 1}}).encode()
    request = Tokens().request(admin, "POST", "/api/v1/jobs", body)
    settings = {"JOBS_DIR": str(SCRIPTS)}
    rows: list[Row] = []
    notes: list[str] = []
    with (
        keeping(lambda: Section("job-rows", TITLE, rows, notes)),
        bench.redis(),
        roles.api(bench, DATABASE, **settings) as (_, port),
        roles.role(bench, "jobs", DATABASE, **settings),
        bench.connect(DATABASE) as conn,
    ):
        all_at_once(port, [request] * 20, expected=202, connections=CONNECTIONS)
        roles.eventually(lambda: fetch(conn, ENDED)[0][0] == 20)
        run(conn, "DELETE FROM jobs")
        say("job-rows: at once")
        asked = all_at_once(port, [request] * jobs, expected=202, connections=CONNECTIONS)
        roles.eventually(lambda: fetch(conn, ENDED)[0][0] == jobs)
        took = [float(row[0]) for row in fetch(conn, TOOK)]
        assert len(took) == jobs, f"{len(took)} of {jobs} jobs succeeded"
        per_s = jobs / float(fetch(conn, ELAPSED)[0][0])
        run(conn, "DELETE FROM jobs")
        rows += [
            Row(
                "rows a second, from the first POST to the last result", per_s, _bare(bench, jobs), more_is_better=True
            ),
            Row("POST until it is committed, ms", spread(asked.latencies_ms)),
        ]
        waited = f"{number(percentile(took, 0.5))} ms p50 and {number(percentile(took, 0.99))} ms p99"
        notes.append(f"{jobs:,} jobs at once: a job waited {waited} for its result. The client runs on the same cores.")
        say("job-rows: one after the other")
        for _ in range(bench.size(100, 5)):
            all_at_once(port, [request], expected=202, connections=1)
            roles.eventually(
                lambda: fetch(conn, "SELECT count(*) FROM jobs WHERE finished_at IS NULL")[0][0] == 0, poll_s=0.002
            )
        alone = [float(row[0]) for row in fetch(conn, TOOK)]
        rows.append(Row("one job at a time, from its row to its result, ms", spread(alone)))
    bench.drop(DATABASE)
    return Section("job-rows", TITLE, rows, notes)


def _bare(bench: Bench, jobs: int) -> float:
    with bench.connect(DATABASE) as conn:
        began = time.perf_counter()
        for _ in range(jobs):
            run(conn, "INSERT INTO bare_jobs (status) VALUES ('QUEUED')")
            row = fetch(
                conn,
                "UPDATE bare_jobs SET status = 'RUNNING' WHERE id = (SELECT id FROM bare_jobs WHERE status = 'QUEUED'"
                " ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id",
            )
            run(conn, "UPDATE bare_jobs SET status = 'SUCCEEDED', result = '1' WHERE id = %s", row[0])
        return jobs / (time.perf_counter() - began)
