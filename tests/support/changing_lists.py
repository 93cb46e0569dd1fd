"""Two lists of the same twenty students, of whom one leaves and one comes with each publication."""

import json
from pathlib import Path
from typing import Any

from sqlalchemy import text

from app.api.services import Services
from app.roster.contract import RunStatus
from app.users.models import Caller, Role
from tests.support import mishaps
from tests.support.lists import line, packed_students, turkish_id
from tests.support.matching import eventually

WHAT = ("sync_roster", Caller(0, Role.ADMIN, "", "tr", None), None, "")
STUDENTS = 20
NAMES = ("enrolment", "clearance")


class ChangingLists:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.publication = 0
        self._write()

    @property
    def environ(self) -> dict[str, Any]:
        sources = json.dumps({"students": {name: str(self._path(name)) for name in NAMES}})
        roster_dir = str(self._folder / "roster")
        return {"roster_dir": roster_dir, "roster_sources": sources, "roster_removed_floor": 1000}

    def publish_next(self) -> None:
        self.publication += 1
        self._write()

    def _write(self) -> None:
        numbers = range(self.publication, self.publication + STUDENTS)
        for name in NAMES:
            packed_students(self._path(name), [line(number) for number in numbers])

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.zip"

    def take(self, services: Services) -> None:
        """Runs without a fault, and checks that everything follows the last publication."""
        # PostgreSQL notices a killed run a moment late. Until then another one leaves at once.
        eventually(lambda: mishaps.sync_roster(services).status is RunStatus.SUCCEEDED, "a run takes the lists")
        self._check_rows(services, self.publication)
        with services.db.reading() as conn:
            active = conn.execute(
                text("SELECT identifier FROM roster_people p JOIN users u ON u.id = user_id AND active")
            )
            assert set(active.scalars()) == self._people(self.publication)
            assert conn.execute(text("SELECT count(*) FROM roster_to_apply")).scalar_one() == 0

    def check_whole_or_never_was(self, services: Services) -> None:
        """After an interrupted run: the rows and changes are those of the last publication, or of the one before."""
        with services.db.reading() as conn:
            changes = conn.execute(text("SELECT count(*) FROM roster_changes")).scalar_one()
        assert changes in (2 * self.publication - 2, 2 * self.publication), "one is added, and one removed"
        self._check_rows(services, changes // 2)

    def _check_rows(self, services: Services, publication: int) -> None:
        with services.db.reading() as conn:
            rows = set(conn.execute(text("SELECT identifier FROM roster_rows")).scalars())
            positions = conn.execute(text("SELECT position FROM roster_changes ORDER BY position")).scalars().all()
        assert rows == self._people(publication)
        assert positions == list(range(1, 2 * publication + 1))

    @staticmethod
    def _people(publication: int) -> set[str]:
        return {turkish_id(number) for number in range(publication, publication + STUDENTS)}
