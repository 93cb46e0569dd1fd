"""The questions about lists and their people find each planted violation, and nothing where all is well. Each plant is
rolled back."""

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text

from app.api.services import Services
from app.jobs.checks.questions_of_any_moment import AT_ANY_MOMENT
from app.jobs.checks.questions_of_roster import OF_ROSTER
from app.roster.service import sync
from tests.support.lists import line, packed_students, turkish_id
from tests.support.matching import WHOLE_HISTORY, Neighbourhood

LISTS = ("enrolment", "clearance")
LEFT = "SELECT user_id FROM roster_people WHERE left_at IS NOT NULL"
QUEUE_THE_LEFT = f"""
    INSERT INTO roster_to_apply (document_type, identifier, run_id)
    SELECT document_type, identifier, 1 FROM roster_people WHERE user_id IN ({LEFT})"""

PLANTS = {
    "a gap in the positions of changes": "DELETE FROM roster_changes WHERE position = 2",
    "a change that belongs to no run": """
        UPDATE roster_changes SET changed_at = (SELECT min(changed_at) FROM sync_metadata) WHERE position = 3""",
    "a run that does not go on from the one before": """
        DELETE FROM sync_metadata WHERE changed_at = (SELECT min(changed_at) FROM sync_metadata WHERE removed > 0)""",
    "a list that is not as its last run left it": f"DELETE FROM roster_rows WHERE identifier = '{turkish_id(19)}'",
    "an archive of a position that no run has reached": "UPDATE roster_states SET archive_position = 1000",
    "a person who neither follows the list nor waits to follow it": "UPDATE roster_people SET left_at = NULL",
    "a person who left the list and is active": f"UPDATE users SET active = true WHERE id IN ({LEFT})",
    "an open task of a person who is not active": "UPDATE users SET active = false WHERE role = 'ELDER'",
}


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, Any]:
    sources = json.dumps({"students": {name: str(tmp_path / f"{name}.zip") for name in LISTS}})
    return {"roster_dir": str(tmp_path / "roster"), "roster_sources": sources, "roster_removed_floor": 1000}


def take_list(services: Services, folder: Path, numbers: range) -> None:
    for name in LISTS:
        packed_students(folder / f"{name}.zip", [line(number) for number in numbers])
    sync(services.db, services.matching, services.settings, (), dry_run=False, step=lambda *_: None)


@pytest.fixture
def listed(services: Services, town: Neighbourhood, tmp_path: Path) -> Neighbourhood:
    """Three runs, by which Ali and nine others left."""
    for first in (0, 5, 10):
        take_list(services, tmp_path, range(first, first + 20))
    town.student(100)
    town.press(town.elder())
    return town


def found(conn: Connection) -> set[str]:
    questions = (*OF_ROSTER, *AT_ANY_MOMENT)
    return {one.name for one in questions if conn.execute(text(one.sql), WHOLE_HISTORY.values).first()}


def test_each_planted_violation_is_found(listed: Neighbourhood) -> None:
    assert PLANTS.keys() == {question.name for question in OF_ROSTER}
    for promise, plant in PLANTS.items():
        with listed.db.transaction() as conn:
            assert found(conn) == set()
            conn.execute(text(plant))
            assert promise in found(conn)
            conn.get_transaction().rollback()


def test_a_person_who_waits_in_the_queue_has_not_followed_yet(listed: Neighbourhood) -> None:
    """Such as after a run that was killed when it had deactivated them."""
    with listed.db.transaction() as conn:
        conn.execute(text(f"UPDATE offers SET student_id = (SELECT min(user_id) FROM ({LEFT}) people)"))
        assert "a live offer to a student who cannot take it" in found(conn)
        conn.execute(text(QUEUE_THE_LEFT))
        assert "a live offer to a student who cannot take it" not in found(conn)
        conn.get_transaction().rollback()


def test_an_administrator_may_activate_somebody_who_is_on_no_list(services: Services, listed: Neighbourhood) -> None:
    with listed.db.transaction() as conn:
        user_id = conn.execute(text(LEFT)).scalars().first()
    services.matching.set_active(user_id, True)
    with listed.db.transaction() as conn:
        assert found(conn) == set()
