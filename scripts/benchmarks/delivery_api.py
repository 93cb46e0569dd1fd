"""Submitting a notification over HTTP."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from machine import processes

from benchmarks import backlog, roles
from benchmarks.attempts import keeping
from benchmarks.bench import SECRET, Bench, fetch, say
from benchmarks.client import Answered, Tokens, all_at_once
from benchmarks.figures import Spread, number, spread_of_rounds
from benchmarks.report import Row, Section

CONNECTIONS = 8
OURS, BARE = "submit_ours", "submit_bare"
ADD_COORDINATOR = "INSERT INTO users (role, name) VALUES ('COORDINATOR', 'Bench') RETURNING id"
COUNT = "SELECT count(*) FROM notifications"

NO_LIMITS = dict.fromkeys(("SENDS_PER_MINUTE", "SENDS_PER_DAY", "SENDS_PER_RECIPIENT"), "1000000")

TITLE = (
    f"delivery-api: POST /api/notifications over {CONNECTIONS} keep-alive connections to 2 workers of 8 threads, ms,"
    " p50 / p99, until it is committed; floor: an INSERT of the same row by psycopg in a bare Flask route, in the same"
    " server"
)
BODY = json.dumps(
    {
        "notificationType": "SMS",
        "recipient": "+905550000000",
        "subject": backlog.SUBJECT,
        "body": backlog.BODY,
        "priority": "HIGH",
    },
    ensure_ascii=False,
).encode()


def measure(bench: Bench) -> Section:
    each, rounds, warm = bench.size(1_000, 40), bench.size(3, 1), bench.size(200, 40)
    bench.create(OURS)
    with bench.connect(OURS) as conn:
        caller = fetch(conn, ADD_COORDINATOR)[0][0]
    bench.copy(OURS, BARE)
    ours: list[Answered] = []
    floor: list[Answered] = []
    with (
        keeping(lambda: _section(ours, floor)),
        bench.redis(),
        roles.api(bench, OURS, **NO_LIMITS) as (_, port),
        _bare_api(bench) as bare_port,
    ):
        request = Tokens().request(caller, "POST", "/api/notifications", BODY)
        for warming in (port, bare_port):
            _submit(warming, request, warm)
        for turn in range(rounds):
            say(f"delivery-api, round {turn + 1} of {rounds}")
            one, other = _submit(port, request, each), _submit(bare_port, request, each)
            ours.append(one)
            floor.append(other)
        for database in (OURS, BARE):
            with bench.connect(database) as conn:
                written = fetch(conn, COUNT)[0][0]
            assert written == warm + rounds * each, f"{written} notifications are in {database}"
    bench.drop(OURS, BARE)
    return _section(ours, floor)


def _section(ours: Sequence[Answered], floor: Sequence[Answered]) -> Section:
    rates = {"ours_per_s": _rate(ours), "floor_per_s": _rate(floor)}
    row = Row("POST /api/notifications", _spread(ours), _spread(floor), facts=rates)
    notes = [
        f"{number(rates['ours_per_s'])} requests a second, the floor {number(rates['floor_per_s'])}. The floor checks"
        " no token, no body and no address, and has no rate limits and no metrics. The client runs on the same cores."
    ]
    return Section("delivery-api", TITLE, [row], notes)


def _submit(port: int, request: bytes, times: int) -> Answered:
    return all_at_once(port, [request] * times, expected=202, connections=CONNECTIONS)


def _spread(answered: Sequence[Answered]) -> Spread:
    return spread_of_rounds([one.latencies_ms for one in answered])


def _all(answered: Sequence[Answered]) -> list[float]:
    return [latency for one in answered for latency in one.latencies_ms]


def _rate(answered: Sequence[Answered]) -> float:
    return len(_all(answered)) / sum(one.elapsed_s for one in answered)


@contextmanager
def _bare_api(bench: Bench) -> Iterator[int]:
    port = processes.free_port()
    settings = {"PORT": str(port), "API_WORKERS": "2", "AUTH_SECRET": SECRET}
    with roles.module(bench, "bare_api", BARE, ready="api_listening", **settings):
        yield port
