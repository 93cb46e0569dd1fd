"""What events cost PostgreSQL: the processor time of a backend for the rows of a press, with and without triggers."""

from pathlib import Path

from benchmarks.bench import Connection, fetch, run
from benchmarks.city import City
from benchmarks.figures import number

TRIGGERS = {"tasks": ("note_new_task", "note_task_event"), "offers": ("note_new_offer", "note_ended_offer")}
PRESS = """
WITH task AS (
    INSERT INTO tasks (id, status, elder_id, location, created_at, updated_at, search_until, next_step_at, listed)
    SELECT gen_random_uuid(), 'PENDING', id, home, now(), now(), now() + interval '1 hour', now(), 3
      FROM users WHERE id = %s
    RETURNING id)
SELECT id FROM task"""
OFFER = """
INSERT INTO offers (task_id, student_id, state, rank, distance_m, offered_at, deadline)
VALUES (%s, %s, 'PENDING', 1, 0, now(), now() + interval '10 minutes')"""
FREE_STUDENTS = """
SELECT id FROM students s WHERE open_task_id IS NULL
   AND NOT EXISTS (SELECT FROM offers o WHERE o.student_id = s.id) ORDER BY id LIMIT %s"""
BATCH = "UPDATE students SET on_duty = NOT on_duty WHERE id = ANY(%s)"


def costs(conn: Connection, city: City, presses: int) -> list[str]:
    """Leaves nothing behind. With and without triggers in turns."""
    pid = fetch(conn, "SELECT pg_backend_pid()")[0][0]
    elders = list(city.free_elders)[:presses]
    students = [row[0] for row in fetch(conn, FREE_STUDENTS, [presses])]
    spent: dict[tuple[str, bool], list[float]] = {}
    for turn in range(4):
        for armed in (True, False) if turn % 2 else (False, True):
            run(conn, "BEGIN")
            _arm(conn, armed)
            spent.setdefault(("press", armed), []).append(_press_all(conn, pid, elders, students))
            began = _processor_us(pid)
            run(conn, BATCH, [students])
            spent.setdefault(("batch", armed), []).append((_processor_us(pid) - began) / len(students))
            if armed:
                began = _processor_us(pid)
                fetch(conn, "SELECT moved FROM sequence_events(%s)", [10 * presses])
                spent.setdefault(("moved", True), []).append((_processor_us(pid) - began) / (3 * len(elders)))
            run(conn, "ROLLBACK")
    pressed, without = min(spent["press", True]), min(spent["press", False])
    batch, batch_without = min(spent["batch", True]), min(spent["batch", False])
    return [
        f"processor time of a backend, the least of 4 rounds of {len(elders)}: the task and the offer of a press"
        f" {number(pressed)} µs with triggers and {number(without)} µs without, so {number(pressed - without)} µs for"
        f" two drafts; a change of duty in one statement for {len(students)}: {number(batch - batch_without)} µs for a"
        f" draft; giving a position to a draft, many at once: {number(min(spent['moved', True]))} µs",
    ]


def _arm(conn: Connection, armed: bool) -> None:
    if not armed:
        for table, names in (TRIGGERS | {"students": ("note_duty",)}).items():
            for name in names:
                run(conn, f"ALTER TABLE {table} DISABLE TRIGGER {name}")


def _press_all(conn: Connection, pid: int, elders: list[int], students: list[int]) -> float:
    began = _processor_us(pid)
    for elder, student in zip(elders, students, strict=False):
        [[task_id]] = fetch(conn, PRESS, [elder])
        run(conn, OFFER, [task_id, student])
    return (_processor_us(pid) - began) / len(elders)


def _processor_us(pid: int) -> float:
    """PostgreSQL runs on this machine."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e3
