"""What becomes of messages whose providers fail now and then, with the waits between tries as they are."""

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from app.delivery.channels import email, fcm, twilio, webhook, whatsapp
from benchmarks import mailbag, plans, roles
from benchmarks.bench import Bench, fetch, say
from benchmarks.figures import number
from benchmarks.mailbag import LIVE
from benchmarks.plans import Arrivals
from benchmarks.provider import Conduct
from benchmarks.report import Row, Section
from benchmarks.stand_in import StandIn, stand_in

POLICIES = {
    "PUSH": fcm.POLICY,
    "SMS": twilio.POLICY,
    "EMAIL": email.POLICY,
    "WEBHOOK": webhook.POLICY,
    "WHATSAPP": whatsapp.POLICY,
}
OFTEN, SELDOM = 0.20, 0.05
AT_SELDOM = ("PUSH", "EMAIL", "WEBHOOK")
MOST_DEAD, LEAST_SENT = 0.005, 0.99
LEAST_ARRIVED = 0.999
SIGMAS = 3
THREADS, LATENCY_S = 8, 0.005
PATIENCE_S = 400.0

TITLE = (
    "delivery-failures: % of the messages that are dead in the end while the stand-in, which answers after"
    f" {LATENCY_S * 1e3:.0f} ms, fails by chance; one worker with {THREADS} threads a channel; floor: what the number"
    " of tries makes of that chance; rival: how many one try alone, or one channel, would have lost"
)

FATES = """
WITH first AS (
    SELECT DISTINCT ON (notification_id) notification_id, outcome FROM notification_attempts
     ORDER BY notification_id, id
)
SELECT notification_type, count(*), count(*) FILTER (WHERE status = 'SENT'), count(*) FILTER (WHERE status = 'DEAD'),
       count(*) FILTER (WHERE outcome <> 'SENT')
  FROM notifications LEFT JOIN first ON notification_id = id
 WHERE action_id IS NULL
 GROUP BY notification_type
"""
TOLD_TO = frozenset({"HTTP_503", "UNAVAILABLE", "SMTP_451", "WHATSAPP_503"})
"""How the stand-in's failures are called. Whatever else goes wrong is this machine's doing."""
OTHERS = """
SELECT n.notification_type, a.outcome, a.error_code, count(*)
  FROM notification_attempts a JOIN notifications n ON n.id = a.notification_id
 WHERE a.outcome <> 'SENT' AND a.error_code <> ALL(%s) GROUP BY 1, 2, 3
"""


@dataclass(frozen=True)
class Fate:
    """What became of the messages of one type."""

    messages: int
    sent: int
    dead: int
    failed_first: int

    @property
    def dead_share(self) -> float:
        return self.dead / self.messages


@dataclass(frozen=True)
class Trial:
    """Messages that one worker carries to one stand-in."""

    database: str
    failing: float
    types: Sequence[str]


TRIALS = (Trial("failures_often", OFTEN, tuple(POLICIES)), Trial("failures_seldom", SELDOM, AT_SELDOM))


def measure(bench: Bench) -> Section:
    messages, asked = bench.size(4_000, 100), bench.size(2_000, 50)
    fates: dict[float, dict[str, Fate]] = {}
    twice = 0
    with bench.redis(), ExitStack() as stack:
        providers = [_begin(bench, stack, trial, messages) for trial in TRIALS]
        plans.ask_for(bench, TRIALS[0].database, providers[0], asked)
        for trial, provider in zip(TRIALS, providers, strict=True):
            fates[trial.failing] = _end(bench, trial)
            twice += _taken_twice(provider)
        with bench.connect(TRIALS[0].database) as conn:
            arrivals = plans.arrivals(conn, providers[0].diaries())
    bench.drop(*(trial.database for trial in TRIALS))
    rows = [_often(type_, fates[OFTEN][type_]) for type_ in POLICIES]
    rows += [_seldom(bench, type_, fates[SELDOM][type_]) for type_ in AT_SELDOM]
    rows.append(_plans(bench, arrivals))
    notes = [
        f"{messages:,} messages a channel, all there at the beginning, under the retry policies as they are: a push"
        " that failed waits for 10 s, then for 30 s. Both shares at the same time, each with a worker, a database and a"
        " stand-in of its own.",
        f"Messages that a provider took twice: {twice}. Plans that arrived by both channels: {arrivals.twice}.",
    ]
    return Section("delivery-failures", TITLE, rows, notes)


