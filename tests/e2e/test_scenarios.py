"""Two scenarios of the service, over HTTP, on all roles as they run in production. The third one, in which nobody
answers, is in `test_pages_together.py` with people at pages, and in the README."""

from dataclasses import dataclass

import redis
from sqlalchemy import text

from app.api.services import Services
from app.api.tokens import LocalTokens
from app.users import service as users
from app.users.models import LatLon, Role
from tests.support.serving import Phone, eventually, serving

HOME = LatLon(40.9870, 29.0280)
FAR_AWAY = LatLon(41.0870, 29.0280)


@dataclass
class Neighbourhood:
    ayse: Phone
    ahmet: Phone
    berat: Phone
    zeynep: Phone
    services: Services

    def pushes_to(self, phone: Phone) -> list[str]:
        """The pushes to this person, from the recording channel."""
        with self.services.db.transaction() as conn:
            rows = conn.execute(
                text("SELECT body FROM recorded_pushes WHERE user_id = :id ORDER BY id"), {"id": phone.user_id}
            )
            return [row.body for row in rows]

    def keys(self, task_id: str) -> tuple[list[str], str | None, int]:
        client = redis.Redis.from_url(self.services.settings.redis_url, decode_responses=True)
        pending = f"pending_assignment:{task_id}"
        found = client.lrange(f"task_candidates:{task_id}", 0, -1), client.get(pending), client.pttl(pending)
        client.close()
        return found


def neighbourhood(services: Services, port: int, home: LatLon = HOME) -> Neighbourhood:
    tokens = LocalTokens(services.settings.auth_secret or "")
    people = _create_people(services, home)
    phones = {name: Phone(port, user_id, tokens.issue(user_id)) for name, user_id in people.items()}
    return Neighbourhood(**phones, services=services)


def _create_people(services: Services, home: LatLon) -> dict[str, int]:
    def user(role: Role, name: str, north: float | None) -> int:
        place = None if north is None else LatLon(home.lat + north / 111_000, home.lon)
        return users.create_user(conn, users.NewUser(role, name, location=place)).id

    with services.db.transaction() as conn:
        return {
            "ayse": user(Role.ELDER, "Ayşe Yılmaz", 0),
            "ahmet": user(Role.STUDENT, "Ahmet Çelik", 100),
            "berat": user(Role.STUDENT, "Berat Şahin", 300),
            "zeynep": user(Role.COORDINATOR, "Zeynep Koç", None),
        }


def test_scenarios_a_and_b_a_student_accepts_or_rejects(services: Services) -> None:
    """In two neighbourhoods of one service, because its roles take ten seconds of processor time to start."""
    with serving(services.settings, OFFER_TTL_S="600") as port:
        the_student_accepts(neighbourhood(services, port))
        the_student_rejects(neighbourhood(services, port, FAR_AWAY))


def the_student_accepts(here: Neighbourhood) -> None:
    ayse, ahmet, berat = here.ayse, here.ahmet, here.berat
    task_id = ayse.press()
    listed, asked, left_ms = here.keys(task_id)
    assert (listed, asked) == ([str(berat.user_id)], str(ahmet.user_id))
    assert 590_000 < left_ms <= 600_001
    assert ahmet.offer() is not None and berat.offer() is None

    assert ahmet.answer(task_id, "accept")[0] == 200
    assert here.keys(task_id) == ([], None, -2)
    assert ayse.task(task_id)["status"] == "ASSIGNED"
    assert ayse.task(task_id)["student"]["name"] == "Ahmet Çelik"
    eventually(lambda: "Ahmet yola çıktı!" in here.pushes_to(ayse))
    assert here.pushes_to(ahmet) == ["Yakınında yeni bir talep var! Kabul etmek için 10 dakikan var."]
    assert ahmet.answer(task_id, "start")[0] == 200
    status, task = ahmet.answer(task_id, "complete")
    assert (status, task["status"]) == (200, "COMPLETED")
    # Berat is asked next, because Ahmet has completed a task this month.
    assert here.keys(ayse.press())[1] == str(berat.user_id)


def the_student_rejects(here: Neighbourhood) -> None:
    ayse, ahmet, berat = here.ayse, here.ahmet, here.berat
    task_id = ayse.press()
    assert ahmet.answer(task_id, "reject")[0] == 200
    assert here.keys(task_id)[:2] == ([], str(berat.user_id))
    assert berat.answer(task_id, "reject")[0] == 200
    assert ayse.task(task_id)["status"] == "TIMED_OUT"
    assert here.keys(task_id) == ([], None, -2)
    eventually(lambda: "Maalesef şu an uygun öğrenci bulunamadı." in here.pushes_to(ayse))
    eventually(lambda: any("Ayşe Yılmaz" in body for body in here.pushes_to(here.zeynep)))
    status, problem = ahmet.answer(task_id, "accept")
    assert (status, problem["code"]) == (409, "offer_rejected")
