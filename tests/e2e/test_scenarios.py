"""The three scenarios of the service, over HTTP, on all roles as they run in production."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import redis
from sqlalchemy import text

from app.api.services import Services
from app.api.tokens import LocalTokens
from app.users import service as users
from app.users.models import LatLon, Role
from tests.support.serving import Phone, eventually, serving

HOME = LatLon(40.9870, 29.0280)


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


@pytest.fixture
def offer_ttl_s() -> int:
    return 600


@pytest.fixture
def neighbourhood(services: Services, offer_ttl_s: int) -> Iterator[Neighbourhood]:
    people = _create_people(services)
    tokens = LocalTokens(services.settings.auth_secret or "")
    with serving(services.settings, OFFER_TTL_S=str(offer_ttl_s)) as port:
        phones = {name: Phone(port, user_id, tokens.issue(user_id)) for name, user_id in people.items()}
        yield Neighbourhood(**phones, services=services)


def _create_people(services: Services) -> dict[str, int]:
    def user(role: Role, name: str, north: float | None) -> int:
        place = None if north is None else LatLon(HOME.lat + north / 111_000, HOME.lon)
        return users.create_user(conn, users.NewUser(role, name, location=place)).id

    with services.db.transaction() as conn:
        return {
            "ayse": user(Role.ELDER, "Ayşe Yılmaz", 0),
            "ahmet": user(Role.STUDENT, "Ahmet Çelik", 100),
            "berat": user(Role.STUDENT, "Berat Şahin", 300),
            "zeynep": user(Role.COORDINATOR, "Zeynep Koç", None),
        }


def test_scenario_a_the_student_accepts(neighbourhood: Neighbourhood) -> None:
    ayse, ahmet, berat = neighbourhood.ayse, neighbourhood.ahmet, neighbourhood.berat
    task_id = ayse.press()
    listed, asked, left_ms = neighbourhood.keys(task_id)
    assert (listed, asked) == ([str(berat.user_id)], str(ahmet.user_id))
    assert 590_000 < left_ms <= 600_001
    assert ahmet.offer() is not None and berat.offer() is None

    assert ahmet.answer(task_id, "accept")[0] == 200
    assert neighbourhood.keys(task_id) == ([], None, -2)
    assert ayse.task(task_id)["status"] == "ASSIGNED"
    assert ayse.task(task_id)["student"]["name"] == "Ahmet Çelik"
    eventually(lambda: "Ahmet yola çıktı!" in neighbourhood.pushes_to(ayse))
    assert neighbourhood.pushes_to(ahmet) == ["Yakınında yeni bir talep var! Kabul etmek için 10 dakikan var."]
    assert ahmet.answer(task_id, "start")[0] == 200
    status, task = ahmet.answer(task_id, "complete")
    assert (status, task["status"]) == (200, "COMPLETED")
    # Berat is asked next, because Ahmet has completed a task this month.
    assert neighbourhood.keys(ayse.press())[1] == str(berat.user_id)


def test_scenario_b_the_student_rejects(neighbourhood: Neighbourhood) -> None:
    ayse, ahmet, berat = neighbourhood.ayse, neighbourhood.ahmet, neighbourhood.berat
    task_id = ayse.press()
    assert ahmet.answer(task_id, "reject")[0] == 200
    assert neighbourhood.keys(task_id)[:2] == ([], str(berat.user_id))
    assert berat.answer(task_id, "reject")[0] == 200
    assert ayse.task(task_id)["status"] == "TIMED_OUT"
    assert neighbourhood.keys(task_id) == ([], None, -2)
    eventually(lambda: "Maalesef şu an uygun öğrenci bulunamadı." in neighbourhood.pushes_to(ayse))
    eventually(lambda: any("Ayşe Yılmaz" in body for body in neighbourhood.pushes_to(neighbourhood.zeynep)))
    status, problem = ahmet.answer(task_id, "accept")
    assert (status, problem["code"]) == (409, "offer_rejected")


@pytest.mark.parametrize("offer_ttl_s", [3])
def test_scenario_c_nobody_answers(neighbourhood: Neighbourhood) -> None:
    ayse, ahmet, berat = neighbourhood.ayse, neighbourhood.ahmet, neighbourhood.berat
    task_id = ayse.press()
    assert ahmet.offer() is not None
    eventually(lambda: berat.offer())
    assert ahmet.offer() is None
    status, problem = ahmet.answer(task_id, "accept")
    assert (status, problem["code"]) == (409, "offer_expired")
    eventually(lambda: ayse.task(task_id)["status"] == "TIMED_OUT")
    eventually(lambda: "Maalesef şu an uygun öğrenci bulunamadı." in neighbourhood.pushes_to(ayse))
    status, offers = neighbourhood.zeynep.call("GET", f"/tasks/{task_id}/offers")
    assert [(item["studentId"], item["state"]) for item in offers["items"]] == [
        (ahmet.user_id, "EXPIRED"),
        (berat.user_id, "EXPIRED"),
    ]
