"""Presses on one process of the api while streams of events are open, and how late the events come.

Beside the presses a student goes on and off duty, ten times a second. The moment before each COMMIT is noted, so the
lateness of its event is that from the commit to its byte at the client, at most.
"""

import json
import socket
import threading
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from machine import processes

from benchmarks import city, http, roles
from benchmarks.attempts import keeping
from benchmarks.bench import Bench, fetch, run, say
from benchmarks.client import Tokens
from benchmarks.event_costs import costs
from benchmarks.figures import Spread, number, spread
from benchmarks.report import Row, Section
from benchmarks.roster_presses import Presses

DATABASE = "events"
TOGGLE_S = 0.1
WATCHERS = 20
"""Coordinators, who see everything; the other streams are those of elders."""
MOST_WORSE, LATE_MS = 1.1, 50.0
TITLE = (
    "events: on one process of the api, ms, p50 / p99; floor of presses: no streams; floor of events: the same bytes to"
    " as many streams from a bare asyncio server; rival: as many clients who ask for a task every 2 s"
)
SETTINGS = {"API_WORKERS": "1", "EVENT_STREAMS": "2000"}
OPEN_TASKS = "SELECT elder_id, id::text FROM tasks WHERE status = 'PENDING' ORDER BY id LIMIT %s"
ADD_COORDINATORS = """
INSERT INTO users (role, name) SELECT 'COORDINATOR', 'Bench ' || n FROM generate_series(1, %s) n RETURNING id"""
BARE_EVENT = {
    "type": "DUTY_CHANGED",
    "at": "2026-11-19T20:00:00.123Z",
    "studentId": 1000,
    "studentName": "Person 1000",
    "onDuty": True,
}

Noted = list[list[Any]]


@dataclass
class Measured:
    presses_ms: list[float] = field(default_factory=list[float])
    late_ms: list[float] = field(default_factory=list[float])
    stream_kb: list[float] = field(default_factory=list[float])
    processor_s: float = 0.0
    """Of the process of the api, during the presses."""
    written: int = 0
    """Events, once for each stream."""


@dataclass(frozen=True)
class Sizes:
    clients: int
    presses: int
    rounds: int


