"""More people press than can be served: how many get through, how long do they wait, and is everybody answered?"""

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from benchmarks import city, http, roles
from benchmarks.bench import Bench, fetch, run, say
from benchmarks.city import City
from benchmarks.client import LOST, Answer, Answered, Tokens, converse, lines
from benchmarks.figures import number, spread
from benchmarks.pgbench import Script, play, write_script
from benchmarks.report import Row, Section

CLIENTS = (1, 2, 8, 32, 100, 250, 500)
WARM = 64
MOST_A_SECOND = 1_000
"""Elders a crowd has for each second; should they not suffice, its time ends with them."""
POOL = 16
"""Connections to PostgreSQL that the api role has at its default settings: 2 workers with 8 threads each."""
LIMIT_S = 10.0
"""REQUEST_TIMEOUT_S, at its default."""
KEEPS = 0.8
OURS, RIVAL, PLAYED = "overload_ours", "overload_rival", "overload_played"

MORE_ELDERS = """
INSERT INTO users (role, name, phone, home)
SELECT role, name, phone, home FROM users, generate_series(1, %(times)s) n WHERE id = ANY(%(elders)s) ORDER BY n, id
"""

TITLE = (
    "overload: POST /tasks by so many clients at once, who come back when Retry-After says; ms of the accepted ones,"
    " p50 / p99, and accepted ones a second; floor: the same SQL by pgbench; rival: the service without shedding load"
)


@dataclass
class Level:
    """What one crowd met with."""

    latencies_ms: list[float] = field(default_factory=list[float])
    in_time: int = 0
    """Accepted before the time was over; the others were on their way then."""
    took_s: float = 0.0
    turned_away: int = 0
    lost: int = 0
    longest_s: float = 0.0

    @property
    def a_second(self) -> float:
        return self.in_time / self.took_s

    @property
    def share_turned_away(self) -> float:
        return self.turned_away / (self.turned_away + len(self.latencies_ms) + self.lost)

    @property
    def everybody_was_answered(self) -> bool:
        return self.lost == 0 and self.longest_s <= LIMIT_S


class Crowd:
    """Presses by elders who have no open request: the second press of one who has gets the same request again, and
    costs much less. Ends when the time is over, or when all of them have pressed."""

    def __init__(self, elders: Sequence[int], lasting_s: float, *, heeds_retry_after: bool) -> None:
        tokens = Tokens()
        self._heeds_retry_after = heeds_retry_after
        self._left = [tokens.request(elder, "POST", "/tasks", http.BODY) for elder in elders]
        self._began = time.perf_counter()
        self._ends = self._began + lasting_s
        self.level = Level()

    def ask(self) -> bytes | None:
        now = time.perf_counter()
        if not self._left:
            self._ends = min(self._ends, now)
        self.level.took_s = min(now, self._ends) - self._began
        return self._left.pop() if now < self._ends else None

    def told(self, answer: Answer) -> float | None:
        level = self.level
        level.longest_s = max(level.longest_s, answer.latency_s)
        if answer.status == 201:
            level.latencies_ms.append(answer.latency_s * 1e3)
            level.in_time += time.perf_counter() < self._ends
            return 0.0
        if answer.status == 503:
            level.turned_away += 1
            self._left.insert(0, answer.request)
            return answer.retry_after_s if self._heeds_retry_after else 0.0
        if answer.status == LOST:
            level.lost += 1
            return None
        raise AssertionError(f"{answer.status} instead of 201 or 503: {answer.body[:500]!r}")


def press(port: int, elders: Sequence[int], clients: int, lasting_s: float, *, heeds_retry_after: bool = True) -> Level:
    with lines(port, clients) as opened:
        crowd = Crowd(elders, lasting_s, heeds_retry_after=heeds_retry_after)
        converse(opened, crowd.ask, crowd.told, patience_s=3 * LIMIT_S)
    return crowd.level


