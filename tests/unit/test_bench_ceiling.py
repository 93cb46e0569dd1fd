"""The pure parts of `scripts/bench ceiling`, and of the flame graph that it draws."""

from collections import Counter
from xml.etree import ElementTree

import pytest
from benchmarks import bare_presses, flame, flame_graph, least_sql
from benchmarks.bench import Bench
from benchmarks.ceiling_costs import CostFigures, PressCosts
from benchmarks.ceiling_report import Growth, GrowthRound, section
from benchmarks.cores import placements
from benchmarks.overload import Level
from benchmarks.press_costs import Written
from benchmarks.processor_time import (
    API,
    BACKENDS,
    OTHERS,
    ROLES,
    STRANGERS,
    ProcessorReading,
    Spent,
    Time,
    between,
    is_of_the_server,
)
from benchmarks.wait_events import shares
from benchmarks.wire import CountedTrips, Turns

from tests.support.pages import ROOT

BENCH = Bench("", "", "", quick=True)


def reading(reaped_s: float = 0.0, machine_s: float = 0.0, **by_role: dict[int, Time]) -> ProcessorReading:
    named = {API: by_role.get("api", {}), BACKENDS: by_role.get("backends", {})}
    return ProcessorReading({role: named.get(role, {}) for role in ROLES}, Time(reaped_s), Time(machine_s))


def test_client_has_the_last_core_alone_and_then_shares_all() -> None:
    apart, together = placements([0, 1, 2])
    assert (apart.client, apart.service) == ({2}, {0, 1})
    assert (together.client, together.service) == ({0, 1, 2}, {0, 1, 2})
    assert [one.name for one in placements([3])] == [together.name]


def test_process_that_started_meanwhile_counts_from_its_start() -> None:
    found = between(reading(api={1: Time(5.0, 1.0)}), reading(api={1: Time(5.5, 1.5), 2: Time(0.25)}))
    assert found[API] == Time(0.75, 0.5)


def test_backend_that_ended_counts_what_it_used_since_the_first_reading() -> None:
    before, after = reading(1.0, backends={7: Time(2.0)}), reading(3.5, backends={8: Time(0.25)})
    assert between(before, after)[BACKENDS].used_s == pytest.approx(0.25 + 3.5 - 1.0 - 2.0)


def test_other_work_is_what_the_machine_did_beside_the_roles() -> None:
    before, after = reading(1.0, machine_s=10.0, api={1: Time(1.0)}), reading(1.5, machine_s=14.0, api={1: Time(3.0)})
    assert between(before, after)[STRANGERS].used_s == pytest.approx(4.0 - 2.0 - 0.5)


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("postgres: checkpointer ", True),
        ("postgres: autovacuum worker ceiling_ours", True),
        ("postgres: bench ceiling_ours 127.0.0.1(42) COMMIT", False),
    ],
)
def test_backends_are_told_from_the_other_processes_of_postgresql(title: str, expected: bool) -> None:
    assert is_of_the_server(title) is expected


def test_shares_of_waits_leave_out_idle_backends_and_add_up_the_rare() -> None:
    found = Counter({"idle": 900, "IO:WALSync": 75, "Lock:object": 24, "LWLock:WALWrite": 1})
    assert shares(found, least=0.02) == [("IO:WALSync", 0.75), ("Lock:object", 0.24), ("other", pytest.approx(0.01))]


def test_messages_that_wait_for_no_answer_are_one_round_trip() -> None:
    counted = CountedTrips(port=0)
    turns = Turns(counted)
    for turn in (turns.asks, turns.asks, turns.answers, turns.answers, turns.asks, turns.answers):
        turn()
    assert counted.round_trips == 2


def test_script_of_pgbench_becomes_statements_of_psycopg() -> None:
    script = """
BEGIN;

-- No :variable in here.
SELECT a % 2 AS b, ':c'::text FROM t WHERE id = :id::bigint \\gset

\\startpipeline

UPDATE t SET a = :b;

COMMIT;

\\endpipeline
"""
    assert bare_presses.for_psycopg(script) == [
        "SELECT a %% 2 AS b, '%(c)s'::text FROM t WHERE id = %(id)s::bigint",
        "UPDATE t SET a = %(b)s",
    ]


