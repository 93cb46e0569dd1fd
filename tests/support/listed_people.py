"""Lists of people, published as a run does it: the rows and the queue in one transaction."""

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, text

from app.api.services import Services
from app.roster.contract import PeopleReport
from app.roster.kinds import elder_list, student_list
from app.roster.kinds.kind import Kind
from app.roster.service import apply_people
from app.users.models import LatLon

STUDENTS, ELDERS = student_list.KIND, elder_list.KIND
Rows = Mapping[str, Mapping[str, Any] | None]

_PUT = """
INSERT INTO roster_rows (document_type, identifier, content_hash, fields, aliases)
VALUES (:document_type, :identifier, gen_random_uuid(), CAST(:fields AS jsonb), CAST(:aliases AS jsonb))
ON CONFLICT (document_type, identifier) DO UPDATE SET fields = excluded.fields, aliases = excluded.aliases"""
_DROP = "DELETE FROM roster_rows WHERE document_type = :document_type AND identifier = :identifier"
_QUEUE = """
INSERT INTO roster_to_apply (document_type, identifier, run_id) VALUES (:document_type, :identifier, :run_id)
ON CONFLICT (document_type, identifier) DO UPDATE SET run_id = excluded.run_id"""


def row(
    name: str = "Ayşe Yılmaz",
    phone: str | None = "+905550000001",
    *,
    locale: str | None = None,
    home: LatLon | None = None,
    institutions: tuple[str, ...] = ("34",),
) -> dict[str, Any]:
    place = None if home is None else {"lat": home.lat, "lon": home.lon}
    aliases = [{"alias": one, "type": "ENROLMENT"} for one in institutions]
    return {"fields": {"name": name, "phone": phone, "locale": locale, "home": place}, "aliases": aliases}


class ListedPeople:
    def __init__(self, services: Services, kind: Kind) -> None:
        self.services = services
        self.db = services.db
        self.kind = kind
        self.run_id = 0
        number = kind.document_type
        with self.db.transaction() as conn:
            conn.execute(
                text(
                    f"CREATE TABLE IF NOT EXISTS roster_rows_{number} PARTITION OF roster_rows FOR VALUES IN ({number})"
                )
            )

    def publish(self, rows: Rows) -> None:
        """None takes the person off the list."""
        with self.db.transaction() as conn:
            self.publish_in(conn, rows)

    def publish_in(self, conn: Connection, rows: Rows) -> None:
        self.run_id += 1
        for identifier, value in rows.items():
            known = {"document_type": self.kind.document_type, "identifier": identifier}
            if value is None:
                conn.execute(text(_DROP), known)
            else:
                conn.execute(text(_PUT), known | {name: json.dumps(one) for name, one in value.items()})
        known = {"document_type": self.kind.document_type, "run_id": self.run_id}
        conn.execute(text(_QUEUE), [known | {"identifier": identifier} for identifier in rows])

    def apply(self, **options: Any) -> PeopleReport:
        return apply_people(self.db, self.services.matching, self.kind, **options)

    def follow(self, rows: Rows) -> PeopleReport:
        self.publish(rows)
        return self.apply()

    def queued(self) -> list[str]:
        with self.db.transaction() as conn:
            found = conn.execute(text("SELECT identifier FROM roster_to_apply ORDER BY identifier"))
            return list(found.scalars())

    def user_id(self, identifier: str) -> int:
        with self.db.transaction() as conn:
            statement = "SELECT user_id FROM roster_people WHERE document_type = :type AND identifier = :identifier"
            values = {"type": self.kind.document_type, "identifier": identifier}
            return conn.execute(text(statement), values).scalar_one()
