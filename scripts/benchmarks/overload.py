"""More presses than the API can serve: how many are accepted, how long they take, and whether all are answered."""

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from benchmarks import city, http, roles
from benchmarks.attempts import keeping
from benchmarks.bench import Bench, fetch, run, say
from benchmarks.city import City
from benchmarks.client import NO_ANSWER, Answer, Answered, Tokens, open_connections, run_clients
from benchmarks.figures import number, spread
from benchmarks.pgbench import Script, play, write_script
from benchmarks.report import Row, Section

CLIENTS = (1, 2, 8, 32, 100, 250, 500)
WARM = 64
ELDERS_PER_SECOND = 1_000
"""Elders per second of a level. If all have pressed before its time is over, the level ends early."""
POOL = 16
"""Connections to PostgreSQL that the api role has at its default settings: 2 workers with 8 threads each."""
LIMIT_S = 10.0
"""REQUEST_TIMEOUT_S, at its default."""
KEPT_GOAL = 0.8
OURS, RIVAL, PLAYED = "overload_ours", "overload_rival", "overload_played"

MORE_ELDERS = """
INSERT INTO users (role, name, phone, home)
SELECT role, name, phone, home FROM users, generate_series(1, %(times)s) n WHERE id = ANY(%(elders)s) ORDER BY n, id
"""

TITLE = (
    "overload: POST /tasks by a number of clients at once, who retry after Retry-After; ms of the accepted requests,"
    " p50 / p99, and accepted requests a second; floor: the same SQL by pgbench; rival: ours without load shedding"
)


@dataclass
class Level:
    """The results of one number of clients."""

    latencies_ms: list[float] = field(default_factory=list[float])
    in_time: int = 0
    """Accepted before the time was over. Requests in flight at that moment are answered later."""
    took_s: float = 0.0
    refused: int = 0
    lost: int = 0
    longest_s: float = 0.0

    @property
    def a_second(self) -> float:
        return self.in_time / self.took_s

    @property
    def share_refused(self) -> float:
        return self.refused / (self.refused + len(self.latencies_ms) + self.lost)

    @property
    def all_answered(self) -> bool:
        return self.lost == 0 and self.longest_s <= LIMIT_S


class Presses:
    """One press by each elder, because a second press only returns the open task, which costs much less. Ends when the
    time is over, or when all elders have pressed."""

    def __init__(self, elders: Sequence[int], lasting_s: float, *, obeys_retry_after: bool) -> None:
        tokens = Tokens()
        self._heeds_retry_after = obeys_retry_after
        self._left = [tokens.request(elder, "POST", "/tasks", http.BODY) for elder in elders]
        self._began = time.perf_counter()
        self._ends = self._began + lasting_s
        self.level = Level()

    def next_request(self) -> bytes | None:
        now = time.perf_counter()
        if not self._left:
            self._ends = min(self._ends, now)
        self.level.took_s = min(now, self._ends) - self._began
        return self._left.pop() if now < self._ends else None

    def on_answer(self, answer: Answer) -> float | None:
        level = self.level
        level.longest_s = max(level.longest_s, answer.latency_s)
        if answer.status == 201:
            level.latencies_ms.append(answer.latency_s * 1e3)
            level.in_time += time.perf_counter() < self._ends
            return 0.0
        if answer.status == 503:
            level.refused += 1
            self._left.insert(0, answer.request)
            return answer.retry_after_s if self._heeds_retry_after else 0.0
        if answer.status == NO_ANSWER:
            level.lost += 1
            return None
        raise AssertionError(f"{answer.status} instead of 201 or 503: {answer.body[:500]!r}")


def press(port: int, elders: Sequence[int], clients: int, lasting_s: float, *, obeys_retry_after: bool = True) -> Level:
    with open_connections(port, clients) as opened:
        presses = Presses(elders, lasting_s, obeys_retry_after=obeys_retry_after)
        run_clients(opened, presses.next_request, presses.on_answer, patience_s=3 * LIMIT_S)
    return presses.level


def measure(bench: Bench) -> Section:
    students = bench.size(1_000_000, 10_000)
    lasting_s, played = bench.size(5, 1), bench.size(640, 64)
    template = f"city_{students}"
    built = city.find_or_build(bench, template, students)
    script = _capture(bench, template, built, played * len(CLIENTS))
    each = lasting_s * ELDERS_PER_SECOND
    ours: dict[int, Level] = {}
    rival: dict[int, Level] = {}
    floor: dict[int, Answered] = {}
    with (
        keeping(lambda: _section(bench, students, lasting_s, ours, floor, rival, None)),
        bench.redis(),
        _api(bench, template, OURS) as ours_port,
        _api(bench, template, RIVAL, QUEUE_LIMIT_S="1000000") as rival_port,
    ):
        elders = _more_elders(bench, built, each * (len(CLIENTS) + 1) + WARM)
        for port in (ours_port, rival_port):
            press(port, elders[-WARM:], 8, LIMIT_S)
        for turn, clients in enumerate(CLIENTS):
            say(f"overload: {clients} clients")
            pressing = elders[turn * each : (turn + 1) * each]
            pressed = press(ours_port, pressing, clients, lasting_s)
            floor[clients] = play(
                bench, PLAYED, script, first=turn * played, requests=played, clients=min(clients, POOL)
            )
            rival[clients] = press(rival_port, pressing, clients, lasting_s)
            ours[clients] = pressed
        say(f"overload: {CLIENTS[-1]} clients who ignore Retry-After")
        pressing = elders[each * len(CLIENTS) : -WARM]
        impatient = press(ours_port, pressing, CLIENTS[-1], lasting_s, obeys_retry_after=False)
        _check_floor(bench, played * len(CLIENTS))
    bench.drop(OURS, RIVAL, PLAYED)
    return _section(bench, students, lasting_s, ours, floor, rival, impatient)


