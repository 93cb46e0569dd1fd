"""The tasks of a person, and how they are forgotten. A task and its offers stay as counts."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Connection, text

from app.matching.old_tasks import rough_place
from app.matching.rules.states import is_open

FORGOTTEN_GEOHASH_LENGTH = 5
"""At most 4.9 km on a side: in a village, a smaller cell may hold only one elder."""


@dataclass(frozen=True)
class TasksOfPerson:
    requested: tuple[UUID, ...]
    """The tasks of an elder."""
    asked_for: tuple[UUID, ...]
    """The tasks for which a student was asked."""


_TASKS = text(
    """
    SELECT array(SELECT id FROM tasks WHERE elder_id = :id) AS requested,
           array(SELECT task_id FROM offers WHERE student_id = :id) AS asked_for
    """
)
_ROUGH = rough_place("location", FORGOTTEN_GEOHASH_LENGTH)
_FORGET_TASKS = text(
    f"""
    WITH held AS (
        SELECT id FROM tasks WHERE id = ANY(:ids) AND NOT ({is_open()})
           AND (note IS NOT NULL OR idempotency_key IS NOT NULL
                OR NOT ST_Equals(location::geometry, {_ROUGH}::geometry))
         ORDER BY id FOR NO KEY UPDATE
    )
    UPDATE tasks SET note = NULL, idempotency_key = NULL, location = {_ROUGH}, area = NULL
      FROM held WHERE tasks.id = held.id
    """
)
# Distances tell where a student was, and together where an elder is.
_FORGET_DISTANCES = text(
    """
    UPDATE offers SET distance_m = NULL
     WHERE distance_m IS NOT NULL AND (task_id = ANY(:ids) OR student_id = :student_id)
       AND task_id IN (SELECT id FROM tasks WHERE ended_at IS NOT NULL)
    """
)


_FORGET_OUTCOME_NOTES = text("UPDATE task_outcomes SET note = NULL WHERE task_id = ANY(:ids) AND note IS NOT NULL")
_FORGET_IN_NOTES = """
    UPDATE {table} SET note = regexp_replace(note, :words, :substitute, 'g')
     WHERE note ~ :words
"""


def tasks_of_person(conn: Connection, user_id: int) -> TasksOfPerson:
    row = conn.execute(_TASKS, {"id": user_id}).one()
    return TasksOfPerson(tuple(row.requested), tuple(row.asked_for))


def forget_tasks(conn: Connection, requested: Sequence[UUID], user_id: int) -> dict[str, int]:
    """The notes and exact places of tasks that have ended, and the distances to them. Returns the number of rows by
    table."""
    values = {"ids": list(requested), "student_id": user_id}
    return {
        "tasks": conn.execute(_FORGET_TASKS, values).rowcount,
        "offers": conn.execute(_FORGET_DISTANCES, values).rowcount,
        "task_outcomes": conn.execute(_FORGET_OUTCOME_NOTES, values).rowcount,
    }


def forget_in_notes(conn: Connection, words: Sequence[str], substitute: str) -> dict[str, int]:
    """Takes the words out of the notes of others, such as "The neighbour Ayşe Yılmaz has a key"."""
    if not words:
        return {}
    pattern = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    values = {"words": pattern, "substitute": substitute}
    tables = ("tasks", "task_outcomes")
    changed = [conn.execute(text(_FORGET_IN_NOTES.format(table=table)), values).rowcount for table in tables]
    return {"notes_of_others": sum(changed)}