def measure(bench: Bench) -> Section:
    students = bench.size(1_000_000, 10_000)
    lasting_s, played = bench.size(5, 1), bench.size(640, 64)
    template = f"city_{students}"
    built = city.known_or_new(bench, template, students)
    script = _capture(bench, template, built, played * len(CLIENTS))
    each = lasting_s * MOST_A_SECOND
    ours: dict[int, Level] = {}
    rival: dict[int, Level] = {}
    floor: dict[int, Answered] = {}
    with (
        bench.redis(),
        _api(bench, template, OURS) as ours_port,
        _api(bench, template, RIVAL, QUEUE_LIMIT_S="1000000") as rival_port,
    ):
        elders = _more_elders(bench, built, each * (len(CLIENTS) + 1) + WARM)
        for port in (ours_port, rival_port):
            press(port, elders[-WARM:], 8, LIMIT_S)
        for turn, clients in enumerate(CLIENTS):
            say(f"overload: {clients} clients")
            crowd = elders[turn * each : (turn + 1) * each]
            ours[clients] = press(ours_port, crowd, clients, lasting_s)
            floor[clients] = play(
                bench, PLAYED, script, first=turn * played, requests=played, clients=min(clients, POOL)
            )
            rival[clients] = press(rival_port, crowd, clients, lasting_s)
        say(f"overload: {CLIENTS[-1]} clients who do not wait")
        crowd = elders[each * len(CLIENTS) : -WARM]
        rude = press(ours_port, crowd, CLIENTS[-1], lasting_s, heeds_retry_after=False)
    _check_floor(bench, played * len(CLIENTS))
    bench.drop(OURS, RIVAL, PLAYED)
    rows = [row for clients in CLIENTS for row in _rows(clients, ours[clients], floor[clients], rival[clients])]
    best = max(level.a_second for level in ours.values())
    kept = ours[CLIENTS[-1]].a_second / best
    met = kept >= KEEPS and all(level.everybody_was_answered for level in ours.values())
    rows[-1] = replace(rows[-1], goal=f"≥{KEEPS:.0%} of the best, all answered in {LIMIT_S:.0f} s")
    rows[-1] = replace(rows[-1], met=None if bench.quick else met)
    rows += [
        Row(f"{CLIENTS[-1]} who do not wait, ms", spread(rude.latencies_ms), facts=_facts(rude)),
        Row(f"{CLIENTS[-1]} who do not wait, accepted a second", rude.a_second),
    ]
    notes = [
        f"{students:,} students, {lasting_s} s a crowd. The client, one event loop, runs on the same cores. pgbench has"
        f" at most {POOL} clients: the service never has more connections. It answers no HTTP and turns nobody away.",
        f"The largest crowd got {kept:.0%} of the best throughput.",
        *(_told(who, levels) for who, levels in (("ours", ours), ("rival", rival))),
        _told("ours, when nobody heeds Retry-After", {CLIENTS[-1]: rude}),
    ]
    return Section("overload", TITLE, rows, notes)


def _rows(clients: int, ours: Level, floor: Answered, rival: Level) -> list[Row]:
    spreads = (spread(ours.latencies_ms), spread(floor.latencies_ms), spread(rival.latencies_ms))
    rates = (ours.a_second, len(floor.latencies_ms) / floor.elapsed_s, rival.a_second)
    who = f"{clients} client{'s'[: clients > 1]}"
    return [
        Row(f"{who}, ms", *spreads, facts={"ours": _facts(ours), "rival": _facts(rival)}),
        Row(f"{who}, accepted a second", *rates),
    ]


def _facts(level: Level) -> dict[str, float]:
    return {"turned_away": level.share_turned_away, "unanswered": level.lost, "longest_s": level.longest_s}


def _told(who: str, levels: dict[int, Level]) -> str:
    shares = ", ".join(f"{clients}: {level.share_turned_away:.0%}" for clients, level in levels.items())
    lost = sum(level.lost for level in levels.values())
    longest_s = max(level.longest_s for level in levels.values())
    return f"{who}: turned away with 503 {shares}; without an answer {lost}; longest answer {number(longest_s)} s"


@contextmanager
def _api(bench: Bench, template: str, database: str, **settings: str) -> Iterator[int]:
    bench.copy(template, database)
    with roles.api(bench, database, **settings) as (_, port):
        yield port


def _more_elders(bench: Bench, built: City, wanted: int) -> list[int]:
    """In the same homes, and not street by street: the crowds are to be alike, and to come from the whole city."""
    homes = list(built.free_elders)
    values = {"elders": homes, "times": wanted // len(homes) + 1}
    added: list[list[int]] = []
    for database in (OURS, RIVAL):
        with bench.connect(database) as conn:
            last = fetch(conn, "SELECT max(id) FROM users")[0][0]
            run(conn, MORE_ELDERS, values)
            run(conn, "ANALYZE users")
            added.append([row[0] for row in fetch(conn, "SELECT id FROM users WHERE id > %s ORDER BY id", [last])])
    assert added[0] == added[1], "the same people press there and here"
    random.Random(1).shuffle(added[0])
    return added[0][:wanted]


def _capture(bench: Bench, template: str, built: City, wanted: int) -> Script:
    pressing = list(built.free_elders)
    random.Random(2).shuffle(pressing)
    pressing = pressing[: wanted + wanted // 2]
    say(f"taking down what the application sends for {len(pressing):,} presses")
    captured = f"{PLAYED}_before"
    bench.copy(template, captured)
    with bench.redis():
        sent, _ = http.through_the_app(
            bench, captured, lambda client: [http.press(client, elder) for elder in pressing]
        )
    bench.drop(captured)
    bench.copy(template, PLAYED)
    with bench.connect(PLAYED) as conn:
        return write_script(bench, conn, "press", sent, wanted)


def _check_floor(bench: Bench, presses: int) -> None:
    """What was played must have been the whole work and not a row of statements that changed nothing."""
    with bench.connect(PLAYED) as conn:
        notified = fetch(conn, "SELECT count(*) FROM notifications")[0][0]
    if notified < presses:
        raise AssertionError(f"pgbench made {notified} offers for {presses} presses")
