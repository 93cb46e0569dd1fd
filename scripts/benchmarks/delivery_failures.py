"""How many notifications become dead letters while providers fail at random, under the real retry policies."""

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from app.delivery.channels import email, fcm, twilio, webhook, whatsapp
from benchmarks import backlog, plans, roles
from benchmarks.attempts import keeping
from benchmarks.backlog import LIVE
from benchmarks.bench import Bench, fetch, say
from benchmarks.figures import number
from benchmarks.plans import Arrivals
from benchmarks.provider import Behaviour
from benchmarks.report import Row, Section
from benchmarks.stand_in import StandIn, stand_in

POLICIES = {
    "PUSH": fcm.POLICY,
    "SMS": twilio.POLICY,
    "EMAIL": email.POLICY,
    "WEBHOOK": webhook.POLICY,
    "WHATSAPP": whatsapp.POLICY,
}
THREADS, LATENCY_S = 8, 0.005
OFTEN, SELDOM = 0.20, 0.05
AT_SELDOM = ("PUSH", "EMAIL", "WEBHOOK")
REFUSING = Behaviour(LATENCY_S, failing=OFTEN)
LOSING = Behaviour(LATENCY_S, failing=OFTEN / 2, lost=OFTEN / 2)
LOST_PLANS = "failures_lost"
MOST_DEAD, LEAST_SENT = 0.005, 0.99
LEAST_ARRIVED = 0.999
SIGMAS = 3
PATIENCE_S = 400.0

TITLE = (
    "delivery-failures: % of the notifications that end DEAD while the stand-in, which answers after"
    f" {LATENCY_S * 1e3:.0f} ms, fails at random; one worker with {THREADS} threads a channel; floor: the probability"
    " that all attempts fail; rival: % that a single attempt, or a single channel, would have lost"
)

OUTCOMES = """
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
EXPECTED_CODES = frozenset({"HTTP_503", "UNAVAILABLE", "SMTP_451", "WHATSAPP_503"})
"""Error codes of the failures that the stand-in makes on purpose. Others come from this machine."""
OTHERS = """
SELECT n.notification_type, a.outcome, a.error_code, count(*)
  FROM notification_attempts a JOIN notifications n ON n.id = a.notification_id
 WHERE a.outcome <> 'SENT' AND a.error_code <> ALL(%s) GROUP BY 1, 2, 3