def measure(bench: Bench) -> Section:
    students = bench.size(1_000_000, 10_000)
    sizes = Sizes(bench.size(500, 50), bench.size(300, 20), bench.size(3, 1))
    template = f"city_{students}"
    built = city.find_or_build(bench, template, students)
    bench.copy(template, DATABASE)
    with bench.connect(DATABASE) as conn:
        # Their first students are asked, so only presses change these tasks.
        elders = fetch(conn, OPEN_TASKS, [sizes.clients])
        watchers = [(row[0], "") for row in fetch(conn, ADD_COORDINATORS, [sizes.clients])]
        cost = costs(conn, built, bench.size(1_000, 50))
        run(conn, "CHECKPOINT")
    kinds = {
        "alone": None,
        "mixed": ("streams", [*watchers[:WATCHERS], *elders[: sizes.clients - WATCHERS]]),
        "watchers": ("streams", watchers),
        "polls": ("polls", elders),
    }
    found = {kind: Measured() for kind in (*kinds, "floor")}
    tokens = Tokens()
    left = (tokens.request(elder, "POST", "/tasks", http.BODY) for elder in built.free_elders)
    toggled = built.students - 1
    say("events: the floor")
    _bare(bench, found["floor"], watchers, bench.size(100, 20))

    def section() -> Section:
        rows = _rows(found, sizes.clients, bench.quick)
        return Section("events", TITLE, rows, [*_notes(found, sizes, students), *cost])

    with keeping(section), bench.redis(), roles.api(bench, DATABASE, **SETTINGS) as (pid, port):
        presses = Presses(port, left)
        presses.some(sizes.presses // 4)
        for turn in range(sizes.rounds):
            for kind, clients in kinds.items():
                say(f"events, round {turn + 1} of {sizes.rounds}: {kind}")
                _round(bench, found[kind], clients, presses, pid, toggled, sizes)
    bench.drop(DATABASE)
    return section()


# ---- the rounds ----


def _round(
    bench: Bench,
    measured: Measured,
    clients: tuple[str, Sequence[Any]] | None,
    presses: Presses,
    pid: int,
    student: int,
    sizes: Sizes,
) -> None:
    if clients is None:
        with _toggling(bench, student), _working(pid, measured):
            measured.presses_ms += presses.some(sizes.presses)
        return
    how, people = clients
    before_mb = roles.memory_mb(pid, "Pss")
    with _clients(bench, how, presses.port, people) as noted:
        measured.stream_kb.append((roles.memory_mb(pid, "Pss") - before_mb) * 1024 / len(people))
        with _toggling(bench, student) as commits, _working(pid, measured):
            measured.presses_ms += presses.some(sizes.presses)
        time.sleep(2.5 if how == "polls" else 0.5)
    measured.written += len(noted)
    measured.late_ms += _late_of_polls(noted, commits) if how == "polls" else _late_of_events(noted, commits)


@contextmanager
def _working(pid: int, measured: Measured) -> Iterator[None]:
    began = sum(map(roles.processor_s, roles.process_tree(pid)))
    yield
    measured.processor_s += sum(map(roles.processor_s, roles.process_tree(pid))) - began


@contextmanager
def _clients(bench: Bench, how: str, port: int, people: Sequence[Any]) -> Iterator[Noted]:
    """Yields a list that is filled when the block has ended."""
    file = bench.folder / f"event-clients-{time.time_ns()}.json"
    file.write_text(json.dumps(people))
    noted: Noted = []
    with roles.module(bench, "event_clients", DATABASE, how, str(port), str(file)):
        yield noted
    noted += json.loads(file.read_text())


@contextmanager
def _toggling(bench: Bench, student: int) -> Iterator[list[float]]:
    """Yields the times before the commits."""
    commits: list[float] = []
    over = threading.Event()

    def toggle() -> None:
        with bench.connect(DATABASE, autocommit=False) as conn:
            while not over.wait(TOGGLE_S):
                run(conn, "UPDATE students SET on_duty = NOT on_duty WHERE id = %s", [student])
                commits.append(time.time())
                conn.commit()

    thread = threading.Thread(target=toggle)
    thread.start()
    try:
        yield commits
    finally:
        over.set()
        thread.join()


def _late_of_events(noted: Noted, commits: Sequence[float]) -> list[float]:
    """The events of one row come in the order of its changes."""
    came: dict[int, list[float]] = {}
    for _, id_, type_, at in noted:
        if type_ == "DUTY_CHANGED":
            came.setdefault(id_, []).append(at)
    if len(came) != len(commits):
        raise AssertionError(f"{len(commits)} changes made {len(came)} events")
    return [
        (at - commit) * 1e3 for commit, (_, times) in zip(commits, sorted(came.items()), strict=True) for at in times
    ]


def _late_of_polls(noted: Noted, commits: Sequence[float]) -> list[float]:
    """Until the answer of the first request that a client sent after the commit."""
    late: list[float] = []
    for client in {client for client, *_ in noted}:
        polls = sorted((sent, answered) for one, sent, answered, status in noted if one == client and status == 200)
        sent = [poll[0] for poll in polls]
        firsts = [(commit, bisect_left(sent, commit)) for commit in commits]
        late += [(polls[first][1] - commit) * 1e3 for commit, first in firsts if first < len(polls)]
    return late


def _bare(bench: Bench, measured: Measured, people: Sequence[Any], events: int) -> None:
    port = processes.free_port()
    commits: list[float] = []
    with (
        roles.module(bench, "bare_events", DATABASE, str(port)),
        _clients(bench, "streams", port, people) as noted,
        socket.create_connection(("127.0.0.1", port)) as giver,
    ):
        for id_ in range(1, events + 1):
            time.sleep(TOGGLE_S)
            commits.append(time.time())
            giver.sendall(json.dumps({"id": id_} | BARE_EVENT).encode() + b"\n")
        time.sleep(0.5)
    measured.late_ms += _late_of_events(noted, commits)


# ---- the report ----


def _rows(found: dict[str, Measured], clients: int, quick: bool) -> list[Row]:
    alone, floor, rival = spread(found["alone"].presses_ms), spread(found["floor"].late_ms), found["polls"]
    rows: list[Row] = []
    for kind, name in (("mixed", f"{WATCHERS} see everything"), ("watchers", "all see everything")):
        pressed, late = spread(found[kind].presses_ms), spread(found[kind].late_ms)
        rows += [
            Row(f"press, {clients} streams, {name}", pressed, alone, spread(rival.presses_ms)),
            Row(f"lateness of an event, {name}", late, floor, spread(rival.late_ms)),
        ]
    few, late = rows[0].ours, rows[1].ours
    assert isinstance(few, Spread)
    assert isinstance(late, Spread)
    goals = [
        (f"p99 ≤{MOST_WORSE:.1f} x floor", few.p99 <= MOST_WORSE * alone.p99),
        (f"p99 <{LATE_MS:.0f} ms", late.p99 < LATE_MS),
    ]
    for number_, (goal, met) in enumerate(goals):
        rows[number_] = replace(rows[number_], goal=goal, met=None if quick else met)
    return rows


def _notes(found: dict[str, Measured], sizes: Sizes, students: int) -> list[str]:
    return [
        f"{students:,} students, {sizes.clients} clients. Clients, presses and stores share the cores with the process."
        " Streams are those of coordinators, who see everything, and of elders. Lateness is from before the COMMIT to"
        f" the byte at each client who sees the event; the floor writes it to all {sizes.clients}.",
        f"processor time of the process: {number(_per_event_us(found))} µs for each event and each of {sizes.clients}"
        " streams, where all see everything",
        f"memory of a stream: {number(found['mixed'].stream_kb[0])} KB (PSS), the first time that so many are open",
    ]


def _per_event_us(found: dict[str, Measured]) -> float:
    return (found["watchers"].processor_s - found["alone"].processor_s) * 1e6 / found["watchers"].written
