"""Presses and accepts over HTTP, until the answer, which comes after the commit."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.api.tokens import LocalTokens
from app.bootstrap.api import create_app
from benchmarks import city, least_sql, roles
from benchmarks.attempts import keeping
from benchmarks.bench import SECRET, Bench, fetch, run, say
from benchmarks.capture import SentStatement, captured
from benchmarks.client import Answered, Tokens, all_at_once
from benchmarks.figures import spread_of_rounds
from benchmarks.pgbench import Script, play, write_script
from benchmarks.report import Row, Section

CONNECTIONS = 8
OURS, CAPTURED, PRESSED, PLAYED = "http_ours", "http_captured", "http_pressed", "http_played"
LEAST_PRESSED, LEAST_ACCEPTED, RIVAL = "http_least_pressed", "http_least_accepted", "http_rival"
MOST_TIMES, LEAST_SHARE = 1.6, 0.55
"""Of the least SQL: how much longer ours may take, and which share of its rate it must have."""
BODY = '{"note": "Ekmek ve süt"}'.encode()

TITLE = (
    f"http: {CONNECTIONS} keep-alive connections to the api role with 2 workers, ms, p50 / p99; floor: the same SQL by"
    " pgbench, or where the row says so the least SQL that keeps every promise; rival: the least SQL behind a bare"
    " Flask route in the same server"
)


@dataclass(frozen=True)
class Scripts:
    """Of one deed."""

    recorded: Script
    least: Script
    least_costs: least_sql.Costs

    @property
    def recorded_trips(self) -> int:
        return len(self.recorded.statements)


@dataclass(frozen=True)
class Rounds:
    """Of one deed; only whole rounds."""

    ours: list[Answered] = field(default_factory=list[Answered])
    recorded: list[Answered] = field(default_factory=list[Answered])
    least: list[Answered] = field(default_factory=list[Answered])
    rival: list[Answered] = field(default_factory=list[Answered])

    def add(self, ours: Answered, rival: Answered, recorded: Answered, least: Answered) -> None:
        self.ours.append(ours)
        self.rival.append(rival)
        self.recorded.append(recorded)
        self.least.append(least)


Found = dict[str, Rounds]


def measure(bench: Bench) -> Section:
    students = bench.size(1_000_000, 10_000)
    each, rounds, warm = bench.size(1_000, 40), bench.size(3, 1), bench.size(200, 40)
    template = f"city_{students}"
    built = city.find_or_build(bench, template, students)
    presses = warm + rounds * each
    say(f"recording the SQL of {presses:,} presses and accepts")
    with bench.connect(template) as conn:
        elders = [home.elder_id for home in city.homes(conn, built, presses + presses // 10)]
    scripts = _capture(bench, template, elders, presses)
    bench.copy(template, OURS)
    bench.copy(LEAST_PRESSED, RIVAL)
    with bench.connect(RIVAL) as conn:
        run(conn, "CREATE INDEX ON least_press_values (elder_id)")
    before = {database: least_sql.counts(bench, database) for database in (OURS, LEAST_PRESSED, LEAST_ACCEPTED)}
    found: Found = {name: Rounds() for name in scripts}
    with (
        keeping(lambda: _section(bench, students, scripts, found)),
        bench.redis(),
        roles.api(bench, OURS) as (_, ours),
        roles.bare_presses(bench, RIVAL) as (_, rival),
    ):
        _over_http(bench, OURS, ours, elders[:warm])
        _over_http(bench, RIVAL, rival, elders[:warm])
        _floor(bench, scripts, 0, warm)
        for turn in range(rounds):
            say(f"http, round {turn + 1} of {rounds}: ours, rival and pgbench")
            first = warm + turn * each
            pressing = elders[first : first + each]
            answered = _over_http(bench, OURS, ours, pressing)
            beside = _over_http(bench, RIVAL, rival, pressing)
            for name, played in _floor(bench, scripts, first, each).items():
                found[name].add(answered[name], beside[name], *played)
        _check_floor(bench, presses)
        added = {database: least_sql.added(was, least_sql.counts(bench, database)) for database, was in before.items()}
        least_sql.check(bench, added[OURS], added[LEAST_PRESSED], added[LEAST_ACCEPTED])
    bench.drop(OURS, PRESSED, PLAYED, LEAST_PRESSED, LEAST_ACCEPTED, RIVAL)
    return _section(bench, students, scripts, found)


def _section(bench: Bench, students: int, scripts: dict[str, Scripts], found: Found) -> Section:
    rows = [row for name in scripts for row in _rows(bench, name, scripts[name], found[name])]
    notes = [
        f"{students:,} students. The client runs on the same cores. pgbench reads the values of a request with"
        " one additional statement; it has no HTTP, tokens, JSON or Redis.",
        "The least SQL is written by hand and keeps every promise; a check compares the rows that it wrote with those"
        " of ours. The recorded SQL is what the application sends. The rival runs the least SQL by psycopg. It checks"
        " no signature, validates nothing, and neither counts nor logs nor tells Redis.",
        *(_trips(name, one) for name, one in scripts.items()),
    ]
    return Section("http", TITLE, rows, notes)


def _rows(bench: Bench, name: str, scripts: Scripts, rounds: Rounds) -> list[Row]:
    """The recorded SQL is what can be saved around the statements, the least SQL what can be saved at all."""
    title = {"press": "POST /tasks until the committed first offer", "accept": "PUT /tasks/{id}/accept"}[name]
    all_rounds = (rounds.ours, rounds.recorded, rounds.least, rounds.rival)
    ours, recorded, least, rival = (spread_of_rounds([one.latencies_ms for one in who]) for who in all_rounds)
    rates = [[_rate(one) for one in who] for who in all_rounds]
    ours_per_s, recorded_per_s, least_per_s, rival_per_s = (_rate(*who) for who in all_rounds)
    facts = {"round_trips": {"recorded": scripts.recorded_trips, "least": scripts.least_costs.round_trips}}
    near, fast = ours.p50 <= MOST_TIMES * least.p50, ours_per_s >= LEAST_SHARE * least_per_s
    return [
        Row(title, ours, recorded, facts=facts),
        Row(
            f"{title}; floor: the least SQL",
            ours,
            least,
            rival,
            goal=f"p50 ≤{MOST_TIMES}x floor",
            met=None if bench.quick else near,
            facts=facts,
        ),
        Row(
            f"{name}, a second",
            ours_per_s,
            recorded_per_s,
            facts={"ours_per_s": rates[0], "floor_per_s": rates[1]},
            more_is_better=True,
        ),
        Row(
            f"{name}, a second; floor: the least SQL",
            ours_per_s,
            least_per_s,
            rival_per_s,
            goal=f"≥{LEAST_SHARE:.0%} of floor",
            met=None if bench.quick else fast,
            facts={"ours_per_s": rates[0], "floor_per_s": rates[2], "rival_per_s": rates[3]},
            more_is_better=True,
        ),
    ]


def _rate(*answered: Answered) -> float:
    return sum(len(one.latencies_ms) for one in answered) / sum(one.elapsed_s for one in answered)


def _trips(name: str, scripts: Scripts) -> str:
    least = scripts.least_costs
    return (
        f"{name}: the recorded SQL is {scripts.recorded_trips} statements with BEGIN and COMMIT, each a round trip; the"
        f" least SQL is {least.statements} in {least.round_trips} round trips."
    )


# ---- ours, and the rival ----


def _over_http(bench: Bench, database: str, port: int, elders: Sequence[int]) -> dict[str, Answered]:
    tokens = Tokens()
    with bench.connect(database) as conn:
        last = fetch(conn, "SELECT max(id) FROM offers")[0][0]
        presses = [tokens.request(elder, "POST", "/tasks", BODY) for elder in elders]
        pressed = all_at_once(port, presses, expected=201, connections=CONNECTIONS)
        offers = fetch(conn, "SELECT student_id, task_id FROM offers WHERE id > %s AND state = 'PENDING'", [last])
        least_offered = 1.0 if database == OURS else least_sql.least_offered(bench)
        if len(offers) < least_offered * len(elders):
            raise AssertionError(f"{len(elders)} presses made {len(offers)} offers")
        accepts = [tokens.request(student, "PUT", f"/tasks/{task_id}/accept") for student, task_id in offers]
        accepted = all_at_once(port, accepts, expected=200, connections=CONNECTIONS)
        held = fetch(conn, "SELECT count(*) FROM offers WHERE id > %s AND state = 'ACCEPTED'", [last])[0][0]
        if held != len(offers):
            raise AssertionError(f"{len(offers)} accepts gave {held} tasks")
    return {"press": pressed, "accept": accepted}


# ---- the floor ----


def _capture(bench: Bench, template: str, elders: Sequence[int], wanted: int) -> dict[str, Scripts]:
    """Presses are recorded on one copy of the city and replayed on another. Accepts are replayed on a copy that was
    taken after the recorded presses, because they contain ids of offers that the database gave."""
    bench.copy(template, CAPTURED)
    with bench.redis():
        presses, asked = through_the_app(bench, CAPTURED, lambda client: [press(client, elder) for elder in elders])
        bench.copy(CAPTURED, PRESSED)
        bench.copy(CAPTURED, LEAST_ACCEPTED)
        accepts, _ = through_the_app(bench, CAPTURED, lambda client: [_accept(client, *one) for one in asked])
    bench.drop(CAPTURED)
    bench.copy(template, PLAYED)
    bench.copy(template, LEAST_PRESSED)
    with (
        bench.connect(PLAYED) as played,
        bench.connect(PRESSED) as pressed,
        bench.connect(LEAST_PRESSED) as least_pressed,
        bench.connect(LEAST_ACCEPTED) as least_accepted,
    ):
        return {
            "press": Scripts(
                write_script(bench, played, "press", presses, wanted),
                least_sql.write_press(bench, least_pressed, elders[:wanted]),
                least_sql.costs(least_sql.PRESS),
            ),
            "accept": Scripts(
                write_script(bench, pressed, "accept", accepts, wanted),
                least_sql.write_accept(bench, least_accepted, asked[:wanted]),
                least_sql.costs(least_sql.ACCEPT),
            ),
        }


def through_the_app(
    bench: Bench, database: str, act: Callable[[Any], list[list[SentStatement]]]
) -> tuple[list[list[SentStatement]], list[tuple[int, str]]]:
    with bench.services(database, offer_ttl_s=36_000) as services:
        app = create_app(services)
        sent = act(app.test_client())
        app.extensions["site"].close()
    with bench.connect(database) as conn:
        latest = "SELECT student_id, task_id::text FROM offers WHERE state = 'PENDING' ORDER BY id DESC LIMIT %s"
        asked = fetch(conn, latest, [len(sent)])
    return sent, [(student, task_id) for student, task_id in reversed(asked)]


def press(client: Any, elder: int) -> list[SentStatement]:
    with captured() as sent:
        answer = client.post("/tasks", data=BODY, content_type="application/json", headers=_authorization(elder))
    assert answer.status_code == 201, answer.text
    return sent


def _accept(client: Any, student: int, task_id: str) -> list[SentStatement]:
    with captured() as sent:
        answer = client.put(f"/tasks/{task_id}/accept", headers=_authorization(student))
    assert answer.status_code == 200, answer.text
    return sent


def _authorization(user_id: int) -> dict[str, str]:
    return {"Authorization": f"Bearer {LocalTokens(SECRET).issue(user_id)}"}


def _floor(
    bench: Bench, scripts: dict[str, Scripts], first: int, requests: int
) -> dict[str, tuple[Answered, Answered]]:
    """The recorded SQL and the least."""

    def played(database: str, script: Script) -> Answered:
        return play(bench, database, script, first=first, requests=requests, clients=CONNECTIONS)

    press, accept = scripts["press"], scripts["accept"]
    return {
        "press": (played(PLAYED, press.recorded), played(LEAST_PRESSED, press.least)),
        "accept": (played(PRESSED, accept.recorded), played(LEAST_ACCEPTED, accept.least)),
    }


def _check_floor(bench: Bench, presses: int) -> None:
    """Fails if the replayed statements did not change the rows that they should."""
    with bench.connect(PLAYED) as played, bench.connect(PRESSED) as pressed:
        offers = fetch(played, "SELECT count(*) FROM notifications")[0][0]
        taken = fetch(pressed, "SELECT count(*) FROM offers WHERE state = 'ACCEPTED' AND closed_at > offered_at")[0][0]
    if offers < presses or taken < presses:
        raise AssertionError(f"pgbench made {offers} offers and accepted {taken} for {presses} presses")