"""


@dataclass(frozen=True)
class Outcomes:
    """The final states of the notifications of one type."""

    messages: int
    sent: int
    dead: int
    failed_first: int

    @property
    def dead_share(self) -> float:
        return self.dead / self.messages


@dataclass(frozen=True)
class Trial:
    """Notifications of some types that one worker sends to one stand-in, which fails with a probability."""

    database: str
    failing: float
    types: Sequence[str]


TRIALS = (Trial("failures_often", OFTEN, tuple(POLICIES)), Trial("failures_seldom", SELDOM, AT_SELDOM))


def measure(bench: Bench) -> Section:
    messages, asked = bench.size(4_000, 100), bench.size(2_000, 50)
    rows: list[Row] = []
    notes = [
        f"{messages:,} notifications a channel, all queued at the beginning, under the real retry policies: a failed"
        " push waits for 10 s, then for 30 s. Both failure rates run at the same time, each with its own worker,"
        " database and stand-in.",
    ]
    twice = 0
    with (
        keeping(lambda: Section("delivery-failures", TITLE, rows, notes)),
        bench.redis(),
        ExitStack() as stack,
    ):
        providers = [_begin(bench, stack, trial, messages) for trial in TRIALS]
        plans.request(bench, TRIALS[0].database, providers[0], asked)
        losing = _begin_losing(bench, stack, asked)
        for trial, provider in zip(TRIALS, providers, strict=True):
            outcomes = _end(bench, trial)
            rows += [_outcome(bench, trial, type_, outcomes[type_]) for type_ in trial.types]
            twice += _taken_twice(provider)
        with bench.connect(TRIALS[0].database) as conn:
            arrivals = plans.arrivals(conn, providers[0].request_logs())
        rows.append(_plans(bench, f"{OFTEN:.0%} failing", arrivals, REFUSING))
        notes.append(
            f"Notifications that a provider took twice: {twice}. Actions that arrived twice: {arrivals.twice}."
        )
        with bench.connect(LOST_PLANS) as conn:
            roles.eventually(lambda: plans.are_over(conn), PATIENCE_S, poll_s=0.5)
            lost = plans.arrivals(conn, losing.request_logs())
        rows.append(_plans(bench, f"{OFTEN / 2:.0%} failing, {OFTEN / 2:.0%} unanswered", lost, LOSING))
        notes.append(
            "Unanswered: half of these requests time out, the connections of the others are reset, and the provider"
            f" takes every other message. Actions that arrived twice there: {lost.twice}."
        )
    bench.drop(LOST_PLANS, *(trial.database for trial in TRIALS))
    return Section("delivery-failures", TITLE, rows, notes)


def _outcome(bench: Bench, trial: Trial, type_: str, outcomes: Outcomes) -> Row:
    return _often(type_, outcomes) if trial.failing == OFTEN else _seldom(bench, type_, outcomes)


def _begin(bench: Bench, stack: ExitStack, trial: Trial, messages: int) -> StandIn:
    say(f"delivery-failures: {trial.failing:.0%} of the calls to {', '.join(trial.types)}")
    bench.create(trial.database)
    provider = stack.enter_context(stand_in(bench, seed=messages))
    provider.behave(**dict.fromkeys(trial.types, Behaviour(LATENCY_S, trial.failing)))
    with bench.connect(trial.database) as conn:
        for type_ in trial.types:
            backlog.fill(conn, type_, provider.recipient(type_), messages)
    _deliver(bench, stack, trial.database, provider)
    return provider


def _begin_losing(bench: Bench, stack: ExitStack, asked: int) -> StandIn:
    say(f"delivery-failures: plans, {OFTEN / 2:.0%} of the answers lost")
    bench.create(LOST_PLANS)
    provider = stack.enter_context(stand_in(bench, seed=asked))
    provider.behave(**dict.fromkeys(plans.CHANNELS, LOSING))
    plans.request(bench, LOST_PLANS, provider, asked)
    _deliver(bench, stack, LOST_PLANS, provider)
    return provider


def _deliver(bench: Bench, stack: ExitStack, database: str, provider: StandIn) -> None:
    threads = {"NOTIFICATION_QUEUE_CONSUMER_THREADS": str(THREADS)}
    stack.enter_context(roles.role(bench, "delivery", database, **provider.settings, **threads))


def _end(bench: Bench, trial: Trial) -> dict[str, Outcomes]:
    with bench.connect(trial.database) as conn:
        roles.eventually(lambda: plans.are_over(conn) and not fetch(conn, LIVE)[0][0], PATIENCE_S, poll_s=0.5)
        for type_, outcome, code, count in fetch(conn, OTHERS, [list(EXPECTED_CODES)]):
            say(f"delivery-failures: {count} attempts of {type_} ended {outcome}, {code}, not by the stand-in")
        return {row[0]: Outcomes(*row[1:]) for row in fetch(conn, OUTCOMES)}


def _taken_twice(provider: StandIn) -> int:
    taken = [[id_ for id_, _ in request_log.accepted if id_] for request_log in provider.request_logs().values()]
    return sum(len(ids) - len(set(ids)) for ids in taken)


def _often(type_: str, outcomes: Outcomes) -> Row:
    expected = OFTEN ** (POLICIES[type_].retries + 1)
    error = SIGMAS * math.sqrt(expected * (1 - expected) / outcomes.messages)
    return Row(
        f"{type_}, {POLICIES[type_].retries} retries, {OFTEN:.0%} failing",
        outcomes.dead_share * 100,
        expected * 100,
        outcomes.failed_first / outcomes.messages * 100,
        f"{number(expected * 100)} ± {number(error * 100)}",
        abs(outcomes.dead_share - expected) <= error,
        {"dead": outcomes.dead, "messages": outcomes.messages, "sigmas": SIGMAS},
    )


def _seldom(bench: Bench, type_: str, outcomes: Outcomes) -> Row:
    met = outcomes.sent > LEAST_SENT * outcomes.messages and outcomes.dead < MOST_DEAD * outcomes.messages
    return Row(
        f"{type_}, {POLICIES[type_].retries} retries, {SELDOM:.0%} failing",
        outcomes.dead_share * 100,
        SELDOM ** (POLICIES[type_].retries + 1) * 100,
        outcomes.failed_first / outcomes.messages * 100,
        f"dead <{number(MOST_DEAD * 100)}, sent >{LEAST_SENT * 100:.0f}",
        None if bench.quick else met,
        {"dead": outcomes.dead, "sent": outcomes.sent, "messages": outcomes.messages},
    )


def _never_taken(type_: str, behaviour: Behaviour) -> float:
    """The probability that a provider takes a message at none of its attempts."""
    policy, untaken, chance = POLICIES[type_], behaviour.lost / 2, 1.0
    for _ in range(policy.retries + 1):
        chance = behaviour.failing * chance + untaken * (chance if policy.repeatable else 1.0)
    return chance


def _plans(bench: Bench, failures: str, found: Arrivals, behaviour: Behaviour) -> Row:
    """Shows the share that did not arrive, as the other rows do; only the goal is given as the share that arrived."""
    return Row(
        f"plans, {' then '.join(plans.CHANNELS)}, {failures}",
        (1 - found.arrived / found.plans) * 100,
        math.prod(_never_taken(type_, behaviour) for type_ in plans.CHANNELS) * 100,
        (1 - found.by_first_channel / found.plans) * 100,
        f"arrived ≥{LEAST_ARRIVED * 100:.1f}",
        None if bench.quick else found.arrived >= LEAST_ARRIVED * found.plans,
        {"plans": found.plans, "arrived": found.arrived, "by_first_channel": found.by_first_channel},
    )