def test_rival_sends_every_statement_of_the_least_press_but_those_of_the_transaction() -> None:
    statements = least_sql.costs(least_sql.press_script()).statements
    assert len(bare_presses.for_psycopg(least_sql.press_script())) == statements - 2


# ---- the report ----


def point(accepted: int, floor_per_s: float) -> GrowthRound:
    return GrowthRound(Level([5.0] * accepted, in_time=accepted, took_s=1.0), floor_per_s, 300.0)


def test_row_of_a_number_of_processes_is_that_of_the_best_number_of_connections() -> None:
    growth = Growth()
    for connections, accepted in ((8, 100), (16, 180), (8, 140), (16, 160)):
        growth.add(connections, point(accepted, 10.0 * connections))
    made = section(BENCH, {("apart", 2): growth}, CostFigures())
    assert [(row.ours, row.floor, row.rival) for row in made.rows] == [(170.0, 160.0, 300.0)]
    assert made.rows[0].facts["ours_per_s"] == [180.0, 160.0]
    assert any("8: 120" in note and "16: 170" in note for note in made.notes)


def test_costs_are_those_of_one_press() -> None:
    time = {role: Time(used_s=0.5 if role == API else 0.1) for role in (*ROLES, STRANGERS)}
    costs = PressCosts(100, Spent(2.0, time), Written(400_000, 100_000, 100, {"get": 200}))
    made = section(BENCH, {}, CostFigures(ours=costs, floor=costs))
    figures = {row.name: (row.ours, row.floor) for row in made.rows}
    assert figures[f"processor time of a press, ms: {API}"] == (5.0, None)
    assert figures[f"processor time of a press, ms: {OTHERS}"] == (1.0, None)
    assert figures[f"processor time of a press, ms: {BACKENDS}"] == (1.0, 1.0)
    assert figures["WAL of a press without page images, KB"] == (4.0, 4.0)
    assert figures["page images in it, KB"] == (1.0, None)
    assert any("The service used 0.40 cores" in note for note in made.notes)
    assert any("get 2.00" in note for note in made.notes)


# ---- the flame graph ----

RECORDED = f"""  File "/somewhere/cut.py", line 1 in cut
Stack (most recent call first):
  File "{ROOT}/app/matching/deeds.py", line 9 in press
  File "/home/me/.pyenv/versions/3.11.7/lib/python3.11/threading.py", line 982 in run
  File "/home/me/.pyenv/versions/3.11.7/lib/python3.11/threading.py", line 1002 in _bootstrap
Stack (most recent call first):
  File "{ROOT}/.venv/lib/python3.11/site-packages/uvicorn/protocols/http.py", line 3 in data_received
  File "/usr/lib/python3.11/asyncio/events.py", line 80 in _run
  File "/usr/lib/python3.11/asyncio/base_events.py", line 1922 in _run_once
  File "{ROOT}/app/__main__.py", line 45 in <module>
"""


def test_samples_have_no_paths_of_the_machine_and_no_starts_of_threads() -> None:
    assert flame.parse(RECORDED) == {
        ("threads", "press (app/matching/deeds.py)"): 1,
        ("event loop", "_run (asyncio/events.py)", "data_received (uvicorn/protocols/http.py)"): 1,
    }


def test_callees_are_inside_of_their_caller_and_narrow_ones_are_left_out() -> None:
    found = flame_graph.boxes(Counter({("a", "b"): 600, ("a", "c"): 300, ("d",): 99, ("a", "e"): 1}))
    assert {(box.name, box.depth, box.left, box.share) for box in found} == {
        ("a", 0, 0.0, 0.901),
        ("b", 1, 0.0, 0.6),
        ("c", 1, 0.6, 0.3),
        ("d", 0, 0.901, 0.099),
    }


def test_flame_graph_is_an_svg_that_tells_the_shares_of_the_innermost_functions() -> None:
    ours, theirs = ("threads", "<module> (app/a.py)"), ("threads", "<module> (app/a.py)", "wait (psycopg/waiting.py)")
    drawn = flame_graph.svg("A & B", Counter({ours: 1, theirs: 3}))
    texts = [text.text for text in ElementTree.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")]
    assert {"A & B", "ours 25%", "threads", "<module> (app/a.py)", "wait (psycopg/waiting.py)"} <= set(texts)
