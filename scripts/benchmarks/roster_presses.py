"""Presses by elders while a list of 1,500,000 people is read of whom 30 % have changed, and while people follow it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from benchmarks import city, http, roles
from benchmarks.attempts import keeping
from benchmarks.bench import Bench, run, say
from benchmarks.client import Answer, Tokens, open_connections, run_clients
from benchmarks.figures import spread
from benchmarks.report import Row, Section
from benchmarks.roster_files import in_percent, write_night
from benchmarks.roster_work import beside, empty_queue, follow, require_success, sync, whole_run

DATABASE = "roster_presses"
CONNECTIONS, PAUSE_S = 4, 0.2
"""So about 20 presses a second, while the service can do ten times as many."""
WARM = 40
FOLLOWED_S = 60
GOAL_MS = 250.0
ALONE, BESIDE_A_RUN, BESIDE_PEOPLE = "alone", "beside a run", "beside people"
Found = dict[str, list[float]]
"""In ms."""
TITLE = (
    f"roster-presses: POST /tasks over {CONNECTIONS} connections, each with a pause of {PAUSE_S * 1e3:.0f} ms, ms,"
    " p50 / p99; floor: the same presses with no run beside them"
)


@dataclass
class Presses:
    """One by each elder."""

    port: int
    left: Iterator[bytes]
    refused: int = 0
    latencies_ms: list[float] = field(default_factory=list[float])

    def while_true(self, condition: Callable[[], bool]) -> list[float]:
        self.latencies_ms = []
        with open_connections(self.port, CONNECTIONS) as opened:
            run_clients(opened, lambda: next(self.left, None) if condition() else None, self._answered)
        return self.latencies_ms

    def some(self, number: int, condition: Callable[[], bool] = lambda: True) -> list[float]:
        sent = iter(range(number))
        return self.while_true(lambda: condition() and next(sent, None) is not None)

    def _answered(self, answer: Answer) -> float:
        if answer.status == 503:
            self.refused += 1
        elif answer.status != 201:
            raise AssertionError(f"{answer.status} instead of 201 or 503: {answer.body[:500]!r}")
        self.latencies_ms.append(answer.latency_s * 1e3)
        return PAUSE_S


def measure(bench: Bench) -> Section:
    students, people = bench.size(1_000_000, 10_000), bench.size(1_500_000, 20_000)
    alone, followed = bench.size(600, 40), bench.size(FOLLOWED_S * 20, 40)
    template = f"city_{students}"
    built = city.find_or_build(bench, template, students)
    bench.copy(template, DATABASE)
    say(f"roster: the first list of {people:,}")
    whole_run(bench, DATABASE, write_night(bench.folder, "before", people, in_percent(0)))
    changed = write_night(bench.folder, "after", people, in_percent(30))
    with bench.connect(DATABASE) as conn:
        empty_queue(conn)
        run(conn, "VACUUM ANALYZE")
        run(conn, "CHECKPOINT")
    tokens = Tokens()
    left = (tokens.request(elder, "POST", "/tasks", http.BODY) for elder in built.free_elders)
    found: Found = {}
    with (
        bench.redis(),
        roles.api(bench, DATABASE) as (_, port),
        keeping(lambda: _section(bench, students, people, found, presses.refused)),
    ):
        presses = Presses(port, left)
        presses.some(WARM)
        say("roster: presses alone")
        found[ALONE] = presses.some(alone)
        say("roster: presses beside a run")
        with beside(sync, bench.url(DATABASE), changed) as process:
            found[BESIDE_A_RUN] = presses.while_true(process.is_alive)
            require_success(process)
        say("roster: presses while people follow")
        with beside(follow, bench, DATABASE) as process:
            found[BESIDE_PEOPLE] = presses.some(followed, process.is_alive)
            require_success(process)
        found[ALONE] += presses.some(alone)
    bench.drop(DATABASE)
    return _section(bench, students, people, found, presses.refused)


def _section(bench: Bench, students: int, people: int, found: Found, refused: int) -> Section:
    names = {BESIDE_A_RUN: f"while 30 % of {people:,} change", BESIDE_PEOPLE: "while people follow the list"}
    rows = [_row(name, found[key], found[ALONE], bench.quick) for key, name in names.items() if key in found]
    notes = [
        f"{students:,} students. {refused} presses were refused with 503. The run, its parsers and the client"
        " share the cores with the service.",
    ]
    return Section("roster-presses", TITLE, rows, notes)


def _row(name: str, ours: list[float], floor: list[float], quick: bool) -> Row:
    found = spread(ours)
    return Row(name, found, spread(floor), goal=f"p99 ≤{GOAL_MS:.0f} ms", met=None if quick else found.p99 <= GOAL_MS)
