"""The time from an accepted notification to its arrival at the provider, while another provider hangs."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from uuid import uuid4

from app.db.database import Database
from app.db.wake import WAKE_CHANNEL
from app.delivery.messages.submit import NewSubmission, submit
from app.delivery.messages.values import NotificationType
from benchmarks import backlog, constant_rate, delivery_rival, roles
from benchmarks.attempts import keeping
from benchmarks.bench import Bench, fetch, say
from benchmarks.figures import number, percentile, spread
from benchmarks.provider import Behaviour
from benchmarks.report import Row, Section
from benchmarks.stand_in import StandIn, stand_in

OURS, FLOOR, RIVAL = "latency_ours", "latency_floor", "latency_rival"
HEALTHY = ("PUSH", "SMS", "EMAIL", "WEBHOOK")
HANGING = "WHATSAPP"
TYPES = (*HEALTHY, HANGING)
PER_SECOND, THREADS, LATENCY_S = 200, 8, 0.050
GOAL_MS, TARGET_MS = 5_000.0, 250.0
WARM_UP = 40
PATIENCE_S = 15.0
"""How long to wait for the last arrivals."""

TITLE = (
    f"delivery-latency: {PER_SECOND} notifications a second, spread evenly over five channels, of which {HANGING}"
    f" hangs: from the row to its arrival at the stand-in, which answers after {LATENCY_S * 1e3:.0f} ms; ms, p50 / p99;"
    f" {THREADS} threads a channel everywhere; floor: bare psycopg and http.client; rival: Celery, a queue and a worker"
    " for each channel"
)

Moments = dict[str, dict[str, float]]
"""Time of each notification, by type and id, from the system's clock."""


@dataclass(frozen=True)
class Result:
    """The figures of ours, the floor or the rival."""

    late_ms: dict[str, list[float]]
    hung: int
    """How many requests the hanging provider got, those of the warm-up included."""
    behind_s: float
    """The longest delay of a submission behind its planned time."""


def measure(bench: Bench) -> Section:
    lasting_s, beside_s = bench.size(30, 3), bench.size(10, 3)
    bench.create(OURS)
    bench.copy(OURS, FLOOR)
    bench.copy(OURS, RIVAL)
    who: list[Result] = []
    with keeping(lambda: _section(bench, lasting_s, beside_s, who)), bench.redis(), stand_in(bench) as provider:
        behaviour = dict.fromkeys(HEALTHY, Behaviour(latency_s=LATENCY_S)) | {HANGING: Behaviour(hangs=True)}
        provider.behave(**behaviour)
        who.append(_ours(bench, provider, lasting_s))
        who.append(_floor(bench, provider, beside_s))
        who.append(_rival(bench, provider, beside_s))
    bench.drop(OURS, FLOOR, RIVAL)
    return _section(bench, lasting_s, beside_s, who)


def _section(bench: Bench, lasting_s: float, beside_s: float, who: Sequence[Result]) -> Section:
    """`who` are ours, the floor and the rival, as far as they were measured."""
    rows = [_row(bench, type_, [one.late_ms[type_] for one in who]) for type_ in HEALTHY]
    rows.append(_row(bench, "all four", [_all(one) for one in who], GOAL_MS))
    notes = [
        f"{lasting_s} s for ours, {beside_s} s for the floor and for Celery. Requests to {HANGING} by ours, floor and"
        f" Celery: {', '.join(f'{one.hung}' for one in who)}.",
        "One process submits the notifications, at most"
        f" {', '.join(f'{number(one.behind_s * 1e3)}' for one in who)} ms behind its rate. It shares the cores with the"
        " workers, the stand-in and the stores.",
        "The floor and Celery send plain HTTP to every provider; ours writes e-mails, signs webhooks and sends tokens."
        " Celery records nothing, and a worker that dies loses the tasks that it has taken.",
    ]
    return Section("delivery-latency", TITLE, rows, notes)


def _row(bench: Bench, name: str, late: Sequence[Sequence[float]], goal_ms: float = TARGET_MS) -> Row:
    spreads = [spread(samples) for samples in late]
    p95 = [percentile(sorted(samples), 0.95) for samples in late]
    facts = {"p95_ms": dict(zip(("ours", "floor", "rival"), p95, strict=False))}
    met = None if bench.quick else p95[0] < goal_ms
    goal = f"p95 <{number(goal_ms)} ms"
    return Row(name, *spreads, goal=goal, met=met, facts=facts, more=f"p95 {' | '.join(map(number, p95))}")


def _all(result: Result) -> list[float]:
    return [one for samples in result.late_ms.values() for one in samples]


# ---- ours, floor and rival ----


