"""Presses and accepts over HTTP, until the answer, which comes after the commit."""

from collections.abc import Callable, Sequence
from typing import Any

from app.api.tokens import LocalTokens
from app.bootstrap.api import create_app
from benchmarks import city, roles
from benchmarks.attempts import keeping
from benchmarks.bench import SECRET, Bench, fetch, say
from benchmarks.capture import SentStatement, captured
from benchmarks.client import Answered, Tokens, all_at_once
from benchmarks.figures import number, spread
from benchmarks.pgbench import Script, play, write_script
from benchmarks.report import Row, Section

CONNECTIONS = 8
OURS, CAPTURED, PRESSED, PLAYED = "http_ours", "http_captured", "http_pressed", "http_played"
BODY = '{"note": "Ekmek ve süt"}'.encode()

TITLE = (
    f"http: {CONNECTIONS} keep-alive connections to the api role with 2 workers, ms, p50 / p99; floor: the same SQL by"
    " pgbench"
)


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
    ours: dict[str, list[Answered]] = {"press": [], "accept": []}
    floor: dict[str, list[Answered]] = {"press": [], "accept": []}
    with (
        keeping(lambda: _section(students, ours, floor)),
        bench.redis(),
        roles.api(bench, OURS) as (_, port),
    ):
        _ours(bench, port, elders[:warm])
        _floor(bench, scripts, 0, warm)
        for turn in range(rounds):
            say(f"http, round {turn + 1} of {rounds}: ours and pgbench")
            first = warm + turn * each
            round_of_ours = _ours(bench, port, elders[first : first + each])
            for name, answered in _floor(bench, scripts, first, each).items():
                floor[name].append(answered)
                ours[name].append(round_of_ours[name])
        _check_floor(bench, presses)
    bench.drop(OURS, PRESSED, PLAYED)
    return _section(students, ours, floor)


def _section(students: int, ours: dict[str, list[Answered]], floor: dict[str, list[Answered]]) -> Section:
    rows = [_row(name, ours[name], floor[name]) for name in ("press", "accept")]
    notes = [
        f"{students:,} students. The client runs on the same cores. pgbench reads the values of a request with"
        " one additional statement; it has no HTTP, tokens, JSON or Redis.",
        *(_rates(name, ours[name], floor[name]) for name in ("press", "accept")),
    ]
    return Section("http", TITLE, rows, notes)


def _row(name: str, ours: Sequence[Answered], floor: Sequence[Answered]) -> Row:
    title = {"press": "POST /tasks until the committed first offer", "accept": "PUT /tasks/{id}/accept"}[name]
    rates = {"ours_per_s": _rate(ours), "floor_per_s": _rate(floor)}
    return Row(title, spread(_all(ours)), spread(_all(floor)), facts=rates)


def _all(answered: Sequence[Answered]) -> list[float]:
    return [latency for one in answered for latency in one.latencies_ms]


def _rate(answered: Sequence[Answered]) -> float:
    return len(_all(answered)) / sum(one.elapsed_s for one in answered)


def _rates(name: str, ours: Sequence[Answered], floor: Sequence[Answered]) -> str:
    return f"{name}: {number(_rate(ours))} requests a second, pgbench {number(_rate(floor))}"


# ---- ours ----


def _ours(bench: Bench, port: int, elders: Sequence[int]) -> dict[str, Answered]:
    tokens = Tokens()
    with bench.connect(OURS) as conn:
        last = fetch(conn, "SELECT max(id) FROM offers")[0][0]
        presses = [tokens.request(elder, "POST", "/tasks", BODY) for elder in elders]
        pressed = all_at_once(port, presses, expected=201, connections=CONNECTIONS)
        offers = fetch(conn, "SELECT student_id, task_id FROM offers WHERE id > %s AND state = 'PENDING'", [last])
        if len(offers) != len(elders):
            raise AssertionError(f"{len(elders)} presses made {len(offers)} offers")
        accepts = [tokens.request(student, "PUT", f"/tasks/{task_id}/accept") for student, task_id in offers]
        accepted = all_at_once(port, accepts, expected=200, connections=CONNECTIONS)
    return {"press": pressed, "accept": accepted}


# ---- the floor ----


def _capture(bench: Bench, template: str, elders: Sequence[int], wanted: int) -> dict[str, Script]:
    """Presses are recorded on one copy of the city and replayed on another. Accepts are replayed on a copy that was
    taken after the recorded presses, because they contain ids of offers that the database gave."""
    bench.copy(template, CAPTURED)
    with bench.redis():
        presses, asked = through_the_app(bench, CAPTURED, lambda client: [press(client, elder) for elder in elders])
        bench.copy(CAPTURED, PRESSED)
        accepts, _ = through_the_app(bench, CAPTURED, lambda client: [_accept(client, *one) for one in asked])
    bench.drop(CAPTURED)
    bench.copy(template, PLAYED)
    with bench.connect(PLAYED) as played, bench.connect(PRESSED) as pressed:
        return {
            "press": write_script(bench, played, "press", presses, wanted),
            "accept": write_script(bench, pressed, "accept", accepts, wanted),
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


def _floor(bench: Bench, scripts: dict[str, Script], first: int, requests: int) -> dict[str, Answered]:
    return {
        name: play(bench, database, scripts[name], first=first, requests=requests, clients=CONNECTIONS)
        for name, database in (("press", PLAYED), ("accept", PRESSED))
    }


def _check_floor(bench: Bench, presses: int) -> None:
    """Fails if the replayed statements did not change the rows that they should."""
    with bench.connect(PLAYED) as played, bench.connect(PRESSED) as pressed:
        offers = fetch(played, "SELECT count(*) FROM notifications")[0][0]
        taken = fetch(pressed, "SELECT count(*) FROM offers WHERE state = 'ACCEPTED' AND closed_at > offered_at")[0][0]
    if offers < presses or taken < presses:
        raise AssertionError(f"pgbench made {offers} offers and accepted {taken} for {presses} presses")
