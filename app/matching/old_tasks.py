"""What retention forgets of tasks that have ended: notes and exact places. The rows stay, because they are the counts.

Tasks are examined in the order of their last change, which for a task that has ended is its end. Forgetting does not
change `updated_at`, the version of the row, so a task is forgotten at the same place in the order, and only once.
"""

from dataclasses import replace

from app.db.bites import KeyType, Sweep
from app.matching.rules.map_cells import DISTANCE_STEP_M
from app.matching.rules.states import is_open

GEOHASH_LENGTH = 6
"""The exact place becomes the middle of its geohash cell, at most 1.2 km by 0.6 km, so that geohashes up to this length
stay the same. `fairness_report` counts by them."""

_ENDED = Sweep(
    table="tasks",
    key=KeyType.TIME,
    order="updated_at",
    examined="t.updated_at < :cutoff",
    chosen=f"NOT ({is_open('t.status')})",
    since="t.ended_at",
)


def rough_place(column: str, length: int = GEOHASH_LENGTH) -> str:
    """The middle of the geohash cell of a place."""
    return f"ST_SetSRID(ST_PointFromGeoHash(ST_GeoHash({column}::geometry, {length})), 4326)::geography"


OLD_NOTES = replace(
    _ENDED,
    chosen=f"{_ENDED.chosen} AND (t.note IS NOT NULL OR t.idempotency_key IS NOT NULL)",
    sets="note = NULL, idempotency_key = NULL",
    mark="notes",
)
# What a coordinator wrote of a task that nobody took. A note that is written later begins its time anew.
OLD_OUTCOME_NOTES = Sweep(
    table="task_outcomes",
    key=KeyType.TIME,
    order="said_at",
    identity="task_id",
    examined="t.said_at < :cutoff",
    chosen="t.note IS NOT NULL",
    sets="note = NULL",
    since="t.said_at",
    mark="outcome_notes",
)
OLD_PLACES = replace(
    _ENDED,
    sets=f"location = {rough_place('t.location')}, area = NULL",
    mark="places",
)
# Exact distances of several students would let the place be computed, so they are rounded up, as apps show them.
# Whoever changes an offer has locked its task, and nobody does after the end of the task.
OLD_DISTANCES = replace(
    _ENDED,
    another="offers o",
    linked="o.task_id = t.id",
    sets=f"distance_m = ceil(o.distance_m / {DISTANCE_STEP_M}) * {DISTANCE_STEP_M}",
    mark="distances",
)
# Nobody is looking for a student who is not active.
OLD_LOCATIONS = Sweep(
    table="students",
    key=KeyType.BIGINT,
    chosen="NOT t.active AND (t.location IS NOT NULL OR t.next_location IS NOT NULL) AND t.location_at < :cutoff",
    sets="location = NULL, location_at = NULL, next_location = NULL, next_location_from = NULL",
    since="t.location_at",
)

OLD_TASKS = {"notes": (OLD_NOTES, OLD_OUTCOME_NOTES), "places": (OLD_DISTANCES, OLD_PLACES, OLD_LOCATIONS)}
"""By kind."""