def _begin(bench: Bench, stack: ExitStack, trial: Trial, messages: int) -> StandIn:
    say(f"delivery-failures: {trial.failing:.0%} of the calls to {', '.join(trial.types)}")
    bench.create(trial.database)
    provider = stack.enter_context(stand_in(bench, seed=messages))
    provider.behave(**dict.fromkeys(trial.types, Conduct(LATENCY_S, trial.failing)))
    with bench.connect(trial.database) as conn:
        for type_ in trial.types:
            mailbag.fill(conn, type_, provider.recipient(type_), messages)
    threads = {"NOTIFICATION_QUEUE_CONSUMER_THREADS": str(THREADS)}
    stack.enter_context(roles.role(bench, "delivery", trial.database, **provider.settings, **threads))
    return provider


def _end(bench: Bench, trial: Trial) -> dict[str, Fate]:
    with bench.connect(trial.database) as conn:
        roles.eventually(lambda: plans.are_over(conn) and not fetch(conn, LIVE)[0][0], PATIENCE_S, nap_s=0.5)
        for type_, outcome, code, count in fetch(conn, OTHERS, [list(TOLD_TO)]):
            say(f"delivery-failures: {count} tries of {type_} ended {outcome} by {code}, which nobody was told to do")
        return {row[0]: Fate(*row[1:]) for row in fetch(conn, FATES)}


def _taken_twice(provider: StandIn) -> int:
    taken = [[id_ for id_, _ in diary.accepted if id_] for diary in provider.diaries().values()]
    return sum(len(ids) - len(set(ids)) for ids in taken)


def _often(type_: str, fate: Fate) -> Row:
    expected = OFTEN ** (POLICIES[type_].retries + 1)
    error = SIGMAS * math.sqrt(expected * (1 - expected) / fate.messages)
    return Row(
        f"{type_}, {POLICIES[type_].retries} retries, {OFTEN:.0%} failing",
        fate.dead_share * 100,
        expected * 100,
        fate.failed_first / fate.messages * 100,
        f"{number(expected * 100)} ± {number(error * 100)}",
        abs(fate.dead_share - expected) <= error,
        {"dead": fate.dead, "messages": fate.messages, "sigmas": SIGMAS},
    )


def _seldom(bench: Bench, type_: str, fate: Fate) -> Row:
    met = fate.sent > LEAST_SENT * fate.messages and fate.dead < MOST_DEAD * fate.messages
    return Row(
        f"{type_}, {POLICIES[type_].retries} retries, {SELDOM:.0%} failing",
        fate.dead_share * 100,
        SELDOM ** (POLICIES[type_].retries + 1) * 100,
        fate.failed_first / fate.messages * 100,
        f"dead <{number(MOST_DEAD * 100)}, sent >{LEAST_SENT * 100:.0f}",
        None if bench.quick else met,
        {"dead": fate.dead, "sent": fate.sent, "messages": fate.messages},
    )


def _plans(bench: Bench, found: Arrivals) -> Row:
    """The other rows tell how many are lost; here too, so that the columns mean the same."""
    tries = sum(POLICIES[type_].retries + 1 for type_ in plans.CHANNELS)
    return Row(
        f"plans, {' then '.join(plans.CHANNELS)}, {OFTEN:.0%} failing",
        (1 - found.arrived / found.plans) * 100,
        OFTEN**tries * 100,
        (1 - found.by_first_channel / found.plans) * 100,
        f"arrived ≥{LEAST_ARRIVED * 100:.1f}",
        None if bench.quick else found.arrived >= LEAST_ARRIVED * found.plans,
        {"plans": found.plans, "arrived": found.arrived, "by_first_channel": found.by_first_channel},
    )
