"""A victim presses while others try to stop the API: what it notices."""

import math
import time
from collections.abc import Sequence
from contextlib import ExitStack

from benchmarks import city, http, one_recipient, roles
from benchmarks.attempts import keeping
from benchmarks.bench import Bench, say
from benchmarks.client import Answer, Tokens, open_connections, run_clients
from benchmarks.figures import spread
from benchmarks.report import Row, Section

DATABASE = "hostile"
LIMIT_S = 10.0
"""REQUEST_TIMEOUT_S, at its default."""
LASTING_S = 10.0
PATIENCE_S = 30.0
CALLERS = {"headers": 300, "bodies": 300, "readers": 100, "scrapers": 32}
WHO = {
    "headers": "300 callers who send two lines of headers",
    "bodies": "300 callers who send one byte of a body",
    "readers": "100 callers who do not read their answers",
    "scrapers": "32 callers who read /metrics without a pause",
}
TITLE = (
    "hostile: one press after the other, each on a connection of its own; ms until it is accepted, p50 / p99; a"
    " press without an answer never ends"
)


def measure(bench: Bench) -> Section:
    students = bench.size(1_000_000, 10_000)
    presses = bench.size(300, 20)
    template = f"city_{students}"
    built = city.find_or_build(bench, template, students)
    rows: list[Row] = []
    with bench.connect(template) as conn:
        elders = [home.elder_id for home in city.homes(conn, built, presses * (len(CALLERS) + 2))]
    bench.copy(template, DATABASE)
    notes = [
        f"{students:,} students; at most {LASTING_S:.0f} s for each row of presses.",
        "The last rows are ms from the commit of a push until it reaches a stand-in of FCM that answers after"
        f" {one_recipient.LATENCY_S * 1e3:.0f} ms, {1 / one_recipient.EVERY_S:.0f} a second.",
    ]
    with keeping(lambda: Section("hostile", TITLE, rows, notes)):
        with bench.redis(), roles.api(bench, DATABASE) as (_, port):
            _press(port, elders[-presses:])
            for turn, kind in enumerate((None, *CALLERS)):
                say(f"hostile: {WHO[kind] if kind else 'nobody'}")
                with ExitStack() as stack:
                    if kind:
                        arguments = (kind, str(CALLERS[kind]), str(port))
                        stack.enter_context(roles.module(bench, "hostile_callers", DATABASE, *arguments))
                        time.sleep(1)
                    latencies = _press(port, elders[turn * presses : (turn + 1) * presses])
                found = spread(latencies)
                met = None if bench.quick else found.most <= LIMIT_S * 1e3
                rows.append(Row(WHO[kind] if kind else "nobody else", found, goal=f"all in {LIMIT_S:.0f} s", met=met))
        bench.drop(DATABASE)
        rows += one_recipient.measure_rows(bench)
    return Section("hostile", TITLE, rows, notes)


def _press(port: int, elders: Sequence[int]) -> list[float]:
    """Until each press is accepted, with the pauses and further tries that Retry-After asks for."""
    tokens = Tokens()
    latencies: list[float] = []
    ends = time.monotonic() + LASTING_S
    for elder in elders:
        if time.monotonic() > ends:
            break
        left = [tokens.request(elder, "POST", "/tasks", http.BODY)]
        accepted: list[bool] = []

        def on_answer(answer: Answer, left: list[bytes] = left, accepted: list[bool] = accepted) -> float | None:
            if answer.status == 503:
                left.append(answer.request)
                return answer.retry_after_s
            accepted.append(answer.status == 201)
            return None

        began = time.perf_counter()
        with open_connections(port, 1) as opened:
            run_clients(opened, lambda left=left: left.pop() if left else None, on_answer, patience_s=PATIENCE_S)
        latencies.append((time.perf_counter() - began) * 1e3 if accepted == [True] else math.inf)
    return latencies
