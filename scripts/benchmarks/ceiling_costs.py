"""What a press costs at the ceiling: processor time of each role, WAL, round trips, fsyncs, waits of backends."""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit, urlunsplit

from benchmarks import overload, pgbench, wire
from benchmarks.bench import Bench, run, say
from benchmarks.ceiling_world import LEAST, LONGEST_S, OURS, RIVAL, CeilingWorld, api, rival
from benchmarks.client import open_connections, run_clients
from benchmarks.cores import Placement
from benchmarks.press_costs import Syncs, Written, syncs, written
from benchmarks.processor_time import Spent, spent
from benchmarks.wait_events import sampled

API_PROCESSES, CONNECTIONS = 2, 16
DELAYS_US = (0, 100, 1_000)
"""Of `commit_delay`: how long a commit waits for others, so that one fsync serves all."""
COMMIT = "INSERT INTO bench_commits DEFAULT VALUES;\n"
COMMIT_AND_NOTIFY = f"BEGIN;\n{COMMIT}NOTIFY bench_commits;\nCOMMIT;\n"
MADE = "CREATE TABLE bench_commits (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY)"


@dataclass(frozen=True)
class PressCosts:
    presses: int
    spent: Spent
    written: Written


@dataclass
class Delay:
    """A second, in rounds."""

    presses: list[float] = field(default_factory=list[float])
    commits: list[float] = field(default_factory=list[float])
    notifying: list[float] = field(default_factory=list[float])


@dataclass
class CostFigures:
    """What was measured until now."""

    ours: PressCosts | None = None
    floor: PressCosts | None = None
    rival: PressCosts | None = None
    after_checkpoint: PressCosts | None = None
    syncs: Syncs = field(default_factory=Syncs)
    synced_presses: int = 0
    waits: Counter[str] = field(default_factory=Counter[str])
    round_trips: dict[str, float] = field(default_factory=dict[str, float])
    delays: dict[int, Delay] = field(default_factory=dict[int, Delay])
    flame: str = ""
    """What the flame graph tells, if it is drawn."""


def measure(world: CeilingWorld, placement: Placement, found: CostFigures) -> None:
    say("ceiling: what a press costs")
    _costs(world, placement, found)
    say("ceiling: round trips of a press")
    _round_trips(world, placement, found)
    say("ceiling: commit_delay")
    _delays(world, placement, found)


# ---- processor time, WAL and fsyncs ----


def _costs(world: CeilingWorld, placement: Placement, found: CostFigures) -> None:
    bench = world.bench
    presses = bench.size(1_200, 64)
    with syncs(bench, OURS) as found.syncs, api(bench, placement.service, API_PROCESSES) as (service, port):
        world.press(port, CONNECTIONS, presses // 4)
        found.ours = _ours(world, service, OURS, port, presses)
        with sampled(bench, OURS) as found.waits:
            world.press(port, CONNECTIONS, presses // 2)
        _checkpoint(bench)
        found.after_checkpoint = _ours(world, service, OURS, port, presses // 4)
    found.synced_presses = presses * 2
    world.end_all(OURS)
    with rival(bench, placement.service, API_PROCESSES) as (service, port):
        world.press(port, CONNECTIONS, presses // 4)
        found.rival = _ours(world, service, RIVAL, port, presses)
    played = bench.size(2_400, 160)
    with _costing(world, None, LEAST) as (time, wrote):
        world.play(CONNECTIONS, played)
    found.floor = PressCosts(played, time, wrote)


def _ours(world: CeilingWorld, service: int, database: str, port: int, number: int) -> PressCosts:
    with open_connections(port, CONNECTIONS) as opened:
        # Signs the tokens, which is no part of what is measured.
        presses = overload.Presses(world.elders(number), LONGEST_S, obeys_retry_after=True)
        with _costing(world, service, database) as (time, wrote):
            run_clients(opened, presses.next_request, presses.on_answer)
    return PressCosts(number, time, wrote)


@contextmanager
def _costing(world: CeilingWorld, service: int | None, database: str) -> Iterator[tuple[Spent, Written]]:
    with world.bench.connect(database) as conn:
        run(conn, "CREATE EXTENSION IF NOT EXISTS pg_walinspect")
        with written(conn, world.redis) as wrote, spent(world.stores, service) as time:
            yield time, wrote


def _checkpoint(bench: Bench) -> None:
    with bench.connect("maintenance") as conn:
        run(conn, "CHECKPOINT")


# ---- round trips ----


def _round_trips(world: CeilingWorld, placement: Placement, found: CostFigures) -> None:
    """One press after the other, so that what the api does beside them is a small part."""
    bench = world.bench
    presses = world.elders(bench.size(200, 20))
    with ExitStack() as stack:
        ports = {
            name: stack.enter_context(wire.counted(_port(url)))
            for name, url in (("PostgreSQL", bench.url(OURS)), ("Redis", bench.redis_url))
        }
        led = {
            "DATABASE_URL": _through(bench.url(OURS), ports["PostgreSQL"].port),
            "REDIS_URL": _through(bench.redis_url, ports["Redis"].port),
        }
        _, port = stack.enter_context(api(bench, placement.service, 1, **led))
        _one_at_a_time(port, presses[: len(presses) // 4])
        before = {name: one.round_trips for name, one in ports.items()}
        done = _one_at_a_time(port, presses[len(presses) // 4 :])
        found.round_trips = {name: (one.round_trips - before[name]) / done for name, one in ports.items()}
    world.end_all(OURS)


def _one_at_a_time(port: int, elders: list[int]) -> int:
    return len(overload.press(port, elders, 1, LONGEST_S).latencies_ms)


def _port(url: str) -> int:
    port = urlsplit(url).port
    assert port is not None, "the stores of a run have ports"
    return port


def _through(url: str, port: int) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{parts.netloc.rpartition(':')[0]}:{port}"))


# ---- group commit ----


def _delays(world: CeilingWorld, placement: Placement, found: CostFigures) -> None:
    bench = world.bench
    with bench.connect(LEAST) as conn:
        run(conn, MADE)
    with api(bench, placement.service, API_PROCESSES) as (_, port):
        world.press(port, CONNECTIONS, bench.size(200, 32))
        for _ in range(bench.size(3, 1)):
            for delay_us in DELAYS_US[: bench.size(len(DELAYS_US), 1)]:
                with _commit_delay(bench, delay_us):
                    _one_round(world, port, found.delays.setdefault(delay_us, Delay()))
                world.end_all(OURS)


def _one_round(world: CeilingWorld, port: int, delay: Delay) -> None:
    def commits(statements: str) -> float:
        times = world.bench.size(8_000, 160)
        return pgbench.rate(world.bench, LEAST, statements, times=times, clients=CONNECTIONS)

    delay.presses.append(world.press(port, CONNECTIONS, world.bench.size(500, 48)).a_second)
    delay.commits.append(commits(COMMIT))
    delay.notifying.append(commits(COMMIT_AND_NOTIFY))


@contextmanager
def _commit_delay(bench: Bench, delay_us: int) -> Iterator[None]:
    def set_to(statement: str) -> None:
        with bench.connect("maintenance") as conn:
            run(conn, statement)
            run(conn, "SELECT pg_reload_conf()")

    set_to(f"ALTER SYSTEM SET commit_delay = {delay_us}")
    try:
        yield
    finally:
        set_to("ALTER SYSTEM RESET commit_delay")