def _section(
    bench: Bench,
    students: int,
    lasting_s: int,
    ours: dict[int, Level],
    floor: dict[int, Answered],
    rival: dict[int, Level],
    impatient: Level | None,
) -> Section:
    """Has the numbers of clients that were measured; `impatient` comes last."""
    rows = [row for clients in ours for row in _rows(clients, ours[clients], floor[clients], rival[clients])]
    notes = [
        f"{students:,} students, {lasting_s} s for each number of clients. The client, one event loop, runs on the same"
        f" cores. pgbench has at most {POOL} clients, because the service has no more connections; it has no HTTP and"
        " refuses no request.",
        *(_summary(who, levels) for who, levels in (("ours", ours), ("rival", rival))),
    ]
    if CLIENTS[-1] in ours:
        kept = ours[CLIENTS[-1]].a_second / max(level.a_second for level in ours.values())
        met = kept >= KEPT_GOAL and all(level.all_answered for level in ours.values())
        rows[-1] = replace(rows[-1], goal=f"≥{KEPT_GOAL:.0%} of the best, all answered in {LIMIT_S:.0f} s")
        rows[-1] = replace(rows[-1], met=None if bench.quick else met)
        notes.append(f"With {CLIENTS[-1]} clients the throughput was {kept:.0%} of the best.")
    if impatient is not None:
        rows += [
            Row(f"{CLIENTS[-1]} who ignore Retry-After, ms", spread(impatient.latencies_ms), facts=_facts(impatient)),
            Row(f"{CLIENTS[-1]} who ignore Retry-After, accepted a second", impatient.a_second, more_is_better=True),
        ]
        notes.append(_summary("ours, when no client obeys Retry-After", {CLIENTS[-1]: impatient}))
    return Section("overload", TITLE, rows, notes)


def _rows(clients: int, ours: Level, floor: Answered, rival: Level) -> list[Row]:
    spreads = (spread(ours.latencies_ms), spread(floor.latencies_ms), spread(rival.latencies_ms))
    rates = (ours.a_second, len(floor.latencies_ms) / floor.elapsed_s, rival.a_second)
    who = f"{clients} client{'s'[: clients > 1]}"
    return [
        Row(f"{who}, ms", *spreads, facts={"ours": _facts(ours), "rival": _facts(rival)}),
        Row(f"{who}, accepted a second", *rates, more_is_better=True),
    ]


def _facts(level: Level) -> dict[str, float]:
    return {"turned_away": level.share_refused, "unanswered": level.lost, "longest_s": level.longest_s}


def _summary(who: str, levels: dict[int, Level]) -> str:
    shares = ", ".join(f"{clients}: {level.share_refused:.0%}" for clients, level in levels.items())
    lost = sum(level.lost for level in levels.values())
    longest_s = max(level.longest_s for level in levels.values())
    return f"{who}: answered with 503: {shares}; without an answer: {lost}; slowest answer: {number(longest_s)} s"


@contextmanager
def _api(bench: Bench, template: str, database: str, **settings: str) -> Iterator[int]:
    bench.copy(template, database)
    with roles.api(bench, database, **settings) as (_, port):
        yield port


def _more_elders(bench: Bench, built: City, wanted: int) -> list[int]:
    """Adds elders at the homes of existing ones, shuffled, so that every level presses from the whole city."""
    homes = list(built.free_elders)
    values = {"elders": homes, "times": wanted // len(homes) + 1}
    added: list[list[int]] = []
    for database in (OURS, RIVAL):
        with bench.connect(database) as conn:
            last = fetch(conn, "SELECT max(id) FROM users")[0][0]
            run(conn, MORE_ELDERS, values)
            run(conn, "ANALYZE users")
            added.append([row[0] for row in fetch(conn, "SELECT id FROM users WHERE id > %s ORDER BY id", [last])])
    assert added[0] == added[1], "both databases must have the same new elders"
    random.Random(1).shuffle(added[0])
    return added[0][:wanted]


def _capture(bench: Bench, template: str, built: City, wanted: int) -> Script:
    pressing = list(built.free_elders)
    random.Random(2).shuffle(pressing)
    pressing = pressing[: wanted + wanted // 2]
    say(f"recording the SQL of {len(pressing):,} presses")
    recording = f"{PLAYED}_before"
    bench.copy(template, recording)
    with bench.redis():
        sent, _ = http.through_the_app(
            bench, recording, lambda client: [http.press(client, elder) for elder in pressing]
        )
    bench.drop(recording)
    bench.copy(template, PLAYED)
    with bench.connect(PLAYED) as conn:
        return write_script(bench, conn, "press", sent, wanted)


def _check_floor(bench: Bench, presses: int) -> None:
    """Fails if the replayed statements did not change the rows that they should."""
    with bench.connect(PLAYED) as conn:
        notified = fetch(conn, "SELECT count(*) FROM notifications")[0][0]
    if notified < presses:
        raise AssertionError(f"pgbench made {notified} offers for {presses} presses")