def _ours(bench: Bench, provider: StandIn, lasting_s: float) -> Result:
    db = Database(bench.url(OURS), pool_size=constant_rate.THREADS)
    accepted: Moments = {type_: {} for type_ in TYPES}

    def act(n: int) -> None:
        type_ = TYPES[n % len(TYPES)]
        new = NewSubmission(
            NotificationType(type_), provider.recipient(type_), backlog.BODY, backlog.SUBJECT if type_ != "SMS" else ""
        )
        with db.autocommit() as conn:
            submitted = submit(conn, new)
        accepted[type_][str(submitted.id)] = submitted.submitted_at.timestamp()

    threads = {"NOTIFICATION_QUEUE_CONSUMER_THREADS": str(THREADS)}
    with roles.role(bench, "delivery", OURS, **provider.settings, **threads):
        result = _measure_one("ours", provider, accepted, lasting_s, act)
    db.close()
    return result


INSERT = """
INSERT INTO notifications (id, notification_type, recipient, subject, body) VALUES (%s, %s, %s, %s, %s)
RETURNING extract(epoch FROM created_at)::float8, pg_notify(%s, notification_type)
"""


def _floor(bench: Bench, provider: StandIn, lasting_s: float) -> Result:
    accepted: Moments = {type_: {} for type_ in TYPES}
    with ExitStack() as stack:
        conns = [stack.enter_context(bench.connect(FLOOR)) for _ in range(constant_rate.THREADS)]

        def act(n: int) -> None:
            type_, id_ = TYPES[n % len(TYPES)], uuid4()
            texts = [provider.recipient(type_), backlog.SUBJECT, backlog.BODY]
            row = fetch(conns[n % constant_rate.THREADS], INSERT, [id_, type_, *texts, WAKE_CHANNEL])[0]
            accepted[type_][str(id_)] = row[0]

        arguments = ("post", str(THREADS), provider.url)
        stack.enter_context(roles.module(bench, "bare_worker", FLOOR, *arguments, BARE_TYPES=",".join(TYPES)))
        return _measure_one("floor", provider, accepted, lasting_s, act)


def _rival(bench: Bench, provider: StandIn, lasting_s: float) -> Result:
    accepted: Moments = {type_: {} for type_ in TYPES}
    with ExitStack() as stack:
        stack.enter_context(_celery_workers(bench, provider))
        producers = [stack.enter_context(delivery_rival.producer(bench)) for _ in range(constant_rate.THREADS)]

        def act(n: int) -> None:
            type_, id_ = TYPES[n % len(TYPES)], str(uuid4())
            accepted[type_][id_] = time.time()
            producer = producers[n % constant_rate.THREADS]
            delivery_rival.post.apply_async((type_, id_, backlog.BODY), queue=type_, producer=producer)

        return _measure_one("Celery", provider, accepted, lasting_s, act)


@contextmanager
def _celery_workers(bench: Bench, provider: StandIn) -> Iterator[None]:
    """Workers for all types, which start at the same time."""
    with ExitStack() as stack:
        host = provider.url.removeprefix("http://")
        options = ("--pool=threads", f"--concurrency={THREADS}")
        ready = [
            stack.enter_context(delivery_rival.worker(bench, RIVAL, *options, queue=type_, host=host))
            for type_ in TYPES
        ]
        for wait in ready:
            wait()
        yield


def _measure_one(
    who: str, provider: StandIn, accepted: Moments, lasting_s: float, act: Callable[[int], None]
) -> Result:
    say(f"delivery-latency: {who}, {lasting_s:.0f} s")
    constant_rate.call_at_rate(PER_SECOND, WARM_UP / PER_SECOND, act)
    warmed = _wait_for_arrivals(provider, accepted)
    provider.forget()
    for moments in accepted.values():
        moments.clear()
    behind_s = constant_rate.call_at_rate(PER_SECOND, lasting_s, act)
    arrived = _wait_for_arrivals(provider, accepted)
    late = {type_: _late(accepted[type_], arrived[type_]) for type_ in HEALTHY}
    return Result(late, len(warmed[HANGING]) + len(arrived[HANGING]), behind_s)


def _late(accepted: dict[str, float], arrived: dict[str, float]) -> list[float]:
    """In ms; infinite for a notification that never arrived."""
    return [(arrived.get(id_, math.inf) - at) * 1e3 for id_, at in accepted.items()]


def _wait_for_arrivals(provider: StandIn, accepted: Moments) -> Moments:
    """The time of the first attempt of each notification."""
    until = time.monotonic() + PATIENCE_S
    while True:
        arrived = _arrivals(provider)
        missing = any(accepted[type_].keys() - arrived[type_].keys() for type_ in HEALTHY)
        if not missing or time.monotonic() > until:
            return arrived
        time.sleep(0.2)


def _arrivals(provider: StandIn) -> Moments:
    arrived: Moments = {type_: {} for type_ in TYPES}
    for type_, request_log in provider.request_logs().items():
        for place, (id_, at) in enumerate(request_log.tried):
            # A request to WhatsApp has no id.
            arrived[type_].setdefault(id_ or str(place), at)
    return arrived
